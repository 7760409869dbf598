/** Who is let in, who is refused, and when the refused are tried again: with a small stand-in for config and the loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Refusal } from '../../src/admission/admit.ts';
import type { HostSocket, PortOwner } from '../../src/admission/hostPorts.ts';
import { Admission } from '../../src/admission/manager.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { EditEffect } from '../../src/api/edit.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { asking, claiming, edited, node, pod, renewed } from './build.ts';

function rig() {
  const clock = new FakeClock();
  const wanted = new Map<PodUid, DesiredPod>();
  const ending = new Map<PodUid, DesiredPod>();
  const r = {
    clock,
    /** What happened, in words; emptied by reading. */
    did: [] as string[],
    host: [] as HostSocket[],
    looks: 0,
    /** Whose a socket is, and how often somebody asked. */
    socketHolder: undefined as string | undefined,
    searches: 0,
    labels: node().labels,
    ended: new Set<PodUid>(),
    earlier: new Map<PodUid, 'admitted' | Refusal>(),
    lives: new Map<PodUid, boolean>() as Map<PodUid, boolean> | 'unknown',
    orphans: [] as PortOwner[],
    storeFails: false,
    take: () => r.did.splice(0),
    /** Desired, and not judged yet. */
    set: (desired: DesiredPod): DesiredPod => {
      wanted.set(desired.uid, desired);
      return desired;
    },
    add: (desired: DesiredPod): DesiredPod => {
      r.set(desired);
      const verdict = admission.admit(desired);
      r.did.push(`${desired.name} ${verdict === 'later' ? 'later' : verdict.admit ? 'in' : verdict.reason}`);
      return desired;
    },
    /** Removed; it ends by its grace when it was let in. */
    remove: ({ uid }: DesiredPod): void => {
      const desired = wanted.get(uid);
      wanted.delete(uid);
      if (desired !== undefined && admission.isAdmitted(uid)) ending.set(uid, desired);
      admission.forget(uid);
    },
    /** The worker has ended. */
    finish: ({ uid }: DesiredPod): void => {
      ending.delete(uid);
      r.ended.add(uid);
      admission.forget(uid);
    },
    edit: (before: DesiredPod, spec: Partial<PodSpec>, effect: EditEffect = 'replace') => {
      const verdict = admission.judgeEdits([{ before, after: edited(before, spec), effect }]).get(before.key);
      return verdict === undefined ? 'goes on' : verdict.act === 'block' ? `${verdict.reason}: ${verdict.message}` : verdict.act;
    },
    now: (name: string): DesiredPod | undefined => [...wanted.values()].find((p) => p.name === name),
  };
  const { hostPortsInUse: _, ...bare } = node();
  const admission = new Admission({
    clock,
    node: () => ({ ...bare, labels: r.labels }),
    known: () => [...wanted.values(), ...ending.values()],
    isDesired: (uid) => wanted.has(uid),
    hasEnded: ({ uid }) => r.ended.has(uid),
    earlier: (uid) => r.earlier.get(uid),
    lives: (uid) => (r.lives === 'unknown' ? 'unknown' : (r.lives.get(uid) ?? false)),
    orphans: () => r.orphans,
    hostSockets: () => {
      r.looks++;
      return r.host;
    },
    socketHolder: () => {
      r.searches++;
      return r.socketHolder;
    },
    renew: async (uid) => {
      await Promise.resolve(); // a write comes first
      if (r.storeFails) throw new Error('no space left on device');
      const before = wanted.get(uid);
      if (before === undefined) return;
      r.did.push(`renew ${before.name}`);
      r.remove(before);
      r.add(renewed(before));
    },
    retryEdits: async () => {
      r.did.push('retry edits');
    },
    retell: ({ name }, refusal) => r.did.push(`${name} now ${refusal.reason}: ${refusal.message}`),
    failed: (e) => r.did.push(`failed ${e instanceof Error ? e.message : ''}`),
  });
  return { ...r, r, admission };
}

const port8080 = claiming({ hostPort: 8080 });
const ssh: HostSocket = { protocol: 'TCP', port: 22, ip: '0.0.0.0' };

