/**
 * Making room for critical pods: who waits for room, and whom it ends for them. Owns the pods that wait, in the order in which they came, and
 * the ends that were asked for and are not over; which pods go is decided elsewhere (room.ts). A victim that does not end in time stands in
 * nobody's way any more, as with the kubelet; its worker goes on trying.
 * Unlike kubelet v1.32 preemption.go, which stands still until one after the other has ended, all end beside each other, and only the pod
 * that wants their room waits.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { PodStatus } from '../api/status.ts';
import { type Clock, toRfc3339 } from '../world/clock.ts';
import { mayPreempt } from './preempt.ts';
import { waitingStatus } from './waiting.ts';

export interface PreemptionDeps {
  /** Ends it as `Preempting`, with its own grace. Resolves when nothing of it runs any more; rejects when it did not end in time. */
  readonly evict: (uid: PodUid) => Promise<void>;
  /** It is being ended against its will, or has been, perhaps by an earlier agent. */
  readonly wasEvicted: (uid: PodUid) => boolean;
  /** It is being ended, for whatever reason. */
  readonly isEnding: (uid: PodUid) => boolean;
  /** Is judged once more, as if it were new: there may be room now. */
  readonly readmit: (uid: PodUid) => void;
  /** Of a pod that waits. */
  readonly tell: (desired: DesiredPod, status: PodStatus) => void;
}

export interface PreemptionHost {
  readonly clock: Clock;
  readonly deps: PreemptionDeps;
  readonly known: () => readonly DesiredPod[];
  readonly hasEnded: (desired: DesiredPod) => boolean;
  readonly failed: (e: unknown) => void;
  /** An end is over, or given up: all is looked at again. */
  readonly again: () => void;
}

export class Preemption {
  #waiting = new Map<PodUid, { told: string; asked: boolean }>();
  #ending = new Set<PodUid>();
  #stuck = new Set<PodUid>();

  constructor(private readonly host: PreemptionHost) {}

  any(): boolean {
    return this.#waiting.size > 0;
  }

  /** Those that wait, who came first before the others. */
  waiting(): readonly DesiredPod[] {
    if (this.#waiting.size === 0) return [];
    // as they are now: an edit may have changed what needs no new instance
    const known = new Map(this.host.known().map((p) => [p.uid, p]));
    return [...this.#waiting.keys()].flatMap((uid) => known.get(uid) ?? []);
  }

  waits(uid: PodUid): boolean {
    return this.#waiting.has(uid);
  }

  /** Of those that wait, whose room is not this pod's: they came before it, unless it matters more; or they matter more. */
  before(desired: DesiredPod): readonly DesiredPod[] {
    const all = this.waiting();
    const mine = all.findIndex((p) => p.uid === desired.uid);
    return all.filter((p, i) => i !== mine && (mayPreempt(p, desired) || (!mayPreempt(desired, p) && (mine === -1 || i < mine))));
  }

  /** It waits from now on, or still. */
  wait(uid: PodUid): void {
    this.#waiting.set(uid, { told: this.#waiting.get(uid)?.told ?? '', asked: false });
  }

  forget(uid: PodUid): void {
    this.#waiting.delete(uid);
  }

  /** Of an instance that is no more. */
  clear(uid: PodUid): void {
    this.#stuck.delete(uid);
  }

  wasEvicted(uid: PodUid): boolean {
    return this.#ending.has(uid) || this.host.deps.wasEvicted(uid);
  }

  /** Of a pod that is still wanted: its room will be free. */
  isLeaving(uid: PodUid): boolean {
    return this.wasEvicted(uid) || this.host.deps.isEnding(uid);
  }

  /** It should have ended by now: nobody waits for it any more. */
  isStuck(uid: PodUid): boolean {
    return this.#stuck.has(uid);
  }

  /** Asks for its judgement, once. */
  readmit(uid: PodUid): void {
    const entry = this.#waiting.get(uid);
    if (entry === undefined || entry.asked) return;
    entry.asked = true;
    this.host.deps.readmit(uid);
  }

  evict(victim: DesiredPod): void {
    const { uid } = victim;
    if (this.#ending.has(uid) || this.#stuck.has(uid)) return;
    this.#ending.add(uid);
    void this.#end(victim); // it never rejects
  }

  async #end(victim: DesiredPod): Promise<void> {
    const { host } = this;
    await host.deps.evict(victim.uid).catch(host.failed);
    this.#ending.delete(victim.uid);
    if (!host.hasEnded(victim)) this.#stuck.add(victim.uid);
    host.again();
  }

  /** Says what this pod waits for, once. */
  tell(desired: DesiredPod, ending: readonly DesiredPod[]): void {
    const entry = this.#waiting.get(desired.uid);
    const status = waitingStatus(desired, ending, toRfc3339(this.host.clock.now()));
    const text = status.conditions?.[0]?.message ?? '';
    if (entry === undefined || ending.length === 0 || entry.told === text) return;
    entry.told = text;
    this.host.deps.tell(desired, status);
  }
}
