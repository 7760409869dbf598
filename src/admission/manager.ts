/**
 * Admission: which pods were let onto this node, which were refused and why, and when to ask again.
 *
 * Owns the verdicts, in memory. A pod that an earlier agent of this boot let in, or of which the runtime has something alive, is let in
 * without a question: a restart of the agent ends nobody, and a pod's own listening socket never stands against it. A pod of which nobody can
 * say so yet, because the runtime was not listed, waits for the list.
 * A refused pod is judged again when the cause may have gone: a pod ended, was removed or edited, labels, devices or pressures of the node
 * changed; for a process of the host there is no such event, so 10 s later, then twice as long, up to 5 min. Only when it would be let in now
 * does it become a new instance. Never starts a pod, and ends one only for a critical one that waits for its room (preemption.ts).
 * What replaces a running pod takes its place: a pressure of the node does not stand against it.
 * Mirrors kubelet v1.32 lifecycle/predicate.go and HandlePodAdditions, which never ask again (facts 12).
 */
import type { DesiredPod } from '../api/desired.ts';
import type { EditVerdict, PodEdit } from '../api/edit.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import { isCriticalPod } from '../api/priority.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock } from '../world/clock.ts';
import { admit, type NodeFacts, type Refusal, type Verdict } from './admit.ts';
import { type JudgedEdit, judgeEdits } from './edits.ts';
import { type HostSocket, type PortOwner, portClaims, type SocketHolder } from './hostPorts.ts';
import { mayPreempt } from './preempt.ts';
import { Preemption, type PreemptionDeps } from './preemption.ts';
import { type Judgement, judgeCritical } from './room.ts';

export interface AdmissionDeps {
  readonly clock: Clock;
  /** The node without what listens on it. */
  readonly node: () => Omit<NodeFacts, 'hostPortsInUse'>;
  /** Every instance there is: wanted, or still ending. */
  readonly known: () => readonly DesiredPod[];
  readonly isDesired: (uid: PodUid) => boolean;
  /** It has ended for good, now or before this agent: it uses nothing and is judged no more. */
  readonly hasEnded: (desired: DesiredPod) => boolean;
  /** What an earlier agent of this boot told of the instance; undefined: nothing. */
  readonly earlier: (uid: PodUid) => 'admitted' | Refusal | undefined;
  /** The runtime has something alive of it; 'unknown': it was not listed yet. */
  readonly lives: (uid: PodUid) => boolean | 'unknown';
  /** What still lives of ours in the runtime and is no instance: an earlier agent was ending it. Left out: nothing. */
  readonly orphans?: () => readonly PortOwner[];
  /** Read only for pods that claim ports of the host. */
  readonly hostSockets: () => readonly HostSocket[];
  /** Left out: nobody knows whose they are. */
  readonly socketHolder?: SocketHolder | undefined;
  /** The object goes on as a new instance, which is then judged. */
  readonly renew: (uid: PodUid) => Promise<void>;
  /** Blocked edits are judged again. */
  readonly retryEdits: () => Promise<void>;
  /** A refused pod is refused for another reason now. */
  readonly retell: (desired: DesiredPod, refusal: Refusal) => void;
  readonly failed: (e: unknown) => void;
  /** Left out: nobody is ended, and a critical pod without room is refused like any other. */
  readonly preemption?: PreemptionDeps | undefined;
}

interface Predecessor {
  /** What listens may be the pod's own, or its predecessor's, so it does not count. */
  readonly ownSockets: boolean;
  /** It takes the place of one that ran until now. */
  readonly replaces: boolean;
}

type NodeFor = (desired: DesiredPod, predecessor: Predecessor) => NodeFacts;

const firstRetryMs = 10_000;
const longestRetryMs = 300_000;
/** What the message names may change while the reason stays. */
const toldAnew: ReadonlySet<Refusal['kind']> = new Set(['ports', 'pressure']);
/** The deadline that is no object's: look at all that was refused. */
const everything = '';

export class Admission {
  #admitted = new Set<PodUid>();
  #refused = new Map<PodUid, { readonly desired: DesiredPod; refusal: Refusal }>();
  /** Not judged yet: the runtime was not listed. */
  #deferred = new Set<PodUid>();
  /** Would be let in, and is on its way to a new instance. */
  #renewing = new Map<KeyText, DesiredPod>();
  /** Edits that wait, and whether for the host. */
  #blocked = new Map<KeyText, boolean>();
  /** Steps of the back-off of what waits for the host. */
  #tries = new Map<KeyText, number>();
  #due: Deadlines<KeyText | typeof everything>;
  #preemption: Preemption | undefined;

