/** Volumes that wait for something of their own: a disk behind a gate, a runtime that mounts images. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ImageVolumeSource } from '../../src/api/v1.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import { mountsImages } from '../../src/volumes/imageVolume.ts';
import { VolumeError } from '../../src/volumes/volumeError.ts';
import { container, first, House, podWith } from './house.ts';

const isHeld = (reason: string, message: string) => (e: unknown) => e instanceof HeldBack && e.reason === reason && e.message === message;

test('a hostPath behind a disk that is away is neither made nor mounted, and the pod waits for the disk', async () => {
  const house = new House();
  const path = join(house.dir, 'ssd/data');
  let away = true;
  const checkPath = async (_: unknown, asked: string): Promise<void> => {
    assert.equal(asked, path);
    if (away) throw new HeldBack('WaitingForMount', '/ssd is not a mount point');
  };
  const manager = house.newAgent({ checkPath });
  const desired = podWith([{ name: 'disk', hostPath: { path, type: 'DirectoryOrCreate' } }, { name: 'own' }]);
  await assert.rejects(manager.setUp(desired), (e) => e instanceof VolumeError && e.reason === 'WaitingForMount');
  assert.ok(!existsSync(join(house.dir, 'ssd')));
  away = false;
  await manager.setUp(desired);
  assert.ok(existsSync(path));
  away = true;
  await manager.setUp(desired);
  await assert.rejects(manager.mounts(desired, first(desired), 1, []), isHeld('WaitingForMount', '/ssd is not a mount point'));
});

test('volumes that fail for several reasons are a FailedMount', async () => {
  const house = new House();
  const manager = house.newAgent({
    checkPath: async (_, path) => {
      if (path === '/mnt/ssd') throw new HeldBack('WaitingForMount', '/mnt/ssd is not a mount point');
    },
  });
  const desired = podWith([
    { name: 'disk', hostPath: { path: '/mnt/ssd' } },
    { name: 'none', hostPath: { path: join(house.dir, 'none') } },
  ]);
  await assert.rejects(manager.setUp(desired), (e) => e instanceof VolumeError && e.reason === 'FailedMount');
});

test('containerd mounts images from 2.1 on', () => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ['containerd', '1.6.20~ds1', false],
    ['containerd', 'v1.7.24', false],
    ['containerd', '2.0.5', false],
    ['containerd', 'v2.1.0-rc.0', true],
    ['containerd', '2.1.4', true],
    ['containerd', 'v2.10.0', true],
    ['containerd', '3.0.0', true],
    ['containerd', '', false],
    ['containerd', 'nightly', false],
    ['cri-o', '1.33.0', false],
  ];
  for (const [name, version, can] of table) assert.equal(mountsImages(name, version), can, `${name} ${version}`);
});

const images = podWith([{ name: 'files', image: { reference: 'localhost/files:1', pullPolicy: 'Never' } }]);

test('on a runtime without image volumes the pod waits, and nothing is pulled', async () => {
  const house = new House();
  const manager = house.newAgent({ runtimeVersion: () => ({ name: 'containerd', version: '1.6.20~ds1' }) });
  await assert.rejects(manager.setUp(images), (e: Error) => {
    assert.ok(e instanceof VolumeError);
    assert.equal(e.reason, 'ImageVolumesUnsupported');
    assert.match(e.message, /containerd 1\.6\.20 has no image volumes; containerd 2\.1 and later have$/);
    return true;
  });
  await assert.rejects(house.newAgent().setUp(images), /the runtime has no image volumes/);
});

test('on one that has them the image is there before each start, and is mounted read-only by its id', async () => {
  const house = new House();
  const manager = house.newAgent({ runtimeVersion: () => ({ name: 'containerd', version: 'v2.1.0' }) });
  await manager.setUp(images);
  const asked: ImageVolumeSource[] = [];
  let answer: EnsureResult = { ok: false, reason: 'ErrImageNeverPull', message: 'not present', waitMs: 700 };
  const ensureImage = async (source: ImageVolumeSource): Promise<EnsureResult> => {
    asked.push(source);
    return answer;
  };
  await assert.rejects(
    manager.mounts(images, first(images), 0, [], { ensureImage }),
    (e) => isHeld('ErrImageNeverPull', 'not present')(e) && (e as HeldBack).waitMs === 700,
  );
  answer = { ok: true, image: { id: 'sha256:abc', username: '' } };
  const [mount] = await manager.mounts(images, first(images), 0, [], { ensureImage });
  assert.deepEqual(mount, { containerPath: '/files', readonly: true, hostPath: '', image: 'sha256:abc' });
  assert.deepEqual(asked, Array(2).fill({ reference: 'localhost/files:1', pullPolicy: 'Never' }));
  const part = podWith([{ name: 'files', image: { reference: 'localhost/files:1' } }], {
    containers: [container('c', { volumeMounts: [{ name: 'files', mountPath: '/f', subPath: 'a' }] })],
  });
  await assert.rejects(manager.mounts(part, first(part), 0, [], { ensureImage }), /an image, which cannot be mounted in part/);
});
