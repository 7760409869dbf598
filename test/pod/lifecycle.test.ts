import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { RuntimePod } from '../../src/container/words.ts';
import {
  applyUpdate,
  beginStep,
  completeStep,
  effectiveGrace,
  mayStart,
  nextStepMs,
  orphaned,
  type PodRecord,
  type WorkerUpdate,
} from '../../src/pod/lifecycle.ts';
import { desiredPod } from './desiredPod.ts';

const web = desiredPod('web', 'u1');
const orphanPod: RuntimePod = { uid: 'u9' as PodUid, name: 'web', namespace: 'default', sandboxes: [], containers: [] };

/** A record after these updates; `step` begins the pending step. */
function after(...updates: (WorkerUpdate | 'step' | 'ok' | 'terminal' | 'failed')[]): PodRecord {
  let record: PodRecord | undefined;
  for (const u of updates) {
    if (typeof u === 'object') record = applyUpdate(record, u)?.record ?? record;
    else if (record === undefined) throw new Error('no record');
    else if (u === 'step') record = beginStep(record);
    else record = completeStep(record, record.state, u);
  }
  if (record === undefined) throw new Error('no record');
  return record;
}

const create: WorkerUpdate = { type: 'create', pod: web };
const kill: WorkerUpdate = { type: 'kill', pod: web };

// kubelet facts 3.5
const graceTable: readonly [
  recorded: number | undefined,
  spec: number | undefined,
  deletion: number | undefined,
  override: number | undefined,
  result: number,
  shortened: boolean,
][] = [
  [undefined, 30, undefined, undefined, 30, false],
  [undefined, 30, 5, undefined, 5, false],
  [undefined, 30, 5, 2, 2, false],
  [undefined, 30, 0, undefined, 1, false],
  [undefined, 30, 5, 0, 1, false],
  [undefined, 30, undefined, 45, 45, false],
  [undefined, undefined, undefined, undefined, 1, false],
  [undefined, 0, undefined, undefined, 1, false],
  [10, 30, undefined, 20, 10, false],
  [10, 30, undefined, 4, 4, true],
  [10, 5, undefined, undefined, 10, false],
  [10, 30, 3, undefined, 3, true],
  [1, 30, undefined, 0, 1, false],
];
for (const [recorded, spec, deletion, override, graceSeconds, shortened] of graceTable) {
  test(`grace: recorded ${recorded}, spec ${spec}, deletion ${deletion}, override ${override} gives ${graceSeconds}`, () => {
    const asked = {
      ...(spec !== undefined && { specSeconds: spec }),
      ...(deletion !== undefined && { deletionSeconds: deletion }),
      ...(override !== undefined && { overrideSeconds: override }),
    };
    assert.deepEqual(effectiveGrace(recorded, asked), { graceSeconds, shortened });
  });
}

test('a life runs sync, terminating, terminated, finished; each change keeps the wish for the next step', () => {
  const r = after(create, 'step', 'ok');
  assert.deepEqual([r.state, r.pending], ['sync', undefined]);
  const ended = after(create, 'step', 'terminal');
  assert.deepEqual(
    [ended.state, ended.pending, ended.graceSeconds, ended.startedTerminating],
    ['terminating', { pod: web }, undefined, true],
  );
  const killed = after(create, 'step', 'ok', kill);
  assert.deepEqual([killed.state, killed.graceSeconds], ['terminating', 30]);
  const down = after(create, 'step', 'ok', kill, 'step', 'ok');
  assert.deepEqual([down.state, down.pending], ['terminated', { pod: web }]);
  const finished = after(create, 'step', 'ok', kill, 'step', 'ok', 'step', 'ok');
  assert.deepEqual([finished.state, finished.pending], ['finished', undefined]);
});

test('a failed step leaves the state, in every state', () => {
  assert.equal(after(create, 'step', 'failed').state, 'sync');
  assert.equal(after(create, 'step', 'ok', kill, 'step', 'failed').state, 'terminating');
  assert.equal(after(create, 'step', 'ok', kill, 'step', 'ok', 'step', 'failed').state, 'terminated');
});

