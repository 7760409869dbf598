/**
 * OomKills: which containers the kernel killed for want of memory. Two tell it: the runtime's events, which it may send after it has told the
 * end, or not at all into its record; and the kernel's own count (memoryEvents.ts), which the container's cgroup takes with it. Either may
 * come alone, and both of one kill are one. A killed child of a container that goes on is remembered too and is no end. Owns the last 256.
 */
import type { Monotonic } from '../world/clock.ts';

const kept = 256;
/** The kill of one process of a container is no end of it: an end much later has another cause. */
const nearMs = 30_000;

export class OomKills {
  #at = new Map<string, Monotonic>();

  hear(id: string, now: Monotonic): void {
    this.#at.delete(id);
    this.#at.set(id, now);
    for (const oldest of this.#at.keys()) {
      if (this.#at.size <= kept) break;
      this.#at.delete(oldest);
    }
  }

  /** Whether a kill was told around the moment at which the container's end was seen. */
  near(id: string, exitSeenAt: Monotonic): boolean {
    const at = this.#at.get(id);
    return at !== undefined && Math.abs(exitSeenAt - at) <= nearMs;
  }

  forget(id: string): void {
    this.#at.delete(id);
  }
}
