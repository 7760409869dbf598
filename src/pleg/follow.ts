/**
 * Follows the runtime's event stream for ever: opens it, hands events to PLEG, and says when it flows and when it has broken. A stream that ends
 * is opened again after a second; a runtime without one is asked once a minute (it may be upgraded), and PLEG lists every second meanwhile.
 */
import { isAbort } from '../async/abort.ts';
import { isUnimplemented, type Runtime } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Pleg } from './pleg.ts';

export interface FollowDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'events'>;
  readonly pleg: Pick<Pleg, 'onRuntimeEvent' | 'setEventsHealthy'>;
  /** The stream began or ended: whoever judges the runtime may look again. */
  readonly changed: (flows: boolean) => void;
}

const retryMs = 1_000;
const absentRetryMs = 60_000;

export async function followEvents(deps: FollowDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let pauseMs = retryMs;
    const flows = () => {
      deps.pleg.setEventsHealthy(true);
      deps.changed(true);
    };
    try {
      await deps.runtime.events((e) => deps.pleg.onRuntimeEvent(e), flows, signal);
    } catch (e) {
      if (signal.aborted) return;
      if (isUnimplemented(e)) pauseMs = absentRetryMs;
      deps.log.debug({ error: describeError(e) }, 'the event stream has ended');
    }
    deps.pleg.setEventsHealthy(false);
    deps.changed(false);
    await deps.clock.sleep(pauseMs, signal).catch((e) => {
      if (!isAbort(e)) throw e;
    });
  }
}
