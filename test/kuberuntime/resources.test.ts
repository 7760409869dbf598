import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container } from '../../src/api/v1.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import { type ContainerInputs, containerConfig, sandboxConfig } from '../../src/kuberuntime/configs.ts';
import type { NodeCgroups } from '../../src/kuberuntime/resources.ts';
import { container, desiredPod, House } from './house.ts';

const v1: NodeCgroups = { unified: false, cpu: true, memory: true };
const v2: NodeCgroups = { unified: true, cpu: true, memory: true };
const limited: Partial<Container> = { resources: { limits: { cpu: '500m', memory: '20Mi' } } };
const bytes = 20 * 2 ** 20;

const inputs: ContainerInputs = {
  attempt: 0,
  image: { id: 'sha256:x', username: '' },
  nodeName: 'pi',
  nodeMemoryBytes: 8e9,
  thermalThrottlePaths: [],
};
const resourcesOf = (o: Partial<ContainerInputs>, spec: Partial<Container> = limited, annotation?: string) => {
  const annotations = annotation === undefined ? {} : { 'podsched.dev/memory-oom-group': annotation };
  const desired = desiredPod({ containers: [container('c', spec)] }, { metadata: { annotations } });
  return containerConfig(desired, container('c', spec), { ...inputs, ...o }).resources;
};

test('on cgroup v2 a container is killed as a whole and does not swap, with a limit or without', () => {
  const whole = { unified: { 'memory.oom.group': '1', 'memory.swap.max': '0' } };
  assert.deepEqual(resourcesOf({ cgroups: v2, countsSwap: true }), {
    ...{ cpuPeriod: 100_000, cpuQuota: 50_000, cpuShares: 512, memoryLimitBytes: bytes, oomScoreAdj: -997 },
    ...whole,
  });
  assert.deepEqual(resourcesOf({ cgroups: v2, countsSwap: true }, {}), { cpuPeriod: 100_000, cpuShares: 2, oomScoreAdj: 1000, ...whole });
});

test('the kind of cgroup, swap, and the annotation decide what is sent', () => {
  const swap = { memorySwapLimitBytes: bytes };
  const table: readonly (readonly [string, NodeCgroups | undefined, boolean, string | undefined, object])[] = [
    ['v1', v1, true, undefined, swap],
    ['not asked', undefined, true, undefined, swap],
    ['v1 that does not count swap', v1, false, undefined, {}],
    ['v1 has no such choice', v1, true, 'false', swap],
    ['v2 that does not count swap', v2, false, undefined, { unified: { 'memory.oom.group': '1' } }],
    ['true is the default', v2, false, 'true', { unified: { 'memory.oom.group': '1' } }],
    ['one process only', v2, true, 'false', { unified: { 'memory.swap.max': '0' } }],
    ['one process only, no swap counted', v2, false, 'false', {}],
  ];
  for (const [name, cgroups, countsSwap, annotation, sent] of table) {
    const { unified, memorySwapLimitBytes } = resourcesOf({ ...(cgroups && { cgroups }), countsSwap }, limited, annotation);
    assert.deepEqual({ ...(unified && { unified }), ...(memorySwapLimitBytes && { memorySwapLimitBytes }) }, sent, name);
  }
});

test('a limit of a controller that the kernel has not is left out, so that everything runs', () => {
  const noMemory = { unified: true, cpu: true, memory: false };
  assert.deepEqual(resourcesOf({ cgroups: noMemory, countsSwap: true }), {
    ...{ cpuPeriod: 100_000, cpuQuota: 50_000, cpuShares: 512, oomScoreAdj: -997 },
  });
  assert.deepEqual(resourcesOf({ cgroups: { ...v1, memory: false }, countsSwap: true }), resourcesOf({ cgroups: noMemory }));
  assert.deepEqual(resourcesOf({ cgroups: { ...v2, cpu: false } }), {
    ...{ memoryLimitBytes: bytes, oomScoreAdj: -997, unified: { 'memory.oom.group': '1' } },
  });
});

test('the sandbox is told of the group as its containers are, and never of swap', () => {
  const of = (cgroups: NodeCgroups | undefined, annotations = {}) =>
    sandboxConfig(desiredPod({ containers: [container('c', limited)] }, { metadata: { annotations } }), {
      ...{ attempt: 0, nodeName: 'pi', podLogsDir: '/l', started: 'b/1', cgroupDriver: 'cgroupfs' as const },
      hostDns: { servers: [], searches: [], options: [] },
      ...(cgroups && { cgroups }),
    }).resources.unified;
  assert.deepEqual(of(v2), { 'memory.oom.group': '1' });
  assert.equal(of(v2, { 'podsched.dev/memory-oom-group': 'false' }), undefined);
  assert.equal(of(undefined), undefined);
});

test('CPUs and devices are what the node gives for this container; the groups of a device come beside the pod’s', () => {
  const given = {
    devices: [{ containerPath: '/dev/i2c-1', hostPath: '/dev/i2c-1', permissions: 'rw' }],
    groups: [44, 998],
    cdiDevices: ['nvidia.com/gpu=all'],
    annotations: { 'podsched.dev/devices': 'x' },
  };
  const desired = desiredPod({ securityContext: { supplementalGroups: [2000, 44] } });
  const config = containerConfig(desired, container('c'), { ...inputs, cpusetCpus: '2-3', given });
  assert.equal(config.resources.cpusetCpus, '2-3');
  assert.deepEqual([config.devices, config.cdiDevices, config.supplementalGroups], [given.devices, given.cdiDevices, [2000, 44, 998]]);
  assert.equal(config.annotations['podsched.dev/devices'], 'x');
  const plain = containerConfig(desired, container('c'), inputs);
  assert.deepEqual(
    ['devices' in plain, 'cdiDevices' in plain, 'cpusetCpus' in plain.resources, plain.supplementalGroups],
    [false, false, false, [2000, 44]],
  );
});

test('a container is made on its CPUs, and who gives them hears of it', async () => {
  const house = new House();
  house.cpusFor = async (name) => (name === 'own' ? '2-3' : undefined);
  await house.settle(desiredPod({ containers: [container('own'), container('all')] }));
  assert.equal(house.runtime.find('web', 'own')?.config.resources.cpusetCpus, '2-3');
  assert.equal(house.runtime.find('web', 'all')?.config.resources.cpusetCpus, undefined);
  assert.deepEqual(house.madeOn, ['own 2-3', 'all all']);
});

test('while its CPUs or devices are another’s a container waits under that reason, and its back-off does not grow', async () => {
  for (const reason of ['WaitingForCPUs', 'WaitingForDevice']) {
    const house = new House();
    const held = new HeldBack(reason, 'not yet', 60_000);
    if (reason === 'WaitingForCPUs') house.cpusFor = () => Promise.reject(held);
    else {
      house.devices = () => {
        throw held;
      };
    }
    const { results } = await house.sync(desiredPod({}));
    const failed = results.find((r) => r.error !== undefined);
    assert.deepEqual([failed?.error, failed?.waitMs], [{ reason, message: 'not yet' }, 60_000]);
    assert.equal(house.runtime.find('web', 'c'), undefined);
  }
});
