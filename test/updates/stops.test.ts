/** Stopped pods between the sources and the loop: what goes on, what is kept back, and what is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUpdate } from '../../src/api/desired.ts';
import type { KeyText } from '../../src/api/objects.ts';
import type { SyncBody } from '../../src/api/payloads.ts';
import { Stops } from '../../src/updates/stops.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { podOf } from './builders.ts';

const pod = (name: string, uid: string) => podOf(['{name: app, image: "a:1"}'], { name, uid });
const [web, web2, cam] = [pod('web', 'u1'), pod('web', 'u2'), pod('cam', 'u9')];
const { key } = web;
const shown = (u: PodUpdate | undefined) => u && `${u.op} ${u.pods.map((p) => `${p.name}/${p.uid}`).join()}`;

async function stopped(store = new MemoryStore()) {
  const stops = new Stops({ log: silentLog, store });
  await stops.load();
  return { store, stops, pass: (op: PodUpdate['op'], ...pods: PodUpdate['pods']) => shown(stops.pass({ op, pods })) };
}

test('what is not stopped goes on as it comes', async () => {
  const { stops, pass } = await stopped();
  assert.deepEqual(
    [pass('ADD', web, cam), pass('UPDATE', web), pass('RECONCILE', cam), pass('REMOVE', cam)],
    ['ADD web/u1,cam/u9', 'UPDATE web/u1', 'RECONCILE cam/u9', 'REMOVE cam/u9'],
  );
  assert.deepEqual([stops.sent(key)?.uid, stops.sent(cam.key)], ['u1', undefined]);
});

test('a stop removes what was sent on, once, and keeps back what comes until the start', async () => {
  const { store, stops, pass } = await stopped();
  pass('ADD', web, cam);
  assert.deepEqual((await stops.stop(key))?.map(shown), ['REMOVE web/u1']);
  assert.equal(await stops.stop(key), undefined);
  assert.deepEqual([await store.list('stops/'), stops.sent(key)], [['stops/Pod/default/web'], undefined]);
  assert.deepEqual(
    [pass('UPDATE', web), pass('RECONCILE', web, cam), pass('REMOVE', web), pass('ADD', web2)],
    [undefined, 'RECONCILE cam/u9', undefined, undefined],
  );
  const sent: (string | undefined)[] = [];
  const renew = async (): Promise<void> => {
    sent.push(pass('REMOVE', web2), pass('ADD', pod('web', 'u3')));
  };
  assert.equal(await stops.start(key, renew), true);
  assert.deepEqual([sent, stops.has(key), stops.sent(key)?.uid], [[undefined, 'ADD web/u3'], false, 'u3']);
  assert.deepEqual([await store.list('stops/'), await stops.start(key, renew)], [[], false]);
});

test('a stop of something that never came keeps it back when it comes, over restarts of the agent', async () => {
  const { store, stops } = await stopped();
  assert.deepEqual(await stops.stop(key), []);
  const next = await stopped(store);
  assert.deepEqual([next.stops.has(key), next.pass('ADD', web, cam)], [true, 'ADD cam/u9']);
});

test('an entry that cannot be read stops all the same', async () => {
  const { store } = await stopped();
  store.entries.set('stops/Pod/default/web', 'broken');
  assert.equal((await stopped(store)).stops.has(key), true);
});

test('a start that cannot be carried out leaves the pod stopped, and is tried again', async () => {
  const { stops, pass } = await stopped();
  await stops.stop(key);
  await assert.rejects(
    stops.start(key, () => Promise.reject(new Error('no space left'))),
    /no space left/,
  );
  assert.deepEqual([stops.has(key), pass('ADD', web)], [true, undefined]);
  assert.equal(await stops.start(key, async () => {}), true);
  assert.equal(pass('ADD', web), 'ADD web/u1');
});

test('a stop that cannot be stored stops nothing', async () => {
  const { store, stops, pass } = await stopped();
  pass('ADD', web);
  store.put = () => Promise.reject(new Error('no space left'));
  await assert.rejects(stops.stop(key), /no space left/);
  assert.deepEqual([stops.has(key), pass('UPDATE', web)], [false, 'UPDATE web/u1']);
});

test('stops and starts that overlap are carried out one after the other', async () => {
  const { stops, pass } = await stopped();
  pass('ADD', web);
  const renew = async (): Promise<void> => {
    pass('ADD', web2);
  };
  const all = await Promise.all([stops.stop(key), stops.start(key, renew), stops.stop(key)]);
  assert.deepEqual([all[0]?.map(shown), all[1], all[2]?.map(shown)], [['REMOVE web/u1'], true, ['REMOVE web/u2']]);
  assert.equal(stops.has(key), true);
});

test('a pod that no source names is not stopped any more', async () => {
  const { store, stops } = await stopped();
  await stops.stop(key);
  await stops.stop(cam.key);
  await stops.retain((k) => k === cam.key);
  assert.deepEqual([stops.has(key), stops.has(cam.key), await store.list('stops/')], [false, true, ['stops/Pod/default/cam']]);
});

test('a stopped pod is told Stopped, once it has ended, and nothing else of the answer is lost', async () => {
  const { stops } = await stopped();
  const body = (o: Partial<SyncBody> = {}): SyncBody => ({
    apiVersion: 'podsched.dev/v1',
    kind: 'SyncStatus',
    object: { kind: 'Pod', namespace: 'default', name: 'web' },
    phase: 'Accepted',
    reason: 'Accepted',
    message: '',
    desired: { source: 'file:web.yaml', revision: 'abc' },
    running: { revision: 'abc', uid: 'u1' },
    nextRetrySeconds: 5,
    sources: [],
    ...o,
  });
  assert.equal(stops.told(body()).phase, 'Accepted');
  await stops.stop('Pod/default/web' as KeyText);
  const told = stops.told(body());
  assert.deepEqual([told.phase, told.reason, told.running, told.nextRetrySeconds], ['Stopped', 'Stopped', undefined, undefined]);
  assert.deepEqual(told.desired, body().desired);
  assert.equal(stops.told(body({ phase: 'Terminating' })).phase, 'Terminating');
  assert.equal(stops.told(body({ object: { kind: 'ConfigMap', namespace: 'default', name: 'web' } })).phase, 'Accepted');
  const { desired: _, ...refused } = body({ phase: 'Refused' });
  assert.equal(stops.told(refused).phase, 'Refused');
});