test('a pod that fits is let in, another that does not is refused, and only the first may run', () => {
  const { add, admission, take } = rig();
  const a = add(pod('a', port8080));
  const b = add(pod('b', port8080));
  assert.deepEqual(take(), ['a in', 'b NodePorts']);
  assert.deepEqual([admission.isAdmitted(a.uid), admission.isAdmitted(b.uid), admission.isRefused(b.uid)], [true, false, true]);
});

test('a refused pod costs nothing: no timer, no look at the host', async () => {
  const { add, clock, r } = rig();
  add(pod('a', asking({ cpu: '64' })));
  await clock.advance(3_600_000);
  assert.deepEqual([clock.sleeping, r.looks, r.did], [0, 0, ['a OutOfcpu']]);
});

test('a removed holder keeps its port until it has ended; then the other is a new instance, once', async () => {
  const { add, remove, finish, clock, take, now } = rig();
  const a = add(pod('a', port8080));
  const b = add(pod('b', port8080));
  take();
  remove(a);
  await clock.advance(0);
  assert.deepEqual(take(), ['b now NodePorts: Predicate NodePorts failed: port 8080/TCP is used by pod default/a, which is ending']);
  await clock.advance(29_000);
  finish(a);
  await clock.advance(0);
  assert.deepEqual(take(), ['renew b', 'b in']);
  assert.notEqual(now('b')?.uid, b.uid);
  await clock.advance(3_600_000);
  assert.deepEqual(take(), []);
});

test('what an earlier agent was ending keeps its port until it has gone, and before the list of the runtime nobody who was refused comes in', async () => {
  const { add, clock, take, r, admission, edit } = rig();
  const b = pod('b', port8080);
  const why = { reason: 'NodePorts', message: 'taken', kind: 'ports' } as const;
  r.earlier.set(b.uid, why);
  r.lives = 'unknown';
  const c = pod('c');
  r.earlier.set(c.uid, 'admitted');
  add(c);
  add(b);
  await clock.advance(60_000);
  assert.deepEqual(take(), ['c in', 'b NodePorts']);
  r.lives = new Map();
  r.orphans = [pod('a', port8080)];
  admission.takeDeferred();
  await clock.advance(0);
  const text = 'Predicate NodePorts failed: port 8080/TCP is used by pod default/a, which is ending';
  assert.deepEqual(take(), [`b now NodePorts: ${text}`]);
  assert.equal(edit(c, port8080), `NodePorts: ${text}`);
  r.orphans = [];
  admission.again();
  await clock.advance(0);
  assert.deepEqual(
    take().filter((line) => line !== 'retry edits'),
    ['renew b', 'b in'],
  );
});

test('as long as it would still be refused its UID stays', async () => {
  const { add, remove, finish, clock, take, now } = rig();
  add(pod('a', asking({ cpu: '3' })));
  const b = add(pod('b', asking({ cpu: '2' })));
  for (let i = 0; i < 5; i++) {
    const other = add(pod(`other-${i}`));
    remove(other);
    finish(other);
    await clock.advance(1000);
  }
  assert.equal(now('b')?.uid, b.uid);
  assert.deepEqual(
    take().filter((line) => line.startsWith('renew')),
    [],
  );
});

test('requests of a pod that was removed are free at once, as with the kubelet', async () => {
  const { add, remove, clock, take } = rig();
  const a = add(pod('a', asking({ cpu: '3' })));
  add(pod('b', asking({ cpu: '2' })));
  remove(a);
  await clock.advance(0);
  assert.deepEqual(take(), ['a in', 'b OutOfcpu', 'renew b', 'b in']);
});

test('of two that wait for one port the older gets it, and the other keeps its UID', async () => {
  const { add, remove, finish, clock, take, now } = rig();
  const a = add(pod('a', port8080));
  const young = add({ ...pod('b', port8080), firstSeen: '2026-01-03T00:00:00Z' });
  add({ ...pod('c', port8080), firstSeen: '2026-01-02T00:00:00Z' });
  remove(a);
  finish(a);
  take();
  await clock.advance(0);
  assert.deepEqual(take(), ['b now NodePorts: Predicate NodePorts failed: port 8080/TCP is used by pod default/c', 'renew c', 'c in']);
  assert.equal(now('b')?.uid, young.uid);
});

