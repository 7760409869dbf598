/**
 * OomKills: which containers the kernel killed for want of memory, as the runtime's events told. A runtime may tell it after it has told the
 * end, or not write it into the record at all. What the kernel counts (`memory.events`) is gone with the container's cgroup when its end is
 * seen, and the runtime's events are made from it; so nothing is lost by taking these. Owns the last 256 of them.
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
