// pure
/** Whether a revision that asks for it is to be rolled back: the decision of behaviour 7. */
import { goDuration } from '../container/goDuration.ts';
import type { Monotonic } from '../world/clock.ts';

export interface TrialFacts {
  /** When it was carried out, within this boot. */
  readonly since: Monotonic;
  readonly periodMs: number;
  /** Whatever its time: it may have become Ready while no agent looked. */
  readonly notBefore: Monotonic;
  readonly now: Monotonic;
  /** It was Ready for long enough, or succeeded, at least once. */
  readonly good: boolean;
  /** It is Ready now; whether that lasts is not known yet. */
  readonly ready: boolean;
  /** It is not meant for this node, so it is no failure that nothing of it runs here. */
  readonly elsewhere: boolean;
  /** Somebody holds the pod: nothing changes, not even back. */
  readonly held: boolean;
  /** The last revision that was Ready; undefined: there is none. */
  readonly wayBack: string | undefined;
}

export type TrialStep =
  | { readonly do: 'end' }
  | { readonly do: 'wait'; readonly until: Monotonic }
  | { readonly do: 'hold' }
  | { readonly do: 'stay' }
  | { readonly do: 'rollback'; readonly to: string };

export function judgeTrial({ since, periodMs, notBefore, now, good, ready, elsewhere, held, wayBack }: TrialFacts): TrialStep {
  if (good || elsewhere) return { do: 'end' };
  const until = Math.max(since + periodMs, notBefore) as Monotonic;
  // timers count whole milliseconds
  if (now + 1 <= until) return { do: 'wait', until };
  if (held || ready) return { do: 'hold' };
  return wayBack === undefined ? { do: 'stay' } : { do: 'rollback', to: wayBack };
}

const notReady = (revision: string, periodMs: number, why: string): string =>
  `revision ${revision} was not Ready in ${goDuration(periodMs)}${why === '' ? '' : `: ${why}`}`;

/** For people, with both revisions. */
export const rolledBackText = (revision: string, to: string, periodMs: number, why: string): string =>
  `${notReady(revision, periodMs, why)}; revision ${to} runs again`;

export const noWayBackText = (revision: string, periodMs: number, why: string): string =>
  `${notReady(revision, periodMs, why)}; no other revision is known to have been Ready, so it goes on`;
