/**
 * Doubling back-off by key, on the monotonic clock. Mirrors client-go flowcontrol.Backoff as the kubelet uses it (10 s → 300 s,
 * forgotten after twice the cap): the first failure is free, the entry then grows.
 */
import type { Clock, Monotonic } from '../world/clock.ts';

export interface BackoffEntry {
  readonly delayMs: number;
  readonly updatedAt: Monotonic;
}

export class Backoff {
  #entries = new Map<string, BackoffEntry>();

  constructor(
    private readonly clock: Clock,
    private readonly limits: (key: string) => { readonly firstMs: number; readonly maxMs: number },
  ) {}

  /** Milliseconds still to wait when the event (an exit, a failed pull) was seen at `since`; 0: go on. */
  remainingMs(key: string, since: Monotonic): number {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#expired(key, entry, since)) return 0;
    return Math.max(0, since + this.delayMs(key) - this.clock.monotonic());
  }

  /** The delay in force, for messages; 0 when none. A limit that was lowered holds for the wait that has begun, too. */
  delayMs(key: string): number {
    return Math.min(this.#entries.get(key)?.delayMs ?? 0, this.limits(key).maxMs);
  }

  /** One step: the next delay is 10 s, or twice the last. */
  next(key: string, since: Monotonic): void {
    const { firstMs, maxMs } = this.limits(key);
    const entry = this.#entries.get(key);
    const delayMs = entry === undefined || this.#expired(key, entry, since) ? firstMs : Math.min(entry.delayMs * 2, maxMs);
    this.#entries.set(key, { delayMs, updatedAt: this.clock.monotonic() });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** Entries of nobody: not stepped for twice the cap. */
  collect(): void {
    const now = this.clock.monotonic();
    for (const [key, entry] of this.#entries) if (this.#expired(key, entry, now)) this.#entries.delete(key);
  }

  /** For runDir: what outlives the agent but not the boot. */
  snapshot(): Record<string, BackoffEntry> {
    return Object.fromEntries(this.#entries);
  }

  restore(entries: Readonly<Record<string, BackoffEntry>>): void {
    for (const [key, entry] of Object.entries(entries)) this.#entries.set(key, entry);
  }

  #expired(key: string, entry: BackoffEntry, since: Monotonic): boolean {
    return since - entry.updatedAt > 2 * this.limits(key).maxMs;
  }
}
