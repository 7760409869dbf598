import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deadlines } from '../../src/async/deadlines.ts';
import { after } from '../../src/world/clock.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

function world() {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const due: string[] = [];
  const deadlines = new Deadlines<string>(clock, (key) => due.push(`${key}@${clock.monotonic() - start}`));
  return { clock, due, deadlines, at: (ms: number) => after(start, ms) };
}

test('entries come due each at its moment, nearest first, with one timer for all', async () => {
  const { clock, due, deadlines, at } = world();
  deadlines.set('late', at(300));
  deadlines.set('early', at(100));
  deadlines.set('middle', at(200));
  assert.equal(clock.sleeping, 1);
  await clock.advance(1000);
  assert.deepEqual(due, ['early@100', 'middle@200', 'late@300']);
  assert.equal(clock.sleeping, 0, 'an empty queue has no timer');
});

test('an entry set again replaces the older one, setEarlier keeps the nearer of the two', async () => {
  const { clock, due, deadlines, at } = world();
  deadlines.set('a', at(100));
  deadlines.set('a', at(400));
  deadlines.set('b', at(200));
  deadlines.setEarlier('b', at(900));
  deadlines.set('c', at(900));
  deadlines.setEarlier('c', at(300));
  await clock.advance(1000);
  assert.deepEqual(due, ['b@200', 'c@300', 'a@400']);
});

test('a moment already past is due at once, but never within the call', async () => {
  const { clock, due, deadlines, at } = world();
  deadlines.set('a', at(-5));
  assert.deepEqual(due, []);
  await clock.advance(0);
  assert.deepEqual(due, ['a@0']);
});

test('a deleted entry never comes, and the timer follows the next one', async () => {
  const { clock, due, deadlines, at } = world();
  deadlines.set('a', at(100));
  deadlines.set('b', at(500));
  deadlines.delete('a');
  assert.equal(clock.nextInMs, 500);
  assert.deepEqual(deadlines.keys(), ['b']);
  await clock.advance(1000);
  assert.deepEqual(due, ['b@500']);
});

test('an entry may be set again while it comes due', async () => {
  const clock = new FakeClock();
  const times: number[] = [];
  const start = clock.monotonic();
  const deadlines: Deadlines<string> = new Deadlines(clock, (key) => {
    times.push(clock.monotonic() - start);
    if (times.length < 3) deadlines.set(key, after(clock.monotonic(), 100));
  });
  deadlines.set('a', after(start, 100));
  await clock.advance(1000);
  assert.deepEqual(times, [100, 200, 300]);
});

test('after stop nothing comes and nothing sleeps', async () => {
  const { clock, due, deadlines, at } = world();
  deadlines.set('a', at(100));
  deadlines.stop();
  deadlines.set('b', at(100));
  await clock.advance(1000);
  assert.deepEqual(due, []);
  assert.equal(clock.sleeping, 0);
});

test('many moments, set anew and deleted at random, come in their order, and equal ones as they were set', async () => {
  const { clock, due, deadlines, at } = world();
  const wanted = new Map<string, number>();
  let random = 1;
  for (let i = 0; i < 3000; i++) {
    random = (random * 48271) % 2147483647;
    const [key, ms] = [`k${random % 150}`, (random >> 8) % 900];
    if (random % 5 === 0) {
      deadlines.delete(key);
      wanted.delete(key);
    } else {
      deadlines.set(key, at(ms));
      if (wanted.get(key) !== ms) wanted.delete(key);
      wanted.set(key, ms);
    }
  }
  assert.equal(clock.sleeping, 1);
  assert.equal(deadlines.keys().length, wanted.size);
  await clock.advance(1000);
  assert.deepEqual(
    due,
    [...wanted].sort((a, b) => a[1] - b[1]).map(([key, ms]) => `${key}@${ms}`),
  );
});

test('what a due entry deletes or puts off does not come', async () => {
  const clock = new FakeClock();
  const start = clock.monotonic();
  const due: string[] = [];
  const deadlines: Deadlines<string> = new Deadlines(clock, (key) => {
    due.push(`${key}@${clock.monotonic() - start}`);
    if (key === 'a') deadlines.set('b', after(start, 300));
  });
  deadlines.set('a', after(start, 100));
  deadlines.set('b', after(start, 150));
  await clock.advance(1000);
  assert.deepEqual(due, ['a@100', 'b@300']);
});
