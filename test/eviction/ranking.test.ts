import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { type Candidate, pickPod, rankPods } from '../../src/eviction/ranking.ts';

const pod = (uid: string, o: Partial<Candidate> = {}): Candidate => ({
  uid: uid as PodUid,
  critical: false,
  priority: 0,
  qos: 'Burstable',
  usage: 0,
  request: 0,
  growth: 0,
  ...o,
});
const order = (pods: readonly Candidate[], missing = 100) => rankPods(pods, missing).map((p) => p.uid);
const pick = (pods: readonly Candidate[], missing = 100, floor = 1) => pickPod(pods, missing, floor)?.uid;

test('the order of the kubelet: over its request, lower priority, larger excess (facts 14.4)', () => {
  assert.deepEqual(order([pod('within', { usage: 900, request: 1000 }), pod('over', { usage: 20, request: 10 })]), ['over', 'within']);
  assert.deepEqual(order([pod('high', { usage: 900, priority: 5 }), pod('low', { usage: 20, priority: 1 })]), ['low', 'high']);
  assert.deepEqual(order([pod('small', { usage: 20 }), pod('large', { usage: 900, request: 100 })]), ['large', 'small']);
});

test('critical pods come last of all, whatever they use', () => {
  assert.deepEqual(order([pod('critical', { critical: true, usage: 5000 }), pod('idle', { usage: 1, request: 10 })]), ['idle', 'critical']);
});

test('a critical pod goes only when no other would help, and nobody goes in its place in vain', () => {
  const critical = pod('critical', { critical: true, usage: 5000 });
  assert.equal(pick([critical, pod('other', { usage: 50 })]), 'other');
  assert.equal(pick([critical, pod('idle', { usage: 1 })]), 'critical');
});

test('where no pod has what is missing, none goes (G9: no cascade)', () => {
  assert.equal(pick([pod('a', { usage: 4 }), pod('b', { usage: 3 })], 100), undefined);
  assert.equal(pick([pod('a', { usage: 5 })], 100), 'a');
  assert.equal(pick([pod('a', { usage: 5 })], 1, 10), undefined, 'next to nothing is nothing');
  assert.equal(pick([]), undefined);
});

test('who grows goes before who is merely large', () => {
  const database = pod('database', { usage: 5000, growth: 0 });
  const writer = pod('writer', { usage: 800, growth: 600 });
  assert.deepEqual(order([database, writer], 1000), ['writer', 'database']);
  assert.deepEqual(order([database, { ...writer, growth: 10 }], 1000), ['database', 'writer'], 'a little growth says nothing');
});

test('whose use is not known goes only where nobody’s is', () => {
  const unknown = pod('unknown', { usage: undefined });
  assert.equal(pick([unknown, pod('known', { usage: 50 })]), 'known');
  assert.equal(pick([unknown, pod('small', { usage: 1 })]), undefined);
  const others = [pod('guaranteed', { usage: undefined, qos: 'Guaranteed' }), pod('best', { usage: undefined, qos: 'BestEffort' })];
  assert.equal(pick([...others, pod('critical', { usage: undefined, critical: true, priority: -1 })]), 'best');
});
