/**
 * Two looks at the same counters, which is what "used per second" is made of. Owns the last pair. Nothing is looked at but when somebody
 * asks: a question soon after another gets the same answer, one within half a minute is measured against the look before, and any other
 * costs two looks a second apart. Who asks while an answer is on its way shares it.
 */
import type { Clock, Monotonic } from '../world/clock.ts';

export interface Look<T> {
  readonly at: Monotonic;
  readonly value: T;
}

export interface TwoLooks<T> {
  readonly before: Look<T>;
  readonly now: Look<T>;
}

export interface StatsWindowDeps<T> {
  readonly clock: Clock;
  readonly read: () => Promise<T>;
  /** Whether everything that runs in `now` was seen in `before` already. */
  readonly covers: (before: T, now: T) => boolean;
}

/** Shorter ones say more about the counters' grain than about what is used. */
const shortestMs = 1000;
/** A person who asks now means now. */
const longestMs = 30_000;

export class StatsWindow<T> {
  #last: TwoLooks<T> | undefined;
  #looking: Promise<TwoLooks<T>> | undefined;

  constructor(private readonly deps: StatsWindowDeps<T>) {}

  /** Rejects as `read` does. */
  look(): Promise<TwoLooks<T>> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<TwoLooks<T>> {
    const { clock, covers } = this.deps;
    const before = this.#last?.now;
    if (this.#last !== undefined && clock.monotonic() - this.#last.now.at < shortestMs) return this.#last;
    let pair: TwoLooks<T>;
    const first = await this.#read();
    if (before !== undefined && first.at - before.at <= longestMs && covers(before.value, first.value)) {
      pair = { before, now: first };
    } else {
      await clock.sleep(shortestMs);
      pair = { before: first, now: await this.#read() };
    }
    this.#last = pair;
    return pair;
  }

  async #read(): Promise<Look<T>> {
    const value = await this.deps.read();
    return { at: this.deps.clock.monotonic(), value };
  }
}
