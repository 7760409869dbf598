/** Edits between admission and the images; holds; what is seen of a revision. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { EditVerdict, PodEdit } from '../../src/api/edit.ts';
import type { KeyText } from '../../src/api/objects.ts';
import type { PodStatus } from '../../src/api/status.ts';
import { Updates } from '../../src/updates/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { edit, podOf } from './builders.ts';

function rig(o: { stateStore?: MemoryStore; runStore?: MemoryStore; clock?: FakeClock; tryAgain?: () => Promise<boolean> } = {}) {
  const clock = o.clock ?? new FakeClock();
  const [stateStore, runStore] = [o.stateStore ?? new MemoryStore(), o.runStore ?? new MemoryStore()];
  const r = {
    clock,
    stateStore,
    runStore,
    here: new Set<string>(),
    asked: [] as string[][],
    admit: (_: readonly PodEdit[]): ReadonlyMap<KeyText, EditVerdict> => new Map(),
    wanted: new Map<KeyText, DesiredPod>(),
    good: new Map<KeyText, string>(),
    madeOf: true,
    elsewhere: false,
    given: [] as string[],
    renewed: [] as string[],
    sent: [] as string[],
    /** What is sent on when a revision was given up. */
    back: undefined as DesiredPod | undefined,
    events: [] as string[],
    judged: 0,
    full: false,
    held: (key: KeyText): string | undefined => updates.heldBy(key, r.wanted.get(key)?.pod as never),
  };
  const updates: Updates = new Updates({
    clock,
    log: silentLog,
    stateStore,
    runStore,
    imageHere: async (image) => r.here.has(image),
    ensureImage: () => new Promise(() => {}),
    standing: () => 'runs',
    admit: (edits) => {
      r.asked.push(edits.map((e) => e.after.name));
      return r.admit(edits);
    },
    wanted: (key) => {
      const pod = r.wanted.get(key);
      return pod && { object: pod.pod as never, revision: pod.revision };
    },
    isGood: (key, revision) => r.good.get(key) === revision,
    isElsewhere: () => r.elsewhere,
    wayBack: (key) => r.good.get(key),
    why: () => 'it crashes',
    giveUp: async (key, revision) => {
      if (r.full) throw new Error('no space left');
      r.given.push(`${key} ${revision}${r.held(key) === undefined ? '' : ' though held'}`);
      if (r.back !== undefined) updates.pass({ op: 'UPDATE', pods: [r.back] });
    },
    renew: async (key) => {
      r.renewed.push(key);
      if (r.full) throw new Error('no space left');
      const pod = r.wanted.get(key);
      if (pod !== undefined) updates.pass({ op: 'ADD', pods: [{ ...pod, uid: 'new' as never }] });
    },
    emit: ({ op, pods }) => r.sent.push(`${op} ${pods.map((p) => `${p.name}/${p.uid}`).join()}`),
    judgeAgain: async () => {
      r.judged++;
    },
    tryAgain: o.tryAgain ?? (async () => false),
    markGood: async (key, revision) => {
      r.good.set(key, revision);
    },
    isMadeOf: () => r.madeOf,
    event: (_, __, reason) => r.events.push(reason),
    failed: (e) => assert.fail(String(e)),
  });
  return { ...r, r, updates };
}

const web = (image: string, annotations?: Readonly<Record<string, string>>) =>
  podOf([`{name: app, image: "${image}"}`], annotations === undefined ? {} : { annotations });
const other = (image: string) => podOf([`{name: app, image: "${image}"}`], { name: 'other', uid: 'u2' });
const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } as unknown as PodStatus;
const waiting = { phase: 'Pending', conditions: [] } as unknown as PodStatus;
const onTrial = (image: string, period = '1m') => web(image, { 'podsched.dev/rollback': period });

test('for what admission blocks nothing is pulled, and its word stands', async () => {
  const { r, updates } = rig();
  r.admit = (edits) => new Map(edits.map((e) => [e.after.key, { act: 'block', reason: 'OutOfcpu', message: 'no room' }]));
  const verdicts = await updates.judge([edit(web('i:1'), web('i:2'))]);
  assert.deepEqual([...verdicts.values()], [{ act: 'block', reason: 'OutOfcpu', message: 'no room' }]);
  assert.equal(r.asked.length, 1);
});

