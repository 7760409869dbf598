/** The decision of a rollback, row by row. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeTrial, noWayBackText, rolledBackText, type TrialFacts } from '../../src/updates/trial.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const at = (ms: number) => ms as Monotonic;
const facts = (o: Partial<TrialFacts>): TrialFacts => ({
  since: at(1000),
  periodMs: 60_000,
  notBefore: at(1000),
  now: at(61_000),
  good: false,
  ready: false,
  elsewhere: false,
  held: false,
  wayBack: 'v1',
  ...o,
});

const rows: readonly (readonly [string, Partial<TrialFacts>, unknown])[] = [
  ['its time is over', {}, { do: 'rollback', to: 'v1' }],
  ['long over: the agent was away', { now: at(10_000_000) }, { do: 'rollback', to: 'v1' }],
  ['over while no agent was there: what became of it is found out first', { notBefore: at(70_000) }, { do: 'wait', until: at(70_000) }],
  ['just begun', { now: at(1000) }, { do: 'wait', until: at(61_000) }],
  ['a moment before', { now: at(59_999) }, { do: 'wait', until: at(61_000) }],
  ['a timer that came a fraction early', { now: at(60_999.5) }, { do: 'rollback', to: 'v1' }],
  ['it was Ready', { good: true }, { do: 'end' }],
  ['Ready, and held', { good: true, held: true }, { do: 'end' }],
  ['Ready now, and not for long', { ready: true }, { do: 'hold' }],
  ['Ready now, and still in time', { ready: true, now: at(2000) }, { do: 'wait', until: at(61_000) }],
  ['not meant for this node', { elsewhere: true }, { do: 'end' }],
  ['nothing to go back to', { wayBack: undefined }, { do: 'stay' }],
  ['held', { held: true }, { do: 'hold' }],
  ['held, with nothing to go back to', { held: true, wayBack: undefined }, { do: 'hold' }],
  ['held, and still in time', { held: true, now: at(2000) }, { do: 'wait', until: at(61_000) }],
];
for (const [what, given, expected] of rows) {
  test(`a revision on trial: ${what}`, () => assert.deepEqual(judgeTrial(facts(given)), expected));
}

test('the texts name the time, the reason, and both revisions', () => {
  assert.equal(
    rolledBackText('b2', 'a1', 300_000, 'CrashLoopBackOff: container app'),
    'revision b2 was not Ready in 5m0s: CrashLoopBackOff: container app; revision a1 runs again',
  );
  assert.equal(
    noWayBackText('b2', 60_000, ''),
    'revision b2 was not Ready in 1m0s; no other revision is known to have been Ready, so it goes on',
  );
});
