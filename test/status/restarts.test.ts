import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodStatus } from '../../src/api/status.ts';
import { RestartCounter, restartsBetween } from '../../src/status/restarts.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

const status = (counts: Readonly<Record<string, number>>): PodStatus => ({
  phase: 'Running',
  containerStatuses: Object.entries(counts).map(([name, restartCount]) => ({
    name,
    restartCount,
    state: {},
    lastState: {},
    ready: true,
    image: 'x',
    imageID: 'x',
  })),
});

function setUp(o: { store?: MemoryStore; clock?: FakeClock } = {}) {
  const clock = o.clock ?? new FakeClock();
  const store = o.store ?? new MemoryStore();
  const counter = new RestartCounter({ clock, log: silentLog, store });
  return { clock, store, counter };
}
const minute = 60_000;

test('restarts are what the counts of the same containers rose by', () => {
  const table: readonly (readonly [Record<string, number>, Record<string, number>, number])[] = [
    [{ a: 0 }, { a: 0 }, 0],
    [{ a: 0 }, { a: 1 }, 1],
    [{ a: 1, b: 2 }, { a: 3, b: 2 }, 2],
    [{ a: 5 }, { a: 0 }, 0],
    [{}, { a: 7 }, 0],
    [{ a: 1 }, {}, 0],
    [{ a: 0 }, { a: 1e9 }, 10_000],
  ];
  for (const [before, now, count] of table)
    assert.equal(restartsBetween(status(before), status(now)), count, JSON.stringify([before, now]));
});

test('they count for an hour of the monotonic clock, whatever somebody sets the wall clock to', async () => {
  const { clock, counter } = setUp();
  counter.changed(undefined, status({ a: 3 }));
  assert.equal(counter.lastHour(), 0, 'what was before is not known');
  counter.changed(status({ a: 3 }), status({ a: 4 }));
  await clock.advance(30 * minute);
  counter.changed(status({ a: 4 }), status({ a: 6 }));
  assert.equal(counter.lastHour(), 3);
  clock.setWall(0);
  await clock.advance(31 * minute);
  assert.equal(counter.lastHour(), 2);
  await clock.advance(30 * minute);
  assert.equal(counter.lastHour(), 0);
});

test('an agent restart forgets none; what cannot be read counts nothing', async () => {
  const one = setUp();
  one.counter.changed(status({ a: 0 }), status({ a: 1 }));
  await one.counter.flush();
  const two = setUp({ store: one.store, clock: one.clock });
  await two.counter.load();
  assert.equal(two.counter.lastHour(), 1);
  for (const bad of [7, 'x', { a: 1 }, [[1], ['x', 1], [1.5, 1], null, [3, -5]]]) {
    const store = new MemoryStore();
    await store.put('restarts', bad);
    const three = setUp({ store });
    await three.counter.load();
    assert.equal(three.counter.lastHour(), 0);
  }
});

test('a crash loop is stored once a minute at most, a calm pod never', async () => {
  const { clock, store, counter } = setUp();
  let puts = 0;
  const put = store.put.bind(store);
  store.put = (key, value) => {
    puts++;
    return put(key, value);
  };
  counter.changed(status({ a: 1 }), status({ a: 1 }));
  await settle();
  assert.equal(puts, 0);
  for (let i = 0; i < 60; i++) {
    counter.changed(status({ a: i }), status({ a: i + 1 }));
    await clock.advance(1000);
  }
  assert.ok(puts >= 1 && puts <= 2, `${puts}`);
});
