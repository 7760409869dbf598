import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileNameOf } from '../../src/store/entry.ts';
import { FileStore } from '../../src/store/fileStore.ts';
import { isStoreCorrupt, MemoryStore } from '../../src/world/store.ts';
import { storeSuite } from '../contract/store.ts';

const folders: string[] = [];
const folder = async (): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'podsched-store-'));
  folders.push(dir);
  return join(dir, 'state');
};
after(async () => {
  for (const dir of folders) await rm(dir, { recursive: true, force: true });
});

storeSuite('memory', async () => {
  const store = new MemoryStore();
  return { store, reopen: () => store, damage: async (key) => void store.entries.set(key, '{') };
});
for (const durable of [true, false]) {
  storeSuite(durable ? 'card' : 'tmpfs', async () => {
    const dir = await folder();
    return {
      store: new FileStore(dir, { durable }),
      reopen: () => new FileStore(dir, { durable }),
      damage: async (key) => {
        for (const end of ['.json', '.json.prev']) await writeFile(join(dir, fileNameOf(key) + end), 'podsched-entry 1 torn');
      },
    };
  });
}

test('the folder is 0700 and its files are 0600: Secrets lie there', async () => {
  const dir = await folder();
  const store = new FileStore(dir, { durable: true });
  await store.put('a', 1);
  await store.put('a', 2);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  for (const name of await readdir(dir)) assert.equal((await stat(join(dir, name))).mode & 0o777, 0o600, name);
});

test('an equal value writes nothing: neither file nor folder is touched', async () => {
  const dir = await folder();
  await new FileStore(dir, { durable: true }).put('a', { b: [1, 2] });
  const past = new Date('2020-01-01T00:00:00Z');
  await utimes(join(dir, 'a.json'), past, past);
  await utimes(dir, past, past);
  await new FileStore(dir, { durable: true }).put('a', { b: [1, 2] });
  assert.equal((await stat(join(dir, 'a.json'))).mtimeMs, past.getTime());
  assert.equal((await stat(dir)).mtimeMs, past.getTime());
});

const torn: readonly (readonly [string, (path: string) => Promise<void>])[] = [
  ['0 bytes', (path) => writeFile(path, '')],
  ['garbage', (path) => writeFile(path, Buffer.from([0, 255, 3, 10, 200]))],
  ['half', async (path) => writeFile(path, (await readFile(path)).subarray(0, 90))],
  ['zeros of the right length', async (path) => writeFile(path, Buffer.alloc((await readFile(path)).length))],
  [
    'a folder',
    (path) =>
      rm(path)
        .then(() => mkdir(path))
        .then(() => writeFile(join(path, 'x'), 'x')),
  ],
  ['gone', (path) => rm(path)],
  ['the entry of another key', async (path) => writeFile(path, await readFile(join(path, '../other.json')))],
];
for (const [how, tear] of torn) {
  test(`a state file torn to ${how}: the previous copy serves, and the next put heals it without losing that copy`, async () => {
    const dir = await folder();
    const store = new FileStore(dir, { durable: true });
    await store.put('other', 'other');
    await store.put('a', 'old');
    await store.put('a', 'new');
    await tear(join(dir, 'a.json'));
    const next = new FileStore(dir, { durable: true });
    assert.equal(await next.get('a'), 'old');
    // a cut between the two renames leaves no newest, and then nothing newer was ever used
    assert.deepEqual(await next.read('a'), { value: 'old', older: how !== 'gone' });
    await next.put('a', 'newest');
    assert.deepEqual(await next.read('a'), { value: 'newest', older: false });
    await tear(join(dir, 'a.json'));
    assert.equal(await next.get('a'), 'old', 'the torn file did not become the previous copy');
    await next.remove('a');
    assert.equal(await new FileStore(dir, { durable: true }).get('a'), undefined);
  });
}

test('a first entry torn has no previous copy: corrupt, not absent', async () => {
  const dir = await folder();
  const store = new FileStore(dir, { durable: true });
  await store.put('a', 1);
  await writeFile(join(dir, 'a.json'), '');
  await assert.rejects(store.get('a'), isStoreCorrupt);
});

test('a put that finds no room is refused, and what was stored stays', async () => {
  const dir = await folder();
  const store = new FileStore(dir, { durable: true });
  await store.put('a', 'old');
  // a folder in the place of the temporary file stands for ENOSPC: opening it for writing fails as well
  await mkdir(join(dir, 'a.json.tmp'));
  await assert.rejects(store.put('a', 'new'), /cannot store a/);
  assert.equal(await store.get('a'), 'old');
  await store.put('a', 'new');
  assert.equal(await store.get('a'), 'new');
});

test('a cut between the two renames leaves the old value', async () => {
  const dir = await folder();
  const store = new FileStore(dir, { durable: true });
  await store.put('a', 'old');
  await writeFile(join(dir, 'a.json.prev'), await readFile(join(dir, 'a.json')));
  await rm(join(dir, 'a.json'));
  await writeFile(join(dir, 'a.json.tmp'), 'half');
  const next = new FileStore(dir, { durable: true });
  assert.equal(await next.get('a'), 'old');
  assert.deepEqual(await next.list(''), ['a']);
  await next.put('b', 1);
  assert.deepEqual((await readdir(dir)).sort(), ['a.json.prev', 'b.json'], 'the half-written file is swept');
});

test('fifty puts at once share their syncs and all are there', async () => {
  const dir = await folder();
  const store = new FileStore(dir, { durable: true });
  await Promise.all(Array.from({ length: 50 }, (_, i) => store.put(`objects/${i}`, { i })));
  const next = new FileStore(dir, { durable: true });
  assert.equal((await next.list('objects/')).length, 50);
  assert.deepEqual(await next.get('objects/49'), { i: 49 });
});

test('a folder that cannot be made refuses the put and is tried again', async () => {
  const dir = await folder();
  await writeFile(dir, 'a file stands in the way');
  const store = new FileStore(dir, { durable: true });
  assert.equal(await store.get('a'), undefined);
  await assert.rejects(store.put('a', 1), /cannot make the folder/);
  await rm(dir);
  await store.put('a', 1);
  assert.equal(await store.get('a'), 1);
});
