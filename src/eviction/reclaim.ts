/**
 * What goes of a full disk before a pod does, in the order of G9: dead logs, dead containers, images that nobody needs; and no more than must.
 * Owns when that was last done: what it brings may come late, so a pod goes only on a later measurement.
 */
import type { EvictionSignal } from '../api/evictionThresholds.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Reclaim } from './deps.ts';
import type { ActiveThreshold } from './pressure.ts';

export interface ReclaimerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly reclaim: Reclaim;
  /** Images and what containers write lie on a file system of their own. */
  readonly hasSeparateImageDisk: () => boolean;
  /** The threshold by a new measurement; undefined: it is met no more. */
  readonly remeasure: (threshold: ActiveThreshold) => Promise<ActiveThreshold | undefined>;
}

const againMs = 60_000;

export class Reclaimer {
  #doneAt: Monotonic | undefined;

  constructor(private readonly deps: ReclaimerDeps) {}

  /** undefined: it is enough, or it must be waited whether it is; else the threshold as it is now. Rejects for nothing of what it does. */
  async relieve(first: ActiveThreshold): Promise<ActiveThreshold | undefined> {
    const { clock, log, reclaim, remeasure } = this.deps;
    if (this.#doneAt !== undefined && clock.monotonic() - this.#doneAt < againMs) return remeasure(first);
    for (const step of this.#steps(first.threshold.signal)) {
      try {
        await reclaim[step]();
      } catch (e) {
        log.warn({ step, error: describeError(e) }, 'something that should make room on the disk failed');
      }
      if ((await remeasure(first)) === undefined) return undefined;
    }
    this.#doneAt = clock.monotonic();
    const still = await remeasure(first);
    // a runtime gives back late: the next look decides, unless nothing at all is left
    return still !== undefined && still.observation.available < still.amount / 10 ? still : undefined;
  }

  /** Logs lie with the pods' folders, containers and images with the runtime (facts 14.3). */
  #steps(signal: EvictionSignal): readonly (keyof Reclaim)[] {
    if (!this.deps.hasSeparateImageDisk()) return ['deadLogs', 'deadContainers', 'unusedImages'];
    return signal === 'nodefs.available' || signal === 'nodefs.inodesFree' ? ['deadLogs'] : ['deadContainers', 'unusedImages'];
  }
}
