import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { SyncBody } from '../../src/api/payloads.ts';
import type { ToldPod } from '../../src/api/status.ts';
import { nodeTopics } from '../../src/api/topics.ts';
import { StatusManager } from '../../src/status/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { desiredPod, generate, record, runtimePod, simple } from './build.ts';

const topics = nodeTopics('podsched/v1', 'pi-07');
const webTopic = topics.pod('default', 'web');

interface Told {
  readonly topic: string;
  readonly payload: string | undefined;
  readonly expirySeconds: number;
}

function setUp(o: { store?: MemoryStore; clock?: FakeClock; maxBytes?: number } = {}) {
  const clock = o.clock ?? new FakeClock();
  const store = o.store ?? new MemoryStore();
  const told: Told[] = [];
  const errors: string[] = [];
  let seq = 0;
  const { maxBytes } = o;
  const manager = new StatusManager({
    clock,
    log: { ...silentLog, error: (_, sentence) => errors.push(sentence) },
    store,
    topics,
    tell: (topic, payload, { expirySeconds }) => told.push({ topic, payload, expirySeconds }),
    boot: () => 3,
    seq: () => ++seq,
    ...(maxBytes !== undefined && { maxBytes: () => maxBytes }),
  });
  const last = () => JSON.parse(told.at(-1)?.payload ?? 'null') as ToldPod;
  return { clock, store, told, errors, manager, last };
}

const web = desiredPod(simple());
const up = runtimePod([record('c', 'running')]);
const down = runtimePod([record('c', 'exited', { exitCode: 1 })]);

test('a status is stored, then told retained for 7 days with boot and seq; the same again is not told', async () => {
  const { manager, told, last, store } = setUp();
  const status = generate(web, up);
  manager.setPod(web, status);
  assert.equal(told.length, 0, 'not before it is stored');
  assert.equal(manager.get(web.uid), status);
  await settle();
  manager.setPod(web, generate(web, up, { old: status }));
  await settle();
  assert.equal(told.length, 1);
  assert.deepEqual([told[0]?.topic, told[0]?.expirySeconds], [webTopic, 7 * 86_400]);
  assert.equal(last().metadata.annotations?.['podsched.dev/boot'], '3');
  assert.equal(last().metadata.annotations?.['podsched.dev/seq'], '1');
  assert.deepEqual(await store.list('status/'), ['status/uid-1']);
  assert.deepEqual(manager.told(), [last()]);
});

test('times of conditions and startTime survive an agent restart, and nothing is told of pods that were not set again', async () => {
  const one = setUp();
  one.manager.setPod(web, generate(web, up, { now: '2026-01-01T01:00:00Z' }));
  await settle();
  const two = setUp({ store: one.store });
  await two.manager.load();
  assert.equal(two.told.length, 0);
  assert.deepEqual(two.manager.told(), []);
  two.manager.setPod(web, generate(web, up, { now: '2026-01-01T02:00:00Z', old: two.manager.get(web.uid) }));
  await settle();
  assert.deepEqual(two.last().status, one.last().status);
});

test('a removed pod is told Terminating, then its topic is cleared and nothing of it is kept', async () => {
  const { manager, told, last, store, clock } = setUp();
  manager.setPod(web, generate(web, up));
  await settle();
  manager.setPod(web, generate(web, up), { deletionGraceSeconds: 30 });
  await settle();
  assert.deepEqual([last().metadata.deletionTimestamp, last().metadata.deletionGracePeriodSeconds], ['2026-01-01T00:00:30Z', 30]);
  await clock.advance(2_000);
  manager.setPod(web, generate(web, up), { deletionGraceSeconds: 60 });
  await settle();
  assert.equal(last().metadata.deletionGracePeriodSeconds, 30, 'the grace only shrinks');
  manager.setPod(web, generate(web, up), { deletionGraceSeconds: 5 });
  await settle();
  assert.deepEqual([last().metadata.deletionTimestamp, last().metadata.deletionGracePeriodSeconds], ['2026-01-01T00:00:05Z', 5]);
  manager.setPod(web, generate(web, down, { terminal: true }), { deletionGraceSeconds: 0 });
  await settle();
  assert.equal(last().metadata.deletionGracePeriodSeconds, 5);
  assert.ok(last().status.containerStatuses?.[0]?.state.terminated);
  manager.remove(web.uid);
  await settle();
  assert.deepEqual(told.at(-1), { topic: webTopic, payload: undefined, expirySeconds: 0 });
  assert.deepEqual([manager.told(), manager.get(web.uid), await store.list('')], [[], undefined, []]);
});

