/**
 * KnownIds: whose is this id? Owns the ids of our pods' sandboxes and containers, when each container was first seen exited, the ids that
 * belong to somebody else, those lately gone, and those nobody could place yet. Never asks anybody.
 */
import type { PodUid } from '../api/objects.ts';
import type { RuntimePod } from '../container/words.ts';
import type { Monotonic } from '../world/clock.ts';

const goneIdsKept = 256;

export class KnownIds {
  #owners = new Map<string, PodUid>();
  #exits = new Map<string, Monotonic>();
  #foreign: ReadonlySet<string> = new Set();
  #gone = new Set<string>();
  #unknown = new Set<string>();

  owner(id: string): PodUid | undefined {
    return this.#owners.get(id);
  }

  /** When the container was first seen exited. */
  exitSeenAt(id: string): Monotonic | undefined {
    return this.#exits.get(id);
  }

  /** Some ids were asked for that nobody could place. */
  get hasUnknown(): boolean {
    return this.#unknown.size > 0;
  }

  /** An event names an id without owner; true: it is worth a list of all, for it is neither somebody else's nor lately gone. */
  wonder(id: string): boolean {
    if (this.#foreign.has(id) || this.#gone.has(id)) return false;
    this.#unknown.add(id);
    return true;
  }

  /** The id is this pod's, though no list has shown it. True: it had been wondered about. */
  claim(id: string, uid: PodUid): boolean {
    if (this.#gone.has(id)) return false;
    this.#owners.set(id, uid);
    return this.#unknown.delete(id);
  }

  /** A list shows this pod. */
  see(pod: RuntimePod, now: Monotonic): void {
    for (const { id } of [...pod.sandboxes, ...pod.containers]) {
      this.#owners.set(id, pod.uid);
      this.#unknown.delete(id);
    }
    for (const c of pod.containers) if (c.state === 'exited' && !this.#exits.has(c.id)) this.#exits.set(c.id, now);
  }

  /** A list of all is in: what it does not call ours is somebody else's, and nothing is unknown. */
  seeAll(foreign: ReadonlySet<string>): void {
    this.#foreign = foreign;
    this.#unknown.clear();
  }

  /** The runtime has it no more. Its last events may still be on their way. */
  forget(id: string): void {
    this.#owners.delete(id);
    this.#exits.delete(id);
    this.#gone.add(id);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= goneIdsKept) break;
      this.#gone.delete(oldest);
    }
  }

  forgetPod(uid: PodUid): void {
    for (const [id, owner] of this.#owners) if (owner === uid) this.forget(id);
  }
}
