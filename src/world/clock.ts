/**
 * Time as the house sees it. WallTime is what people read; Monotonic is what decisions measure with.
 * They are branded so that one can never be subtracted from the other (no control decision reads the wall clock).
 */
export type WallTime = number & { readonly kind: 'WallTime' };
export type Monotonic = number & { readonly kind: 'Monotonic' };

export interface Clock {
  /** Milliseconds since 1970, for people only. */
  now(): WallTime;
  /** CLOCK_MONOTONIC in milliseconds (with a fraction): rises over agent restarts within one boot. */
  monotonic(): Monotonic;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The moment `ms` after `t`. */
export const after = (t: Monotonic, ms: number): Monotonic => (t + ms) as Monotonic;

// pure files import it from there
export { toRfc3339 } from './rfc3339.ts';

const longestTimerMs = 2 ** 31 - 1;

// hrtime is CLOCK_MONOTONIC on Linux: values of two agent runs in one boot can be compared. performance.now() is the same clock from another
// zero, without a bigint or an array for each look: it is read all the time
const clockAtOrigin = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export const systemClock: Clock = {
  now: () => Date.now() as WallTime,
  monotonic: () => (clockAtOrigin + performance.now()) as Monotonic,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        },
        Math.min(Math.max(0, ms), longestTimerMs),
      );
      signal?.addEventListener('abort', stop, { once: true });
    }),
};
