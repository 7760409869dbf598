// pure
/**
 * What the probes of one container have cost since this agent first asked them. In memory only: it goes with the container, and is told where
 * somebody asks and never by itself.
 */
import type { Probe } from '../api/v1.ts';
import type { Monotonic } from '../world/clock.ts';
import { type ProbeType, timing } from './turn.ts';

export interface Tally {
  readonly beganAt: Monotonic;
  readonly count: number;
  /** Without waiting for a turn. */
  readonly totalMs: number;
}

export interface ProbeCost {
  readonly probe: ProbeType;
  readonly handler: 'exec' | 'httpGet' | 'tcpSocket' | 'grpc';
  readonly count: number;
  readonly totalMs: number;
  readonly meanMs: number;
  /** Of each minute since it was first asked. */
  readonly perMinuteMs: number;
}

const minuteMs = 60_000;

/** One more answer, which came now and took so long. */
export const counted = (before: Tally | undefined, now: Monotonic, tookMs: number): Tally => ({
  beganAt: before?.beganAt ?? ((now - tookMs) as Monotonic),
  count: (before?.count ?? 0) + 1,
  totalMs: (before?.totalMs ?? 0) + tookMs,
});

export function costOf(type: ProbeType, probe: Probe, { beganAt, count, totalMs }: Tally, now: Monotonic): ProbeCost {
  // the period that the last answer opened is not over: without it what was asked once would seem to be asked all the time
  const overMs = Math.max(now - beganAt, count * timing(probe).periodMs);
  return {
    probe: type,
    handler: handlerOf(probe),
    count,
    totalMs: rounded(totalMs),
    meanMs: rounded(totalMs / count),
    perMinuteMs: rounded((totalMs / overMs) * minuteMs),
  };
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10;

function handlerOf({ exec, httpGet, tcpSocket }: Probe): ProbeCost['handler'] {
  if (exec !== undefined) return 'exec';
  if (httpGet !== undefined) return 'httpGet';
  return tcpSocket !== undefined ? 'tcpSocket' : 'grpc';
}
