/** Room is made for critical pods: who is ended, who waits how long, and what follows when something comes between; on the fake clock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admission } from '../../src/admission/manager.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { EditEffect } from '../../src/api/edit.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { asking, claiming, edited, node, pod, renewed } from './build.ts';

/** A small stand-in for config, the loop and the workers: whoever is evicted ends after its grace and comes back 10 s later. */
function rig() {
  const clock = new FakeClock();
  const wanted = new Map<PodUid, DesiredPod>();
  const ending = new Map<PodUid, DesiredPod>();
  const r = {
    did: [] as string[],
    ended: new Set<PodUid>(),
    /** What an earlier agent said. */
    earlier: new Set<PodUid>(),
    leaving: new Set<PodUid>(),
    /** By itself: its deadline. */
    ending: new Set<PodUid>(),
    pressures: [] as string[],
    evictable: true,
    graceMs: 30_000,
    /** It does not end in time. */
    hangs: new Set<string>(),
    comesBack: true,
    take: () => r.did.splice(0),
    set: (desired: DesiredPod): DesiredPod => {
      wanted.set(desired.uid, desired);
      return desired;
    },
    /** As the loop does it. */
    add: (...pods: DesiredPod[]): DesiredPod => {
      for (const desired of pods) r.set(desired);
      for (const desired of pods) r.judge(desired);
      return pods[0] as DesiredPod;
    },
    judge: (desired: DesiredPod): void => {
      const verdict = admission.admit(desired);
      r.did.push(`${desired.name} ${verdict === 'later' ? 'later' : verdict.admit ? 'in' : verdict.reason}`);
    },
    remove: ({ uid }: DesiredPod): void => {
      const desired = wanted.get(uid);
      wanted.delete(uid);
      if (desired !== undefined && admission.isAdmitted(uid)) ending.set(uid, desired);
      admission.forget(uid);
    },
    finish: ({ uid }: DesiredPod): void => {
      ending.delete(uid);
      r.ended.add(uid);
      admission.forget(uid);
    },
    renew: (uid: PodUid): void => {
      const before = wanted.get(uid);
      if (before === undefined) return;
      r.did.push(`renew ${before.name}`);
      r.remove(before);
      r.add(renewed(before));
    },
    edit: (before: DesiredPod, spec: Partial<PodSpec>, effect: EditEffect = 'replace') => {
      const verdict = admission.judgeEdits([{ before, after: edited(before, spec), effect }]).get(before.key);
      return verdict === undefined ? 'goes on' : verdict.act === 'block' ? verdict.reason : verdict.act;
    },
    all: (): DesiredPod[] => [...wanted.values()],
    now: (name: string): DesiredPod | undefined => [...wanted.values()].find((p) => p.name === name),
  };
  const { hostPortsInUse: _, ...bare } = node();
  const admission = new Admission({
    clock,
    node: () => ({ ...bare, pressures: r.pressures }),
    known: () => [...wanted.values(), ...ending.values()],
    isDesired: (uid) => wanted.has(uid),
    hasEnded: ({ uid }) => r.ended.has(uid),
    earlier: (uid) => (r.earlier.has(uid) ? 'admitted' : undefined),
    lives: () => false,
    hostSockets: () => [],
    renew: async (uid) => {
      await Promise.resolve(); // a write comes first
      r.renew(uid);
    },
    retryEdits: async () => {
      r.did.push('retry edits');
    },
    retell: ({ name }, refusal) => r.did.push(`${name} now ${refusal.reason}`),
    failed: (e) => r.did.push(`failed ${e instanceof Error ? e.message : ''}`),
    preemption: {
      evict: async (uid) => {
        const victim = wanted.get(uid);
        if (victim === undefined) return;
        r.did.push(`evict ${victim.name}`);
        r.leaving.add(uid);
        await clock.sleep(r.graceMs);
        if (r.hangs.has(victim.name)) throw new Error('it hangs');
        r.ended.add(uid);
        admission.again();
        if (r.comesBack) void clock.sleep(10_000).then(() => r.renew(uid));
      },
      wasEvicted: (uid) => r.leaving.has(uid),
      isEnding: (uid) => r.ending.has(uid),
      readmit: (uid) =>
        void Promise.resolve().then(() => r.judge([...wanted.values(), ...ending.values()].find((p) => p.uid === uid) as DesiredPod)),
      tell: ({ name }, status) => r.did.push(`${name}: ${status.conditions?.[0]?.message?.replace(/^.*: /, '')}`),
    },
  });
  return { r, clock, admission, ...r };
}