test('an ending pod is told at once, however much it flapped', async () => {
  const { manager, told, last } = setUp();
  for (let attempt = 0; attempt < 8; attempt++) {
    manager.setPod(web, generate(web, runtimePod([record('c', 'running', { attempt })])));
    await settle();
  }
  assert.equal(told.length, 4);
  manager.setPod(web, generate(web, up), { deletionGraceSeconds: 30 });
  await settle();
  assert.ok(last().metadata.deletionTimestamp);
});

test('a status set and removed in one turn leaves only the clearing', async () => {
  const { manager, told } = setUp();
  manager.setPod(web, generate(web, up));
  manager.remove(web.uid);
  await settle();
  assert.deepEqual(
    told.map((t) => t.payload),
    [undefined],
  );
});

test('while a predecessor ends the topic is its own; then it is the successor’s, without a gap', async () => {
  const { manager, told, last } = setUp();
  const next = desiredPod(simple(), { uid: 'uid-2' });
  manager.setPod(web, generate(web, up), { deletionGraceSeconds: 30 });
  await settle();
  manager.setPod(next, generate(next, runtimePod([], [], [])));
  await settle();
  assert.equal(last().metadata.uid, 'uid-1');
  manager.remove(web.uid);
  assert.equal(last().metadata.uid, 'uid-2');
  assert.equal(last().metadata.deletionTimestamp, undefined);
  assert.ok(told.every((t) => t.payload !== undefined));
});

test('a removal that keeps the topic says nothing, and the next status is told whole', async () => {
  const { manager, told } = setUp();
  manager.setPod(web, generate(web, up));
  await settle();
  manager.remove(web.uid, { keepTopic: true });
  await settle();
  assert.deepEqual([told.length, manager.told()], [1, []]);
});

test('a terminal phase is never taken back, and a container that ended for good is not told as running', async () => {
  const never = desiredPod(simple({ restartPolicy: 'Never' }));
  const { manager, last, errors } = setUp();
  const failed = generate(never, down, { failed: { reason: 'DeadlineExceeded', message: 'm' } });
  manager.setPod(never, failed);
  manager.setPod(never, { ...failed, phase: 'Pending', reason: 'x' });
  await settle();
  assert.deepEqual([last().status.phase, last().status.reason], ['Failed', 'DeadlineExceeded']);
  manager.setPod(never, generate(never, up));
  assert.equal(errors.length, 1);
  assert.ok(manager.get(never.uid)?.containerStatuses?.[0]?.state.terminated);
});

test('Failed is told when nothing runs any more, not before', async () => {
  const { manager, last } = setUp();
  const failed = { reason: 'DeadlineExceeded', message: 'm' };
  manager.setPod(web, generate(web, up));
  manager.setPod(web, generate(web, up, { failed }));
  await settle();
  assert.equal(last().status.phase, 'Running');
  assert.equal(manager.get(web.uid)?.phase, 'Failed', 'for deciding it has failed');
  manager.setPod(web, generate(web, down, { failed, old: manager.get(web.uid) }));
  await settle();
  assert.deepEqual([last().status.phase, last().status.reason], ['Failed', 'DeadlineExceeded']);
});

test('reasons come from start results: an error sets, a success forgets, the sandbox stands apart', () => {
  const { manager } = setUp();
  const error = { reason: 'ErrImagePull', message: 'm' };
  manager.setReasons(web.uid, [
    { action: 'StartContainer', target: 'a', error },
    { action: 'StartContainer', target: 'b', error },
  ]);
  manager.setReasons(web.uid, [{ action: 'StartContainer', target: 'a' }]);
  assert.deepEqual([...manager.reasons(web.uid).keys()], ['b']);
  const cni = { reason: 'CreatePodSandboxError', message: 'no CNI' };
  manager.setReasons(web.uid, [{ action: 'CreatePodSandbox', target: 'web', error: cni }]);
  assert.deepEqual(manager.blocked(web.uid), cni);
  manager.setReasons(web.uid, [{ action: 'CreatePodSandbox', target: 'web' }]);
  assert.equal(manager.blocked(web.uid), undefined);
  manager.setPod(web, generate(web, up));
  manager.remove(web.uid);
  assert.equal(manager.reasons(web.uid).size, 0);
});

test('orphans are forgotten: their topics are cleared, those of the living stay', async () => {
  const one = setUp();
  one.manager.setPod(web, generate(web, up));
  await settle();
  const two = setUp({ store: one.store });
  await two.manager.load();
  const other = desiredPod(simple(), { name: 'db', uid: 'uid-2' });
  two.manager.setPod(other, generate(other, up));
  await settle();
  two.manager.removeOrphans(new Set(['uid-2' as PodUid]));
  await settle();
  assert.deepEqual(
    two.told.filter((t) => t.payload === undefined).map((t) => t.topic),
    [webTopic],
  );
  assert.deepEqual(await two.store.list(''), ['status/uid-2']);
});

