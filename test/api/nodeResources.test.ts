import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationKeys } from '../../src/api/configuration.ts';
import { checkConfiguration } from '../../src/api/configurationChecks.ts';
import {
  allocatableOf,
  bytesText,
  checkReserved,
  checkReservedFits,
  type NodeCapacity,
  reservedOf,
  resourceList,
} from '../../src/api/nodeResources.ts';

const Mi = 2 ** 20;
const Gi = 2 ** 30;
const capacity: NodeCapacity = { cpuMilli: 4000, memoryBytes: 906 * Mi, ephemeralBytes: 29 * Gi, pods: 110, hugepages: {} };
const none = { cpuMilli: 0, memoryBytes: 0, ephemeralBytes: 0, pids: 0 };
const noThreshold = { memoryBytes: 0, ephemeralBytes: 0 };

test('what both maps keep back is added up', () => {
  const reserved = reservedOf({
    systemReserved: { cpu: '200m', memory: '128Mi', 'ephemeral-storage': '1Gi', pid: '500' },
    kubeReserved: { cpu: '0.1', memory: '64Mi' },
  });
  assert.deepEqual(reserved, { cpuMilli: 300, memoryBytes: 192 * Mi, ephemeralBytes: Gi, pids: 500 });
  assert.equal(
    reservedOf({ systemReserved: { cpu: '300m' }, reservedSystemCPUs: '0,2-3' }).cpuMilli,
    3000,
    'named CPUs stand for the cpu of both',
  );
  assert.deepEqual(reservedOf({}), none);
  assert.deepEqual(reservedOf({ systemReserved: [1], kubeReserved: { cpu: 'x', memory: '-5Mi' } }), none);
});

for (const [what, reserved, hard, hugepages, expected] of [
  ['nothing kept back: all of it', none, noThreshold, {}, [4000, 906 * Mi, 29 * Gi]],
  ['reservations', { ...none, cpuMilli: 300, memoryBytes: 128 * Mi, ephemeralBytes: Gi }, noThreshold, {}, [3700, 778 * Mi, 28 * Gi]],
  ['thresholds of eviction', none, { memoryBytes: 72 * Mi, ephemeralBytes: 2 * Gi }, {}, [4000, 834 * Mi, 27 * Gi]],
  ['huge pages are taken from memory', none, noThreshold, { 'hugepages-2Mi': 64 * Mi }, [4000, 842 * Mi, 29 * Gi]],
  [
    'more than there is: never below nothing',
    { cpuMilli: 9000, memoryBytes: 900 * Mi, ephemeralBytes: 30 * Gi, pids: 0 },
    { memoryBytes: 72 * Mi, ephemeralBytes: 0 },
    {},
    [0, 0, 0],
  ],
] as const)
  test(`allocatable: ${what}`, () => {
    const all = { ...capacity, hugepages };
    const left = allocatableOf(all, reserved, hard);
    assert.deepEqual([left.cpuMilli, left.memoryBytes, left.ephemeralBytes], expected);
    assert.deepEqual([left.pods, left.hugepages], [110, hugepages]);
  });

test('amounts are spelled as a kubelet spells them', () => {
  const list = resourceList(
    { ...capacity, cpuMilli: 3700, memoryBytes: 8008092 * 1024, ephemeralBytes: 28189379859, hugepages: { 'hugepages-2Mi': 64 * Mi } },
    { 'devices.podsched.dev/gpio': 2 },
  );
  assert.deepEqual(list, {
    cpu: '3700m',
    'ephemeral-storage': '28189379859',
    'hugepages-2Mi': '64Mi',
    memory: '8008092Ki',
    pods: '110',
    'devices.podsched.dev/gpio': '2',
  });
  assert.equal(resourceList(capacity).cpu, '4');
  assert.deepEqual([bytesText(0), bytesText(1023), bytesText(2048), bytesText(3 * Gi)], ['0', '1023', '2Ki', '3Gi']);
});

for (const [map, path, expected, nearest] of [
  [{ memry: '1Gi' }, 'systemReserved.memry', /^one of cpu, memory, ephemeral-storage, pid$/, 'memory'],
  [{ memory: 'lots' }, 'systemReserved.memory', /such as 128Mi/, undefined],
  [{ cpu: '-100m' }, 'systemReserved.cpu', /0 or more/, undefined],
  [{ memory: '128' }, 'systemReserved.memory', /at least 1Mi/, '128Mi'],
  [{ 'ephemeral-storage': '100m' }, 'systemReserved.ephemeral-storage', /at least 1Mi/, '100Mi'],
  [{ pid: '1.5' }, 'systemReserved.pid', /whole number/, undefined],
] as const)
  test(`${JSON.stringify(map)} is a mistake that is told with its place`, () => {
    const [problem, ...more] = checkReserved({ systemReserved: map });
    assert.deepEqual(more, []);
    assert.equal(problem?.path, path);
    assert.match(problem?.expected ?? '', expected);
    assert.equal(problem?.nearest, nearest);
  });

test('what is right is taken', () => {
  assert.deepEqual(
    checkReserved({ systemReserved: { cpu: '200m', memory: '0', pid: '1000', 'ephemeral-storage': '1Gi' }, kubeReserved: {} }),
    [],
  );
  assert.deepEqual(checkReserved({}), []);
});

const machine = { cpuMilli: 4000, memoryBytes: 906 * Mi, ephemeralBytes: 29 * Gi, pids: 32768 };

test('to keep back more than the node has is a mistake of the configuration, at the greater of the two', () => {
  assert.deepEqual(checkReservedFits({ systemReserved: { memory: '2Gi' }, kubeReserved: { memory: '100Mi' } }, machine), [
    { path: 'systemReserved.memory', expected: 'at most 806Mi beside the 100Mi of kubeReserved: this node has 906Mi', got: '2Gi' },
  ]);
  assert.deepEqual(checkReservedFits({ kubeReserved: { cpu: '5' } }, machine), [
    { path: 'kubeReserved.cpu', expected: 'at most 4: this node has 4', got: '5' },
  ]);
  assert.deepEqual(checkReservedFits({ systemReserved: { memory: '906Mi', cpu: '4', pid: '100' } }, machine), []);
  assert.deepEqual(checkReservedFits({ systemReserved: { memory: '2Gi' } }, { ...machine, memoryBytes: 0 }), []);
});

test('the checks of the configuration have both, the second where the machine is known', () => {
  const defaults = Object.fromEntries(Object.entries(configurationKeys).map(([path, key]) => [path, key.default]));
  const values = { ...defaults, systemReserved: { memory: '2Gi', cpus: '1' } };
  const paths = (m?: typeof machine): string[] => checkConfiguration(values, m).map((p) => p.path);
  assert.deepEqual(paths(), ['systemReserved.cpus']);
  assert.deepEqual(paths(machine), ['systemReserved.cpus', 'systemReserved.memory']);
});

test('the two keys are acted on', () => {
  for (const key of ['systemReserved', 'kubeReserved']) assert.equal(configurationKeys[key]?.later, undefined);
});
