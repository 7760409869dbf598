/** Time and waiting, as options: tests hand in their own. */

/** Resolves after `ms`; rejects with the signal's reason when aborted. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const realSleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });

/** 10, 20, 40, … ms, none longer than `longest`, until they sum up to `total`: how we wait for what the kernel does soon. */
export function waits(total: number, first = 10, longest = 250): readonly number[] {
  const result: number[] = [];
  for (let left = total, next = first; left > 0; next = Math.min(longest, next * 2)) {
    const ms = Math.min(next, left);
    result.push(ms);
    left -= ms;
  }
  return result;
}