test('a change of the namespace only ends well: the new one waits for the old one', async () => {
  const { add, remove, finish, clock, take } = rig();
  const old = add(pod('a/web', port8080));
  remove(old);
  add(pod('b/web', port8080));
  assert.deepEqual(take(), ['web in', 'web NodePorts']);
  finish(old);
  await clock.advance(0);
  assert.deepEqual(take(), ['renew web', 'web in']);
});

test('a replacement does not wait for its own predecessor’s port, nor for its sockets on the host’s network', () => {
  const { add, remove, take, r } = rig();
  const spec = { ...claiming({ hostPort: 9100 }), hostNetwork: true };
  const old = add(pod('exporter', spec));
  remove(old);
  r.host.push({ protocol: 'TCP', port: 9100, ip: '::' });
  add(renewed(old));
  assert.deepEqual(take(), ['exporter in', 'exporter in']);
});

test('a place in the queue of the loop: what a replacement was promised is not given to another meanwhile', async () => {
  const { add, remove, clock, take } = rig();
  const old = add(pod('a', asking({ cpu: '3' })));
  add(pod('b', asking({ cpu: '2' })));
  remove(old);
  add(renewed(old));
  await clock.advance(0);
  assert.deepEqual(take(), ['a in', 'b OutOfcpu', 'a in']);
});

test('a port of the host: tried again after 10 s, 20 s … up to 5 min, and let in at the try after it is free', async () => {
  const { add, clock, take, r } = rig();
  r.host.push(ssh);
  add(pod('a', claiming({ hostPort: 22 })));
  assert.deepEqual(take(), ['a NodePorts']);
  const at: number[] = [];
  const start = clock.monotonic();
  for (let looks = r.looks; at.length < 8; ) {
    await clock.advance(1000);
    if (r.looks === looks) continue;
    looks = r.looks;
    at.push(Math.round((clock.monotonic() - start) / 1000));
  }
  assert.deepEqual(
    at.map((t, i) => t - (at[i - 1] ?? 0)),
    [10, 20, 40, 80, 160, 300, 300, 300],
  );
  assert.deepEqual(take(), [], 'it says the same as before');
  r.host.length = 0;
  await clock.advance(300_000);
  assert.deepEqual(take(), ['renew a', 'a in']);
  assert.equal(clock.sleeping, 0);
});

test('the back-off begins anew for what comes later', async () => {
  const { add, remove, clock, r } = rig();
  r.host.push(ssh);
  const a = add(pod('a', claiming({ hostPort: 22 })));
  await clock.advance(100_000);
  remove(a);
  assert.equal(clock.sleeping, 0, 'nobody waits for the host any more');
  add(pod('a', claiming({ hostPort: 22 })));
  assert.equal(clock.nextInMs, 10_000);
});

test('the host is looked at only for pods that claim a port', () => {
  const { add, r } = rig();
  add(pod('a', asking({ cpu: '1' })));
  add(pod('b', nvme));
  assert.equal(r.looks, 0);
});

const nvme = { nodeSelector: { disktype: 'nvme' } };

test('labels of the node changed: who fits now is let in, who runs is left alone', async () => {
  const { add, admission, clock, take, r } = rig();
  add(pod('a', nvme));
  const b = add(pod('b', { nodeSelector: { site: 'attic' } }));
  assert.deepEqual(take(), ['a NodeAffinity', 'b in']);
  r.labels = { ...node().labels, site: 'cellar' };
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), []);
  r.labels = { ...r.labels, disktype: 'nvme' };
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['renew a', 'a in']);
  assert.ok(admission.isAdmitted(b.uid));
});

