import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Mounter, systemMounter } from '../../src/volumes/mount.ts';
import { bindSubPath, openInside } from '../../src/volumes/subPath.ts';
import { container, first, folder, House, mode, mountsUnder, podWith, swapForLinks } from './house.ts';

/** A volume with a secret beside it. */
function volume(): { readonly dir: string; readonly data: string } {
  const dir = folder();
  const data = join(dir, 'data');
  mkdirSync(data);
  mkdirSync(join(dir, 'outside'));
  writeFileSync(join(dir, 'outside/secret'), 'secret');
  return { dir, data };
}

const opened = async (data: string, subPath: string): Promise<string> => {
  const place = await openInside(data, subPath);
  try {
    return await readlink(`/proc/self/fd/${place.fd}`);
  } finally {
    await place.close();
  }
};

test('links that lead out of the volume are refused, whichever way they lead', async () => {
  const { dir, data } = volume();
  mkdirSync(join(data, 'in/deep'), { recursive: true });
  const table: Record<string, string> = {
    etc: '/etc',
    up: '..',
    upAndIn: '../outside',
    far: '../../../../../../etc',
    viaIn: 'in/../../outside',
    sibling: `${data}2`,
    itself: 'itself',
  };
  for (const [name, target] of Object.entries(table)) symlinkSync(target, join(data, name));
  mkdirSync(`${data}2`);
  symlinkSync('/etc', join(data, 'in/deep/link'));
  for (const subPath of [...Object.keys(table), 'upAndIn/secret', 'in/deep/link', 'in/deep/link/shadow', 'etc/new'])
    await assert.rejects(openInside(data, subPath), /leads out of its volume|too many links/, subPath);
  assert.deepEqual(readdirSync(join(dir, 'outside')), ['secret']);
  assert.ok(!existsSync('/etc/new'));
});

test('links that stay inside are followed, absolute ones too, as a ConfigMap’s files are', async () => {
  const { data } = volume();
  mkdirSync(join(data, '..2026'));
  writeFileSync(join(data, '..2026/app.conf'), 'x');
  symlinkSync('..2026', join(data, '..data'));
  symlinkSync('..data/app.conf', join(data, 'app.conf'));
  symlinkSync(join(data, '..2026'), join(data, 'absolute'));
  symlinkSync(data, join(data, 'all'));
  assert.equal(await opened(data, 'app.conf'), join(data, '..2026/app.conf'));
  assert.equal(await opened(data, 'absolute/app.conf'), join(data, '..2026/app.conf'));
  assert.equal(await opened(data, 'all/all/./absolute/'), join(data, '..2026'));
});

test('the volume itself may be reached by a link of the node’s owner', async () => {
  const { dir, data } = volume();
  symlinkSync(data, join(dir, 'current'));
  assert.equal(await opened(join(dir, 'current'), 'a/b'), join(data, 'a/b'));
});

test('what is missing is made with the mode of the volume, whatever the umask is; what is there stays as it is', async () => {
  const { data } = volume();
  mkdirSync(join(data, 'there'), { mode: 0o700 });
  chmodSync(data, 0o2775);
  const before = process.umask(0o077);
  try {
    await opened(data, 'there/a/b');
  } finally {
    process.umask(before);
  }
  assert.deepEqual([mode(join(data, 'there')), mode(join(data, 'there/a')), mode(join(data, 'there/a/b'))], ['700', '2775', '2775']);
  writeFileSync(join(data, 'file'), 'x');
  await assert.rejects(openInside(data, 'file/below'), /ENOTDIR/);
});

test('a link swapped in between the look and the mount leads nowhere: what was looked at is mounted', async () => {
  const { dir, data } = volume();
  const target = join(dir, 'target/0');
  mkdirSync(join(data, 'a'));
  writeFileSync(join(data, 'a/mine'), 'mine');
  const swapping: Mounter = {
    ...systemMounter,
    bind: async (source, to) => {
      renameSync(join(data, 'a'), join(data, 'b'));
      symlinkSync(join(dir, 'outside'), join(data, 'a'));
      await systemMounter.bind(source, to);
    },
  };
  await bindSubPath(swapping, data, 'a', target);
  assert.deepEqual(readdirSync(target), ['mine']);
});

test('a link swapped in while folders are looked through never leads out', async () => {
  const { dir, data } = volume();
  mkdirSync(join(data, 'a/b'), { recursive: true });
  const swapper = swapForLinks(join(data, 'a'), join(data, 'hidden'), join(dir, 'outside'));
  const outcomes = new Set<string>();
  try {
    const met = (): boolean =>
      outcomes.has('it leads out of its volume') && (outcomes.has(join(data, 'a/b')) || outcomes.has(join(data, 'hidden/b')));
    // by time: while the other process does not run at all, thousands of looks take no second
    for (let i = 0, end = performance.now() + 30_000; i < 200 || (!met() && performance.now() < end); i++)
      outcomes.add(await opened(data, 'a/b').catch((e: Error) => e.message.replace(/[:,].*/s, '')));
  } finally {
    swapper.kill('SIGKILL');
    await once(swapper, 'close');
  }
  // it was met in both states, and what the swapper's own gaps let be made lies inside
  assert.ok(outcomes.has('it leads out of its volume'), [...outcomes].join());
  assert.ok(outcomes.has(join(data, 'a/b')) || outcomes.has(join(data, 'hidden/b')), [...outcomes].join());
  for (const path of outcomes) assert.ok(!path.includes('/outside'), path);
  assert.deepEqual(readdirSync(join(dir, 'outside')), ['secret']);
});

test('folders and files are bound; the same binding stays, another one replaces it', async () => {
  const { dir, data } = volume();
  const target = join(dir, 'target/0');
  mkdirSync(join(data, 'one'));
  await bindSubPath(systemMounter, data, 'one', target);
  await bindSubPath(systemMounter, data, 'one', target);
  assert.deepEqual(mountsUnder(dir), ['target/0']);
  renameSync(join(data, 'one'), join(data, 'old'));
  writeFileSync(join(data, 'one'), 'a file by now');
  await bindSubPath(systemMounter, data, 'one', target);
  assert.equal(readFileSync(target, 'utf8'), 'a file by now');
  rmSync(join(data, 'one'));
  await bindSubPath(systemMounter, data, 'one', target);
  assert.ok(statSync(target).isDirectory());
  assert.deepEqual(mountsUnder(dir), ['target/0']);
});

test('a container that would mount the node by a subPath is not made', async () => {
  const house = new House();
  const desired = podWith([{ name: 'own' }], {
    containers: [container('c', { volumeMounts: [{ name: 'own', mountPath: '/o', subPath: 'link' }] })],
  });
  await house.manager.setUp(desired);
  symlinkSync('/', house.emptyDir('own', 'link'));
  await assert.rejects(house.manager.mounts(desired, first(desired), 0, []), (e: Error) => {
    assert.equal(e.message, 'failed to prepare subPath for volumeMount "own" of container "c"');
    assert.match(String((e.cause as Error).message), /leads out of its volume/);
    return true;
  });
  assert.deepEqual(mountsUnder(house.dir), []);
  execFileSync('rm', [house.emptyDir('own', 'link')]);
  await house.manager.mounts(desired, first(desired), 0, []);
});
