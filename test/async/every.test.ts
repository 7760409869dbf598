import assert from 'node:assert/strict';
import { test } from 'node:test';
import { every } from '../../src/async/every.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

test('the step runs at once and then a period after the end of the last, a failing one is reported and the next comes', async () => {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const stop = new AbortController();
  const begun: number[] = [];
  const reported: unknown[] = [];
  const running = every(
    clock,
    () => 100,
    stop.signal,
    async () => {
      begun.push(clock.monotonic() - start);
      if (begun.length === 2) throw new Error('broken world');
      await clock.sleep(10);
    },
    (e) => reported.push(e),
  );
  await clock.advance(350);
  assert.deepEqual(begun, [0, 110, 210, 320]);
  assert.equal(reported.length, 1);
  stop.abort();
  await clock.advance(10);
  await running;
  assert.equal(clock.sleeping, 0);
});

test('abort within a step ends it without a report, and the period may change while running', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let period = 10;
  let steps = 0;
  const running = every(
    clock,
    () => period,
    stop.signal,
    async () => {
      steps += 1;
      period = 1000;
      if (steps === 2) await clock.sleep(1e9, stop.signal);
    },
    (e) => assert.fail(String(e)),
  );
  await clock.advance(999);
  assert.equal(steps, 1);
  await clock.advance(1);
  assert.equal(steps, 2);
  stop.abort();
  await running;
});
