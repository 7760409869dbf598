/** G4: the newest entry of a pod is lost, and its previous copy speaks of another time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { StoredValue } from '../../src/world/store.ts';
import { CountingStore, pod, started, uidOf } from './builders.ts';

const web = 'Pod/default/web';

/** The card gives the previous copy of each entry that was put more than once. */
class OlderStore extends CountingStore {
  readonly previous = new Map<string, unknown>();
  override async put(key: string, value: unknown): Promise<void> {
    const before = await this.get(key);
    if (before !== undefined) this.previous.set(key, before);
    await super.put(key, value);
  }
  override async read(key: string): Promise<StoredValue | undefined> {
    return this.previous.has(key) ? { value: this.previous.get(key), older: true } : super.read(key);
  }
}

/** An agent whose entry of the pod was put twice, and the card that lost the second. */
async function edited() {
  const r = await started({ 'web.yaml': pod('web', { env: '1' }) });
  const store = new OlderStore();
  for (const [key, text] of r.store.entries) await store.put(key, JSON.parse(text));
  const again = await r.restart(store);
  again.folder.set({ 'web.yaml': pod('web', { env: '2' }) });
  await again.config.readFolder();
  return { r: again, store, uid: uidOf(again, web) };
}

test('nothing is desired by an older copy before the folder was read: what runs is newer', async () => {
  const { r, store, uid } = await edited();
  const after = await r.restart(store);
  assert.deepEqual(after.take(), []);
  after.runtime = new Map([[web, uid]]);
  await after.config.readFolder();
  assert.deepEqual(after.take(), [`ADD web ${uid}`]);
  assert.equal(after.updates[0]?.pods[0]?.pod.spec.containers[0]?.env?.[0]?.value, '2');
});

test('the instance is the one that the runtime has, and the older copy is not believed', async () => {
  const { r, store } = await edited();
  const after = await r.restart(store);
  after.runtime = new Map([[web, 'replaced-since' as PodUid]]);
  await after.config.readFolder();
  assert.deepEqual(after.take(), ['ADD web replaced-since']);
});

test('until the runtime was listed it waits', async () => {
  const { r, store, uid } = await edited();
  const after = await r.restart(store);
  after.runtime = 'unknown';
  await after.config.readFolder();
  assert.deepEqual(after.take(), []);
  assert.equal(after.config.view().objects[0]?.pending?.reason, 'RuntimeDown');
  after.runtime = new Map([[web, uid]]);
  await after.config.readFolder();
  assert.deepEqual(after.take(), [`ADD web ${uid}`]);
});

test('with a folder that cannot be read the older copy is all there is, and it runs', async () => {
  const { r, store } = await edited();
  r.folder.missing = true;
  const after = await r.restart(store);
  await after.config.readFolder();
  assert.equal(after.updates[0]?.op, 'ADD');
  assert.equal(after.updates[0]?.pods[0]?.pod.spec.containers[0]?.env?.[0]?.value, '1');
});

test('what the folder no longer names goes, though only an older copy knew it', async () => {
  const { r, store } = await edited();
  r.folder.set({});
  const after = await r.restart(store);
  await after.config.readFolder();
  assert.deepEqual(after.take(), []);
  assert.deepEqual(after.config.view().objects, []);
});