const uses = (name: string, cpu: string, more: Partial<PodSpec> = {}): DesiredPod => pod(name, { ...asking({ cpu }), ...more });
const critical = (name: string, cpu: string, priority = 2_000_000_000): DesiredPod => uses(name, cpu, { priority });

test('a critical pod waits while another ends for it, then comes in; the victim comes back, is refused, and preempts nobody', async () => {
  const { add, clock, take, r, admission } = rig();
  add(uses('a', '3'));
  const c = add(critical('c', '2'));
  assert.deepEqual(take(), ['a in', 'c later']);
  assert.deepEqual([admission.isAdmitted(c.uid), admission.isRefused(c.uid)], [false, false]);
  await clock.advance(0);
  assert.deepEqual(take(), ['evict a', 'c: it starts when default/a has ended']);
  await clock.advance(29_000);
  assert.deepEqual(take(), []);
  await clock.advance(1_000);
  assert.deepEqual(take(), ['c in']);
  await clock.advance(10_000);
  assert.deepEqual(take(), ['renew a', 'a OutOfcpu']);
  await clock.advance(3_600_000);
  assert.deepEqual([take(), clock.sleeping], [[], 0], 'nothing goes to and fro');
  r.remove(c);
  await clock.advance(0);
  assert.deepEqual(take(), ['renew a', 'a in']);
});

test('several end beside each other, and each only once', async () => {
  const { add, clock, take } = rig();
  add(uses('a', '1'), uses('b', '1'), uses('d', '2'));
  add(critical('c', '4'));
  take();
  await clock.advance(5_000);
  assert.deepEqual(take(), ['evict d', 'evict a', 'evict b', 'c: it starts when default/a, default/b, default/d have ended']);
  await clock.advance(25_000);
  assert.deepEqual(take(), ['c in']);
});

test('room that is being made is given to nobody else', async () => {
  const { add, clock, take } = rig();
  add(uses('a', '4'));
  add(critical('c', '4'));
  await clock.advance(1_000);
  take();
  add(uses('b', '1'));
  add(critical('d', '1'));
  assert.deepEqual(take(), ['b OutOfcpu', 'd UnexpectedAdmissionError']);
  await clock.advance(30_000);
  assert.deepEqual(take(), ['c in']);
});

test('of two critical pods without room for both the first gets it; with room for both both do', async () => {
  const { add, clock, take } = rig();
  add(uses('a', '2'), uses('b', '2'));
  add(critical('c', '2'));
  add(critical('d', '2'));
  add(critical('e', '2'));
  assert.deepEqual(take(), ['a in', 'b in', 'c later', 'd later', 'e UnexpectedAdmissionError']);
  await clock.advance(30_000);
  assert.deepEqual(
    take().filter((line) => / in$|later/.test(line)),
    ['c in', 'd in'],
  );
});

test('one that matters more takes the room of one that waits, which is refused when it cannot have any', async () => {
  const { add, clock, take } = rig();
  add(uses('a', '4'));
  add(critical('c', '4'));
  await clock.advance(1_000);
  add(critical('node', '4', 2_000_001_000));
  await clock.advance(0);
  assert.deepEqual(take(), [
    'a in',
    'c later',
    'evict a',
    'c: it starts when default/a has ended',
    'node later',
    'node: it starts when default/a has ended',
    'c UnexpectedAdmissionError',
  ]);
  await clock.advance(29_000);
  assert.deepEqual(take(), ['node in']);
});

test('a critical pod of higher priority preempts one of lower, which does not preempt back', async () => {
  const { add, clock, take } = rig();
  add(critical('low', '3'));
  add(critical('high', '3', 2_000_001_000));
  await clock.advance(60_000);
  assert.deepEqual(take(), [
    'low in',
    'high later',
    'evict low',
    'high: it starts when default/low has ended',
    'high in',
    'renew low',
    'low UnexpectedAdmissionError',
  ]);
  await clock.advance(3_600_000);
  assert.deepEqual(take(), []);
});

test('a victim that does not end in time stands in the way no more', async () => {
  const { add, clock, take, r } = rig();
  add(uses('a', '3'));
  r.hangs.add('a');
  add(critical('c', '2'));
  await clock.advance(30_000);
  assert.deepEqual(take().slice(-2), ['failed it hangs', 'c in']);
  await clock.advance(3_600_000);
  assert.deepEqual([take(), clock.sleeping], [[], 0]);
  add(uses('b', '1'));
  assert.deepEqual(take(), ['b OutOfcpu'], 'for everybody else it is still there');
});

