import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Rollout } from '../../src/api/messages.ts';
import { rolloutPlace, takes, waveOf } from '../../src/api/rollout.ts';

const rollout = (waves: Rollout['waves'], gate = 0, id = 'r1'): Rollout => ({
  apiVersion: 'podsched.dev/v1',
  kind: 'Rollout',
  id,
  waves,
  gate,
});
const names = Array.from({ length: 1000 }, (_, i) => `pi-${i}`);
const node = (name: string, labels: Readonly<Record<string, string>> = {}) => ({ name, labels });
const inFirst = names.find((name) => rolloutPlace('r1', name) < 10) ?? '';
const inLast = names.find((name) => rolloutPlace('r1', name) >= 90) ?? '';

test('the place of a node is the first four bytes of SHA-256 over id and name, modulo 100', () => {
  for (const name of ['pi-07', 'pi-08', 'a']) {
    const digest = createHash('sha256').update(`r1${name}`).digest('hex').slice(0, 8);
    assert.equal(rolloutPlace('r1', name), Number.parseInt(digest, 16) % 100, name);
  }
  // a contract with every node of every release: these do not change
  assert.deepEqual(
    ['pi-1', 'pi-2', 'pi-3'].map((name) => rolloutPlace('r1', name)),
    ['pi-1', 'pi-2', 'pi-3'].map((name) => createHash('sha256').update(`r1${name}`).digest().readUInt32BE(0) % 100),
  );
});

const attic = { site: 'attic' };
const table: readonly [string, Rollout['waves'], ReturnType<typeof node>, number | undefined][] = [
  ['no waves, no wave', [], node(inFirst), undefined],
  ['everybody', [{ percent: 100 }], node(inLast), 1],
  ['nobody', [{ percent: 0 }], node(inFirst), undefined],
  ['covered by the percentage', [{ percent: 10 }], node(inFirst), 1],
  ['not covered by it', [{ percent: 10 }], node(inLast), undefined],
  ['the first wave that fits counts', [{ percent: 10 }, { percent: 100 }], node(inFirst), 1],
  ['who is in none of the first is in the next', [{ percent: 10 }, { percent: 100 }], node(inLast), 2],
  ['labels and percentage', [{ selector: attic, percent: 10 }], node(inFirst, attic), 1],
  ['the label, and not covered', [{ selector: attic, percent: 10 }], node(inLast, attic), undefined],
  ['covered, and another label', [{ selector: attic, percent: 10 }], node(inFirst, { site: 'cellar' }), undefined],
  ['without the label', [{ selector: attic, percent: 100 }], node(inFirst), undefined],
  ['all of the labels', [{ selector: { ...attic, rack: '1' }, percent: 100 }], node(inFirst, attic), undefined],
  ['an empty selector fits all', [{ selector: {}, percent: 100 }], node(inFirst), 1],
  ['a label that every object has by its prototype is none', [{ selector: { toString: 'x' }, percent: 100 }], node(inFirst), undefined],
];
for (const [name, waves, of, wave] of table) {
  test(`the wave of a node: ${name}`, () => assert.equal(waveOf(rollout(waves), of), wave));
}

test('ten percent are about ten percent, other nodes in another rollout, and the same ones in a greater wave', () => {
  const taken = (id: string, percent: number) => names.filter((name) => waveOf(rollout([{ percent }], 0, id), node(name)) === 1);
  const ten = taken('r1', 10);
  assert.ok(ten.length > 60 && ten.length < 140, `${ten.length}`);
  assert.notDeepEqual(ten, taken('r2', 10));
  const thirty = new Set(taken('r1', 30));
  assert.ok(ten.every((name) => thirty.has(name)));
});

test('a node takes the revision when its wave is open, and not before', () => {
  const waves = [{ percent: 10 }, { percent: 100 }];
  const answers = [0, 1, 2, 3].map((gate) => [takes(rollout(waves, gate), node(inFirst)), takes(rollout(waves, gate), node(inLast))]);
  assert.deepEqual(answers, [
    [false, false],
    [true, false],
    [true, true],
    [true, true],
  ]);
  assert.equal(takes(rollout([{ percent: 10 }], 9), node(inLast)), false, 'in no wave it never does');
});
