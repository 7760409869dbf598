/**
 * What becomes of instances that were ended against their will: a Never pod has run, as far as it has, and that is recorded; any other pod comes
 * back. Owns which of them left things on the disk that are to go; that they were evicted, and why, is what their status says.
 */
import type { DesiredPod } from '../api/desired.ts';
import { exitCodes, hasBegun, wasEvicted } from '../api/evicted.ts';
import type { PodUid } from '../api/objects.ts';
import type { PodStatus } from '../api/status.ts';
import { describeError } from '../world/log.ts';
import type { Completions } from './completions.ts';
import type { PodWorkers } from './workers.ts';

export interface EvictedPodsDeps {
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  readonly status: (uid: PodUid) => PodStatus | undefined;
  readonly workers: () => Pick<PodWorkers, 'state'>;
  readonly completions: () => Pick<Completions, 'has' | 'record'>;
  /** How patiently it was being ended, in seconds; undefined: by its own grace, for all anybody knows. */
  readonly graceOf: (uid: PodUid) => number | undefined;
  readonly comesBack: (desired: DesiredPod) => void;
  /** All that is left of an instance in the runtime goes, and its logs. Never rejects. */
  readonly collect: (uid: PodUid) => Promise<unknown>;
  readonly event: (desired: DesiredPod, type: 'Warning', reason: string, message: string) => void;
}

export class EvictedPods {
  #toClear = new Set<PodUid>();
  /** Ends of Never pods that could not be stored: a full card is often why they were ended. */
  #unrecorded = new Map<PodUid, PodStatus>();

  constructor(private readonly deps: EvictedPodsDeps) {}

  /** For the workers: an earlier agent was ending this instance. */
  condemned(uid: PodUid): { readonly graceSeconds?: number } | undefined {
    const { deps } = this;
    const desired = deps.desired(uid);
    if (desired === undefined || !wasEvicted(deps.status(uid)) || deps.completions().has(desired)) return undefined;
    const graceSeconds = deps.graceOf(uid);
    return graceSeconds === undefined ? {} : { graceSeconds };
  }

  /** For the workers: such an instance is over. */
  ended(uid: PodUid): void {
    const { deps } = this;
    const desired = deps.desired(uid);
    const status = deps.status(uid);
    // it may have come to its own end in the last moment, and that is on the card
    const goesOn = desired !== undefined && !deps.completions().has(desired);
    if (goesOn && desired.pod.spec.restartPolicy === 'Never' && status !== undefined && hasBegun(status)) {
      void this.#record(desired, status); // neither rejects
      return;
    }
    void this.#clear(uid);
    if (goesOn) deps.comesBack(desired);
  }

  /** Then what it left may go: where it cannot be stored, that may be the very room it wants. Never rejects. */
  async #record(desired: DesiredPod, status: PodStatus): Promise<void> {
    const { deps } = this;
    const { uid } = desired;
    this.#unrecorded.delete(uid);
    try {
      await deps.completions().record(desired, 'Failed', exitCodes(status), status);
    } catch (e) {
      this.#unrecorded.set(uid, status);
      deps.event(desired, 'Warning', 'StoreFailed', `the end of the pod cannot be stored: ${describeError(e)}`);
    }
    await this.#clear(uid);
  }

  /** What it left on the disk goes, as soon as its last words are told. Never rejects. */
  async clear(uid: PodUid): Promise<void> {
    this.#toClear.add(uid);
    await this.#clear(uid);
  }

  /** Forgets those that nobody knows any more, and tries again to store what could not be stored. */
  retain(): void {
    for (const [uid, status] of this.#unrecorded) {
      const desired = this.deps.desired(uid);
      if (desired === undefined) this.#unrecorded.delete(uid);
      else void this.#record(desired, status); // it never rejects
    }
    for (const uid of this.#toClear) if (this.deps.workers().state(uid) === undefined) this.#toClear.delete(uid);
  }

  async #clear(uid: PodUid): Promise<void> {
    if (!this.#toClear.has(uid) || this.deps.workers().state(uid) !== 'finished') return;
    this.#toClear.delete(uid);
    await this.deps.collect(uid);
  }
}