test('admission has the last word, without those that wait for an image: their room is not free', async () => {
  const { r, updates } = rig();
  r.here.add('j:2');
  r.admit = (edits) =>
    edits.some((e) => e.after.name === 'web')
      ? new Map()
      : new Map(edits.map((e) => [e.after.key, { act: 'block', reason: 'NodePorts', message: 'web has it' }]));
  const verdicts = await updates.judge([edit(web('i:1'), web('i:2')), edit(other('j:1'), other('j:2'))]);
  assert.deepEqual(r.asked, [['web', 'other'], ['other']]);
  assert.deepEqual(
    [...verdicts].map(([key, v]) => [key, v.act === 'block' ? v.reason : v.act]),
    [
      ['Pod/default/other', 'NodePorts'],
      ['Pod/default/web', 'PullingImage'],
    ],
  );
});

test('an edit that touches no container waits for no image', async () => {
  const { updates } = rig();
  assert.equal((await updates.judge([edit(web('i:1'), web('i:2'), 'reconcile')])).size, 0);
});

test('a hold outlives the agent, and goes with its pod once the sources were read', async () => {
  const first = rig();
  const { key } = web('i:1');
  assert.deepEqual([await first.updates.hold(key), await first.updates.hold(key)], [true, false]);
  const next = rig({ stateStore: first.stateStore });
  await next.updates.load();
  assert.equal(next.updates.heldBy(key, web('i:1').pod as never), 'held by the command podsched hold');
  next.updates.objectsChanged([key], { ready: false, known: () => false });
  await next.clock.advance(0);
  assert.deepEqual(await first.stateStore.list('holds/'), [`holds/${key}`]);
  next.updates.objectsChanged([], { ready: true, known: () => false });
  await next.clock.advance(0);
  assert.deepEqual(await first.stateStore.list('holds/'), []);
});

test('release ends the command’s hold and names the annotation that stays', async () => {
  const { r, updates } = rig();
  const held = web('i:1', { 'podsched.dev/hold': 'true' });
  r.wanted.set(held.key, held);
  await updates.hold(held.key);
  assert.equal(updates.heldBy(held.key, held.pod as never), 'held by its annotation podsched.dev/hold and the command podsched hold');
  assert.deepEqual(await updates.release(held.key), { hold: true, rollback: false, stillHeld: true });
});

test('a revision is given up at its time, exactly, also by the next agent of the boot', async () => {
  const { r, updates, clock, runStore } = rig();
  const pod = onTrial('i:2');
  r.wanted.set(pod.key, pod);
  r.good.set(pod.key, 'v1');
  updates.carriedOut({ op: 'UPDATE', pods: [pod] });
  updates.seen(pod, waiting);
  await clock.advance(30_000);
  updates.stop();
  const next = rig({ clock, runStore });
  next.r.wanted.set(pod.key, pod);
  next.r.good.set(pod.key, 'v1');
  await next.updates.load();
  next.updates.carriedOut({ op: 'ADD', pods: [pod] });
  await clock.advance(1);
  next.updates.seen(pod, waiting);
  await clock.advance(29_980);
  assert.deepEqual(next.r.given, []);
  await clock.advance(40);
  assert.deepEqual([next.r.given, r.given], [[`${pod.key} ${pod.revision}`], []]);
  await clock.advance(600_000);
  assert.deepEqual([next.r.given.length, await runStore.list('trials/')], [1, []]);
});

test('a time that was over while no agent was there: nothing is given up before the pod was seen, and its probes have half a minute', async () => {
  for (const becomes of [true, false]) {
    const { r, updates, clock, runStore } = rig();
    const pod = onTrial('i:2');
    r.wanted.set(pod.key, pod);
    updates.carriedOut({ op: 'UPDATE', pods: [pod] });
    await clock.advance(1_000);
    updates.stop();
    await clock.advance(600_000);
    const next = rig({ clock, runStore });
    next.r.wanted.set(pod.key, pod);
    next.r.good.set(pod.key, 'v1');
    await next.updates.load();
    next.updates.carriedOut({ op: 'ADD', pods: [pod] });
    await clock.advance(60_000);
    assert.deepEqual(next.r.given, [], 'the runtime is away: nobody knows how it is');
    next.updates.seen(pod, waiting);
    await clock.advance(25_000);
    assert.deepEqual(next.r.given, []);
    if (becomes) next.updates.seen(pod, ready);
    await clock.advance(20_000);
    assert.deepEqual([next.r.given.length, next.r.good.get(pod.key) === pod.revision], becomes ? [0, true] : [1, false]);
  }
});

