/** What a container that ended for want of memory is told of its volumes in memory. */
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import type { ContainerId, ContainerStatus, SandboxId } from '../../src/container/words.ts';
import { labels } from '../../src/container/words.ts';
import { bytesInMemory, memoryHint } from '../../src/kuberuntime/memoryHint.ts';
import type { WallTime } from '../../src/world/clock.ts';

const uid = '11111111-2222-4333-8444-555555555555';
const dir = `/var/lib/podsched/pods/${uid}/volumes/kubernetes.io~empty-dir`;
const mib = 2 ** 20;

const ended = (more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  id: 'c0ffee' as ContainerId,
  sandboxId: 'b0b' as SandboxId,
  name: 'main',
  attempt: 0,
  state: 'exited',
  createdAt: 0 as WallTime,
  image: 'busybox',
  imageRef: 'busybox',
  labels: { [labels.podUid]: uid },
  annotations: {},
  exitCode: 137,
  reason: 'OOMKilled',
  message: '',
  logPath: '',
  mounts: [
    { containerPath: '/fill', hostPath: `${dir}/fill` },
    { containerPath: '/again', hostPath: `${dir}/fill` },
    { containerPath: '/small', hostPath: `${dir}/small` },
    { containerPath: '/disk', hostPath: `${dir}/disk` },
    { containerPath: '/data', hostPath: '/srv/data' },
  ],
  ...more,
});
const held: Readonly<Record<string, number>> = { [`${dir}/fill`]: 19.5 * mib, [`${dir}/small`]: 4096, '/srv/data': 500 * mib };
const bytesOf = async (path: string): Promise<number | undefined> => held[path];

test('volumes in memory that hold something are named, each once, and no others', async () => {
  assert.equal(
    await memoryHint(ended(), bytesOf),
    'volumes in memory count as memory of the container and keep their content over a restart: fill 19Mi (emptyDir, medium Memory)',
  );
});

test('an attempt that died of it before it began is told so too', async () => {
  const message = 'runc create failed: container init was OOM-killed (memory limit too low?)';
  assert.match((await memoryHint(ended({ exitCode: 128, reason: 'StartError', message }), bytesOf)) ?? '', /fill 19Mi/);
});

for (const [what, status] of [
  ['another end', ended({ reason: 'Error' })],
  ['a container that runs', ended({ state: 'running' })],
  ['volumes that hold next to nothing', ended({ mounts: [{ containerPath: '/small', hostPath: `${dir}/small` }] })],
  ['volumes of another pod', ended({ labels: { [labels.podUid]: 'other' } })],
] as const)
  test(`nothing is said of ${what}`, async () => assert.equal(await memoryHint(status, bytesOf), undefined));

test('a folder on a disk, and one that is gone, are not in memory', async () => {
  assert.equal(await bytesInMemory('/proc/self'), undefined);
  assert.equal(await bytesInMemory(`${tmpdir()}/not-there-at-all`), undefined);
  assert.equal(typeof (await bytesInMemory('/dev/shm')), 'number');
});