const sync = (reason: string, nextRetrySeconds?: number): SyncBody => ({
  apiVersion: 'podsched.dev/v1',
  kind: 'SyncStatus',
  object: { kind: 'Pod', namespace: 'default', name: 'web' },
  phase: 'Waiting',
  reason,
  message: '',
  ...(nextRetrySeconds !== undefined && { nextRetrySeconds }),
  sources: [],
});
const key = { kind: 'Pod', namespace: 'default', name: 'web' } as const;

test('sync answers and file problems have their topics, expiry and stamps, and are cleared when they end', () => {
  const { manager, told } = setUp();
  manager.setSync(key, undefined);
  manager.setFile('web.yaml', undefined);
  assert.equal(told.length, 0, 'what was never told is not cleared');
  manager.setSync(key, sync('ErrImagePull', 10));
  manager.setSync(key, sync('ErrImagePull', 9));
  manager.setFile('web.yaml', { apiVersion: 'podsched.dev/v1', kind: 'FileStatus', file: 'web.yaml', objects: [], problems: [] });
  assert.deepEqual(
    told.map((t) => [t.topic, t.expirySeconds]),
    [
      [topics.sync(key), 30 * 86_400],
      [topics.file('web.yaml'), 30 * 86_400],
    ],
  );
  assert.deepEqual(
    [manager.sync().map((s) => [s.reason, s.boot, s.seq]), manager.files().map((f) => f.seq)],
    [[['ErrImagePull', 3, 1]], [2]],
  );
  manager.setSync(key, undefined);
  manager.setFile('web.yaml', undefined);
  assert.deepEqual(
    told.slice(2).map((t) => t.payload),
    [undefined, undefined],
  );
});

test('the broker’s smaller limit is kept to', async () => {
  const { manager, told } = setUp({ maxBytes: 2000 });
  const noisy = generate(web, runtimePod([record('c', 'exited', { exitCode: 1, message: 'x'.repeat(5000) })]));
  manager.setPod(web, noisy);
  await settle();
  assert.ok((told[0]?.payload?.length ?? 0) <= 2000);
  assert.match(told[0]?.payload ?? '', /podsched.dev\/truncated/);
});

test('a run directory that cannot be read or written stops nothing', async () => {
  const store = new MemoryStore();
  store.entries.set('status/uid-9', '{broken');
  store.put = async () => {
    throw new Error('ENOSPC');
  };
  const { manager, told } = setUp({ store });
  await manager.load();
  manager.setPod(web, generate(web, up));
  await manager.flush();
  await settle();
  assert.equal(told.length, 1);
});

test('asked on the machine a pod is whole: what is cut from the topic is in it, and its newest status', async () => {
  const { manager, last } = setUp();
  const long = 'x'.repeat(300);
  const spec = simple({
    containers: [{ name: 'c', image: 'busybox', command: ['serve'], env: [{ name: 'A', value: 'b' }] }],
    ephemeralContainers: [{ name: 'debugger', image: 'busybox', stdin: true }],
  });
  const pod = desiredPod(spec, { labels: { app: 'web' }, annotations: { long, 'podsched.dev/boot': '99' } });
  const pending = generate(pod, runtimePod([]));
  manager.setPod(pod, pending);
  assert.deepEqual(manager.whole(), [], 'not before it is told');
  await settle();
  const [first] = manager.whole();
  assert.deepEqual(first?.spec, spec);
  const { annotations, labels, uid } = first?.metadata ?? {};
  assert.deepEqual([annotations?.long, labels?.app, uid], [long, 'web', 'uid-1']);
  for (const key of ['boot', 'seq', 'source', 'revision'].map((k) => `podsched.dev/${k}`))
    assert.equal(annotations?.[key], last().metadata.annotations?.[key], key);
  assert.equal(annotations?.['podsched.dev/boot'], '3');

  const now = generate(pod, runtimePod([record('c', 'running'), record('debugger', 'running')]), { old: pending });
  manager.setPod(pod, now);
  assert.deepEqual(manager.whole()[0]?.status, now);
});

test('restarts are counted as the statuses tell them, over an agent restart too', async () => {
  const one = setUp();
  const again = (attempt: number) => runtimePod([record('c', 'running', { attempt })]);
  one.manager.setPod(web, generate(web, up));
  one.manager.setPod(web, generate(web, again(1)));
  one.manager.setPod(web, generate(web, again(1)));
  assert.equal(one.manager.restartsLastHour(), 1);
  await one.manager.flush();
  const two = setUp(one);
  await two.manager.load();
  assert.equal(two.manager.restartsLastHour(), 1);
  two.manager.setPod(web, generate(web, again(3)));
  assert.equal(two.manager.restartsLastHour(), 3, 'what came while no agent ran counts');
});
