/**
 * When the next eviction for a pressure may be: the node needs a moment to show what the last one brought, and where nobody could give anything
 * back it is no use to measure everybody again at each look. Owns these moments, in memory.
 */
import type { PressureType } from '../api/pressures.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import type { ActiveThreshold } from './pressure.ts';
import { pressureOf } from './words.ts';

/** After an eviction. PSI looks back 10 s; a file system gives back late. */
const shownMs: Readonly<Record<PressureType, number>> = { MemoryPressure: 12_000, DiskPressure: 30_000, PIDPressure: 12_000 };
/** Unless memory goes on vanishing: so long after it, when half of the threshold is left. */
const desperateMs = 2_000;
const fruitlessMs: Readonly<Record<PressureType, number>> = { MemoryPressure: 10_000, DiskPressure: 60_000, PIDPressure: 10_000 };
const stuckMs = 60_000;
/** An agent that was started amid a pressure lets what the last one was ending end. */
const takeoverMs = 5_000;

interface Hold {
  readonly since: Monotonic;
  readonly until: Monotonic;
  /** Also when memory goes on vanishing. */
  readonly firm: boolean;
}

export class Holds {
  #byType = new Map<PressureType, Hold>();

  constructor(private readonly clock: Clock) {}

  /** A pod has ended for it. */
  evicted(type: PressureType): void {
    this.#hold(type, shownMs[type], false);
  }

  /** A pod does not end: the runtime does not answer, or a process hangs. Another one would not end either. */
  stuck(type: PressureType): void {
    this.#hold(type, stuckMs, true);
  }

  /** No pod could give back what is missing. */
  fruitless(type: PressureType): void {
    this.#hold(type, fruitlessMs[type], true);
  }

  /** The pressure is older than this agent. */
  takenOver(type: PressureType): void {
    this.#hold(type, takeoverMs, false);
  }

  mayAct({ threshold, observation, amount }: ActiveThreshold): boolean {
    const type = pressureOf(threshold.signal);
    const hold = this.#byType.get(type);
    const now = this.clock.monotonic();
    if (hold === undefined || now >= hold.until) return true;
    if (type !== 'MemoryPressure' || hold.firm) return false;
    return observation.available < amount / 2 && now - hold.since >= desperateMs;
  }

  #hold(type: PressureType, ms: number, firm: boolean): void {
    const since = this.clock.monotonic();
    this.#byType.set(type, { since, until: after(since, ms), firm });
  }
}
