/** Who goes for a critical pod: cases by hand, the kubelet's rules (facts 12.3). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseVictims, mayPreempt, type Requirement } from '../../src/admission/preempt.ts';
import { exclusiveCpus } from '../../src/admission/shortages.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import { pod } from './build.ts';

const MiB = 2 ** 20;

type Qos = 'best' | 'burst' | 'guar';

/** `cpu` in thousandths, `memory` in Mi; `more`: whatever else it asks for. */
function candidate(name: string, qos: Qos, cpu = 0, memory = 0, more: Readonly<Record<string, string>> = {}): DesiredPod {
  const requests = { ...(cpu > 0 && { cpu: `${cpu}m` }), ...(memory > 0 && { memory: `${memory}Mi` }), ...more };
  const resources = qos === 'guar' ? { requests, limits: requests } : { requests };
  return pod(name, { containers: [{ name: 'app', image: 'x', resources: qos === 'best' ? { requests: more } : resources }] });
}

const cpu = (quantity: number): Requirement => ({ resource: 'cpu', quantity });
const memory = (mi: number): Requirement => ({ resource: 'memory', quantity: mi * MiB });
const device = (quantity: number): Requirement => ({ resource: 'devices.podsched.dev/serial', quantity });
const serial = (n: number) => ({ 'devices.podsched.dev/serial': String(n) });

type Case = readonly [what: string, requirements: readonly Requirement[], candidates: readonly DesiredPod[], expected: string];

const table: readonly Case[] = [
  ['nothing is missing', [], [candidate('a', 'burst', 500)], 'goes: '],
  ['nobody is there', [cpu(100)], [], 'unmet: cpu 100'],
  ['one that gives enough', [cpu(100)], [candidate('a', 'burst', 100)], 'goes: a'],
  ['all together give too little', [cpu(1000)], [candidate('a', 'burst', 400), candidate('b', 'guar', 500, 1)], 'unmet: cpu 100'],
  ['only what is missing in the end is named', [cpu(100), memory(100)], [candidate('a', 'burst', 500, 40)], `unmet: memory ${60 * MiB}`],
  [
    'Burstable goes before Guaranteed, also when it fits worse',
    [cpu(100)],
    [candidate('g', 'guar', 100, 1), candidate('b', 'burst', 2000)],
    'goes: b',
  ],
  [
    'Guaranteed goes only for what all others cannot give',
    [cpu(1000)],
    [candidate('g', 'guar', 300, 1), candidate('h', 'guar', 900, 1), candidate('b', 'burst', 800)],
    'goes: b g',
  ],
  [
    'and where a Guaranteed one gives it all, no other goes for it',
    [cpu(1000)],
    [candidate('g', 'guar', 1000, 1), candidate('b', 'burst', 500)],
    'goes: g',
  ],
  [
    'BestEffort does not go for CPU, of which it asks for nothing',
    [cpu(100)],
    [candidate('e', 'best'), candidate('b', 'burst', 100)],
    'goes: b',
  ],
  [
    'BestEffort goes for a place among the pods',
    [{ resource: 'pods', quantity: 1 }],
    [candidate('b', 'burst', 1), candidate('e', 'best')],
    'goes: e',
  ],
  [
    'BestEffort goes for a device',
    [device(1)],
    [candidate('b', 'burst', 1, 0, serial(1)), candidate('e', 'best', 0, 0, serial(1))],
    'goes: e',
  ],
  [
    'two places need two pods',
    [{ resource: 'pods', quantity: 2 }],
    [candidate('b', 'burst', 1), candidate('e', 'best'), candidate('f', 'best')],
    'goes: e f',
  ],
  [
    'the nearest goes first, then the nearest to what is left',
    [cpu(1000)],
    [candidate('a', 'burst', 300), candidate('b', 'burst', 700), candidate('c', 'burst', 600)],
    'goes: b a',
  ],
  [
    'one that gives all is as near as another that gives more: the smaller memory request goes',
    [cpu(100)],
    [candidate('a', 'burst', 100, 200), candidate('b', 'burst', 900, 100)],
    'goes: b',
  ],
  [
    'with equal memory the smaller CPU request goes',
    [cpu(100)],
    [candidate('a', 'burst', 900, 100), candidate('b', 'burst', 200, 100)],
    'goes: b',
  ],
  [
    'distances of all resources add up',
    [cpu(1000), memory(1000)],
    // a: 0.25 + 0.25, b: 0 + 1, both: enough; c: 0.01 + 0.81
    [candidate('a', 'burst', 500, 500), candidate('b', 'burst', 1000), candidate('c', 'burst', 900, 500)],
    'goes: c a',
  ],
  [
    'CPUs of its own: what another has for itself',
    [{ resource: exclusiveCpus, quantity: 1 }],
    [candidate('g', 'guar', 2000, 1)],
    'goes: g',
  ],
  [
    'CPUs of its own: one that shares gives none',
    [{ resource: exclusiveCpus, quantity: 1 }],
    [candidate('b', 'burst', 2000), candidate('g', 'guar', 1500, 1)],
    `unmet: ${exclusiveCpus} 1`,
  ],
];

for (const [what, requirements, candidates, expected] of table) {
  test(`victims: ${what}`, () => {
    for (const order of [candidates, [...candidates].reverse()]) {
      const choice = chooseVictims(requirements, order);
      const told =
        'victims' in choice
          ? `goes: ${choice.victims.map((p) => p.name).join(' ')}`
          : `unmet: ${choice.unmet.map((r) => `${r.resource} ${r.quantity}`).join(', ')}`;
      assert.equal(told, expected);
    }
  });
}

test('of pods that are alike in all the kubelet looks at, the lower priority goes, then the younger', () => {
  const old = { ...candidate('a', 'burst', 100), firstSeen: '2026-01-01T00:00:00Z' };
  const young = { ...candidate('b', 'burst', 100), firstSeen: '2026-01-02T00:00:00Z' };
  const low = pod('c', { ...old.pod.spec, priority: -5 });
  const names = (...all: DesiredPod[]) => {
    const choice = chooseVictims([cpu(100)], all);
    return 'victims' in choice ? choice.victims.map((p) => p.name).join() : 'none';
  };
  assert.equal(names(old, young), 'b');
  assert.equal(names(young, old), 'b');
  assert.equal(names(old, low, young), 'c');
});

test('only a critical pod preempts, and only what matters less', () => {
  const plain = pod('plain', { priority: 1000 });
  const lower = pod('lower', { priority: 1 });
  const cluster = pod('cluster', { priorityClassName: 'system-cluster-critical' });
  const node = pod('node', { priorityClassName: 'system-node-critical' });
  const exactly = pod('exactly', { priority: 2_000_000_000 });
  const below = pod('below', { priority: 1_999_999_999 });
  const pairs: readonly (readonly [DesiredPod, DesiredPod, boolean])[] = [
    [plain, lower, false],
    [below, lower, false],
    [exactly, below, true],
    [exactly, plain, true],
    [cluster, exactly, false],
    [exactly, cluster, false],
    [node, cluster, true],
    [cluster, node, false],
    [node, node, false],
  ];
  for (const [a, b, expected] of pairs) assert.equal(mayPreempt(a, b), expected, `${a.name} preempts ${b.name}`);
});