test('another reason than before is told', async () => {
  const { add, admission, clock, take, r } = rig();
  add(pod('a', { ...nvme, ...port8080 }));
  add(pod('b', port8080));
  take();
  r.labels = { ...node().labels, disktype: 'nvme' };
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['a now NodePorts: Predicate NodePorts failed: port 8080/TCP is used by pod default/b']);
});

test('a new instance that cannot be stored is tried again', async () => {
  const { add, admission, clock, take, r } = rig();
  add(pod('a', nvme));
  r.storeFails = true;
  r.labels = { ...node().labels, disktype: 'nvme' };
  admission.again();
  await clock.advance(0);
  assert.deepEqual(take(), ['a NodeAffinity', 'failed no space left on device']);
  r.storeFails = false;
  await clock.advance(10_000);
  assert.deepEqual(take(), ['renew a', 'a in']);
});

test('a removed pod is not tried again', async () => {
  const { add, remove, finish, clock, take } = rig();
  const a = add(pod('a', port8080));
  const b = add(pod('b', port8080));
  remove(b);
  remove(a);
  finish(a);
  take();
  await clock.advance(3_600_000);
  assert.deepEqual(take(), []);
});

test('the agent starts again: what an earlier one let in is let in unasked, also when its own socket listens or no room is left', () => {
  const { add, take, r } = rig();
  const exporter = pod('exporter', { ...claiming({ hostPort: 22 }), hostNetwork: true });
  const big = pod('big', { ...asking({ cpu: '64' }), ...nvme });
  r.host.push(ssh);
  r.earlier.set(exporter.uid, 'admitted').set(big.uid, 'admitted');
  add(exporter);
  add(big);
  assert.deepEqual([take(), r.looks], [['exporter in', 'big in'], 0]);
});

test('what the earlier agent let in has its place before its turn comes', () => {
  const { add, set, take, r } = rig();
  const running = set(pod('running', port8080));
  r.earlier.set(running.uid, 'admitted');
  add(pod('older', port8080));
  add(running);
  assert.deepEqual(take(), ['older NodePorts', 'running in']);
});

test('what it had refused stays refused under its UID, and is a new instance when it fits now', async () => {
  const { add, clock, take, r } = rig();
  const refused = pod('a', port8080);
  const still = pod('b', nvme);
  const why = { reason: 'NodePorts', message: 'Predicate NodePorts failed: …', kind: 'ports' } as const;
  r.earlier.set(refused.uid, why).set(still.uid, { reason: 'NodeAffinity', message: 'm', kind: 'place' });
  add(refused);
  add(still);
  assert.deepEqual(take(), ['a NodePorts', 'b NodeAffinity']);
  await clock.advance(0);
  assert.deepEqual(take(), ['renew a', 'a in']);
});

test('without an earlier word the runtime is asked: what lives is let in; before it was listed everybody waits', () => {
  const { add, remove, admission, take, r } = rig();
  r.host.push(ssh);
  r.lives = 'unknown';
  const runs = add(pod('runs', { ...claiming({ hostPort: 22 }), hostNetwork: true }));
  const fresh = add(pod('fresh', claiming({ hostPort: 22 })));
  const gone = add(pod('gone'));
  assert.deepEqual(take(), ['runs later', 'fresh later', 'gone later']);
  assert.equal(admission.isAdmitted(runs.uid), false);
  remove(gone);
  r.lives = new Map([[runs.uid, true]]);
  for (const desired of admission.takeDeferred()) add(desired);
  assert.deepEqual(take(), ['runs in', 'fresh NodePorts']);
  assert.deepEqual(admission.takeDeferred(), []);
  assert.ok(admission.isRefused(fresh.uid));
});

test('after a reboot an edit is judged although nobody was let in yet: what ran before goes on', () => {
  const { add, edit, r } = rig();
  r.lives = 'unknown';
  const a = add(pod('a'));
  add(pod('b', asking({ cpu: '2' })));
  assert.match(edit(a, asking({ cpu: '3' })), /^OutOfcpu: .* used: 2000,/);
  assert.equal(edit(a, asking({ cpu: '2' })), 'goes on');
});