test('a kill during a sync wins over how that sync ends', () => {
  const syncing = after(create, 'step');
  const killed = applyUpdate(syncing, kill);
  assert.equal(killed?.cancel, true);
  assert.ok(killed);
  for (const result of ['ok', 'terminal', 'failed'] as const) {
    const r = completeStep(killed.record, 'sync', result);
    assert.deepEqual([r.state, r.graceSeconds, r.pending], ['terminating', 30, { pod: web }]);
  }
});

test('an edit of the work cuts the step under way short; a label, a grace or a kill of its own does not', () => {
  const syncing = after(create, 'step');
  const edited = { ...web, workHash: '1:other' };
  assert.equal(applyUpdate(syncing, { type: 'update', pod: edited })?.cancel, true);
  assert.equal(applyUpdate(syncing, { type: 'update', pod: { ...web, revision: 'r2' } })?.cancel, false);
  assert.equal(applyUpdate(syncing, { type: 'sync', pod: web })?.cancel, false);
  const ending = after(create, 'step', 'ok', kill, 'step');
  assert.equal(applyUpdate(ending, { type: 'update', pod: edited })?.cancel, false);
});

test('only the newest wish waits, and a kill among the wishes is never lost', () => {
  const v2 = desiredPod('web', 'u1', { graceSeconds: 7 });
  assert.deepEqual(after(create, { type: 'update', pod: v2 }).pending, { pod: v2 });
  const burst = after(create, 'step', 'ok', kill, { type: 'update', pod: v2 });
  assert.deepEqual([burst.state, burst.pending, burst.graceSeconds], ['terminating', { pod: v2 }, 30]);
});

test('grace only shrinks: a shorter one cancels the kill under way, a longer one does nothing', () => {
  const killing = after(create, 'step', 'ok', { ...kill, killGraceSeconds: 10 }, 'step');
  const longer = applyUpdate(killing, { ...kill, killGraceSeconds: 20 });
  assert.deepEqual([longer?.record.graceSeconds, longer?.cancel], [10, false]);
  const shorter = applyUpdate(killing, { ...kill, killGraceSeconds: 4 });
  assert.deepEqual([shorter?.record.graceSeconds, shorter?.cancel], [4, true]);
});

test('a pod that ended by itself is killed by its own grace, which a kill can only shorten', () => {
  const ending = after(create, 'step', 'terminal', 'step');
  assert.deepEqual(applyUpdate(ending, kill)?.cancel, false);
  assert.deepEqual(applyUpdate(ending, { ...kill, killGraceSeconds: 60 })?.record.graceSeconds, 30);
  const shorter = applyUpdate(ending, { ...kill, killGraceSeconds: 2 });
  assert.deepEqual([shorter?.record.graceSeconds, shorter?.cancel], [2, true]);
});

const ignored: readonly [string, PodRecord | undefined, WorkerUpdate][] = [
  ['a runtime pod without a kill', undefined, { type: 'sync', runtimePod: orphanPod }],
  ['an update of nothing', undefined, { type: 'kill' }],
  ['a sync of an instance without a life', undefined, { type: 'sync', pod: web }],
  ['an update of an instance without a life', undefined, { type: 'update', pod: web }],
  ['a create of one that is ending', after(create, 'step', 'ok', kill), create],
  ['anything for one that is finished', after(create, 'step', 'ok', kill, 'step', 'ok', 'step', 'ok'), kill],
  [
    'a runtime pod that is terminated',
    after(create, 'step', 'ok', kill, 'step', 'ok'),
    { type: 'kill', runtimePod: { ...orphanPod, uid: web.uid } },
  ],
];
for (const [what, record, update] of ignored) {
  test(`ignored: ${what}`, () => {
    assert.equal(applyUpdate(record, update), undefined);
  });
}

test('an orphan has no manifest and no grace but its own, and ends without a terminated step', () => {
  const orphan = after({ type: 'kill', runtimePod: orphanPod });
  assert.deepEqual(
    [orphan.state, orphan.deleted, orphan.observedRuntime, orphan.graceSeconds, orphan.pending],
    ['terminating', true, true, undefined, { runtimePod: orphanPod }],
  );
  assert.equal(completeStep(beginStep(orphan), 'terminating', 'ok').state, 'finished');
});

