/** Every predicate, with its reason, its message and its place in the order. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { admit, type NodeFacts, refusals, toldVerdict } from '../../src/admission/admit.ts';
import { judgeCritical } from '../../src/admission/room.ts';
import { waitingStatus } from '../../src/admission/waiting.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import { rejectedPodStatus } from '../../src/status/generate.ts';
import { asking, claiming, node, pod } from './build.ts';

const recorded = (name: string) => {
  const file = new URL(`../conformance/kubelet-1.32/recorded/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as { spec: DesiredPod['pod']['spec']; status: { reason: string; message: string } };
};
const without = (n: string): string => `Node didn't have enough resource: ${n}`;
const wrongPlace = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";

const device = 'devices.podsched.dev/serial';
const serial = (n: number) => ({ containers: [{ name: 'app', image: 'x', resources: { limits: { [device]: String(n) } } }] });
const own = (cpu: string) => ({
  containers: [{ name: 'app', image: 'x', resources: { limits: { cpu, memory: '1Mi' }, requests: { cpu, memory: '1Mi' } } }],
});

type Case = readonly [what: string, wanted: DesiredPod, others: readonly DesiredPod[], o: Partial<NodeFacts>, expected: string];
const small: NodeFacts['allocatable'] = { cpuMilli: 1000, memoryBytes: 1000, ephemeralBytes: 1000, pods: 2 };

const table: readonly Case[] = [
  ['a pod that asks for nothing', pod('a'), [], {}, 'yes'],
  ['a label of another system', pod('a', {}, { 'kubernetes.io/os': 'windows' }), [], {}, 'PodOSSelectorNodeLabelDoesNotMatch place'],
  ['the label of this system', pod('a', {}, { 'kubernetes.io/os': 'linux' }), [], {}, 'yes'],
  ['a field of another system', pod('a', { os: { name: 'windows' } }), [], {}, 'PodOSNotSupported place'],
  ['the field of this system', pod('a', { os: { name: 'linux' } }), [], {}, 'yes'],
  ['one pod too many', pod('a'), [pod('b'), pod('c')], { allocatable: small }, 'OutOfpods resources'],
  ['the last pod', pod('a'), [pod('b')], { allocatable: small }, 'yes'],
  ['all CPU there is', pod('a', asking({ cpu: '1' })), [], { allocatable: small }, 'yes'],
  ['a thousandth of a CPU too much', pod('a', asking({ cpu: '1001m' })), [], { allocatable: small }, 'OutOfcpu resources'],
  [
    'CPU that another has',
    pod('a', asking({ cpu: '600m' })),
    [pod('b', asking({ cpu: '500m' }))],
    { allocatable: small },
    'OutOfcpu resources',
  ],
  ['no CPU where nothing is left', pod('a'), [pod('b', asking({ cpu: '1' }))], { allocatable: small }, 'yes'],
  ['no CPU where others have too much', pod('a', asking({ cpu: '0' })), [pod('b', asking({ cpu: '9' }))], { allocatable: small }, 'yes'],
  ['a byte too much', pod('a', asking({ memory: '1001' })), [], { allocatable: small }, 'OutOfmemory resources'],
  ['disk', pod('a', asking({ 'ephemeral-storage': '1001' })), [], { allocatable: small }, 'OutOfephemeral-storage resources'],
  [
    'disk that nobody knows',
    pod('a', asking({ 'ephemeral-storage': '1001' })),
    [],
    { allocatable: { cpuMilli: 1, memoryBytes: 1, pods: 1 } },
    'yes',
  ],
  ['huge pages that the machine has not', pod('a', asking({ 'hugepages-2Mi': '4Mi' })), [], {}, 'OutOfhugepages-2Mi resources'],
  [
    'huge pages that it has',
    pod('a', asking({ 'hugepages-2Mi': '4Mi' })),
    [pod('b', asking({ 'hugepages-2Mi': '4Mi' }))],
    { allocatable: { ...small, hugepages: { 'hugepages-2Mi': 8 * 2 ** 20 } } },
    'yes',
  ],
  ['a resource that the node does not know', pod('a', asking({ 'nvidia.com/gpu': '1' })), [], {}, 'yes'],
  [
    'overhead counts',
    pod('a', { ...asking({ cpu: '900m' }), overhead: { cpu: '101m' } }),
    [],
    { allocatable: small },
    'OutOfcpu resources',
  ],
  ['another node', pod('a', { nodeName: 'pi-08' }), [], {}, 'NodeName place'],
  ['this node', pod('a', { nodeName: 'pi-07' }), [], {}, 'yes'],
  ['a port in use', pod('a', claiming({ hostPort: 80 })), [pod('b', claiming({ hostPort: 80 }))], {}, 'NodePorts ports'],
  [
    'a profile where the kernel has none',
    pod('a', { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
    [],
    { appArmor: false },
    'AppArmor other',
  ],
  [
    'Unconfined needs no AppArmor',
    pod('a', { securityContext: { appArmorProfile: { type: 'Unconfined' } } }),
    [],
    { appArmor: false },
    'yes',
  ],
  [
    'a profile of a container',
    pod('a', {
      containers: [{ name: 'c', image: 'x', securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'p' } } }],
    }),
    [],
    { appArmor: false },
    'AppArmor other',
  ],
  ['a profile where nobody looked', pod('a', { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }), [], {}, 'yes'],
  // the order: what is told is the first
  [
    'the system comes before all',
    pod('a', { ...asking({ cpu: '64' }), nodeSelector: { no: 'x' } }, { 'kubernetes.io/os': 'windows' }),
    [],
    {},
    'PodOSSelectorNodeLabelDoesNotMatch place',
  ],
  ['resources before the place', pod('a', { ...asking({ cpu: '64' }), nodeSelector: { no: 'x' } }), [], {}, 'OutOfcpu resources'],
  [
    'the place before ports',
    pod('a', { ...claiming({ hostPort: 80 }), nodeSelector: { no: 'x' } }),
    [pod('b', claiming({ hostPort: 80 }))],
    {},
    'NodeAffinity place',
  ],
  // what is waited for is no shortage
  ['a device that is not there', pod('a', serial(1)), [], { devices: () => 0 }, 'yes'],
  ['more devices than are there', pod('a', serial(2)), [], { devices: () => 1 }, 'yes'],
  ['a device that is there', pod('a', serial(1)), [], { devices: () => 1 }, 'yes'],
  ['a device that another has', pod('a', serial(1)), [pod('b', serial(1))], { devices: () => 1 }, `OutOf${device} resources`],
  ['a device where another has one of two', pod('a', serial(1)), [pod('b', serial(1))], { devices: () => 2 }, 'yes'],
  ['a device where nobody looks after them', pod('a', serial(1)), [pod('b', serial(1))], {}, 'yes'],
  ['CPUs of its own that are there', pod('a', own('2')), [], { exclusiveCpus: 2 }, 'yes'],
  [
    'CPUs of its own that another has',
    pod('a', own('2')),
    [pod('b', own('1'))],
    { exclusiveCpus: 2 },
    'UnexpectedAdmissionError resources',
  ],
  ['CPUs of its own where others only share', pod('a', own('2')), [pod('b', asking({ cpu: '2' }))], { exclusiveCpus: 2 }, 'yes'],
  ['the same where no policy gives them', pod('a', own('2')), [pod('b', own('1'))], {}, 'yes'],
  ['a shared part of a CPU needs none', pod('a', own('1500m')), [pod('b', own('2'))], { exclusiveCpus: 2 }, 'yes'],
  ['a pressure', pod('a'), [], { pressures: ['DiskPressure'] }, 'Evicted pressure'],
  [
    'a pressure comes before all',
    pod('a', asking({ cpu: '64' }), { 'kubernetes.io/os': 'windows' }),
    [],
    { pressures: ['DiskPressure'] },
    'Evicted pressure',
  ],
  [
    'CPUs of its own come before the rest',
    pod('a', { ...own('9'), nodeSelector: { no: 'x' } }),
    [],
    { exclusiveCpus: 2 },
    'UnexpectedAdmissionError resources',
  ],
  [
    'CPU before devices',
    pod('a', { ...serial(1), overhead: { cpu: '64' } }),
    [pod('b', serial(1))],
    { devices: () => 1 },
    'OutOfcpu resources',
  ],
  ['CPU before memory', pod('a', asking({ cpu: '64', memory: '900Gi' })), [], {}, 'OutOfcpu resources'],
];

for (const [what, wanted, others, o, expected] of table) {
  test(`${what}: ${expected}`, () => {
    const verdict = admit(wanted, others, node(o));
    assert.equal(verdict.admit ? 'yes' : `${verdict.reason} ${verdict.kind}`, expected);
  });
}

test('messages are the kubelet’s, with what was asked for, used and there', () => {
  const message = (wanted: DesiredPod, others: readonly DesiredPod[], o: Partial<NodeFacts> = {}): string => {
    const verdict = admit(wanted, others, node(o));
    return verdict.admit ? '' : verdict.message;
  };
  const b = pod('b', asking({ cpu: '250m', memory: '64Mi' }));
  assert.equal(message(pod('a', asking({ cpu: '64' })), [b]), `${without('cpu')}, requested: 64000, used: 250, capacity: 4000`);
  assert.equal(
    message(pod('a', asking({ memory: '8Gi' })), [b]),
    `${without('memory')}, requested: 8589934592, used: 67108864, capacity: 8589934592`,
  );
  assert.equal(message(pod('a'), [b, b], { allocatable: small }), `${without('pods')}, requested: 1, used: 2, capacity: 2`);
  assert.equal(
    message(pod('a', serial(2)), [pod('b', serial(1))], { devices: () => 2 }),
    `${without(device)}, requested: 2, used: 1, capacity: 2`,
  );
  assert.equal(
    message(pod('a', own('2')), [pod('b', own('1'))], { exclusiveCpus: 2 }),
    'Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is unexpected',
  );
  assert.equal(message(pod('a'), [], { pressures: ['MemoryPressure'] }), 'The node had condition: [MemoryPressure]. ');
  assert.equal(message(pod('a', { os: { name: 'windows' } }), []), 'the pod is for windows (spec.os.name), and the node runs linux');
});

test('037: the node selector does not match, told as the kubelet was recorded', () => {
  const { spec, status } = recorded('037-node-selector-mismatch');
  const wanted = pod('wrongnode', { ...spec, nodeName: 'pi-07' });
  const verdict = admit(wanted, [], node());
  assert.ok(!verdict.admit);
  assert.equal(verdict.message, wrongPlace);
  const told = rejectedPodStatus(wanted, verdict, 'now');
  assert.deepEqual([told.reason, told.message, told.phase], [status.reason, status.message, 'Failed']);
});

test('038: too big is OutOfcpu, since a pod is not critical for being static', () => {
  const { spec } = recorded('038-too-big');
  const verdict = admit(pod('toobig', { ...spec, nodeName: 'pi-07' }), [], node());
  assert.ok(!verdict.admit);
  assert.equal(verdict.reason, 'OutOfcpu');
  assert.equal(verdict.message, `${without('cpu')}, requested: 64000, used: 0, capacity: 4000`);
});

test('038: and where it is critical, it is told as the kubelet was recorded, for which all static pods are', () => {
  const { spec, status } = recorded('038-too-big');
  const wanted = pod('toobig', { ...spec, nodeName: 'pi-07', priority: 2_000_000_000 });
  const machine = node({ allocatable: { cpuMilli: 2000, memoryBytes: 25_171_206_144, pods: 110 } });
  const verdict = judgeCritical(wanted, { staying: [], leaving: [], holders: [] }, machine, () => true);
  assert.ok(verdict.admit === false);
  const told = rejectedPodStatus(wanted, verdict, 'now');
  assert.deepEqual([told.reason, told.message], [status.reason, status.message]);
});

test('all that speaks against a pod is found, though one reason is told', () => {
  const wanted = pod('a', { ...claiming({ hostPort: 22 }), nodeSelector: { no: 'x' }, overhead: { cpu: '64', memory: '900Gi' } });
  const host = [{ protocol: 'TCP', port: 22, ip: '0.0.0.0' }] as const;
  assert.deepEqual(
    refusals(wanted, [], [], node({ hostPortsInUse: host })).map((r) => r.reason),
    ['OutOfcpu', 'OutOfmemory', 'NodeAffinity', 'NodePorts'],
  );
});

test('init containers count as the runtime needs them: the largest, or all that live together', () => {
  const one = (cpu: string) => ({ name: `c${cpu}`, image: 'x', resources: { requests: { cpu } } });
  const sidecar = (cpu: string) => ({ ...one(cpu), restartPolicy: 'Always' as const });
  const reason = (spec: Parameters<typeof pod>[1]): string => {
    const verdict = admit(pod('a', spec), [], node());
    return verdict.admit ? 'yes' : verdict.message.replace(/^.*requested: (\d+).*$/, '$1');
  };
  assert.equal(reason({ containers: [one('3')], initContainers: [one('4')] }), 'yes');
  assert.equal(reason({ containers: [one('3')], initContainers: [sidecar('2')] }), '5000');
  assert.equal(reason({ containers: [one('1')], initContainers: [sidecar('2'), one('3')] }), '5000');
});

test('what an earlier agent told says whether it let the pod in', () => {
  assert.equal(toldVerdict(undefined), undefined);
  assert.equal(toldVerdict({ phase: 'Pending' }), 'admitted');
  assert.equal(toldVerdict({ phase: 'Failed', reason: 'DeadlineExceeded', message: 'Pod was active on the node longer' }), 'admitted');
  const pressed = refusals(pod('p'), [], [], node({ pressures: ['MemoryPressure'] }))[0];
  assert.ok(pressed);
  assert.deepEqual(toldVerdict(rejectedPodStatus(pod('p'), pressed, 'now')), pressed);
  assert.equal(toldVerdict({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory. ' }), 'admitted');
  assert.equal(toldVerdict(waitingStatus(pod('w'), [pod('x')], 'now')), undefined);
  for (const wanted of [
    pod('a', asking({ cpu: '64' })),
    pod('b', { nodeSelector: { no: 'x' } }),
    pod('c', { os: { name: 'windows' } }),
    pod('d', {}, { 'kubernetes.io/os': 'windows' }),
    pod('e', { nodeName: 'pi-08' }),
    pod('f', claiming({ hostPort: 80 })),
    pod('g', { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
    pod('h', own('4')),
  ]) {
    const holders = [{ pod: pod('x', claiming({ hostPort: 80 })), ending: false }];
    const [refusal] = refusals(wanted, [], holders, node({ appArmor: false, exclusiveCpus: 3 }));
    assert.ok(refusal);
    assert.deepEqual(toldVerdict(rejectedPodStatus(wanted, refusal, 'now')), refusal);
  }
});
