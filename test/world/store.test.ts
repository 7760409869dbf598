import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isStoreCorrupt, MemoryStore, StoreCorrupt } from '../../src/world/store.ts';

test('an entry that cannot be read is known by its class, names its key, and is listed all the same', async () => {
  const store = new MemoryStore();
  await store.put('a/1', { x: 1 });
  store.entries.set('a/2', '{torn');
  await assert.rejects(store.get('a/2'), (e) => isStoreCorrupt(e) && e.key === 'a/2' && /a\/2/.test(e.message) && e.cause !== undefined);
  assert.deepEqual(await store.list('a/'), ['a/1', 'a/2']);
  await store.remove('a/2');
  assert.deepEqual(await store.list('a/'), ['a/1']);
});

test('other errors are not taken for a torn entry', () => {
  assert.equal(isStoreCorrupt(new Error('EIO')), false);
  assert.equal(isStoreCorrupt(new StoreCorrupt('k', { cause: 'x' })), true);
});

test('what was stored is a copy: later changes of the value are not in it', async () => {
  const store = new MemoryStore();
  const value = { list: [1] };
  await store.put('k', value);
  value.list.push(2);
  assert.deepEqual(await store.get('k'), { list: [1] });
});