test('Ready ends the trial, but not of containers that were made of another definition', async () => {
  for (const madeOf of [true, false]) {
    const { r, updates, clock } = rig();
    const pod = onTrial('i:2');
    r.madeOf = madeOf;
    r.wanted.set(pod.key, pod);
    r.good.set(pod.key, 'v1');
    updates.carriedOut({ op: 'UPDATE', pods: [pod] });
    updates.seen(pod, waiting);
    updates.seen(pod, ready);
    await clock.advance(100_000);
    assert.equal(r.given.length, madeOf ? 0 : 1);
  }
});

test('Ready for a moment is not Ready: it counts after ten seconds without a break, and a break at the end of its time ends it', async () => {
  const { r, updates, clock } = rig();
  const pod = onTrial('i:2');
  r.wanted.set(pod.key, pod);
  r.good.set(pod.key, 'v1');
  updates.carriedOut({ op: 'UPDATE', pods: [pod] });
  updates.seen(pod, waiting);
  for (let s = 0; s < 54; s += 6) {
    updates.seen(pod, ready);
    await clock.advance(5_000);
    updates.seen(pod, { ...ready, conditions: [] });
    await clock.advance(1_000);
  }
  updates.seen(pod, ready);
  await clock.advance(8_000);
  assert.deepEqual(r.given, [], 'its time is over, and it is Ready');
  updates.seen(pod, { ...ready, conditions: [] });
  assert.equal(r.given.length, 1);
});

test('what succeeds is good at once; Ready at the end of its time may still become it', async () => {
  const { r, updates, clock } = rig();
  const pod = onTrial('i:2');
  r.wanted.set(pod.key, pod);
  updates.seen(pod, { phase: 'Succeeded' } as PodStatus);
  assert.equal(r.good.get(pod.key), pod.revision);
  r.good.set(pod.key, 'v1');
  updates.carriedOut({ op: 'UPDATE', pods: [pod] });
  updates.seen(pod, waiting);
  await clock.advance(55_000);
  updates.seen(pod, ready);
  await clock.advance(20_000);
  assert.deepEqual([r.given, r.good.get(pod.key)], [[], pod.revision]);
});

test('a revision that is meant for another node is no failure: it is on trial no more, until a new instance of it begins', async () => {
  const { r, updates, clock, runStore } = rig();
  const pod = onTrial('i:2');
  r.wanted.set(pod.key, pod);
  r.good.set(pod.key, 'v1');
  r.elsewhere = true;
  updates.carriedOut({ op: 'ADD', pods: [pod] });
  updates.seen(pod, waiting);
  await clock.advance(50_000);
  r.elsewhere = false;
  const renewed = { ...pod, uid: 'u9' as never };
  updates.carriedOut({ op: 'ADD', pods: [renewed] });
  updates.seen(renewed, waiting);
  await clock.advance(50_000);
  assert.deepEqual(r.given, []);
  r.elsewhere = true;
  await clock.advance(20_000);
  assert.deepEqual([r.given, await runStore.list('trials/')], [[], []]);
});

test('a release that cannot store one thing lets the edits go on all the same', async () => {
  const { r, updates } = rig({ tryAgain: async () => Promise.reject(new Error('no space left')) });
  const { key } = web('i:1');
  await updates.hold(key);
  const judged = r.judged;
  await assert.rejects(updates.release(key), /no space left/);
  assert.equal(r.judged, judged + 1);
});

test('nothing is timed when nothing is on trial, waits or has become Ready', async () => {
  const { r, updates, clock } = rig();
  const pod = web('i:1');
  updates.carriedOut({ op: 'ADD', pods: [pod] });
  updates.seen(pod, ready);
  await clock.advance(10_000);
  updates.seen(pod, ready);
  assert.deepEqual([r.good.get(pod.key), clock.sleeping], [pod.revision, 0]);
});

test('a rollback that cannot be stored is tried again', async () => {
  const { r, updates, clock } = rig();
  const pod = onTrial('i:2');
  r.wanted.set(pod.key, pod);
  r.good.set(pod.key, 'v1');
  r.full = true;
  updates.carriedOut({ op: 'UPDATE', pods: [pod] });
  updates.seen(pod, waiting);
  await clock.advance(65_000);
  r.full = false;
  await clock.advance(10_000);
  assert.equal(r.given.length, 1);
});

test('what is no winner is not on trial, and nothing is stored of a pod that asks for none', async () => {
  const { r, updates, clock, runStore } = rig();
  const [old, next] = [onTrial('i:1'), onTrial('i:2')];
  r.wanted.set(next.key, next);
  updates.carriedOut({ op: 'ADD', pods: [old] });
  updates.carriedOut({ op: 'ADD', pods: [other('j:1')] });
  await clock.advance(100_000);
  assert.deepEqual([r.given, r.events, await runStore.list('trials/')], [[], [], []]);
});

