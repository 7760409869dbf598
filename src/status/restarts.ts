/**
 * How often containers were started again within the last hour. Owns the counts, by minute on the monotonic clock, and keeps them in runDir
 * over restarts of the agent; nothing is written but when a container was started again. Never looks at the wall clock.
 */
import type { PodStatus, V1ContainerStatus } from '../api/status.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { Keeper } from './keeper.ts';

export interface RestartCounterDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir: the clock goes on over restarts of the agent, and what is kept ends with the boot. */
  readonly store: Store;
}

const key = 'restarts';
const minuteMs = 60_000;
const hourMinutes = 60;
/** A container that fails at once is not counted higher than that, whatever its status says. */
const mostAtOnce = 10_000;

export class RestartCounter {
  /** By minute since the machine started. */
  #byMinute = new Map<number, number>();
  #keeper: Keeper;

  constructor(private readonly deps: RestartCounterDeps) {
    this.#keeper = new Keeper({ ...deps, periodMs: minuteMs });
  }

  /** What an earlier agent of this boot counted. */
  async load(): Promise<void> {
    const stored = (await this.#keeper.load(key)).get(key);
    if (!Array.isArray(stored)) return;
    for (const pair of stored as unknown[]) {
      const [minute, count] = Array.isArray(pair) ? (pair as unknown[]) : [];
      if (!Number.isInteger(minute) || !Number.isInteger(count)) continue;
      this.#byMinute.set(Number(minute), (this.#byMinute.get(Number(minute)) ?? 0) + Math.max(0, Number(count)));
    }
    this.#forgetOld();
  }

  /** An instance has another status. */
  changed(before: PodStatus | undefined, now: PodStatus): void {
    const count = before === undefined ? 0 : restartsBetween(before, now);
    if (count === 0) return;
    const minute = this.#minute();
    this.#byMinute.set(minute, (this.#byMinute.get(minute) ?? 0) + count);
    this.#forgetOld();
    void this.#keeper.put(key, [...this.#byMinute]); // never rejects
  }

  lastHour(): number {
    const from = this.#minute() - hourMinutes;
    return [...this.#byMinute].reduce((sum, [minute, count]) => (minute > from ? sum + count : sum), 0);
  }

  /** The counts are stored when it resolves. */
  async flush(): Promise<void> {
    await this.#keeper.flush();
  }

  #minute(): number {
    return Math.floor(this.deps.clock.monotonic() / minuteMs);
  }

  #forgetOld(): void {
    const from = this.#minute() - hourMinutes;
    for (const minute of this.#byMinute.keys()) if (minute <= from || minute > this.#minute()) this.#byMinute.delete(minute);
  }
}

/** Restarts of the containers that are in both; a count that fell began anew and says nothing. */
export function restartsBetween(before: PodStatus, now: PodStatus): number {
  const counts = new Map(all(before).map((c) => [c.name, c.restartCount]));
  const more = all(now).reduce((sum, c) => sum + Math.max(0, c.restartCount - (counts.get(c.name) ?? c.restartCount)), 0);
  return Math.min(mostAtOnce, more);
}

const all = (s: PodStatus): readonly V1ContainerStatus[] => [...(s.initContainerStatuses ?? []), ...(s.containerStatuses ?? [])];
