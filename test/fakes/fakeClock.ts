/** Virtual time: nothing happens until `advance`, and then sleepers wake in order, each with everything it caused done before the next. */
import type { Clock, Monotonic, WallTime } from '../../src/world/clock.ts';

interface Sleeper {
  readonly at: number;
  readonly order: number;
  readonly wake: () => void;
}

/** Everything that promises alone can do is done when this resolves. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class FakeClock implements Clock {
  #wall: number;
  #monotonic = 1_000_000;
  #order = 0;
  #sleepers: Sleeper[] = [];

  constructor(wall = Date.parse('2026-01-01T00:00:00Z')) {
    this.#wall = wall;
  }

  now(): WallTime {
    return this.#wall as WallTime;
  }

  monotonic(): Monotonic {
    return this.#monotonic as Monotonic;
  }

  /** Someone set the clock: only people notice. */
  setWall(wall: number): void {
    this.#wall = wall;
  }

  get sleeping(): number {
    return this.#sleepers.length;
  }

  /** When the nearest sleeper wakes, in ms from now; undefined: nobody sleeps. */
  get nextInMs(): number | undefined {
    return this.#sleepers.length === 0 ? undefined : Math.min(...this.#sleepers.map((s) => s.at)) - this.#monotonic;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => {
        this.#sleepers = this.#sleepers.filter((s) => s !== sleeper);
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        at: this.#monotonic + Math.max(0, ms),
        order: this.#order++,
        wake: () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        },
      };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  async advance(ms: number): Promise<void> {
    const target = this.#monotonic + ms;
    await settle();
    for (;;) {
      let next: Sleeper | undefined;
      for (const s of this.#sleepers) {
        if (s.at <= target && (next === undefined || s.at < next.at || (s.at === next.at && s.order < next.order))) next = s;
      }
      if (next === undefined) break;
      const due = next;
      this.#sleepers = this.#sleepers.filter((s) => s !== due);
      this.#wall += due.at - this.#monotonic;
      this.#monotonic = due.at;
      due.wake();
      await settle();
    }
    this.#wall += target - this.#monotonic;
    this.#monotonic = target;
    await settle();
  }
}