test('the sighting of a known pod in the runtime ends it by its manifest', () => {
  const r = after(create, 'step', 'ok', { type: 'kill', runtimePod: { ...orphanPod, uid: web.uid } });
  assert.deepEqual([r.pending, r.graceSeconds, r.deleted], [{ pod: web }, 30, true]);
});

test('an eviction is remembered, with the first reason given', () => {
  const r = after(create, 'step', 'ok', { ...kill, evict: true, reason: 'Evicted' }, { ...kill, reason: 'removed' });
  assert.deepEqual([r.evicted, r.reason], [true, 'Evicted']);
});

test('what nobody wants is ended once, by its own grace', () => {
  const r = orphaned(after(create, 'step', 'ok'));
  assert.deepEqual(
    [r?.record.state, r?.record.deleted, r?.record.graceSeconds, r?.record.pending, r?.cancel],
    ['terminating', true, 30, { pod: web }, true],
  );
  assert.equal(orphaned(after(create, 'step', 'ok', kill)), undefined);
});

// kubelet facts 3.6; the waiting list here is the order in which the instances came
const waits = (uid: string, name = 'web') => after({ type: 'create', pod: desiredPod(name, uid) });
const runs = (uid: string, name = 'web') => after({ type: 'create', pod: desiredPod(name, uid) }, 'step', 'ok');
const ended = (uid: string) => after({ type: 'create', pod: desiredPod('web', uid) }, 'step', 'terminal', 'step', 'ok', 'step', 'ok');
const removed = (uid: string) => after({ type: 'create', pod: desiredPod('web', uid) }, { type: 'kill', pod: desiredPod('web', uid) });
const killed = (uid: string) =>
  after({ type: 'create', pod: desiredPod('web', uid) }, 'step', { type: 'kill', pod: desiredPod('web', uid) });
const me = waits('me');
const startTable: readonly [string, PodRecord, readonly PodRecord[], 'yes' | 'later' | 'never'][] = [
  ['alone', me, [me], 'yes'],
  ['already started', runs('me'), [runs('other'), runs('me')], 'yes'],
  ['ended before it began', removed('me'), [removed('me')], 'never'],
  ['another runs', me, [runs('x'), me], 'later'],
  ['another is being killed', me, [killed('x'), me], 'later'],
  ['another came later and runs', me, [me, runs('x')], 'later'],
  ['another is finished', me, [ended('x'), me], 'yes'],
  ['the ones before are gone or removed, one waits behind', me, [removed('x'), ended('y'), me, waits('z')], 'yes'],
  ['one waits before', me, [waits('y'), me], 'later'],
  ['another name', me, [runs('x', 'db'), me], 'yes'],
  ['an orphan of its name is being ended', me, [me, after({ type: 'kill', runtimePod: orphanPod })], 'later'],
  [
    'never started, but seen in the runtime and ended',
    after({ type: 'create', pod: web }, { type: 'kill', runtimePod: { ...orphanPod, uid: web.uid } }),
    [],
    'yes',
  ],
];
for (const [what, record, all, expected] of startTable) {
  test(`may start: ${what}: ${expected}`, () => {
    assert.equal(mayStart(record, all), expected);
  });
}

const delays: readonly [Parameters<typeof nextStepMs>[0], number, number][] = [
  [{}, 0, 60_000],
  [{}, 0.5, 75_000],
  [{ error: new Error('broken') }, 0, 10_000],
  [{ error: new Error('broken') }, 0.999, 14_995],
  [{ error: new Error('network is not ready: cni config uninitialized') }, 0.5, 1250],
  [{ error: 'network is not ready' }, 0, 1000],
  [{ retryAfterMs: 1234 }, 0.9, 1234],
  [{ retryAfterMs: 90_000 }, 0, 60_000],
  [{ error: new Error('broken'), retryAfterMs: 20_000 }, 0, 10_000],
  [{ error: new Error('broken'), retryAfterMs: 0 }, 0, 0],
];
for (const [outcome, random, ms] of delays) {
  test(`next step after ${JSON.stringify({ ...outcome, error: String(outcome.error ?? 'success') })} at random ${random}: ${ms} ms`, () => {
    assert.equal(nextStepMs(outcome, 60_000, random), ms);
  });
}
