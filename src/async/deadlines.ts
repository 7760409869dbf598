/**
 * One queue of moments, one timer. Replaces fixed ticks: the nearest entry arms the timer, an idle agent has none.
 * Owns the set of (key → moment, work); an entry set again replaces the older one.
 */
import type { Clock, Monotonic } from '../world/clock.ts';
import { isAbort } from './abort.ts';
import { DueQueue } from './dueQueue.ts';

/** One reason for all: making an abort error captures a stack, and timers are armed anew all the time. */
const rearmed = Object.assign(new Error('armed anew'), { name: 'AbortError' });

export class Deadlines<K> {
  #queue = new DueQueue<K, Monotonic>();
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
    if (this.#stopped || this.#queue.at(key) === at) return;
    this.#queue.set(key, at);
    this.#arm();
  }

  /** As `set`, but an earlier moment stays. */
  setEarlier(key: K, at: Monotonic): void {
    const before = this.#queue.at(key);
    if (before === undefined || at < before) this.set(key, at);
  }

  delete(key: K): void {
    if (this.#queue.delete(key)) this.#arm();
  }

  get(key: K): Monotonic | undefined {
    return this.#queue.at(key);
  }

  /** Keys that are still to come, in no order. */
  keys(): K[] {
    return this.#queue.keys();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.abort(rearmed);
    this.#queue = new DueQueue();
  }

  #arm(): void {
    if (this.#stopped) return;
    const nearest = this.#queue.first()?.at ?? Number.POSITIVE_INFINITY;
    if (nearest === this.#armedFor) return;
    if (this.#armedFor !== Number.POSITIVE_INFINITY) {
      this.#timer?.abort(rearmed);
      this.#timer = undefined;
    }
    this.#armedFor = nearest;
    if (nearest === Number.POSITIVE_INFINITY) return;
    // one for many waits: making it costs more than the wait
    this.#timer ??= new AbortController();
    this.clock.sleep(Math.max(0, nearest - this.clock.monotonic()), this.#timer.signal).then(this.#wake, ignoreAbort);
  }

  readonly #wake = (): void => {
    if (this.#stopped) return;
    this.#armedFor = Number.POSITIVE_INFINITY;
    // timers count whole milliseconds: one that comes a fraction early means what it was set for, and is not set again for that fraction
    const until = this.clock.monotonic() + 1;
    const due: K[] = [];
    for (let entry = this.#queue.first(); entry !== undefined && entry.at < until; entry = this.#queue.first()) {
      this.#queue.delete(entry.key);
      due.push(entry.key);
    }
    this.#arm();
    for (const key of due) this.onDue(key);
  };
}

const ignoreAbort = (e: unknown): void => {
  if (!isAbort(e)) throw e;
};
