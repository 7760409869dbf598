// pure
/**
 * What one turn of a probe decides: whether it may run, how its answers are counted, when the next one is due. Mirrors kubelet v1.32
 * prober/worker.go (facts 8.2), with the moments kept to the plan instead of a ticker.
 */
import type { Container, Probe } from '../api/v1.ts';
import type { ProbeResult } from '../container/probes.ts';
import type { Monotonic } from '../world/clock.ts';

export type ProbeType = 'liveness' | 'readiness' | 'startup';

export const probeTypes: readonly ProbeType[] = ['startup', 'liveness', 'readiness'];

/** What is taken for known while a container has given no answer yet. */
export const initialResult: Readonly<Record<ProbeType, ProbeResult>> = { liveness: 'success', readiness: 'failure', startup: 'unknown' };

export const probeOf = (container: Container, type: ProbeType): Probe | undefined => {
  switch (type) {
    case 'liveness':
      return container.livenessProbe;
    case 'readiness':
      return container.readinessProbe;
    case 'startup':
      return container.startupProbe;
  }
};

export interface Timing {
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly initialDelayMs: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
}

/** What a timer can hold: 24 days. A longer time-out would be over at once. */
const longestMs = 2 ** 31 - 1;

/** The numbers of a probe; 0 means the default. */
export const timing = (probe: Probe): Timing => ({
  periodMs: (probe.periodSeconds || 10) * 1000,
  timeoutMs: Math.min(longestMs, (probe.timeoutSeconds || 1) * 1000),
  initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1000,
  failureThreshold: probe.failureThreshold || 3,
  successThreshold: probe.successThreshold || 1,
});

export interface TurnState {
  /** The last answer, and how often it came in a row. */
  readonly last: 'success' | 'failure' | undefined;
  readonly count: number;
  /** Nothing more is asked of this container. */
  readonly hold: boolean;
}

/** A worker that begins; one whose container had its verdict before (the agent was restarted) stays on hold. */
export const firstState = (type: ProbeType, known: ProbeResult | undefined): TurnState => ({
  last: undefined,
  count: 0,
  hold: isFinal(type, known),
});

/** A failed liveness ends in a restart, and a startup probe speaks once. */
const isFinal = (type: ProbeType, result: ProbeResult | undefined): boolean =>
  (type === 'liveness' && result === 'failure') || (type === 'startup' && (result === 'success' || result === 'failure'));

/** Whether a probe is asked now. `started`: the startup probe has succeeded, or there is none. */
export function mayProbe(o: {
  readonly type: ProbeType;
  readonly hold: boolean;
  readonly running: boolean;
  readonly started: boolean;
}): boolean {
  if (o.hold || !o.running) return false;
  return o.type === 'startup' ? !o.started : o.started;
}

/** Counts an answer; `stored`: the result it makes, undefined below its threshold. */
export function countAnswer(
  type: ProbeType,
  state: TurnState,
  answer: 'success' | 'failure',
  { failureThreshold, successThreshold }: Pick<Timing, 'failureThreshold' | 'successThreshold'>,
): { readonly state: TurnState; readonly stored: 'success' | 'failure' | undefined } {
  const count = answer === state.last ? state.count + 1 : 1;
  const needed = answer === 'failure' ? failureThreshold : successThreshold;
  if (count < needed) return { state: { last: answer, count, hold: false }, stored: undefined };
  const hold = isFinal(type, answer);
  return { state: { last: answer, count: hold ? 0 : count, hold }, stored: answer };
}

/** After so many time-outs in a row an exec probe is asked less often. */
export const timeoutsBeforeSlower = 3;

/** How many times longer the period of an exec probe is after so many time-outs in a row: each leaves processes behind. */
export const slowness = (timeouts: number): 1 | 2 | 4 =>
  timeouts < timeoutsBeforeSlower ? 1 : timeouts < 2 * timeoutsBeforeSlower ? 2 : 4;

/** Turns of all probes fall on the same moments, 20 in a second: many at once cost less than each at its own, and a device sleeps between. */
const gridMs = 50;

/**
 * The first moment of the plan after `now`: missed turns are left out, and a late one moves none of the others. A plan that does not lie on
 * the common moments is moved onto the next of them.
 */
export function nextTurn(planned: Monotonic, periodMs: number, now: Monotonic): Monotonic {
  const missed = Math.max(0, Math.floor((now - planned) / periodMs));
  return (Math.ceil((planned + (missed + 1) * periodMs) / gridMs) * gridMs) as Monotonic;
}