test('a pod that has completed is not judged and uses nothing', () => {
  const { add, take, r } = rig();
  const done = pod('done', { ...port8080, overhead: { cpu: '64' } });
  r.ended.add(done.uid);
  add(done);
  add(pod('b', { ...port8080, overhead: { cpu: '4' } }));
  assert.deepEqual(take(), ['done in', 'b in']);
});

test('a pod that ends by itself gives its room to others though it is still wanted', async () => {
  const { add, finish, clock, take } = rig();
  const job = add(pod('job', asking({ cpu: '3' })));
  add(pod('b', asking({ cpu: '2' })));
  finish(job);
  await clock.advance(0);
  assert.deepEqual(take(), ['job in', 'b OutOfcpu', 'renew b', 'b in']);
});

test('an edit without room waits, and is tried again when a pod has ended', async () => {
  const { add, remove, clock, edit, take } = rig();
  const a = add(pod('a'));
  const b = add(pod('b', asking({ cpu: '2' })));
  assert.match(
    edit(a, asking({ cpu: '3' })),
    /^OutOfcpu: Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000$/,
  );
  take();
  await clock.advance(3_600_000);
  assert.deepEqual(take(), []);
  remove(b);
  await clock.advance(0);
  assert.deepEqual(take(), ['retry edits']);
  assert.equal(edit(a, asking({ cpu: '3' })), 'goes on');
  remove(a);
  await clock.advance(0);
  assert.deepEqual(take(), [], 'nothing is blocked any more');
});

test('an edit that waits for the host is tried again with a back-off', async () => {
  const { add, clock, edit, take, r } = rig();
  r.host.push(ssh);
  const a = add(pod('a'));
  const again = (): string => edit(a, claiming({ hostPort: 22 }));
  assert.match(again(), /a process of the host, which listens on 0\.0\.0\.0:22/);
  take();
  await clock.advance(10_000);
  assert.deepEqual(take(), ['retry edits']);
  again();
  await clock.advance(19_999);
  assert.deepEqual(take(), []);
  await clock.advance(1);
  assert.deepEqual(take(), ['retry edits']);
  r.host.length = 0;
  assert.equal(again(), 'goes on');
  assert.equal(clock.sleeping, 0);
});

test('whose a socket of the host is, is searched for once in a look, for all who want it, and never without a conflict', async () => {
  const { add, admission, clock, take, r } = rig();
  r.host.push(ssh);
  add(pod('other', claiming({ hostPort: 23 })));
  assert.equal(r.searches, 0);
  add(pod('a', claiming({ hostPort: 22 })));
  add(pod('b', claiming({ hostPort: 22 })));
  take();
  const before = r.searches;
  r.socketHolder = 'sshd (pid 812)';
  admission.again();
  await clock.advance(0);
  const words = 'NodePorts: Predicate NodePorts failed: port 22/TCP is used by sshd (pid 812), which listens on 0.0.0.0:22';
  assert.deepEqual([take(), r.searches - before], [[`a now ${words}`, `b now ${words}`], 1]);
});

test('an edit of a pod that was refused is a new instance, whatever it is; of one that ended it goes on', () => {
  const { add, edit, finish } = rig();
  const refused = add(pod('a', nvme));
  assert.equal(edit(refused, { nodeSelector: {} }, 'reconcile'), 'replace');
  assert.equal(edit(refused, {}, 'none'), 'goes on');
  const job = add(pod('job'));
  finish(job);
  assert.equal(edit(job, asking({ cpu: '64' })), 'goes on', 'nothing of it runs that could go on');
});

test('an edit of a pod on the host’s network does not meet its own sockets', () => {
  const { add, edit, r } = rig();
  const a = add(pod('a', { ...claiming({ hostPort: 9100 }), hostNetwork: true }));
  r.host.push({ protocol: 'TCP', port: 9100, ip: '::' });
  assert.equal(edit(a, { hostPID: true }), 'goes on');
});

test('moved off the node by an edit: the old one ends', () => {
  const { add, edit } = rig();
  assert.equal(edit(add(pod('a')), nvme, 'reconcile'), 'replace');
});