  constructor(private readonly deps: AdmissionDeps) {
    const { clock, preemption, known, hasEnded, failed } = deps;
    this.#due = new Deadlines(clock, (key) => this.#look(key));
    this.#preemption = preemption && new Preemption({ ...{ clock, known, hasEnded, failed, deps: preemption }, again: () => this.again() });
  }

  /**
   * Judges a new instance, once. 'later': it is given back by `takeDeferred` when the runtime was listed, or by `readmit` when others have
   * ended for it.
   */
  admit(desired: DesiredPod): Verdict | 'later' {
    const { deps } = this;
    const { uid, key } = desired;
    this.#deferred.delete(uid);
    // removed on the way to its second judgement
    if (!deps.isDesired(uid)) return 'later';
    if (deps.hasEnded(desired)) return this.#letIn(desired);
    const earlier = deps.earlier(uid);
    if (earlier === 'admitted') return this.#letIn(desired);
    // it stays refused under this UID, and comes back as a new instance if it fits now
    if (earlier !== undefined) {
      const refused = this.#refuse(desired, earlier);
      this.again();
      return refused;
    }
    const lives = deps.lives(uid);
    if (lives === true) return this.#letIn(desired);
    if (lives === 'unknown') {
      this.#deferred.add(uid);
      return 'later';
    }
    const verdict = this.#judge(desired, this.#glance());
    if (verdict.admit === 'room') {
      this.#preemption?.wait(uid);
      this.again();
      return 'later';
    }
    if (verdict.admit) return this.#letIn(desired);
    if (verdict.byHost) this.#retryLater(key);
    return this.#refuse(desired, verdict);
  }

  /** It was let in, so a worker may run it. */
  isAdmitted(uid: PodUid): boolean {
    return this.#admitted.has(uid);
  }

  isRefused(uid: PodUid): boolean {
    return this.#refused.has(uid);
  }

  /** It was refused since it is meant for another node. */
  isElsewhere(uid: PodUid): boolean {
    return this.#refused.get(uid)?.refusal.kind === 'place';
  }

