import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../src/api/desired.ts';
import type { PodUid } from '../src/api/objects.ts';
import { Mailbox } from '../src/async/mailbox.ts';
import { type Admission, type SyncEvent, SyncLoop } from '../src/syncloop.ts';
import { silentLog } from '../src/world/log.ts';
import { desiredPod } from './pod/desiredPod.ts';

/** The loop with hands that write down what they are asked. */
function rig(admit: (pod: DesiredPod) => Admission = () => ({ admit: true })) {
  const did: string[] = [];
  const known = new Map<PodUid, DesiredPod>();
  const loop = new SyncLoop({
    log: silentLog,
    pods: {
      set: (pod) => {
        known.set(pod.uid, pod);
        did.push(`set ${pod.uid}`);
      },
      remove: (uid) => {
        did.push(`remove ${uid}`);
      },
      get: (uid) => known.get(uid),
    },
    workers: { updatePod: ({ type, pod, runtimePod }) => did.push(`${type} ${pod?.uid ?? runtimePod?.uid}`) },
    admit,
    reject: (pod, reason, message) => did.push(`reject ${pod.uid} ${reason} ${message}`),
    cleanUpContainers: (uid, id) => did.push(`clean ${uid} ${id}`),
    finished: (uid) => did.push(`finished ${uid}`),
    housekeeping: () => did.push('housekeeping'),
    changed: () => did.push('soon'),
  });
  return { did, known, loop };
}

const [a, b] = [desiredPod('a', 'u1'), desiredPod('b', 'u2')];
const config = (op: 'ADD' | 'UPDATE' | 'REMOVE' | 'RECONCILE', ...pods: DesiredPod[]): SyncEvent => ({
  from: 'config',
  update: { op, pods },
});
const pleg = (type: 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved' | 'ContainerChanged', uid = 'u1'): SyncEvent => ({
  from: 'pleg',
  event: { uid: uid as PodUid, type, id: 'c1' },
});

const table: readonly (readonly [what: string, event: SyncEvent, did: readonly string[]])[] = [
  ['an update is desired first, then the worker’s', config('UPDATE', a), ['set u1', 'update u1', 'soon']],
  ['a reconcile is handed on like an update: whoever syncs sees the new words', config('RECONCILE', a), ['set u1', 'update u1', 'soon']],
  ['a removal is no longer desired, then ended', config('REMOVE', a), ['remove u1', 'kill u1', 'soon']],
  ['a started container makes its pod look', pleg('ContainerStarted'), ['sync u1']],
  ['a changed one too', pleg('ContainerChanged'), ['sync u1']],
  ['a dead one as well, and older dead ones of its name may go', pleg('ContainerDied'), ['sync u1', 'clean u1 c1']],
  ['a removed one is our own doing', pleg('ContainerRemoved'), []],
  ['a pod nobody knows is housekeeping’s', pleg('ContainerStarted', 'u9'), ['soon']],
  ['what a pod waited for may have come', { from: 'sync', uids: ['u1' as PodUid, 'u9' as PodUid] }, ['sync u1']],
  ['a finished worker is told to the wiring', { from: 'finished', uid: 'u1' as PodUid }, ['finished u1', 'soon']],
  ['housekeeping is called, and asks for nothing by itself', { from: 'housekeeping' }, ['housekeeping']],
];

for (const [what, event, expected] of table) {
  test(what, () => {
    const { did, known, loop } = rig();
    known.set(a.uid, a);
    loop.dispatch(event);
    assert.deepEqual(did, expected);
  });
}

test('additions go by the time they were first seen, whatever the order they came in', () => {
  const { did, loop } = rig();
  const later = { ...a, firstSeen: '2026-01-02T00:00:00Z' };
  loop.dispatch(config('ADD', later, b));
  assert.deepEqual(did, ['set u2', 'set u1', 'create u2', 'create u1', 'soon']);
});

test('a pod that is not admitted is desired and told, and no worker sees it', () => {
  const { did, loop } = rig((pod) => (pod === a ? { admit: false, reason: 'OutOfcpu', message: 'no room' } : { admit: true }));
  loop.dispatch(config('ADD', a, b));
  assert.deepEqual(did, ['set u1', 'set u2', 'reject u1 OutOfcpu no room', 'create u2', 'soon']);
});

test('a pod that cannot be judged yet is desired, and nothing else happens to it', () => {
  const { did, loop } = rig((pod) => (pod === a ? 'later' : { admit: true }));
  loop.dispatch(config('ADD', a, b));
  assert.deepEqual(did, ['set u1', 'set u2', 'create u2', 'soon']);
});

test('events are handled in the order they came, until the loop is stopped', async () => {
  const { did, loop } = rig();
  const mailbox = new Mailbox<SyncEvent>();
  const stop = new AbortController();
  const running = loop.run(mailbox, stop.signal);
  mailbox.push(config('ADD', a));
  mailbox.push(pleg('ContainerDied'));
  mailbox.push(config('REMOVE', a));
  await new Promise(setImmediate);
  assert.deepEqual(did, ['set u1', 'create u1', 'soon', 'sync u1', 'clean u1 c1', 'remove u1', 'kill u1', 'soon']);
  stop.abort();
  await running;
  mailbox.push({ from: 'housekeeping' });
  await new Promise(setImmediate);
  assert.equal(did.length, 8);
});
