/** Images that a person keeps: by any spelling, over agents, and no longer when the person says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImageInfo } from '../../src/container/runtime.ts';
import { PersonPins } from '../../src/images/personPins.ts';
import { pinsOf } from '../../src/images/pins.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';

async function pinsOn(store: MemoryStore): Promise<PersonPins> {
  const pins = new PersonPins({ log: silentLog, store });
  await pins.load();
  return pins;
}

test('a pin is on the card, by the name that containerd has for it, and is taken away by any other spelling', async () => {
  const store = new MemoryStore();
  const pins = await pinsOn(store);
  assert.equal(await pins.set('busybox', true), 'done');
  assert.equal(await pins.set('docker.io/library/busybox:latest', true), 'already');
  const next = await pinsOn(store);
  assert.deepEqual([...next.names()], ['docker.io/library/busybox:latest']);
  assert.deepEqual([await next.set('busybox:latest', false), await next.set('busybox', false), [...next.names()]], ['done', 'already', []]);
  assert.deepEqual(await store.get('image-pins'), []);
});

test('what names no image, and what cannot be stored, pins nothing', async () => {
  const store = new MemoryStore();
  const pins = await pinsOn(store);
  assert.equal(await pins.set('NOT AN IMAGE', true), 'no image name');
  store.put = () => Promise.reject(new Error('no space left'));
  await assert.rejects(pins.set('a:1', true), /no space left/);
  assert.deepEqual([...pins.names()], []);
});

test('several at once are all stored, and no more than a person could mean', async () => {
  const store = new MemoryStore();
  const pins = await pinsOn(store);
  await Promise.all(Array.from({ length: 500 }, (_, i) => pins.set(`a:${i}`, true)));
  assert.equal(((await store.get('image-pins')) as string[]).length, 500);
  assert.equal(await pins.set('b:1', true), 'too many');
});

test('an unreadable list is an empty one, and the next pin makes it anew', async () => {
  const store = new MemoryStore();
  store.entries.set('image-pins', 'broken');
  const pins = await pinsOn(store);
  assert.deepEqual([...pins.names()], []);
  assert.equal(await pins.set('a:1', true), 'done');
  assert.deepEqual([...(await pinsOn(store)).names()], ['docker.io/library/a:1']);
});

test('a pinned image stays for that reason', () => {
  const image: ImageInfo = { id: 'sha256:1', tags: ['docker.io/library/a:1'], digests: [], pinned: false, username: '' };
  const pins = pinsOf([image], { sandboxImage: 'p:1', known: [], imported: [], person: ['docker.io/library/a:1'] });
  assert.deepEqual(pins.get(image.id), ['person']);
});