  /** Pods that waited for the first list of the runtime, to be added now. Refused ones waited for it as well. */
  takeDeferred(): DesiredPod[] {
    this.again();
    const waiting = this.deps.known().filter((p) => this.#deferred.has(p.uid) && this.deps.isDesired(p.uid));
    this.#deferred.clear();
    return waiting;
  }

  /** Nobody wants this instance any more, or it has ended: what it held may be free. */
  forget(uid: PodUid): void {
    const { deps } = this;
    const wanted = deps.isDesired(uid);
    const refused = this.#refused.get(uid);
    if (!wanted) this.#deferred.delete(uid);
    if (!wanted) this.#preemption?.forget(uid);
    if (!wanted && refused !== undefined) {
      this.#refused.delete(uid);
      this.#calm(refused.desired.key);
    }
    if (!wanted && !deps.known().some((p) => p.uid === uid)) {
      this.#admitted.delete(uid);
      this.#preemption?.clear(uid);
    }
    this.again();
  }

  /** Something that may have kept a pod out is different: labels, devices or pressures of the node, a pod that ended or was edited in place. */
  again(): void {
    if (this.#refused.size === 0 && this.#blocked.size === 0 && this.#preemption?.any() !== true) return;
    // after what is already on its way through the loop: a replacement is judged before others look at what its predecessor held
    if (this.#due.get(everything) === undefined) this.#due.set(everything, this.deps.clock.monotonic());
  }

  /** All edits that config wants to carry out, or that wait: every call gives the whole of them. */
  judgeEdits(edits: readonly PodEdit[]): ReadonlyMap<KeyText, EditVerdict> {
    const { deps } = this;
    const verdicts = new Map<KeyText, EditVerdict>();
    const running: PodEdit[] = [];
    for (const edit of edits) {
      if (this.#refused.has(edit.before.uid)) {
        if (edit.effect !== 'none') verdicts.set(edit.before.key, { act: 'replace' });
      } else if (this.#isActive(edit.before) || this.#isOnItsWay(edit.before)) running.push(edit);
    }
    const nodeFor = this.#glance();
    const predecessor = ({ pod }: DesiredPod) => ({ ownSockets: pod.spec.hostNetwork === true, replaces: true });
    const judged = judgeEdits(running, {
      // what waits for the runtime's list is taken for let in, as it was before the reboot
      active: deps.known().filter((p) => deps.isDesired(p.uid) && (this.#isActive(p) || this.#isOnItsWay(p))),
      ending: [...this.#ending(), ...this.#orphans()],
      node: ({ before, after: next }) => nodeFor(next, predecessor(before)),
    });
    for (const { before, after: next, effect } of running) {
      if (judged.get(next.key)?.act !== 'block') continue;
      if (this.#judge(next, (p) => nodeFor(p, predecessor(before))).admit !== 'room') continue;
      // room is made for the new instance when it is there
      if (effect === 'replace') judged.delete(next.key);
      else judged.set(next.key, { act: 'replace' });
    }
    this.#block(judged, verdicts);
    return verdicts;
  }

  stop(): void {
    this.#due.stop();
  }

  #block(judged: ReadonlyMap<KeyText, JudgedEdit>, verdicts: Map<KeyText, EditVerdict>): void {
    const before = [...this.#blocked.keys()];
    this.#blocked = new Map();
    for (const [key, { byHost, ...verdict }] of judged) {
      verdicts.set(key, verdict);
      if (verdict.act !== 'block') continue;
      this.#blocked.set(key, byHost === true);
      if (byHost === true) this.#retryLater(key);
    }
    for (const key of before) this.#calm(key);
  }

  #letIn(desired: DesiredPod): Verdict {
    this.#refused.delete(desired.uid);
    this.#admitted.add(desired.uid);
    this.#preemption?.forget(desired.uid);
    this.#calm(desired.key);
    // it may be one that is to go
    if (this.#preemption?.any()) this.again();
    return { admit: true };
  }

  #refuse(desired: DesiredPod, refusal: Refusal): Verdict {
    this.#refused.set(desired.uid, { desired, refusal });
    this.#preemption?.forget(desired.uid);
    // others may have been refused for the room it would have taken
    if (isCriticalPod(desired.pod)) this.again();
    return { ...refusal, admit: false };
  }

  /** `taken`: as if these had been let in already. */
  #judge(desired: DesiredPod, nodeFor: NodeFor, taken: readonly DesiredPod[] = []): Judgement {
    const notMine = (p: Pick<DesiredPod, 'key'>): boolean => p.key !== desired.key;
    const [ending, orphans, preemption] = [this.#ending(), this.#orphans(), this.#preemption];
    const before = ending.filter((p) => !notMine(p));
    const node = nodeFor(desired, {
      // what a predecessor on the host's network listens on is free when it has ended, which the successor waits for
      ownSockets: before.some((p) => p.pod.spec.hostNetwork === true),
      replaces: before.some((p) => preemption?.wasEvicted(p.uid) !== true) || orphans.some((p) => !notMine(p)),
    });
    const active = [...this.#wanted(), ...(preemption?.before(desired) ?? []), ...taken].filter(notMine);
    const leaving = [...ending, ...orphans].filter(notMine);
    if (preemption === undefined || !isCriticalPod(desired.pod)) {
      return admit(desired, active, node, leaving, preemption === undefined ? [] : this.#awaited(desired));
    }
    const inTheWay = active.filter((p) => !preemption.isStuck(p.uid));
    const neighbours = {
      staying: inTheWay.filter((p) => !preemption.isLeaving(p.uid)),
      leaving: inTheWay.filter((p) => preemption.isLeaving(p.uid)),
      holders: [...active.map((pod) => ({ pod, ending: false })), ...leaving.map((pod) => ({ pod, ending: true }))],
    };
    return judgeCritical(desired, neighbours, node, (p) => this.#isActive(p));
  }

  /** Not judged yet, and would take this pod's room when they are: to start it would be in vain. */
  #awaited(desired: DesiredPod): DesiredPod[] {
    const { deps } = this;
    const mayCome = ({ uid }: DesiredPod): boolean => deps.isDesired(uid) && !this.#refused.has(uid) && deps.earlier(uid) === undefined;
    return deps
      .known()
      .filter(
        (p) => mayPreempt(p, desired) && mayCome(p) && !this.#isActive(p) && !deps.hasEnded(p) && this.#preemption?.waits(p.uid) !== true,
      );
  }

  /** The node at this moment: looked at once for all that is judged together, and what listens on it only when somebody claims a port. */
  #glance(): NodeFor {
    const node = this.deps.node();
    let sockets: readonly HostSocket[] | undefined;
    const names = new Map<HostSocket, string | undefined>();
    const socketHolder: SocketHolder = (socket) => {
      if (!names.has(socket)) names.set(socket, this.deps.socketHolder?.(socket));
      return names.get(socket);
    };
    const { pressures: _, ...unpressed } = node;
    return ({ pod }, { ownSockets, replaces }) => {
      const facts = replaces ? unpressed : node;
      if (ownSockets || portClaims(pod).length === 0) return { ...facts, hostPortsInUse: [] };
      sockets ??= this.deps.hostSockets();
      return { ...facts, hostPortsInUse: sockets, socketHolder };
    };
  }

  /** It was let in, now or by an earlier agent, and has not ended. */
  #isActive(pod: DesiredPod): boolean {
    const { uid } = pod;
    if (this.deps.hasEnded(pod) || this.#refused.has(uid) || this.#deferred.has(uid)) return false;
    return this.#admitted.has(uid) || this.deps.earlier(uid) === 'admitted' || this.deps.lives(uid) === true;
  }

  /** It waits for the runtime's list, or for room. */
  #isOnItsWay(pod: DesiredPod): boolean {
    return (this.#deferred.has(pod.uid) || this.#preemption?.waits(pod.uid) === true) && !this.deps.hasEnded(pod);
  }

  #wanted(): DesiredPod[] {
    return this.deps.known().filter((p) => this.deps.isDesired(p.uid) && this.#isActive(p));
  }

  #ending(): DesiredPod[] {
    return this.deps.known().filter((p) => !this.deps.isDesired(p.uid) && this.#isActive(p));
  }

  #orphans(): readonly PortOwner[] {
    return this.deps.orphans?.() ?? [];
  }

  /** The moment of one object that waits for the host, or of all: whoever would be let in now becomes a new instance. */
  #look(key: KeyText | typeof everything): void {
    const { deps } = this;
    if (key !== everything) this.#tries.set(key, (this.#tries.get(key) ?? 0) + 1);
    const nodeFor = this.#glance();
    if (key === everything && this.#preemption !== undefined) this.#makeRoom(this.#preemption, nodeFor);
    const taken = [...this.#renewing.values()];
    // before the runtime was listed nobody knows what an earlier agent left; after that all are looked at
    const waiting = [...this.#refused.values()].filter(
      ({ desired }) => !this.#renewing.has(desired.key) && deps.lives(desired.uid) !== 'unknown',
    );
    for (const entry of waiting.sort(
      (a, b) => compare(a.desired.firstSeen, b.desired.firstSeen) || compare(a.desired.key, b.desired.key),
    )) {
      if (key !== everything && entry.desired.key !== key) continue;
      const { desired, refusal } = entry;
      const still = this.#judge(desired, nodeFor, taken);
      if (still.admit !== false) {
        taken.push(desired);
        this.#renew(desired);
        continue;
      }
      if (still.byHost) this.#retryLater(desired.key);
      const news = still.reason !== refusal.reason || (toldAnew.has(still.kind) && still.message !== refusal.message);
      entry.refusal = still;
      if (news) deps.retell(desired, still);
    }
    if (this.#blocked.size > 0 && (key === everything || this.#blocked.has(key))) deps.retryEdits().catch(deps.failed);
  }

  /** Those that wait for room: others are ended for them, and who has room is judged once more. */
  #makeRoom(preemption: Preemption, nodeFor: NodeFor): void {
    for (const desired of preemption.waiting()) {
      const verdict = this.#judge(desired, nodeFor);
      if (verdict.admit !== 'room') {
        preemption.readmit(desired.uid);
        continue;
      }
      const leaving = this.#wanted().filter((p) => preemption.isLeaving(p.uid));
      // one that an earlier agent let in has no worker yet when its turn has not come; its turn comes here again
      for (const victim of verdict.victims) if (this.#admitted.has(victim.uid)) preemption.evict(victim);
      preemption.tell(desired, [...leaving, ...verdict.victims]);
    }
  }

  #renew(desired: DesiredPod): void {
    const { key, uid } = desired;
    this.#renewing.set(key, desired);
    this.deps
      .renew(uid)
      .catch((e) => {
        this.deps.failed(e);
        this.#retryLater(key);
      })
      .finally(() => this.#renewing.delete(key));
  }

  /** Nobody will say when it is free. An earlier moment that is set already stays. */
  #retryLater(key: KeyText): void {
    const ms = Math.min(longestRetryMs, firstRetryMs * 2 ** (this.#tries.get(key) ?? 0));
    this.#due.setEarlier(key, after(this.deps.clock.monotonic(), ms));
  }

  /** It waits for the host no more, unless an edit of it does. */
  #calm(key: KeyText): void {
    if (this.#blocked.get(key) === true) return;
    this.#tries.delete(key);
    this.#due.delete(key);
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
