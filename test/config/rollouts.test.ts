import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rollout } from '../../src/api/messages.ts';
import type { Source } from '../../src/api/objects.ts';
import { readRollout, rolloutWait } from '../../src/config/rollouts.ts';

const head = { apiVersion: 'podsched.dev/v1', kind: 'Rollout', id: 'r1', gate: 0, waves: [] };

test('of a rollout the waves and the gate are read; what is for whoever moves the gate is passed over', () => {
  const waves = [{ selector: { site: 'attic' }, percent: 10 }, { percent: 100 }];
  const read = readRollout({ ...head, gate: 1, waves, bakeSeconds: 60, abortAfterFailures: 1, state: 'running' }, 'r1');
  assert.deepEqual(read, { ok: true, rollout: { ...head, gate: 1, waves } });
});

const bad: readonly (readonly [claim: string, value: unknown, path: string])[] = [
  ['no object', 5, ''],
  ['the id of another', { ...head, id: 'r2' }, 'id'],
  ['no id', { ...head, id: undefined }, 'id'],
  ['another kind', { ...head, kind: 'Pod' }, 'kind'],
  ['a gate that is text', { ...head, gate: '1' }, 'gate'],
  ['waves that are no list', { ...head, waves: {} }, 'waves'],
  ['more waves than anybody needs', { ...head, waves: Array.from({ length: 101 }, () => ({ percent: 1 })) }, 'waves'],
  ['more than all', { ...head, waves: [{ percent: 101 }] }, 'waves[0].percent'],
  ['a selector that is none', { ...head, waves: [{ percent: 1, selector: { a: 5 } }] }, 'waves[0].selector'],
];
for (const [claim, value, path] of bad) {
  test(`a rollout is refused: ${claim}`, () => {
    const read = readRollout(value, 'r1');
    assert.ok(!read.ok);
    assert.equal(read.problems[0]?.path, path);
  });
}

const node = { name: 'pi', labels: { site: 'attic' } };
const rollout = (gate: number, ...waves: Rollout['waves']): ReadonlyMap<string, Rollout> =>
  new Map([['r1', { apiVersion: 'podsched.dev/v1', kind: 'Rollout', id: 'r1', gate, waves }]]);
const everybody = { percent: 100 };

const waits: readonly (readonly [
  claim: string,
  id: string | undefined,
  source: Source,
  of: ReadonlyMap<string, Rollout>,
  waits: RegExp | undefined,
])[] = [
  ['without a rollout', undefined, 'mqtt:all', new Map(), undefined],
  ['what is meant for this node alone', 'r1', 'mqtt:node', new Map(), undefined],
  ['its message is not here', 'r1', 'mqtt:all', new Map(), /not known/],
  ['the gate is shut', 'r1', 'mqtt:group/a', rollout(0, everybody), /wave 1 .* gate is at 0/],
  ['the gate is at its wave', 'r1', 'mqtt:group/a', rollout(1, everybody), undefined],
  ['the gate is above its wave', 'r1', 'mqtt:all', rollout(2, everybody, everybody), undefined],
  ['it is in the second wave', 'r1', 'mqtt:all', rollout(1, { selector: { site: 'cellar' }, percent: 100 }, everybody), /wave 2/],
  ['its labels are in the first', 'r1', 'mqtt:all', rollout(1, { selector: { site: 'attic' }, percent: 100 }, everybody), undefined],
  ['it is in none', 'r1', 'mqtt:all', rollout(9, { selector: { site: 'cellar' }, percent: 100 }), /no wave/],
];
for (const [claim, id, source, of, expected] of waits) {
  test(`waiting for a rollout: ${claim}`, () => {
    const told = rolloutWait(id, source, of, node);
    if (expected === undefined) assert.equal(told, undefined);
    else assert.match(told ?? '', expected);
  });
}
