import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NodeFacts, nodeImages, nodeObject } from '../../src/node/info.ts';

const facts: NodeFacts = {
  name: 'pi-07',
  labels: { site: 'attic' },
  machine: 'aaaabbbbcccc',
  bootId: 'boot-1',
  agentVersion: '0.1.0',
  architecture: 'arm64',
  kernelVersion: '6.12.20',
  runtimeVersion: 'containerd://1.7.24',
  addresses: ['192.0.2.7', '2001:db8::7'],
  conditions: [{ type: 'RuntimeDown', status: 'True', reason: 'RuntimeUnavailable', message: 'connect ENOENT' }],
};

test('the node is told as a v1 Node with addresses, versions and what is wrong', () => {
  assert.deepEqual(nodeObject(facts).status, {
    addresses: [
      { type: 'InternalIP', address: '192.0.2.7' },
      { type: 'InternalIP', address: '2001:db8::7' },
      { type: 'Hostname', address: 'pi-07' },
    ],
    conditions: facts.conditions,
    nodeInfo: {
      machineID: 'aaaabbbbcccc',
      bootID: 'boot-1',
      kernelVersion: '6.12.20',
      containerRuntimeVersion: 'containerd://1.7.24',
      kubeletVersion: 'podsched 0.1.0',
      operatingSystem: 'linux',
      architecture: 'arm64',
    },
  });
});

test('labels of the configuration come beside the usual ones, and win', () => {
  const usual = { 'kubernetes.io/hostname': 'pi-07', 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' };
  assert.deepEqual(nodeObject(facts).metadata.labels, { ...usual, site: 'attic' });
  const own = nodeObject({ ...facts, labels: { 'kubernetes.io/hostname': 'shelf' } });
  assert.equal(own.metadata.labels['kubernetes.io/hostname'], 'shelf');
});

test('without addresses there is the name; the same facts make the same text', () => {
  const alone = nodeObject({ ...facts, addresses: [] });
  assert.match(JSON.stringify(alone), /"addresses":\[\{"type":"Hostname","address":"pi-07"\}\]/);
  assert.equal(JSON.stringify(nodeObject(facts)), JSON.stringify(nodeObject({ ...facts })));
});

test('the size of a memory page stands in an annotation, and where it is not known nothing does', () => {
  assert.deepEqual(nodeObject({ ...facts, pageBytes: 16384 }).metadata.annotations, { 'podsched.dev/page-size': '16384' });
  assert.equal('annotations' in nodeObject(facts).metadata, false);
});

test('amounts, devices and annotations of our own stand where a kubelet has them', () => {
  const capacity = { cpuMilli: 4000, memoryBytes: 1024 ** 3, ephemeralBytes: 2 * 1024 ** 3, pods: 30, hugepages: {} };
  const whole = nodeObject({
    ...facts,
    systemUUID: 'u',
    osImage: 'Debian',
    annotations: { model: 'Raspberry Pi 5' },
    resources: {
      capacity,
      allocatable: { ...capacity, cpuMilli: 3500 },
      devices: { 'devices.podsched.dev/cam': { capacity: 2, allocatable: 1 } },
    },
  });
  assert.deepEqual(whole.status.capacity, {
    cpu: '4',
    'ephemeral-storage': '2Gi',
    memory: '1Gi',
    pods: '30',
    'devices.podsched.dev/cam': '2',
  });
  assert.equal(whole.status.allocatable?.cpu, '3500m');
  assert.equal(whole.status.allocatable?.['devices.podsched.dev/cam'], '1');
  assert.deepEqual(whole.metadata.annotations, { 'podsched.dev/model': 'Raspberry Pi 5' });
  assert.deepEqual([whole.status.nodeInfo.systemUUID, whole.status.nodeInfo.osImage], ['u', 'Debian']);
});

test('the fifty largest images are told, each by five names, digests first', () => {
  const image = (n: number) => ({
    tags: ['a', 'b', 'c', 'd'].map((t) => `r/i${n}:${t}`),
    digests: [`r/i${n}@sha256:1`, `r/i${n}@sha256:2`],
    sizeBytes: n,
  });
  const told = nodeImages([...Array.from({ length: 60 }, (_, i) => image(i)), { tags: [], digests: [] }]);
  assert.deepEqual([told.length, told[0]?.sizeBytes, told[49]?.sizeBytes], [50, 59, 10]);
  assert.deepEqual(told[0]?.names, ['r/i59@sha256:1', 'r/i59@sha256:2', 'r/i59:a', 'r/i59:b', 'r/i59:c']);
});
