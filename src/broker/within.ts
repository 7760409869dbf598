import type { Clock } from '../world/clock.ts';

/** Waits for `work`, but no longer than `ms`; true when it was done by then. */
export async function within(clock: Clock, ms: number, work: Promise<void>): Promise<boolean> {
  const timer = new AbortController();
  let done = false;
  const finished = work.then(() => {
    done = true;
  });
  await Promise.race([finished, clock.sleep(ms, timer.signal).catch(() => {})]); // aborted: the work was done first
  timer.abort();
  return done;
}
