/** What lies in emptyDirs, and how often a disk is walked through for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { type VolumeStatsDeps, volumeStats } from '../../src/operations/statsVolumes.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { told } from './view.ts';

const uid = 'uid-web' as PodUid;
const space = { capacityBytes: 100, availableBytes: 70, inodes: 10, inodesFree: 4 };

function world(o: Partial<VolumeStatsDeps> = {}) {
  const clock = new FakeClock();
  const walked: string[] = [];
  const usage = volumeStats({
    clock,
    pods: () => [
      told('web', {
        spec: {
          volumes: [
            { name: 'cache', emptyDir: {} },
            { name: 'plain' },
            { name: 'tmp', emptyDir: { medium: 'Memory' } },
            { name: 'data', hostPath: { path: '/srv' } },
            { name: 'config', configMap: { name: 'c' } },
          ],
        },
      }),
    ],
    podsDir: '/pods',
    fsSpace: async () => space,
    folderUsage: async (folder) => {
      walked.push(folder);
      return { bytes: 4096 * walked.length, inodes: 3 };
    },
    ...o,
  });
  return { clock, walked, usage };
}

test('emptyDirs are told: on disk as part of what the pod has written, in memory by their own file system; nothing else is looked at', async () => {
  const { usage, walked } = world();
  assert.deepEqual(await usage(uid), [
    { name: 'cache', usedBytes: 4096, inodesUsed: 3, ephemeral: true },
    { name: 'plain', usedBytes: 8192, inodesUsed: 3, ephemeral: true },
    { name: 'tmp', usedBytes: 30, inodesUsed: 6, ephemeral: false, space },
  ]);
  assert.deepEqual(walked, ['/pods/uid-web/volumes/kubernetes.io~empty-dir/cache', '/pods/uid-web/volumes/kubernetes.io~empty-dir/plain']);
  assert.deepEqual(await usage('nobody' as PodUid), []);
});

test('a disk is walked through once a minute at most', async () => {
  const { clock, usage, walked } = world();
  await usage(uid);
  await clock.advance(59_999);
  assert.equal((await usage(uid))[0]?.usedBytes, 4096);
  assert.equal(walked.length, 2);
  await clock.advance(1);
  assert.equal((await usage(uid))[0]?.usedBytes, 4096 * 3);
  assert.equal(walked.length, 4);
});

test('what cannot be measured is left out', async () => {
  const away = () => Promise.reject(new Error('EIO'));
  assert.deepEqual(await world({ folderUsage: away, fsSpace: away }).usage(uid), []);
  assert.deepEqual(await world({ folderUsage: away, fsSpace: async () => undefined }).usage(uid), []);
});
