// pure
/**
 * Which thresholds are met, since when, which call for action, and which pressures the node is under. Mirrors kubelet v1.32
 * eviction/helpers.go and synchronize (facts 14.2, 2–5): what was met stays met until its minimum was reclaimed beyond the threshold, a soft
 * one acts after its grace, and a pressure is reported until it was not seen for the transition period. All times are monotonic.
 */
import { amountOf, type EvictionSignal, type EvictionThreshold } from '../api/evictionThresholds.ts';
import { type PressureType, pressureTypes } from '../api/pressures.ts';
import type { Monotonic } from '../world/clock.ts';
import { type Observation, type Observations, pressureOf } from './words.ts';

/** Plain, for runDir: an agent that is started anew goes on where the last one was. */
export interface PressureState {
  /** By `hard memory.available`: when it was first met, without a break since. */
  readonly met: Readonly<Record<string, Monotonic>>;
  /** When a threshold of the pressure was last met. */
  readonly seen: Readonly<Partial<Record<PressureType, Monotonic>>>;
}

export const noPressure: PressureState = { met: {}, seen: {} };

/** A threshold that calls for action. */
export interface ActiveThreshold {
  readonly threshold: EvictionThreshold;
  readonly observation: Observation;
  /** The amount in the unit of its signal. */
  readonly amount: number;
  /** What must become free until it is met no more; at least 1. */
  readonly missing: number;
}

export interface PressureStep {
  readonly state: PressureState;
  /** Memory first, then the disk, then processes; hard ones before soft ones. */
  readonly active: readonly ActiveThreshold[];
  readonly pressures: readonly PressureType[];
}

const keyOf = ({ kind, signal }: EvictionThreshold): string => `${kind} ${signal}`;

/** `now`: the moment of the observations. What was not observed keeps its state and calls for nothing. */
export function pressureStep(
  before: PressureState,
  thresholds: readonly EvictionThreshold[],
  observations: Observations,
  now: Monotonic,
  transitionMs: number,
): PressureStep {
  const met: Record<string, Monotonic> = {};
  const seen: Partial<Record<PressureType, Monotonic>> = { ...before.seen };
  const active: ActiveThreshold[] = [];
  for (const threshold of thresholds) {
    const key = keyOf(threshold);
    const since = before.met[key];
    const observation = observations.get(threshold.signal);
    if (observation === undefined) {
      if (since !== undefined) met[key] = since;
      continue;
    }
    const judged = judge(threshold, observation, since !== undefined);
    if (judged === undefined) continue;
    met[key] = since ?? now;
    seen[pressureOf(threshold.signal)] = now;
    if (now - (since ?? now) >= threshold.graceMs) active.push({ threshold, observation, ...judged });
  }
  return {
    state: { met, seen },
    active: active.sort((a, b) => order(a.threshold) - order(b.threshold)),
    pressures: pressureTypes.filter((type) => isSeen(seen[type], met, type, now, transitionMs)),
  };
}

/** undefined: it is not met. */
function judge(
  threshold: EvictionThreshold,
  { capacity, available, urgent }: Observation,
  wasMet: boolean,
): Pick<ActiveThreshold, 'amount' | 'missing'> | undefined {
  const amount = amountOf(threshold.amount, capacity);
  const reclaim = threshold.minimumReclaim === undefined ? 0 : amountOf(threshold.minimumReclaim, capacity);
  const isMet = available < amount || (wasMet && available < amount + reclaim) || (threshold.kind === 'hard' && urgent !== undefined);
  return isMet ? { amount, missing: Math.max(1, amount + reclaim - available) } : undefined;
}

/** Met now, or within the transition period. */
function isSeen(
  at: Monotonic | undefined,
  met: Readonly<Record<string, Monotonic>>,
  type: PressureType,
  now: Monotonic,
  transitionMs: number,
): boolean {
  if (Object.keys(met).some((key) => pressureOf(key.slice(key.indexOf(' ') + 1) as EvictionSignal) === type)) return true;
  return at !== undefined && now - at < transitionMs;
}

const order = ({ signal, kind }: EvictionThreshold): number => pressureTypes.indexOf(pressureOf(signal)) * 2 + (kind === 'hard' ? 0 : 1);
