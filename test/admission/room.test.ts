/** Whether a critical pod comes in, waits for others to end, or is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeFacts } from '../../src/admission/admit.ts';
import { judgeCritical, type Neighbours } from '../../src/admission/room.ts';
import { waitingStatus } from '../../src/admission/waiting.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import { asking, claiming, node, pod } from './build.ts';

const critical = (name: string, spec: Partial<PodSpec>): DesiredPod => pod(name, { ...spec, priorityClassName: 'system-cluster-critical' });
const c = (cpu: string, more: Partial<PodSpec> = {}): DesiredPod => critical('c', { ...asking({ cpu }), ...more });
const uses = (name: string, cpu: string): DesiredPod => pod(name, asking({ cpu }));
const own = (cpu: string): Partial<PodSpec> => ({
  containers: [{ name: 'app', image: 'x', resources: { limits: { cpu, memory: '1Mi' }, requests: { cpu, memory: '1Mi' } } }],
});
const serial: Partial<PodSpec> = {
  containers: [{ name: 'app', image: 'x', resources: { limits: { 'devices.podsched.dev/serial': '1' } } }],
};

interface Given extends Partial<Neighbours> {
  readonly o?: Partial<NodeFacts>;
  readonly mayGo?: (other: DesiredPod) => boolean;
}

function judge(wanted: DesiredPod, { staying = [], leaving = [], holders, o = {}, mayGo = () => true }: Given): string {
  const held = holders ?? [...staying, ...leaving].map((p) => ({ pod: p, ending: false }));
  const verdict = judgeCritical(wanted, { staying, leaving, holders: held }, node(o), mayGo);
  if (verdict.admit === 'room') return `room, goes: ${verdict.victims.map((p) => p.name).join(' ')}`;
  return verdict.admit ? 'in' : `${verdict.reason}: ${verdict.message}`;
}

const none =
  'UnexpectedAdmissionError: Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ';

// the node has 4 CPUs
const table: readonly (readonly [what: string, wanted: DesiredPod, given: Given, expected: string | RegExp])[] = [
  ['there is room', c('1'), { staying: [uses('a', '3')] }, 'in'],
  ['another goes', c('2'), { staying: [uses('a', '3')] }, 'room, goes: a'],
  ['only who is needed goes', c('2'), { staying: [uses('a', '1'), uses('b', '3')] }, 'room, goes: b'],
  ['who is ending is waited for', c('2'), { leaving: [uses('a', '3')] }, 'room, goes: '],
  ['who is ending is enough', c('2'), { staying: [uses('b', '1')], leaving: [uses('a', '3')] }, 'room, goes: '],
  ['who is ending is not enough', c('3'), { staying: [uses('b', '2')], leaving: [uses('a', '2')] }, 'room, goes: b'],
  ['no room on an empty node', c('5'), {}, `${none}[(res: cpu, q: 1000), ]`],
  ['nobody who goes would help', c('5'), { staying: [uses('a', '1')] }, `${none}[(res: cpu, q: 1000), ]`],
  ['its equals do not go', c('2'), { staying: [critical('a', asking({ cpu: '3' }))] }, `${none}[(res: cpu, q: 1000), ]`],
  ['who may not go does not', c('2'), { staying: [uses('a', '3')], mayGo: () => false }, `${none}[(res: cpu, q: 1000), ]`],
  [
    'all that is missing is named in order',
    critical('c', asking({ cpu: '5', memory: '9Gi' })),
    {},
    `${none}[(res: cpu, q: 1000), (res: memory, q: ${2 ** 30}), ]`,
  ],
  [
    'one place among the pods',
    c('1'),
    { staying: [pod('a')], o: { allocatable: { cpuMilli: 4000, memoryBytes: 1, pods: 1 } } },
    'room, goes: a',
  ],
  ['a port is no reason', c('2', claiming({ hostPort: 80 })), { staying: [pod('a', claiming({ hostPort: 80 }))] }, /^NodePorts/],
  [
    'with a port in use nobody goes for CPU',
    critical('c', { ...claiming({ hostPort: 80 }), overhead: { cpu: '2' } }),
    { staying: [pod('a', { ...claiming({ hostPort: 80 }), overhead: { cpu: '3' } })] },
    /^NodePorts/,
  ],
  ['for a pod of another node nobody goes', c('2', { nodeSelector: { no: 'x' } }), { staying: [uses('a', '3')] }, /^NodeAffinity/],
  ['for a pod of another system nobody goes', c('2', { os: { name: 'windows' } }), { staying: [uses('a', '3')] }, /^PodOSNotSupported/],
  [
    'for a profile that the kernel cannot hold nobody goes',
    c('2', { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
    { staying: [uses('a', '3')], o: { appArmor: false } },
    /^AppArmor/,
  ],
  ['a pressure is nothing', c('1'), { o: { pressures: ['MemoryPressure', 'DiskPressure'] } }, 'in'],
  ['a device that another has', critical('c', serial), { staying: [pod('a', serial), pod('b')], o: { devices: () => 1 } }, 'room, goes: a'],
  [
    'CPUs of its own that another has',
    critical('c', own('2')),
    { staying: [pod('a', own('1')), pod('b', asking({ cpu: '1' }))], o: { exclusiveCpus: 2 } },
    'room, goes: a',
  ],
  [
    'CPUs of its own that nobody could give',
    critical('c', own('3')),
    { staying: [pod('a', own('1'))], o: { exclusiveCpus: 2 } },
    /^UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: requested=3, available=1/,
  ],
];

for (const [what, wanted, given, expected] of table) {
  test(`a critical pod: ${what}`, () => {
    const told = judge(wanted, given);
    if (typeof expected === 'string') assert.equal(told, expected);
    else assert.match(told, expected);
  });
}

test('while it waits, its status names whom it waits for', () => {
  const status = waitingStatus(c('1'), [uses('b', '1'), uses('a', '1')], '2026-01-01T00:00:00Z');
  assert.deepEqual([status.phase, status.qosClass, status.reason], ['Pending', 'Burstable', undefined]);
  assert.equal(status.conditions?.[0]?.message, 'room is being made for this critical pod: it starts when default/a, default/b have ended');
});