test('a critical pod that is removed while it waits is not added again; who is ending ends, and comes back', async () => {
  const { add, remove, clock, take } = rig();
  add(uses('a', '3'));
  const c = add(critical('c', '2'));
  await clock.advance(1_000);
  remove(c);
  take();
  await clock.advance(120_000);
  assert.deepEqual(take(), ['renew a', 'a in']);
});

test('one that was removed on the way to its second judgement is let alone', async () => {
  const { add, remove, clock, take, admission, judge } = rig();
  add(uses('a', '3'));
  const c = add(critical('c', '2'));
  await clock.advance(30_000);
  remove(c);
  take();
  judge(c);
  assert.deepEqual([take(), admission.isAdmitted(c.uid)], [['c later'], true]);
});

test('a victim that is removed meanwhile gives its room at once, as requests of removed pods do', async () => {
  const { add, remove, clock, take } = rig();
  const a = add(uses('a', '3'));
  add(critical('c', '2'));
  await clock.advance(1_000);
  take();
  remove(a);
  await clock.advance(0);
  assert.deepEqual(take(), ['c in']);
});

test('what an earlier agent was ending is waited for, and nobody else is chosen', async () => {
  const { add, set, clock, take, r, admission } = rig();
  const a = set(uses('a', '2'));
  const b = set(uses('b', '2'));
  r.earlier.add(a.uid).add(b.uid);
  r.leaving.add(a.uid);
  add(critical('c', '2'));
  add(a, b);
  await clock.advance(20_000);
  assert.deepEqual(take(), ['c later', 'a in', 'b in', 'c: it starts when default/a has ended']);
  r.ended.add(a.uid);
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['c in']);
});

test('who is ending by itself is waited for before others are chosen', async () => {
  const { add, clock, take, r, admission } = rig();
  const a = add(uses('a', '2'));
  add(uses('b', '2'));
  r.ending.add(a.uid);
  add(critical('c', '2'));
  await clock.advance(20_000);
  assert.deepEqual(take().slice(2), ['c later', 'c: it starts when default/a has ended']);
  r.ended.add(a.uid);
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['c in']);
});

test('a victim that an earlier agent let in is ended when its turn has come', async () => {
  const { add, set, clock, take, r } = rig();
  const a = set(uses('a', '3'));
  r.earlier.add(a.uid);
  add(critical('c', '2'));
  await clock.advance(1_000);
  assert.deepEqual(take(), ['c later', 'c: it starts when default/a has ended']);
  add(a);
  await clock.advance(0);
  assert.deepEqual(take(), ['a in', 'evict a']);
  await clock.advance(30_000);
  assert.deepEqual(take(), ['c in']);
});

test('after a reboot nobody is started to be ended for a critical pod that is judged after it', async () => {
  const { add, clock, take } = rig();
  add(uses('a', '3'), critical('c', '2'));
  assert.deepEqual(take(), ['a OutOfcpu', 'c in']);
  await clock.advance(60_000);
  assert.deepEqual(take(), []);
});

test('and when that one is refused, room that was kept for it is given back', async () => {
  const { add, clock, take } = rig();
  add(uses('a', '3'), { ...uses('c', '2', { priority: 2_000_000_000, nodeSelector: { no: 'x' } }) });
  assert.deepEqual(take(), ['a OutOfcpu', 'c NodeAffinity']);
  await clock.advance(0);
  assert.deepEqual(take(), ['renew a', 'a in']);
});

test('ports of one that is not judged yet are kept for nobody', () => {
  const { add, take } = rig();
  add(pod('a', claiming({ hostPort: 80 })), pod('c', { ...claiming({ hostPort: 80 }), priority: 2_000_000_000 }));
  assert.deepEqual(take(), ['a in', 'c NodePorts']);
});

test('a refused critical pod comes in by preemption when only room is missing', async () => {
  const { add, remove, finish, clock, take } = rig();
  add(uses('a', '3'));
  const b = add(pod('b', claiming({ hostPort: 80 })));
  add(pod('c', { ...claiming({ hostPort: 80 }), overhead: { cpu: '2' }, priority: 2_000_000_000 }));
  await clock.advance(0);
  assert.deepEqual(take(), ['a in', 'b in', 'c NodePorts']);
  remove(b);
  finish(b);
  await clock.advance(0);
  await clock.advance(0);
  assert.deepEqual(take(), ['renew c', 'c later', 'evict a', 'c: it starts when default/a has ended']);
});

