// pure
/** What is said of probes: the texts of their events (facts 7.5), and podsched's own hints. */
import type { Outcome } from './attempt.ts';
import type { ProbeType } from './turn.ts';

export interface Said {
  readonly reason: 'Unhealthy' | 'ProbeWarning' | 'ProbeHint';
  readonly message: string;
}

const typeText: Readonly<Record<ProbeType, string>> = { liveness: 'Liveness', readiness: 'Readiness', startup: 'Startup' };

/** undefined: an answer as it should be. */
export function outcomeEvent(type: ProbeType, { kind, output }: Pick<Outcome, 'kind' | 'output'>): Said | undefined {
  switch (kind) {
    case 'failure':
      return { reason: 'Unhealthy', message: `${typeText[type]} probe failed: ${output}` };
    case 'error':
      return { reason: 'Unhealthy', message: `${typeText[type]} probe errored: ${output}` };
    case 'warning':
      return { reason: 'ProbeWarning', message: `${typeText[type]} probe warning: ${output}` };
    case 'success':
      return undefined;
  }
}

/** An exec probe that only times out. */
export const slowedEvent = (type: ProbeType, timeouts: number, periodMs: number): Said => ({
  reason: 'ProbeHint',
  message: `${typeText[type]} probe timed out ${timeouts} times in a row: until it answers it is asked every ${periodMs / 1000} s`,
});

/** Liveness ends a container that never answered. */
export const startupHint = (container: string): Said => ({
  reason: 'ProbeHint',
  message: `container ${container} failed its liveness probe before it ever succeeded: if it only starts slowly, give it a startupProbe`,
});
