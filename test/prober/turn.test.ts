import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProbeResult } from '../../src/container/probes.ts';
import { countAnswer, firstState, mayProbe, nextTurn, type ProbeType, slowness, type TurnState, timing } from '../../src/prober/turn.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const limits = { failureThreshold: 3, successThreshold: 1 };

/** `+` success, `-` failure; the results stored after each, `.` for none. */
function run(type: ProbeType, answers: string, o = limits): { readonly stored: string; readonly state: TurnState } {
  let state = firstState(type, undefined);
  let stored = '';
  for (const answer of answers) {
    const counted = countAnswer(type, state, answer === '+' ? 'success' : 'failure', o);
    state = counted.state;
    stored += counted.stored === undefined ? '.' : counted.stored === 'success' ? '+' : '-';
  }
  return { stored, state };
}

for (const [type, answers, o, stored, hold] of [
  ['readiness', '+', limits, '+', false],
  ['readiness', '--', limits, '..', false],
  ['readiness', '---', limits, '..-', false],
  ['readiness', '----', limits, '..--', false],
  ['readiness', '--+--', limits, '..+..', false],
  ['readiness', '---+', limits, '..-+', false],
  ['readiness', '++-++', { failureThreshold: 1, successThreshold: 2 }, '.+-.+', false],
  ['liveness', '--', limits, '..', false],
  ['liveness', '---', limits, '..-', true],
  ['liveness', '+++', limits, '+++', false],
  ['startup', '--+', limits, '..+', true],
  ['startup', '---', limits, '..-', true],
] as const) {
  test(`${type} with ${answers} at ${o.failureThreshold}/${o.successThreshold} stores ${stored}${hold ? ' and holds' : ''}`, () => {
    const result = run(type, answers, o);
    assert.equal(result.stored, stored);
    assert.equal(result.state.hold, hold);
    if (hold) assert.equal(result.state.count, 0);
  });
}

test('a verdict of before the agent started is final for startup and for a failed liveness only', () => {
  const holds = (type: ProbeType, known: ProbeResult | undefined) => firstState(type, known).hold;
  assert.deepEqual([holds('startup', 'success'), holds('startup', 'failure'), holds('liveness', 'failure')], [true, true, true]);
  assert.deepEqual([holds('startup', undefined), holds('startup', 'unknown'), holds('liveness', 'success')], [false, false, false]);
  assert.deepEqual([holds('readiness', 'failure'), holds('readiness', 'success')], [false, false]);
});

test('before the start only the startup probe runs, after it all but that one, and nothing runs on hold or without a process', () => {
  const may = (type: ProbeType, started: boolean, o: { hold?: boolean; running?: boolean } = {}) =>
    mayProbe({ type, started, hold: false, running: true, ...o });
  assert.deepEqual([may('startup', false), may('liveness', false), may('readiness', false)], [true, false, false]);
  assert.deepEqual([may('startup', true), may('liveness', true), may('readiness', true)], [false, true, true]);
  assert.equal(may('liveness', true, { hold: true }), false);
  assert.equal(may('readiness', true, { running: false }), false);
  assert.equal(may('startup', false, { running: false }), false);
});

test('numbers that are absent or 0 are the defaults', () => {
  const defaults = { periodMs: 10_000, timeoutMs: 1000, initialDelayMs: 0, failureThreshold: 3, successThreshold: 1 };
  assert.deepEqual(timing({}), defaults);
  assert.deepEqual(timing({ periodSeconds: 0, timeoutSeconds: 0, failureThreshold: 0, successThreshold: 0 }), defaults);
});

test('a time-out longer than a timer can hold is not over at once', () => {
  assert.equal(timing({ timeoutSeconds: 3_000_000 }).timeoutMs, 2 ** 31 - 1);
});

test('numbers that are given are kept', () => {
  const probe = { periodSeconds: 5, timeoutSeconds: 2, initialDelaySeconds: 7, failureThreshold: 4, successThreshold: 2 };
  const expected = { periodMs: 5000, timeoutMs: 2000, initialDelayMs: 7000, failureThreshold: 4, successThreshold: 2 };
  assert.deepEqual(timing(probe), expected);
});

test('turns are kept to the plan: a late one moves none, missed ones are left out', () => {
  const next = (planned: number, now: number) => nextTurn(planned as Monotonic, 1000, now as Monotonic);
  assert.equal(next(5000, 5000), 6000);
  assert.equal(next(5000, 5900), 6000);
  assert.equal(next(5000, 6000), 7000);
  assert.equal(next(5000, 8300), 9000);
});

test('turns of all probes fall on common moments: after its first one a probe joins the next of them, and stays there', () => {
  const next = (planned: number, now: number) => nextTurn(planned as Monotonic, 1000, now as Monotonic);
  assert.equal(next(5001, 5001), 6050);
  assert.equal(next(5049.9, 5060), 6050);
  assert.equal(next(6050, 6051), 7050);
});

test('three time-outs in a row double the period, six make it fourfold, and no more', () => {
  assert.deepEqual([0, 2, 3, 5, 6, 60].map(slowness), [1, 1, 2, 2, 4, 4]);
});
