import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerStats } from '../../src/container/stats.ts';
import { type ContainerId, labels } from '../../src/container/words.ts';
import { candidatesFor, offendersOf, type UsageNow } from '../../src/eviction/candidates.ts';
import { podDiskUsage } from '../../src/eviction/podDisk.ts';
import { podUsage } from '../../src/eviction/podUsage.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { desiredPod } from '../pod/desiredPod.ts';

const MiB = 2 ** 20;
const web = desiredPod('web', 'u1', {
  spec: {
    containers: [
      { name: 'app', image: 'i', resources: { requests: { memory: '64Mi', 'ephemeral-storage': '10Mi' } } },
      { name: 'side', image: 'i' },
    ],
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'bare' },
      { name: 'ram', emptyDir: { medium: 'Memory' } },
      { name: 'host', hostPath: { path: '/' } },
    ],
  },
});
const stats = (name: string, uid: string, o: Partial<ContainerStats> = {}): ContainerStats => ({
  id: name as ContainerId,
  name,
  attempt: 0,
  labels: { [labels.podUid]: uid },
  ...o,
});
const memory = (mi: number) => ({ memory: { atMs: 0, workingSetBytes: mi * MiB } });
const never = new AbortController().signal;

test('a pod’s memory is that of its cgroup with what was swapped out; its containers are as the runtime counts them', async () => {
  const uses = await podUsage(
    {
      clock: new FakeClock(),
      containerStats: async () => [stats('app', 'u1', memory(100)), stats('side', 'u1'), stats('x', 'u2', memory(5))],
      groupUse: async (uid) => (uid === 'u1' ? { memory: { workingSetBytes: 150 * MiB, swapBytes: 50 * MiB }, pids: 7 } : undefined),
    },
    [web.uid, 'u2' as PodUid, 'u3' as PodUid],
  );
  assert.deepEqual(uses.get(web.uid), { memoryBytes: 200 * MiB, processes: 7, containerMemoryBytes: new Map([['app', 100 * MiB]]) });
  assert.equal(uses.get('u2' as PodUid)?.memoryBytes, 5 * MiB, 'without a cgroup of the pod: the sum of its containers');
  assert.equal(uses.get('u3' as PodUid)?.memoryBytes, undefined);
});

test('a runtime that does not answer is not waited for', async () => {
  const clock = new FakeClock();
  const asked = podUsage({ clock, containerStats: () => new Promise(() => {}), groupUse: async () => ({ pids: 3 }) }, [web.uid]);
  await clock.advance(2000);
  assert.deepEqual((await asked).get(web.uid), { processes: 3, containerMemoryBytes: new Map() });
  assert.equal(clock.sleeping, 0);
});

async function disk(): Promise<UsageNow> {
  const asked: string[] = [];
  const usage = await podDiskUsage(
    {
      log: silentLog,
      containerStats: async () => [stats('app', 'u1', { writableLayer: { atMs: 0, mountpoint: '/', usedBytes: 30 * MiB, inodesUsed: 3 } })],
      folderUsage: async (path) => {
        asked.push(path);
        if (path === '/pods/u1/bare') throw new Error('EIO');
        return { bytes: 5 * MiB, inodes: 2 };
      },
      emptyDirFolder: (uid, volume) => `/pods/${uid}/${volume}`,
      logFolder: ({ name }, container) => `/logs/${name}/${container}`,
    },
    [web],
    never,
  );
  assert.deepEqual(asked, ['/pods/u1/data', '/pods/u1/bare', '/logs/web/app', '/logs/web/side']);
  return { usage: new Map(), disk: usage, separateImageDisk: false };
}

test('on one disk everything counts that goes with the pod; a folder that cannot be read counts nothing', async () => {
  const now = await disk();
  const of = (o: Partial<UsageNow>, signal: 'nodefs.available' | 'imagefs.available' | 'nodefs.inodesFree') =>
    candidatesFor(signal, [web], { ...now, ...o })[0];
  assert.equal(of({}, 'nodefs.available')?.usage, 45 * MiB);
  assert.equal(of({}, 'nodefs.available')?.request, 10 * MiB);
  assert.equal(of({ separateImageDisk: true }, 'nodefs.available')?.usage, 15 * MiB);
  assert.equal(of({ separateImageDisk: true }, 'imagefs.available')?.usage, 30 * MiB);
  assert.equal(of({}, 'nodefs.inodesFree')?.usage, 9);
});

test('growth is against the first measurement; of a pod that came since all is new', async () => {
  const now = await disk();
  const growth = (firstDisk: UsageNow['firstDisk']) =>
    candidatesFor('nodefs.available', [web], { ...now, ...(firstDisk && { firstDisk }) })[0]?.growth;
  assert.equal(growth(undefined), 0);
  assert.equal(growth(now.disk), 0);
  assert.equal(growth(new Map()), 45 * MiB);
});

test('the message names containers that use more than they asked for', async () => {
  const now = await disk();
  const usage = new Map([
    [
      web.uid,
      {
        containerMemoryBytes: new Map([
          ['app', 65 * MiB],
          ['side', MiB],
        ]),
      },
    ],
  ]);
  assert.deepEqual(offendersOf('memory.available', web, { ...now, usage }), [
    { container: 'app', usage: '65Mi', request: '64Mi' },
    { container: 'side', usage: '1Mi', request: '0' },
  ]);
  assert.deepEqual(
    offendersOf('nodefs.available', web, now).map((o) => o.container),
    ['app', 'side'],
  );
  assert.deepEqual(offendersOf('pid.available', web, { ...now, usage }), []);
});
