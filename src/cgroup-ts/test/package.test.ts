/** What makes it a package of its own: nothing from outside, small files, a table in the README that is true. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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

test('the package is found under its name, with all that the README promises', () => {
  const { name: own } = JSON.parse(read('package.json')) as { readonly name: string };
  // as whoever uses it has it: by its own name, so by `exports`, in a process of its own
  const script = `
    const main = await import('${own}'), { FakeCgroupfs } = await import('${own}/testing');
    const shape = (c) => [c.name, typeof c.isSet, typeof c.set, typeof c.stat];
    const controllers = ['cpu', 'cpuset', 'memory', 'pids', 'io', 'hugetlb', 'misc'].map((c) => shape(main[c]));
    console.log(JSON.stringify({ names: Object.keys(main), fake: typeof FakeCgroupfs, controllers }));`;
  const answer = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], { cwd: here, encoding: 'utf8' });
  const { names, fake, controllers } = JSON.parse(answer) as { names: string[]; fake: string; controllers: string[][] };
  assert.equal(fake, 'function');
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
    assert.ok(names.includes(name), name);
  assert.deepEqual(
    controllers,
    ['cpu', 'cpuset', 'memory', 'pids', 'io', 'hugetlb', 'misc'].map((name) => [name, 'function', 'function', 'function']),
  );
});
