/**
 * One queue of moments, one timer. Replaces fixed ticks: the nearest entry arms the timer, an idle agent has none.
 * Owns the set of (key → moment, work); an entry set again replaces the older one.
 */
import type { Clock, Monotonic } from '../world/clock.ts';
import { isAbort } from './abort.ts';

/** One reason for all: making an abort error captures a stack, and timers are armed anew all the time. */
const rearmed = Object.assign(new Error('armed anew'), { name: 'AbortError' });

interface Entry<K> {
  readonly key: K;
  readonly at: Monotonic;
  readonly order: number;
}

export class Deadlines<K> {
  #moments = new Map<K, Monotonic>();
  /** The nearest first (a binary heap), with some that were deleted or set anew since: `#moments` says which are meant. */
  #heap: Entry<K>[] = [];
  #order = 0;
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
    if (this.#stopped || this.#moments.get(key) === at) return;
    this.#moments.set(key, at);
    this.#push({ key, at, order: this.#order++ });
    if (this.#heap.length > 2 * this.#moments.size + 16) this.#tidy();
    this.#arm();
  }

  /** As `set`, but an earlier moment stays. */
  setEarlier(key: K, at: Monotonic): void {
    const before = this.#moments.get(key);
    if (before === undefined || at < before) this.set(key, at);
  }

  delete(key: K): void {
    if (this.#moments.delete(key)) this.#arm();
  }

  get(key: K): Monotonic | undefined {
    return this.#moments.get(key);
  }

  /** Keys that are still to come, in no order. */
  keys(): K[] {
    return [...this.#moments.keys()];
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.abort(rearmed);
    this.#moments.clear();
    this.#heap = [];
  }

  #arm(): void {
    if (this.#stopped) return;
    const nearest = this.#nearest()?.at ?? Number.POSITIVE_INFINITY;
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
    for (let entry = this.#nearest(); entry !== undefined && entry.at < until; entry = this.#nearest()) {
      this.#pop();
      this.#moments.delete(entry.key);
      due.push(entry.key);
    }
    this.#arm();
    for (const key of due) this.onDue(key);
  };

  /** The first that is still meant. */
  #nearest(): Entry<K> | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || this.#moments.get(first.key) === first.at) return first;
      this.#pop();
    }
  }

  #push(entry: Entry<K>): void {
    const heap = this.#heap;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || isBefore(parent, entry)) break;
      heap[i] = parent;
      i = up;
    }
    heap[i] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const entry = heap.pop();
    if (entry === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let below = 2 * i + 1;
      let child = heap[below];
      const right = heap[below + 1];
      if (child !== undefined && right !== undefined && isBefore(right, child)) {
        child = right;
        below += 1;
      }
      if (child === undefined || isBefore(entry, child)) break;
      heap[i] = child;
      i = below;
    }
    heap[i] = entry;
  }

  /** Moments that are put off again and again leave too many behind. An ordered list is a heap. */
  #tidy(): void {
    const meant = new Map<K, Entry<K>>();
    for (const entry of this.#heap) if (this.#moments.get(entry.key) === entry.at) meant.set(entry.key, entry);
    this.#heap = [...meant.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }
}

const isBefore = (a: Entry<unknown>, b: Entry<unknown>): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

const ignoreAbort = (e: unknown): void => {
  if (!isAbort(e)) throw e;
};
