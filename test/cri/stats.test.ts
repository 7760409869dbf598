/** What containers use, over the wire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import type { PodUid } from '../../src/api/objects.ts';
import { labels } from '../../src/container/words.ts';
import { ContainerStatsSchema } from '../../src/cri/gen/cri_pb.ts';
import { containerStatsWord } from '../../src/cri/stats.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { rig } from './rig.ts';

test('readings of running containers come as they were made, of one pod where it is named', async (t) => {
  const { fake, server, runtime } = rig(t);
  await server.start();
  const ids = [];
  for (const name of ['web', 'cam']) {
    const pod = sandboxConfig(name);
    const sandbox = await fake.runSandbox(pod, '');
    const id = await fake.createContainer(sandbox, containerConfig(pod, 'main'), pod);
    await fake.startContainer(id);
    ids.push({ id, uid: pod.uid });
  }
  const [web, cam] = ids;
  assert.ok(web !== undefined && cam !== undefined);
  const readings = {
    cpu: { atMs: 1_767_225_600_123.456, usageNs: 123_456_789_012 },
    memory: {
      atMs: 1_767_225_600_124,
      workingSetBytes: 5,
      usageBytes: 6,
      rssBytes: 4,
      availableBytes: 3,
      pageFaults: 7,
      majorPageFaults: 0,
    },
    swap: { atMs: 1_767_225_600_125, usageBytes: 0, availableBytes: 9 },
    writableLayer: { atMs: 1_767_225_600_126, mountpoint: '/snapshots', usedBytes: 8, inodesUsed: 2 },
  };
  fake.usage.set(web.id, readings);
  const all = await runtime.listContainerStats();
  assert.equal(all.length, 2);
  const [mine, ...others] = await runtime.listContainerStats(web.uid);
  assert.deepEqual(others, []);
  assert.deepEqual(mine, { id: web.id, name: 'main', attempt: 0, labels: mine?.labels, ...readings });
  assert.equal(mine?.labels[labels.podUid], web.uid);
  // nothing was read of it, which is not 0
  const [bare] = await runtime.listContainerStats(cam.uid);
  assert.deepEqual(Object.keys(bare ?? {}).sort(), ['attempt', 'id', 'labels', 'name']);
  assert.deepEqual(await runtime.listContainerStats('nobody' as PodUid), []);
});

test('a message without the value it is about is no reading, and an empty one is no error', () => {
  const word = (m: Parameters<typeof create<typeof ContainerStatsSchema>>[1]) => containerStatsWord(create(ContainerStatsSchema, m));
  assert.deepEqual(word({}), { id: '', name: '', attempt: 0, labels: {} });
  assert.deepEqual(
    word({
      attributes: { id: 'c' },
      cpu: { timestamp: 5n },
      memory: { usageBytes: { value: 5n } },
      swap: {},
      writableLayer: { timestamp: 1n },
    }),
    { id: 'c', name: '', attempt: 0, labels: {} },
  );
  // as containerd tells it of a container without a limit
  assert.deepEqual(word({ memory: { workingSetBytes: { value: 1n }, availableBytes: { value: 0n } } }).memory, {
    atMs: 0,
    workingSetBytes: 1,
  });
  assert.deepEqual(word({ cpu: { timestamp: 0n, usageCoreNanoSeconds: { value: 2n ** 63n } } }).cpu, { atMs: 0, usageNs: 2 ** 63 });
});
