/** What makes it a package of its own: nothing from outside, small files, a table in the README that is true. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const here = new URL('../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, here), 'utf8');
const sources = readdirSync(here).filter((name) => name.endsWith('.ts'));

test('it imports Node and itself, nothing else', () => {
  for (const name of sources) {
    for (const [, from = ''] of read(name).matchAll(/^(?:import|export)[^;]*? from '([^']+)'/gm))
      assert.ok(from.startsWith('node:') || sources.includes(from.replace(/^\.\//, '')), `${name} imports ${from}`);
  }
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, unknown>;
  assert.deepEqual([dependencies, devDependencies], [undefined, undefined]);
});

test('no file has more than 400 lines', () => {
  for (const name of sources) assert.ok(read(name).split('\n').length <= 400, name);
});

test("the README's table names every file", () => {
  const readme = read('README.md');
  for (const name of sources) assert.match(readme, new RegExp(`^\\| \`${name}\` +\\|`, 'm'), `${name} is not in the table`);
});

test('the package is found under its name, with all that the README promises', async () => {
  const { name: own } = JSON.parse(read('package.json')) as { readonly name: string };
  const main = (await import(own)) as typeof import('../index.ts'); // by its own name, so by `exports`
  assert.equal(typeof ((await import(`${own}/testing`)) as typeof import('../testing.ts')).FakeCgroupfs, 'function');
  for (const name of [
    'Hierarchy',
    'CgroupfsDriver',
    'SystemdDriver',
    'detect',
    'PressureMonitor',
    'watchMemoryEvents',
    'CgroupError',
    'sharesToWeight',
  ])
    assert.ok(name in main, name);
  for (const name of ['cpu', 'cpuset', 'memory', 'pids', 'io', 'hugetlb', 'misc'] as const) {
    const controller = main[name];
    assert.deepEqual(
      [controller.name, typeof controller.isSet, typeof controller.set, typeof controller.stat],
      [name, 'function', 'function', 'function'],
    );
  }
});
