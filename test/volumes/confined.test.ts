/** hostPaths of a pod whose source may mount some paths only: links below those lead nowhere else, whenever they are made. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { HostPathType } from '../../src/api/v1.ts';
import { rootOf } from '../../src/policy/hostPaths.ts';
import { container, first, House, mountsUnder, pod, podWith } from './house.ts';

/** A house whose pods may mount `data` of it. */
function confined(path: string, more: { readonly subPath?: string } = {}, type: HostPathType = '') {
  const house = new House();
  const data = join(house.dir, 'data');
  mkdirSync(join(data, 'app/conf'), { recursive: true });
  mkdirSync(join(house.dir, 'outside/conf'), { recursive: true });
  writeFileSync(join(data, 'app/conf/mine'), 'mine');
  writeFileSync(join(house.dir, 'outside/conf/secret'), 'secret');
  house.newAgent({ rootOf: (_: DesiredPod, asked: string) => rootOf(asked, [data]) });
  const desired = pod({
    volumes: [{ name: 'd', hostPath: { path: join(data, path), type } }],
    containers: [container('c', { volumeMounts: [{ name: 'd', mountPath: '/d', ...more }] })],
  });
  writeFileSync(join(house.dir, 'node-hosts'), '127.0.0.1 localhost\n');
  const mountOf = async (): Promise<string> => {
    const mounts = await house.manager.mounts(desired, first(desired), 0, []);
    return mounts.find((m) => m.containerPath === '/d')?.hostPath ?? '';
  };
  return { house, data, desired, mountOf };
}

test('what is mounted is a binding of what was looked at, with what is mounted below it', async () => {
  const { house, data, desired, mountOf } = confined('app');
  mkdirSync(join(data, 'app/usb'));
  execFileSync('mount', ['-t', 'tmpfs', 'none', join(data, 'app/usb')]);
  writeFileSync(join(data, 'app/usb/film'), 'film');
  await house.manager.setUp(desired);
  const path = await mountOf();
  assert.ok(path.startsWith(house.podsDir), path);
  assert.equal(readFileSync(join(path, 'conf/mine'), 'utf8'), 'mine');
  assert.equal(readFileSync(join(path, 'usb/film'), 'utf8'), 'film');
  assert.equal(await mountOf(), path, 'a second start finds it');
});

test('a link that was swapped in after the look leads nowhere', async () => {
  const { house, data, desired, mountOf } = confined('app/conf');
  await house.manager.setUp(desired);
  renameSync(join(data, 'app'), join(data, 'was'));
  symlinkSync(join(house.dir, 'outside'), join(data, 'app'));
  await assert.rejects(mountOf(), /failed to prepare hostPath for volumeMount "d" of container "c"/);
});

test('a link that stays inside is followed; the allowed path itself and a part of a volume are mounted too', async () => {
  for (const [path, more] of [
    ['current', {}],
    ['', {}],
    ['current', { subPath: 'conf' }],
  ] as const) {
    const { house, data, desired, mountOf } = confined(path, more);
    symlinkSync('app', join(data, 'current'));
    await house.manager.setUp(desired);
    const names = readdirSync(await mountOf());
    assert.ok(names.includes('subPath' in more ? 'mine' : path === '' ? 'current' : 'conf'), names.join());
  }
});

test('a part of a volume does not lead out of the allowed path either', async () => {
  const { house, data, desired, mountOf } = confined('app', { subPath: 'conf' });
  await house.manager.setUp(desired);
  renameSync(join(data, 'app'), join(data, 'was'));
  symlinkSync(join(house.dir, 'outside'), join(data, 'app'));
  await assert.rejects(mountOf(), /failed to prepare subPath/);
});

test('the bindings go with the pod, and what they led to stays', async () => {
  const { house, data, desired, mountOf } = confined('app');
  mkdirSync(join(data, 'app/usb'));
  execFileSync('mount', ['-t', 'tmpfs', 'none', join(data, 'app/usb')]);
  writeFileSync(join(data, 'app/usb/film'), 'film');
  await house.manager.setUp(desired);
  await mountOf();
  await house.manager.tearDown(desired.uid);
  assert.deepEqual(mountsUnder(house.podsDir), []);
  assert.equal(readFileSync(join(data, 'app/usb/film'), 'utf8'), 'film');
  assert.equal(readFileSync(join(data, 'app/conf/mine'), 'utf8'), 'mine');
});

test('what is made is made inside, and not behind a link that leads out', async () => {
  for (const type of ['DirectoryOrCreate', 'FileOrCreate'] as const) {
    const { house, data, desired, mountOf } = confined('app/new', {}, type);
    await house.manager.setUp(desired);
    assert.ok(existsSync(join(data, 'app/new')));
    assert.ok(existsSync(await mountOf()));
    const other = confined('link/new', {}, type);
    symlinkSync(join(other.house.dir, 'outside'), join(other.data, 'link'));
    await assert.rejects(other.house.manager.setUp(other.desired), /cannot be created/);
    assert.ok(!existsSync(join(other.house.dir, 'outside/new')));
  }
});

test('the allowed path itself is made where it is missing', async () => {
  const house = new House();
  const root = join(house.dir, 'not/there');
  house.newAgent({ rootOf: (_: DesiredPod, asked: string) => rootOf(asked, [root]) });
  const desired = podWith([{ name: 'd', hostPath: { path: root, type: 'DirectoryOrCreate' } }]);
  await house.manager.setUp(desired);
  assert.ok(existsSync(root));
});
