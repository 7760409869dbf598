/** Folders of pods go only when their pods have: a pod that is held back for a full card keeps its data. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { manifest, World } from './world.ts';

const full = async (): Promise<never> => {
  throw new Error('ENOSPC: no space left on device');
};

test('with the state lost and the card full, the folder of a pod that runs on is not taken for a former pod’s', async () => {
  const world = new World();
  const known: ReadonlySet<PodUid>[] = [];
  Object.assign(world.volumes, { retain: async (uids: ReadonlySet<PodUid>) => void known.push(uids) });
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(10);
  const uid = world.pod('web')?.metadata.uid as PodUid;
  assert.ok(uid);

  world.kill();
  world.stateStore.entries.clear();
  world.stateStore.put = full;
  known.length = 0;
  await world.start();
  await world.advance(200);
  assert.equal(world.sync('web')?.reason, 'StoreFailed');
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.ok(known.length > 0, 'housekeeping came by');
  for (const uids of known) assert.ok(uids.has(uid), 'its folder is wanted');
});

test('with a lost checkpoint and a torn manifest, the folder of the pod that runs on stays until the file is mended', async () => {
  const world = new World();
  const known: ReadonlySet<PodUid>[] = [];
  Object.assign(world.volumes, { retain: async (uids: ReadonlySet<PodUid>) => void known.push(uids) });
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(10);
  const uid = world.pod('web')?.metadata.uid as PodUid;

  world.kill();
  for (const key of world.stateStore.entries.keys()) if (key.startsWith('objects/')) world.stateStore.entries.set(key, '{torn');
  world.folder.files.set('web.yaml', 'kind: [Pod\n  oops');
  known.length = 0;
  await world.start();
  await world.advance(200);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  for (const uids of known) assert.ok(uids.has(uid), 'its folder is wanted');
});
