/** What every Store does, whatever it is made of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isStoreCorrupt, type Store } from '../../src/world/store.ts';

export interface StoreUnderTest {
  readonly store: Store;
  /** The same entries after a restart of the agent. */
  reopen(): Store;
  /** Damages the entry, its previous copy too. */
  damage(key: string): Promise<void>;
}

export function storeSuite(name: string, make: () => Promise<StoreUnderTest>): void {
  test(`${name}: what was put is got, by this store and by the next one`, async () => {
    const { store, reopen } = await make();
    const value = { key: 'Pod/default/web', list: [1, 'zwei', null], deep: { ü: '☃' } };
    await store.put('objects/Pod/default/web', value);
    assert.deepEqual(await store.get('objects/Pod/default/web'), value);
    assert.deepEqual(await reopen().get('objects/Pod/default/web'), value);
  });
  test(`${name}: what was never put is undefined, and removing it is success`, async () => {
    const { store } = await make();
    assert.equal(await store.get('nothing'), undefined);
    await store.remove('nothing');
    assert.deepEqual(await store.list(''), []);
  });
  test(`${name}: the last put counts`, async () => {
    const { store, reopen } = await make();
    await store.put('a', 1);
    await store.put('a', 2);
    await store.put('a', 3);
    assert.equal(await reopen().get('a'), 3);
  });
  test(`${name}: puts of one key that overlap end with the last one`, async () => {
    const { store, reopen } = await make();
    await Promise.all(Array.from({ length: 10 }, (_, i) => store.put('a', { i })));
    assert.deepEqual(await reopen().get('a'), { i: 9 });
  });
  test(`${name}: what was removed is gone, whatever was put before`, async () => {
    const { store, reopen } = await make();
    await store.put('a', 1);
    await store.put('a', 2);
    await store.remove('a');
    assert.equal(await store.get('a'), undefined);
    assert.equal(await reopen().get('a'), undefined);
    assert.deepEqual(await reopen().list(''), []);
  });
  test(`${name}: list gives the keys of a prefix, sorted`, async () => {
    const { store, reopen } = await make();
    for (const key of ['objects/b', 'objects/a', 'objects', 'other/c', 'objects/a/x']) await store.put(key, key);
    assert.deepEqual(await store.list('objects/'), ['objects/a', 'objects/a/x', 'objects/b']);
    assert.deepEqual(await reopen().list(''), ['objects', 'objects/a', 'objects/a/x', 'objects/b', 'other/c']);
  });
  test(`${name}: any text may be a key, a long one too`, async () => {
    const { store, reopen } = await make();
    const keys = [
      '.hidden',
      'a b',
      'a+b',
      'a/b',
      'a%2fb',
      'ü/☃',
      `long/${'n'.repeat(253)}`,
      `long/${'n'.repeat(252)}m`,
      'a.json',
      'a.json.prev',
    ];
    for (const [i, key] of keys.entries()) await store.put(key, i);
    for (const [i, key] of keys.entries()) assert.equal(await reopen().get(key), i, key);
    assert.deepEqual(await reopen().list(''), [...keys].sort());
  });
  test(`${name}: an entry that cannot be read is told as corrupt, listed, and healed by the next put`, async () => {
    const { store, reopen, damage } = await make();
    await store.put('good', 1);
    for (const key of ['bad', `long/${'n'.repeat(253)}`]) {
      await store.put(key, 1);
      await store.put(key, 2);
      await damage(key);
      const next = reopen();
      await assert.rejects(next.get(key), isStoreCorrupt);
      const listed = (await next.list('')).filter((k) => k !== 'good');
      assert.equal(listed.length, 1);
      await assert.rejects(next.get(listed[0] ?? ''), isStoreCorrupt);
      assert.equal(await next.get('good'), 1);
      await next.put(key, 3);
      assert.equal(await reopen().get(key), 3);
      await next.remove(key);
      assert.deepEqual(await reopen().list(''), ['good']);
    }
  });
}