test('stopped: it goes, its trial is over, and its edits wait for nothing until it starts as a new instance', async () => {
  const { r, clock, updates } = rig();
  const pod = onTrial('a:1');
  r.wanted.set(pod.key, pod);
  r.good.set(pod.key, 'older');
  updates.pass({ op: 'ADD', pods: [pod] });
  updates.seen(pod, waiting);
  assert.equal(await updates.stopPod(pod.key), true);
  assert.equal(await updates.stopPod(pod.key), false);
  await clock.advance(120_000);
  assert.deepEqual([r.sent, r.given], [['ADD web/u1', 'REMOVE web/u1'], []]);
  r.admit = (edits) => new Map(edits.map((e) => [e.after.key, { act: 'block', reason: 'OutOfcpu', message: 'no room' }]));
  assert.equal((await updates.judge([edit(web('a:1'), web('missing:2'))])).size, 0);
  assert.equal((await updates.judge([edit(other('a:1'), other('a:2'))])).size, 1);
  updates.pass({ op: 'UPDATE', pods: [pod] });
  assert.equal(await updates.startPod(pod.key), true);
  assert.equal(await updates.startPod(pod.key), false);
  assert.deepEqual([r.renewed, r.sent.slice(2)], [[pod.key], ['ADD web/new']]);
  assert.equal(r.sent.length, 3);
});

test('a stop lasts over agents, and goes with its pod', async () => {
  const { r, updates, stateStore } = rig();
  const pod = web('a:1');
  r.wanted.set(pod.key, pod);
  updates.pass({ op: 'ADD', pods: [pod] });
  await updates.stopPod(pod.key);
  const next = rig({ stateStore });
  await next.updates.load();
  next.updates.pass({ op: 'ADD', pods: [pod] });
  assert.deepEqual(next.r.sent, []);
  next.updates.objectsChanged([pod.key], { ready: true, known: () => false });
  await next.clock.advance(0);
  assert.equal(next.updates.stops.has(pod.key), false);
  assert.deepEqual(await stateStore.list('stops/'), []);
});

test('back by command: the newest is given up though the pod is held, and then it is held; release is the way forward', async () => {
  const { r, updates } = rig();
  const [before, now] = [web('a:1'), web('a:2')];
  r.wanted.set(now.key, now);
  r.good.set(now.key, before.revision);
  r.back = before;
  updates.pass({ op: 'ADD', pods: [now] });
  await updates.hold(now.key);
  assert.deepEqual(await updates.turnBack(now.key), { back: true, from: now.revision, to: before.revision, now: true });
  assert.deepEqual(r.given, [`${now.key} ${now.revision}`]);
  assert.match(r.held(now.key) ?? '', /the command podsched hold/);
});

test('back by command: when it has to wait it is not held, so that it can still go back', async () => {
  const { r, updates } = rig();
  const now = web('a:2');
  r.wanted.set(now.key, now);
  r.good.set(now.key, 'older');
  updates.pass({ op: 'ADD', pods: [now] });
  assert.deepEqual(await updates.turnBack(now.key), { back: true, from: now.revision, to: 'older', now: false });
  assert.equal(r.held(now.key), undefined);
});

test('back by command: with nothing to go back to, or with something else running, it is refused with words', async () => {
  const { r, updates } = rig();
  const now = web('a:2');
  const words = async (): Promise<string> => {
    const done = await updates.turnBack(now.key);
    return done.back ? 'went back' : done.message;
  };
  assert.match(await words(), /does not run here/);
  r.wanted.set(now.key, now);
  assert.match(await words(), /does not run here/);
  updates.pass({ op: 'ADD', pods: [now] });
  assert.match(await words(), /no other revision that is known to have been Ready/);
  r.wanted.set(now.key, web('a:3'));
  r.good.set(now.key, 'older');
  assert.match(await words(), /the newer one, .* does not run: podsched hold keeps it so/);
  assert.deepEqual(r.given, []);
});

test('a rollback that cannot be stored rejects, and a hold holds as before', async () => {
  const { r, updates } = rig();
  const now = web('a:2');
  r.wanted.set(now.key, now);
  r.good.set(now.key, 'older');
  updates.pass({ op: 'ADD', pods: [now] });
  await updates.hold(now.key);
  r.full = true;
  await assert.rejects(updates.turnBack(now.key), /no space left/);
  assert.match(r.held(now.key) ?? '', /the command podsched hold/);
});