test('an edit of a critical pod that needs more room: the new instance gets it by preemption', async () => {
  const { add, remove, clock, take, edit, judge, set } = rig();
  add(uses('a', '3'));
  const c = add(critical('c', '1'));
  take();
  assert.equal(edit(c, asking({ cpu: '2' })), 'goes on');
  assert.equal(edit(c, asking({ cpu: '2' }), 'update'), 'replace');
  assert.equal(edit(c, asking({ cpu: '5' })), 'OutOfcpu');
  remove(c);
  judge(set({ ...renewed(c), pod: { ...c.pod, spec: { ...c.pod.spec, ...asking({ cpu: '2' }) } } }));
  await clock.advance(0);
  assert.deepEqual(take().slice(0, 2), ['c later', 'evict a']);
});

test('a critical pod that waits may be edited', async () => {
  const { add, clock, edit } = rig();
  add(uses('a', '3'));
  const c = add(critical('c', '2'));
  await clock.advance(1_000);
  assert.equal(edit(c, asking({ cpu: '1' })), 'goes on');
});

test('a pressure keeps pods out until it ends, but critical ones and what replaces a pod that runs', async () => {
  const { add, remove, clock, take, r, admission } = rig();
  const running = add(pod('a'));
  r.pressures = ['MemoryPressure'];
  add(pod('b'));
  add(uses('d', '1'));
  add(critical('c', '1'));
  remove(running);
  add(renewed(running));
  assert.deepEqual(take(), ['a in', 'b Evicted', 'd in', 'c in', 'a in']);
  r.pressures = ['MemoryPressure', 'DiskPressure'];
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['b now Evicted']);
  r.pressures = [];
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['renew b', 'b in']);
});

test('what was evicted for a pressure does not come back under it by an edit, and edits of others go on', () => {
  const { add, remove, take, r, edit } = rig();
  const [leak, other] = [add(pod('leak')), add(pod('other'))];
  r.pressures = ['MemoryPressure'];
  r.leaving.add(leak.uid);
  take();
  remove(leak);
  add(renewed(leak));
  assert.deepEqual(take(), ['leak Evicted']);
  assert.equal(edit(other, claiming({ hostPort: 80 })), 'goes on');
});

/** Numbers in [0,1) that are the same at each run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test('whatever comes and goes: the node is never promised twice, and it comes to rest with nobody refused who could be in', async () => {
  const milli = ({ pod: { spec } }: DesiredPod): number => Number.parseInt(String(spec.containers[0]?.resources?.requests?.cpu), 10);
  const priorityOf = ({ pod: { spec } }: DesiredPod): number => spec.priority ?? 0;
  let [preemptions, waits] = [0, 0];
  for (let seed = 1; seed <= 40; seed++) {
    const { add, remove, finish, clock, take, r, admission, all } = rig();
    const random = numbers(seed);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
    const said: string[] = [];
    const live = () => all().filter((p) => admission.isAdmitted(p.uid) && !r.ended.has(p.uid));
    for (let step = 0; step < 30; step++) {
      const now = all();
      if (random() < 0.6 || now.length === 0) {
        const priority = pick([0, 0, 0, 2_000_000_000, 2_000_001_000]);
        add(uses(`p${seed}-${step}`, `${500 * (1 + Math.floor(random() * 6))}m`, { priority }));
      } else {
        const gone = pick(now);
        remove(gone);
        if (admission.isAdmitted(gone.uid)) finish(gone);
      }
      await clock.advance(pick([0, 1_000, 20_000, 60_000]));
      said.push(...take());
      const promised = live().reduce((sum, p) => sum + milli(p), 0);
      assert.ok(promised <= 4000, `seed ${seed}, step ${step}: ${promised}\n${said.join('\n')}`);
    }
    await clock.advance(600_000);
    said.push(...take());
    await clock.advance(3_600_000);
    assert.deepEqual([take(), clock.sleeping], [[], 0], `seed ${seed} comes to rest\n${said.join('\n')}`);
    for (const out of all().filter((p) => !admission.isAdmitted(p.uid))) {
      assert.ok(admission.isRefused(out.uid), `seed ${seed}: ${out.name} waits for ever\n${said.join('\n')}`);
      const critical = priorityOf(out) >= 2_000_000_000;
      const inTheWay = live().filter((p) => !critical || priorityOf(p) >= priorityOf(out));
      const taken = inTheWay.reduce((sum, p) => sum + milli(p), 0);
      assert.ok(taken + milli(out) > 4000, `seed ${seed}: ${out.name} could be in\n${said.join('\n')}`);
    }
    preemptions += said.filter((line) => line.startsWith('evict')).length;
    waits += said.filter((line) => line.includes('it starts when')).length;
  }
  assert.ok(preemptions > 40 && waits > 40, `${preemptions} ${waits}: the test tests something`);
});
