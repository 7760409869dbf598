/**
 * One queue of moments, one timer. Replaces fixed ticks: the nearest entry arms the timer, an idle agent has none.
 * Owns the set of (key → moment, work); an entry set again replaces the older one.
 */
import type { Clock, Monotonic } from '../world/clock.ts';
import { isAbort } from './abort.ts';

/** One reason for all: making an abort error captures a stack, and timers are armed anew all the time. */
const rearmed = Object.assign(new Error('armed anew'), { name: 'AbortError' });

export class Deadlines<K> {
  #entries = new Map<K, Monotonic>();
  #timer: AbortController | undefined;
  #armedFor: number = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(
    private readonly clock: Clock,
    /** Called once per entry whose moment has come; the entry is gone by then. */
    private readonly onDue: (key: K) => void,
  ) {}

  /** Due at `at`; a moment already past is due at once (never synchronously). */
  set(key: K, at: Monotonic): void {
    this.#entries.set(key, at);
    this.#arm();
  }

  /** As `set`, but an earlier moment stays. */
  setEarlier(key: K, at: Monotonic): void {
    const before = this.#entries.get(key);
    if (before === undefined || at < before) this.set(key, at);
  }

  delete(key: K): void {
    if (this.#entries.delete(key)) this.#arm();
  }

  get(key: K): Monotonic | undefined {
    return this.#entries.get(key);
  }

  /** Keys that are still to come, in no order. */
  keys(): K[] {
    return [...this.#entries.keys()];
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.abort();
    this.#entries.clear();
  }

  #arm(): void {
    if (this.#stopped) return;
    let nearest = Number.POSITIVE_INFINITY;
    for (const at of this.#entries.values()) if (at < nearest) nearest = at;
    if (nearest === this.#armedFor) return;
    this.#timer?.abort(rearmed);
    this.#timer = undefined;
    this.#armedFor = nearest;
    if (nearest === Number.POSITIVE_INFINITY) return;
    const timer = new AbortController();
    this.#timer = timer;
    this.clock.sleep(Math.max(0, nearest - this.clock.monotonic()), timer.signal).then(
      () => this.#due(),
      (e) => {
        if (!isAbort(e)) throw e;
      },
    );
  }

  #due(): void {
    this.#armedFor = Number.POSITIVE_INFINITY;
    this.#timer = undefined;
    const now = this.clock.monotonic();
    const due = [...this.#entries].filter(([, at]) => at <= now).sort((a, b) => a[1] - b[1]);
    for (const [key] of due) this.#entries.delete(key);
    this.#arm();
    for (const [key] of due) this.onDue(key);
  }
}
