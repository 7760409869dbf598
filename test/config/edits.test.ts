/** Edits that admission blocks, or that end the old instance: what is stored, what goes on, what is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import { pod, type Rig, started, uidOf } from './builders.ts';

const web = 'Pod/default/web' as KeyText;
const blocked = { act: 'block', reason: 'OutOfcpu', message: 'no room' } as const;
const view = (r: Rig) => r.config.view().objects.find((o) => o.key === web);
const runs = (r: Rig): string | undefined => r.updates.at(-1)?.pods.at(-1)?.pod.spec.containers[0]?.image;
const wants = (r: Rig): string | undefined => {
  const o = r.config.object(web);
  return o?.kind === 'Pod' ? o.spec.containers[0]?.image : undefined;
};
const stored = async (r: Rig) =>
  (await r.store.get('objects/Pod/default/web')) as { uid: string; running?: { revision: string }; candidates: { revision: string }[] };

async function blockedRig(): Promise<Rig> {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.verdicts.set('web', blocked);
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }) });
  await r.config.readFolder();
  return r;
}

test('a blocked edit: nothing goes out, both objects are stored, the reason is told with its event', async () => {
  const r = await blockedRig();
  assert.deepEqual(r.take(), []);
  assert.equal(wants(r), 'busybox:2');
  assert.deepEqual(view(r)?.blockedEdit, { reason: 'OutOfcpu', message: 'no room' });
  assert.deepEqual([view(r)?.sources[0]?.phase, view(r)?.sources[0]?.reason], ['Waiting', 'OutOfcpu']);
  const entry = await stored(r);
  assert.equal(entry.candidates[0]?.revision, view(r)?.winner?.revision);
  assert.notEqual(entry.running?.revision, entry.candidates[0]?.revision);
  assert.deepEqual(
    r.events.filter((e) => e.reason === 'UpdateBlocked').map((e) => e.message),
    ['OutOfcpu: no room'],
  );
});

test('as long as it is blocked it costs no write and no second event, and when there is room it is carried out', async () => {
  const r = await blockedRig();
  const uid = uidOf(r, web);
  const writes = r.store.writes.length;
  await r.config.retryBlocked();
  await r.config.readFolder();
  assert.deepEqual([r.store.writes.length, r.take(), r.events.length], [writes, [], 1]);
  r.verdicts.clear();
  await r.config.retryBlocked();
  assert.deepEqual(r.take(), [`UPDATE web ${uid}`]);
  assert.equal(runs(r), 'busybox:2');
  assert.equal(view(r)?.blockedEdit, undefined);
  assert.equal((await stored(r)).running, undefined);
  await r.config.retryBlocked();
  assert.deepEqual(r.take(), [], 'there is nothing left to try');
});

test('after a restart of the agent the old one goes on under its UID, without a write, and the edit is judged again', async () => {
  const r = await blockedRig();
  const uid = uidOf(r, web);
  const again = await r.restart();
  again.verdicts.set('web', blocked);
  assert.deepEqual(again.take(), [`ADD web ${uid}`]);
  assert.equal(runs(again), 'busybox:1');
  const writes = again.store.writes.length;
  await again.config.readFolder();
  assert.deepEqual([again.take(), again.store.writes.length], [[], writes]);
  assert.equal(view(again)?.blockedEdit?.reason, 'OutOfcpu');
  again.verdicts.clear();
  await again.config.retryBlocked();
  assert.deepEqual(again.take(), [`UPDATE web ${uid}`]);
});

test('it is judged again although the folder cannot be read', async () => {
  const r = await blockedRig();
  const again = await r.restart();
  again.take();
  again.folder.missing = true;
  again.verdicts.set('web', blocked);
  await again.config.readFolder();
  assert.equal(view(again)?.blockedEdit?.reason, 'OutOfcpu');
  again.verdicts.clear();
  await again.config.retryBlocked();
  assert.equal(runs(again), 'busybox:2');
});

test('a blocked edit that is taken back is over: nothing restarts', async () => {
  const r = await blockedRig();
  r.folder.set({ 'web.yaml': pod('web') });
  await r.config.readFolder();
  assert.deepEqual(r.take(), [], 'what runs is what is wanted');
  assert.equal(view(r)?.blockedEdit, undefined);
  assert.equal((await stored(r)).running, undefined);
});

test('a blocked edit that is edited again: the newest is stored, the old one still runs', async () => {
  const r = await blockedRig();
  const first = (await stored(r)).running?.revision;
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:3' }) });
  await r.config.readFolder();
  assert.equal(wants(r), 'busybox:3');
  assert.equal((await stored(r)).running?.revision, first);
  r.verdicts.clear();
  await r.config.retryBlocked();
  assert.equal(runs(r), 'busybox:3');
});

test('a blocked edit whose manifest goes ends the old one', async () => {
  const r = await blockedRig();
  const uid = uidOf(r, web);
  r.folder.set({});
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`REMOVE web ${uid}`]);
  assert.equal(view(r), undefined);
});

test('a new instance of a blocked pod is of what is accepted: the old one has ended', async () => {
  const r = await blockedRig();
  await r.config.renewInstance(uidOf(r, web));
  assert.equal(runs(r), 'busybox:2');
  assert.equal(view(r)?.blockedEdit, undefined);
});

test('where the pod is not meant for this node any more the edit is a new instance, however small it is', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const first = uidOf(r, web);
  r.take();
  r.verdicts.set('web', { act: 'replace' });
  r.folder.set({ 'web.yaml': pod('web', { extra: '  nodeSelector: {disktype: nvme}' }) });
  await r.config.readFolder();
  assert.deepEqual(r.judged.at(-1), ['reconcile web']);
  assert.deepEqual(r.take(), [`REMOVE web ${first}`, `ADD web ${uidOf(r, web)}`]);
});

test('all edits of one read are judged together, and what is no edit is not', async () => {
  const r = await started({ 'a.yaml': pod('a'), 'b.yaml': pod('b'), 'c.yaml': pod('c') });
  r.folder.set({
    'a.yaml': pod('a', { image: 'i:2' }),
    'b.yaml': pod('b', { extra: '  hostPID: true' }),
    'c.yaml': pod('c'),
    'new.yaml': pod('new'),
  });
  await r.config.readFolder();
  assert.deepEqual(r.judged.at(-1), ['update a', 'replace b']);
});

test('an edit that cannot be stored is not blocked but told as such', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.verdicts.set('web', blocked);
  r.store.full = true;
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }) });
  await r.config.readFolder();
  assert.equal(view(r)?.pending?.reason, 'StoreFailed');
  assert.equal(view(r)?.blockedEdit, undefined);
  r.store.full = false;
  await r.config.readFolder();
  assert.equal(view(r)?.pending, undefined);
  assert.equal(view(r)?.blockedEdit?.reason, 'OutOfcpu');
  assert.deepEqual(r.take(), []);
});

const annotated = (image: string, annotation: string): string =>
  pod('web', { image }).replace('spec:', `  annotations: ${annotation}\nspec:`);
const rollback = '{podsched.dev/rollback: 5m}';
const revision = (r: Rig): string => view(r)?.winner?.revision ?? '?';

async function goodThenEdited(): Promise<{ readonly r: Rig; readonly v1: string; readonly v2: string }> {
  const r = await started({ 'web.yaml': annotated('busybox:1', rollback) });
  const v1 = revision(r);
  await r.config.markGood(web, v1);
  r.folder.set({ 'web.yaml': annotated('busybox:2', rollback) });
  await r.config.readFolder();
  r.take();
  return { r, v1, v2: revision(r) };
}

test('what was good is written once, and only where a rollback is asked for', async () => {
  for (const asks of [true, false]) {
    const r = await started({ 'web.yaml': asks ? annotated('busybox:1', rollback) : pod('web') });
    const { length } = r.store.writes;
    await r.config.markGood(web, 'another revision');
    await r.config.markGood(web, revision(r));
    await r.config.markGood(web, revision(r));
    assert.equal(r.store.writes.length - length, asks ? 1 : 0);
    assert.equal(r.config.isGood(web, revision(r)), true);
    // the object itself stands in the entry once
    const text = JSON.stringify(await r.store.get('objects/Pod/default/web'));
    assert.equal(text.split('busybox:1').length - 1, 1);
  }
});

test('a revision that became Ready on a full card is good all the same: it is not given up for that', async () => {
  const { r, v2 } = await goodThenEdited();
  r.store.put = async () => Promise.reject(new Error('no space left on device'));
  await assert.rejects(r.config.markGood(web, v2), /no space left/);
  assert.deepEqual([r.config.isGood(web, v2), r.config.wayBack(web, v2)], [true, undefined]);
});

test('a given-up revision: the last good one runs again, once stored, over restarts; the next edit is tried', async () => {
  const { r, v1, v2 } = await goodThenEdited();
  assert.equal(r.config.wayBack(web, v2), v1);
  await r.config.giveUp(web, v2, 'it was not Ready');
  assert.equal(runs(r), 'busybox:1');
  assert.equal(wants(r), 'busybox:2');
  assert.deepEqual(view(r)?.blockedEdit, { reason: 'RolledBack', message: 'it was not Ready' });
  const writes = r.store.writes.length;
  await r.config.readFolder();
  await r.config.retryBlocked();
  await r.config.giveUp(web, v2, 'again');
  assert.equal(r.store.writes.length, writes, 'once, and then nothing is written');
  const again = await r.restart();
  assert.equal(runs(again), 'busybox:1');
  again.take();
  await again.config.readFolder();
  assert.deepEqual([again.take(), view(again)?.blockedEdit?.reason], [[], 'RolledBack']);
  assert.deepEqual([...again.config.knownImages()].sort(), ['busybox:1', 'busybox:2']);
  again.folder.set({ 'web.yaml': annotated('busybox:3', rollback) });
  await again.config.readFolder();
  assert.deepEqual([runs(again), view(again)?.blockedEdit], ['busybox:3', undefined]);
});

test('a power cut between giving up and going back: the next agent goes back', async () => {
  const { r, v2 } = await goodThenEdited();
  let cut = false;
  r.store.onWrite = () => {
    if (cut) throw new Error('no power');
    cut = true;
  };
  await r.config.giveUp(web, v2, 'it was not Ready');
  r.store.onWrite = () => {};
  const again = await r.restart();
  assert.equal(runs(again), 'busybox:2');
  await again.config.readFolder();
  assert.deepEqual([runs(again), view(again)?.blockedEdit?.reason], ['busybox:1', 'RolledBack']);
});

test('the way back has no room: what is given up goes on and says so, and becoming Ready it stays for good', async () => {
  const { r, v2 } = await goodThenEdited();
  r.verdicts.set('web', blocked);
  await r.config.giveUp(web, v2, 'it was not Ready');
  assert.deepEqual([r.take(), view(r)?.blockedEdit?.reason], [[], 'OutOfcpu']);
  assert.equal(view(r)?.blockedEdit?.message, `revision ${v2} was given up, and the one to go back to waits: no room`);
  const writes = r.store.writes.length;
  await r.config.retryBlocked();
  assert.equal(r.store.writes.length, writes);
  await r.config.markGood(web, v2);
  r.verdicts.clear();
  await r.config.retryBlocked();
  assert.deepEqual([r.take(), view(r)?.blockedEdit], [[], undefined]);
  assert.equal(r.config.isGood(web, v2), true);
});

test('the text of the good revision written back is no rollback any more', async () => {
  const { r, v2 } = await goodThenEdited();
  await r.config.giveUp(web, v2, 'it was not Ready');
  r.take();
  r.folder.set({ 'web.yaml': annotated('busybox:1', rollback) });
  await r.config.readFolder();
  assert.deepEqual([r.take(), view(r)?.blockedEdit], [[], undefined]);
  assert.equal((await stored(r)).running, undefined);
});

test('tried again: the given-up revision runs', async () => {
  const { r, v2 } = await goodThenEdited();
  await r.config.giveUp(web, v2, 'it was not Ready');
  assert.equal(await r.config.tryAgain(web), true);
  assert.deepEqual([runs(r), view(r)?.blockedEdit], ['busybox:2', undefined]);
  assert.equal(await r.config.tryAgain(web), false);
});

test('a new instance of what was rolled back, or is held, is of what runs', async () => {
  const { r, v2 } = await goodThenEdited();
  await r.config.giveUp(web, v2, 'it was not Ready');
  await r.config.renewInstance(uidOf(r, web));
  assert.equal(runs(r), 'busybox:1');
  const h = await started({ 'web.yaml': pod('web') });
  h.held.add('web');
  h.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }) });
  await h.config.readFolder();
  await h.config.renewInstance(uidOf(h, web));
  assert.deepEqual([runs(h), view(h)?.blockedEdit?.reason], ['busybox:1', 'Held']);
});

test('what is held waits without being judged, and a label goes through', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.held.add('web');
  r.folder.set({ 'web.yaml': pod('web', { label: 'x' }) });
  await r.config.readFolder();
  assert.match(r.take().join(), /^RECONCILE web/);
  assert.equal(view(r)?.heldBy, 'held by a test');
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2', label: 'x' }) });
  await r.config.readFolder();
  assert.deepEqual([r.take(), view(r)?.blockedEdit], [[], { reason: 'Held', message: 'held by a test' }]);
  assert.deepEqual(r.judged.at(-1), []);
  assert.deepEqual(
    r.events.filter((e) => e.reason === 'Held').map((e) => e.type),
    ['Normal'],
  );
  r.held.clear();
  await r.config.retryBlocked();
  assert.equal(runs(r), 'busybox:2');
});

test('a held pod that is not meant for this node any more stays all the same', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.held.add('web');
  r.verdicts.set('web', { act: 'replace' });
  r.folder.set({ 'web.yaml': pod('web', { extra: '  nodeSelector: {disktype: nvme}' }) });
  await r.config.readFolder();
  assert.deepEqual([r.take(), view(r)?.blockedEdit?.reason], [[], 'Held']);
});
