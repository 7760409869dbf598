/**
 * What the last try of each thing said, and how long nobody tries it again: of an image of a pod, and of a whole registry.
 * Owns the back-off of pulls. It decides nothing: who asks it waits.
 */
import type { Backoff } from '../async/backoff.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';

/** Why a pull failed. */
export interface PullFailure {
  readonly reason: string;
  /** The runtime's own words: what it means is read from them. */
  readonly message: string;
  /** Beside the runtime's words, for people: what was tried. */
  readonly note?: string;
  /** What the registry said no to, as a fingerprint. */
  readonly shown?: string;
}

interface Kept {
  readonly failure: PullFailure;
  readonly at: Monotonic;
  /** Not before that, whatever the back-off says. */
  readonly notBefore: Monotonic;
}

export class Patience {
  #kept = new Map<string, Kept>();

  constructor(
    private readonly clock: Clock,
    private readonly backoff: Backoff,
  ) {}

  /** It failed again: the next step of its back-off, and at least `leastMs`. */
  step(key: string, failure: PullFailure, leastMs = 0): void {
    const at = this.clock.monotonic();
    this.backoff.next(key, at);
    this.#forget();
    this.#kept.set(key, { failure, at, notBefore: after(at, leastMs) });
  }

  /** What its last try said while it is to be left alone, and for how many milliseconds more; undefined: try. */
  waiting(key: string): { readonly failure: PullFailure; readonly waitMs: number } | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    const waitMs = Math.max(this.backoff.remainingMs(key, kept.at), kept.notBefore - this.clock.monotonic());
    return waitMs > 0 ? { failure: kept.failure, waitMs } : undefined;
  }

  /** The last try failed, however long ago. */
  lastFailedAt(key: string): Monotonic | undefined {
    return this.#kept.get(key)?.at;
  }

  /** It worked. `fresh`: the next failure begins at the first step. */
  succeeded(key: string, fresh: boolean): void {
    this.#kept.delete(key);
    if (fresh) this.backoff.delete(key);
  }

  /** What was said of images that nobody has asked for in a long time, or of pods that are gone. */
  #forget(): void {
    this.backoff.collect();
    const now = this.clock.monotonic();
    for (const [key, { notBefore }] of this.#kept) if (this.backoff.delayMs(key) === 0 && notBefore <= now) this.#kept.delete(key);
  }
}
