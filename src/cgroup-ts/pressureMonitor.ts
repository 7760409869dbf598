/**
 * Reads pressure now and then: every 10 s in quiet times, every second while something is under pressure. It holds what it read last;
 * who listens is told of every reading.
 */
import { type PressureResource, type Pressures, pressureWords } from './psi.ts';
import { realSleep, type Sleep } from './time.ts';

/** From which `some avg10` (per cent) on a resource is under pressure; Infinity: never. */
export type Thresholds = Readonly<Record<PressureResource, number>>;

export interface PressureReading {
  readonly pressures: Pressures;
  /** Those at or above their threshold now. */
  readonly under: readonly PressureResource[];
  /** Per cent of the time since the reading before in which at least one task waited; what avg10 smooths away. Not in the first reading. */
  readonly share: Readonly<Partial<Record<PressureResource, number>>>;
}

export interface PressureMonitorOptions {
  /** What to read: `() => pressures(dir)` or `() => systemPressures()`. */
  readonly read: () => Promise<Pressures>;
  /** Told after each reading, before the next wait; what it throws ends `run`. */
  readonly onReading?: (reading: PressureReading) => void;
  /** Told of what `read` throws; without it such an error ends `run`. */
  readonly onError?: (error: unknown) => void;
  readonly thresholds?: Partial<Thresholds>;
  readonly quietMs?: number;
  readonly pressedMs?: number;
  readonly sleep?: Sleep;
  /** Milliseconds that only rise. Default: performance.now. */
  readonly now?: () => number;
}

const defaults: Thresholds = { cpu: 50, memory: 1, io: 20 };

export class PressureMonitor {
  readonly #options: PressureMonitorOptions;
  readonly #thresholds: Thresholds;
  readonly #sleep: Sleep;
  readonly #now: () => number;
  #last: PressureReading | undefined;
  #lastAt = 0;

  constructor(options: PressureMonitorOptions) {
    this.#options = options;
    this.#thresholds = { ...defaults, ...options.thresholds };
    this.#sleep = options.sleep ?? realSleep;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The last reading; undefined before the first. */
  get last(): PressureReading | undefined {
    return this.#last;
  }

  /** One reading now. */
  async readOnce(): Promise<PressureReading> {
    const pressures = await this.#options.read();
    const at = this.#now();
    const share: Partial<Record<PressureResource, number>> = {};
    for (const resource of pressureWords) {
      const before = this.#last?.pressures[resource]?.some.total;
      const total = pressures[resource]?.some.total;
      if (before === undefined || total === undefined || total < before || at <= this.#lastAt) continue;
      share[resource] = Math.min(100, (total - before) / ((at - this.#lastAt) * 10));
    }
    const under = pressureWords.filter((resource) => (pressures[resource]?.some.avg10 ?? 0) >= this.#thresholds[resource]);
    this.#last = { pressures, under, share };
    this.#lastAt = at;
    return this.#last;
  }

  /** Reads until the signal is aborted, and resolves then. */
  async run(signal: AbortSignal): Promise<void> {
    const { quietMs = 10_000, pressedMs = 1_000, onReading, onError } = this.#options;
    while (!signal.aborted) {
      let pressed = false;
      try {
        const reading = await this.readOnce();
        pressed = reading.under.length > 0;
        if (!signal.aborted) onReading?.(reading);
      } catch (error) {
        if (onError === undefined) throw error;
        onError(error);
      }
      try {
        await this.#sleep(pressed ? pressedMs : quietMs, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }
}
