import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { subPathOf } from '../../src/volumes/volumeMounts.ts';
import { describeError } from '../../src/world/log.ts';
import { container, first, House, mountsUnder, podWith, swapForLinks } from './house.ts';

const env: Record<string, string> = {
  NAME: 'web',
  DEEP: 'a/b',
  UP: '..',
  ROOT: '/etc',
  EMPTY: '',
  TEXT: '$(NAME)',
  NUL: 'a\0b',
  DOTS: 'a..b',
};
const expanded = (subPathExpr: string): string =>
  subPathOf({ name: 'v', mountPath: '/v', subPathExpr }, (name) => (Object.hasOwn(env, name) ? env[name] : undefined));

test('an expression is expanded with the environment, once, and is a path inside the volume then', () => {
  const right: Record<string, string> = {
    '$(NAME)': 'web',
    'logs/$(NAME)/$(DEEP)': 'logs/web/a/b',
    '$(NAME)$(NAME)': 'webweb',
    plain: 'plain',
    '$$(NAME)': '$(NAME)',
    $NAME: '$NAME',
    '$(NAME': '$(NAME',
    '$(TEXT)': '$(NAME)',
    '$(DOTS)': 'a..b',
  };
  for (const [text, path] of Object.entries(right)) assert.equal(expanded(text), path, text);
});

test('what cannot be expanded or leads out is refused in the kubelet’s words', () => {
  const wrong: Record<string, string> = {
    '$(NONE)': 'missing value for NONE',
    '$(EMPTY)': 'missing value for EMPTY',
    '$(Z)/$(NAME)/$(A)/$(Z)': 'missing value for A, Z',
    '$()': 'missing value for ',
    '$(UP)': "unable to provision SubPath `..`: must not contain '..'",
    'a/$(UP)/$(UP)/b': "unable to provision SubPath `a/../../b`: must not contain '..'",
    '$(ROOT)': 'error SubPath `/etc` must not be an absolute path',
    '$(NUL)': 'unable to provision SubPath: it has a NUL byte in it',
  };
  for (const [text, message] of Object.entries(wrong)) assert.throws(() => expanded(text), { message }, text);
});

const withExpr = (subPathExpr: string) =>
  podWith([{ name: 'own' }], { containers: [container('c', { volumeMounts: [{ name: 'own', mountPath: '/o', subPathExpr }] })] });

test('a value is no way out through a link that lies in the volume, and no part of it is told', async () => {
  const house = new House();
  const desired = withExpr('$(NAME)/data');
  await house.manager.setUp(desired);
  const mount = (value: string) =>
    house.manager.mounts(desired, first(desired), 0, [], { env: (name) => (name === 'NAME' ? value : undefined) });
  mkdirSync(join(house.dir, 'outside'));
  symlinkSync(join(house.dir, 'outside'), house.emptyDir('own', 'link'));
  symlinkSync('../../../../..', house.emptyDir('own', 'up'));
  writeFileSync(house.emptyDir('own', 'hunter2file'), '');
  for (const value of ['link', 'up', 'hunter2file', `hunter2${'x'.repeat(300)}`]) {
    await assert.rejects(mount(value), (e: Error) => {
      assert.match(describeError(e), /^failed to prepare subPath for volumeMount "own" of container "c": /);
      assert.doesNotMatch(describeError(e), /hunter2/);
      return true;
    });
  }
  assert.deepEqual(readdirSync(join(house.dir, 'outside')), []);
  assert.deepEqual(mountsUnder(house.dir), []);
  const mounts = await mount('web');
  assert.equal(mounts[0]?.hostPath, house.path('volume-subpaths/own/c/0'));
  assert.ok(existsSync(house.emptyDir('own', 'web/data')));
});

test('a folder that a container swaps for a link all the time is mounted as it is inside, or not at all', async () => {
  const house = new House();
  const desired = withExpr('$(NAME)/b');
  await house.manager.setUp(desired);
  mkdirSync(join(house.dir, 'outside/b'), { recursive: true });
  writeFileSync(join(house.dir, 'outside/b/secret'), 'secret');
  mkdirSync(house.emptyDir('own', 'a/b'), { recursive: true });
  writeFileSync(house.emptyDir('own', 'a/b/mine'), 'mine');
  const target = house.path('volume-subpaths/own/c/0');
  const swapper = swapForLinks(house.emptyDir('own', 'a'), house.emptyDir('own', 'hidden'), join(house.dir, 'outside'));
  let refused = 0;
  let mounted = 0;
  try {
    // by time: a swapper that does not run for a while may leave the link there
    const end = performance.now() + 30_000;
    for (let i = 0; i < 40 || (i < 150 && refused === 0) || (mounted === 0 && performance.now() < end); i++) {
      const outcome = house.manager.mounts(desired, first(desired), i, [], { env: () => 'a' });
      await outcome.then(
        () => mounted++,
        (e) => {
          assert.match(describeError(e), /leads out of its volume|ENOENT|ENOTDIR|EINVAL|went away|No such file/);
          refused++;
        },
      );
      // a gap of the swapper may have let an empty one be made, which lies inside as well
      if (mountsUnder(house.dir).length > 0) assert.ok(!readdirSync(target).includes('secret'));
    }
  } finally {
    swapper.kill('SIGKILL');
    await once(swapper, 'close');
  }
  assert.ok(mounted > 0, `${mounted} mounted, ${refused} refused`);
  assert.deepEqual(readdirSync(join(house.dir, 'outside')), ['b']);
  assert.equal(readFileSync(join(house.dir, 'outside/b/secret'), 'utf8'), 'secret');
});

test('another value at the next start is another place: what was bound before goes', async () => {
  const house = new House();
  const desired = withExpr('$(NAME)');
  await house.manager.setUp(desired);
  const mount = (value: string, attempt: number) => house.manager.mounts(desired, first(desired), attempt, [], { env: () => value });
  await mount('one', 0);
  writeFileSync(house.path('volume-subpaths/own/c/0/f'), 'x');
  await mount('two', 1);
  assert.deepEqual(readdirSync(house.path('volume-subpaths/own/c/0')), []);
  assert.deepEqual(readdirSync(house.emptyDir('own', 'one')), ['f']);
  assert.deepEqual(mountsUnder(house.dir), ['pods/uid-1/volume-subpaths/own/c/0']);
  execFileSync('umount', [house.path('volume-subpaths/own/c/0')]);
});
