import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Keeper } from '../../src/status/keeper.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

class SlowStore extends MemoryStore {
  readonly writes: string[] = [];
  gate: Promise<void> = Promise.resolve();
  override async put(key: string, value: unknown): Promise<void> {
    await this.gate;
    this.writes.push(`${key}=${JSON.stringify(value)}`);
    await super.put(key, value);
  }
}

function setUp(periodMs: number) {
  const clock = new FakeClock();
  const store = new SlowStore();
  const warnings: string[] = [];
  const keeper = new Keeper({ clock, log: { ...silentLog, warn: (_, sentence) => warnings.push(sentence) }, store, periodMs });
  return { clock, store, keeper, warnings };
}

test('only the newest value of a key is written', async () => {
  const { keeper, store } = setUp(0);
  const first = keeper.put('a', 1);
  await Promise.all([first, keeper.put('a', 2), keeper.put('b', 3)]);
  assert.deepEqual(store.writes, ['a=2', 'b=3']);
});

test('a put resolves when its own value is stored, not when all others are', async () => {
  const { keeper, store } = setUp(0);
  await keeper.put('a', 1);
  let open = () => {};
  store.gate = new Promise((r) => {
    open = r;
  });
  const held = keeper.put('b', 1);
  await settle();
  let late = false;
  const later = keeper.put('c', 1).then(() => {
    late = true;
  });
  open();
  await held;
  assert.equal(late, false);
  await later;
  await keeper.put('c', undefined);
  assert.deepEqual(await store.list(''), ['a', 'b']);
});

test('rounds keep their distance; flush does not wait for it', async () => {
  const { keeper, store, clock } = setUp(1000);
  await keeper.put('a', 1);
  const second = keeper.put('a', 2);
  await clock.advance(999);
  assert.equal(store.writes.length, 1);
  await clock.advance(1);
  await second;
  assert.equal(store.writes.length, 2);
  void keeper.put('a', 3);
  await keeper.flush();
  assert.equal(store.entries.get('a'), '3');
  void keeper.put('a', 4);
  await clock.advance(1000);
  assert.equal(store.entries.get('a'), '4', 'it goes on as before');
});

test('a store that fails is told in the log, and the next value is tried', async () => {
  const { keeper, store, warnings } = setUp(0);
  store.gate = Promise.reject(new Error('ENOSPC'));
  await keeper.put('a', 1);
  assert.equal(warnings.length, 1);
  store.gate = Promise.resolve();
  await keeper.put('a', 2);
  assert.equal(store.entries.get('a'), '2');
});

test('an entry that cannot be read is left out', async () => {
  const { keeper, store, warnings } = setUp(0);
  store.entries.set('s/a', '{broken');
  store.entries.set('s/b', '1');
  assert.deepEqual([...(await keeper.load('s/'))], [['s/b', 1]]);
  assert.equal(warnings.length, 1);
});
