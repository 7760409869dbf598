import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../../src/async/backoff.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const world = () => {
  const clock = new FakeClock();
  return { clock, backoff: new Backoff(clock, () => ({ firstMs: 10_000, maxMs: 300_000 })) };
};

test('the first failure is free, then 10 s doubling to 300 s, counted from when the exit was seen', async () => {
  const { clock, backoff } = world();
  assert.equal(backoff.remainingMs('web', clock.monotonic()), 0);
  const delays: number[] = [];
  for (let i = 0; i < 8; i++) {
    backoff.next('web', clock.monotonic());
    await clock.advance(1000);
    const seen = clock.monotonic();
    delays.push(backoff.remainingMs('web', seen));
    await clock.advance(backoff.remainingMs('web', seen));
    assert.equal(backoff.remainingMs('web', seen), 0);
  }
  assert.deepEqual(delays, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
});

test('an exit more than twice the cap after the last step finds no back-off, and collect drops the entry', async () => {
  const { clock, backoff } = world();
  backoff.next('web', clock.monotonic());
  backoff.next('web', clock.monotonic());
  await clock.advance(600_001);
  assert.equal(backoff.remainingMs('web', clock.monotonic()), 0);
  assert.equal(backoff.delayMs('web'), 20_000);
  backoff.collect();
  assert.equal(backoff.delayMs('web'), 0);
});

test('keys do not know each other, and a deleted one is free again', () => {
  const { clock, backoff } = world();
  backoff.next('a', clock.monotonic());
  assert.equal(backoff.remainingMs('b', clock.monotonic()), 0);
  assert.equal(backoff.remainingMs('a', clock.monotonic()), 10_000);
  backoff.delete('a');
  assert.equal(backoff.remainingMs('a', clock.monotonic()), 0);
});

test('a snapshot restored goes on where it was', () => {
  const { clock, backoff } = world();
  backoff.next('a', clock.monotonic());
  backoff.next('a', clock.monotonic());
  const next = new Backoff(clock, () => ({ firstMs: 10_000, maxMs: 300_000 }));
  next.restore(JSON.parse(JSON.stringify(backoff.snapshot())));
  assert.equal(next.remainingMs('a', clock.monotonic()), 20_000);
});

test('a limit that is lowered holds for the wait that has begun', async () => {
  const clock = new FakeClock();
  let maxMs = 300_000;
  const backoff = new Backoff(clock, () => ({ firstMs: 10_000, maxMs }));
  for (let i = 0; i < 5; i++) backoff.next('a', clock.monotonic());
  assert.equal(backoff.remainingMs('a', clock.monotonic()), 160_000);
  maxMs = 5_000;
  assert.equal(backoff.delayMs('a'), 5_000);
  assert.equal(backoff.remainingMs('a', clock.monotonic()), 5_000);
});
