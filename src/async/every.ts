/** Running a step for ever, written once: a failing step is reported and the next one comes; abort ends it. */
import type { Clock } from '../world/clock.ts';
import { isAbort } from './abort.ts';

export async function every(
  clock: Clock,
  periodMs: () => number,
  signal: AbortSignal,
  step: () => Promise<void>,
  report: (e: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await step();
    } catch (e) {
      if (!isAbort(e)) report(e);
    }
    try {
      await clock.sleep(periodMs(), signal);
    } catch (e) {
      if (!isAbort(e)) throw e;
    }
  }
}
