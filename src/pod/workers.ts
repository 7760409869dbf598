/**
 * PodWorkers: may this pod run? One worker per pod instance; its steps never overlap, and the newest wish waits in one slot.
 * Owns the lifecycle records (pod/lifecycle.ts decides, this file moves): it waits for news newer than the last deed, takes the step,
 * and sets the moment of the next one. All moments share one queue; an idle worker costs nothing.
 *
 * Never looks at the runtime, never decides what a step does: syncPod and its sisters are handed over. A pod whose step fails or hangs
 * touches no other. A predecessor of the same full name, also one that only the runtime knows, is fully gone before a successor
 * starts, and its end wakes the successor at once.
 *
 * Mirrors kubelet v1.32 pod_workers.go (facts 3) without its ticks: a retry is the worker's own, not housekeeping's.
 */

import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import { Deadlines } from '../async/deadlines.ts';
import type { PodCache } from '../container/cache.ts';
import type { RuntimePod } from '../container/words.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import {
  type Applied,
  applyUpdate,
  beginStep,
  completeStep,
  lastPod,
  mayStart,
  nextStepMs,
  orphaned,
  type PodRecord,
  type WorkerState,
  type WorkerUpdate,
} from './lifecycle.ts';
import { type StepDeps, type StepOutcome, takeStep } from './step.ts';

export type { WorkerState, WorkerUpdate } from './lifecycle.ts';
export type { KillOptions, SyncOutcome } from './step.ts';

export interface WorkerView {
  readonly state: WorkerState | 'waiting';
  /** Nobody wants it any more. */
  readonly orphan: boolean;
  /** A manifest of it is known; false: it is only seen in the runtime. */
  readonly hasPod: boolean;
}

export interface PodWorkersDeps extends StepDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly cache: PodCache;
  /** The worker of a pod that is not desired any more is gone. */
  readonly onFinished: (uid: PodUid) => void;
  /** In [0,1): spreads retries. */
  readonly random: () => number;
  /** How often a quiet pod is looked at, in ms. */
  readonly syncFrequencyMs: () => number;
  /**
   * What the runtime still runs under this pod's full name and another UID. Such a pod is a predecessor: it is ended by its own grace
   * first. 'unknown': the runtime was not listed yet, so nobody starts; a later wish asks again. Left out: only workers count.
   */
  readonly predecessors?: (desired: DesiredPod) => readonly RuntimePod[] | 'unknown';
  /** The runtime has, or may have, something alive of an instance that has not begun here: an earlier agent began it. Left out: never. */
  readonly mayLive?: (uid: PodUid) => boolean;
  /** An earlier agent was ending this instance against its will: it goes on to its end, by this grace. Left out: never. */
  readonly condemned?: (uid: PodUid) => { readonly graceSeconds?: number } | undefined;
  /** An instance that was ended against its will is over, and the pod is still wanted. */
  readonly evictionEnded?: (uid: PodUid) => void;
}

interface Worker {
  record: PodRecord;
  /** Steps are being taken. */
  working: boolean;
  step: AbortController | undefined;
  /** The runtime may have changed at this moment: decide on news after it. */
  acted: Monotonic;
  lastError: string | undefined;
  done: Promise<void>;
}

const endedKept = 1000;

export class PodWorkers {
  #workers = new Map<PodUid, Worker>();
  /** Instances that were ended here: whatever a list still shows of them, they are nobody's predecessor. UIDs never come back. */
  #ended = new Set<PodUid>();
  #due: Deadlines<PodUid>;
  /** Who waits for an instance to be down. */
  #waiters = new Map<PodUid, (() => void)[]>();
  #podsKnown = false;
  #stopped = false;

  constructor(private readonly deps: PodWorkersDeps) {
    this.#due = new Deadlines(deps.clock, (uid) => this.#again(uid));
  }

  /** A wish for one pod. It replaces the one that waits; a kill is never lost. */
  updatePod(update: WorkerUpdate): void {
    const uid = update.pod?.uid ?? update.runtimePod?.uid;
    if (this.#stopped || uid === undefined) return;
    const worker = this.#workers.get(uid);
    const applied = applyUpdate(worker?.record, worker === undefined ? this.#asLeft(uid, update) : update);
    if (applied !== undefined) this.#apply(uid, worker, applied);
    else if (worker?.record.state === 'finished' && update.type === 'kill') this.#vanishIfUnwanted(uid, worker);
  }

  /** Housekeeping: all desired pods are known to be these. Ends what nobody wants; returns who has a worker. */
  syncKnownPods(desired: ReadonlySet<PodUid>): ReadonlyMap<PodUid, WorkerView> {
    this.#podsKnown = true;
    for (const [uid, worker] of [...this.#workers]) {
      if (desired.has(uid)) continue;
      const { record } = worker;
      if (record.state === 'finished' || (!record.started && !record.observedRuntime)) {
        this.#vanish(uid, worker);
        continue;
      }
      worker.record = { ...record, deleted: true };
      const applied = orphaned(record);
      if (applied !== undefined) this.#apply(uid, worker, applied);
    }
    return new Map(
      [...this.#workers].map(([uid, { record }]) => [
        uid,
        { state: shownState(record), orphan: !desired.has(uid), hasPod: lastPod(record) !== undefined },
      ]),
    );
  }

  /** Where the instance stands; `waiting`: for a predecessor of the same full name. undefined: it has no worker. */
  state(uid: PodUid): WorkerState | 'waiting' | undefined {
    const worker = this.#workers.get(uid);
    return worker === undefined ? undefined : shownState(worker.record);
  }

  /** Resolves when nothing of the instance runs any more; at once without a worker. */
  whenDown(uid: PodUid): Promise<void> {
    const state = this.#workers.get(uid)?.record.state;
    if (state !== 'sync' && state !== 'terminating') return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.set(uid, [...(this.#waiters.get(uid) ?? []), resolve]);
    });
  }

  /** Its end was asked for, or it has ended. */
  isTerminationRequested(uid: PodUid): boolean {
    const state = this.#workers.get(uid)?.record.state;
    return state !== undefined && state !== 'sync';
  }

  /** It was ended here and nobody wants it: whatever a list still shows of it is old news. */
  hasEnded(uid: PodUid): boolean {
    return this.#ended.has(uid);
  }

  /** Something of it may run. Of an unknown pod that is so until all desired pods are known. */
  couldHaveRunningContainers(uid: PodUid): boolean {
    const state = this.#workers.get(uid)?.record.state;
    return state === undefined ? !this.#podsKnown : state === 'sync' || state === 'terminating';
  }

  /** Its dead containers and logs may all go: it was evicted, or is not wanted and down. */
  shouldPodContentBeRemoved(uid: PodUid): boolean {
    const record = this.#workers.get(uid)?.record;
    if (record === undefined) return this.#podsKnown;
    const down = record.state === 'terminated' || record.state === 'finished';
    return record.evicted || (down && (record.deleted || this.deps.effectivePod(uid) === undefined));
  }

  /** No step is under way. */
  idle(): boolean {
    return [...this.#workers.values()].every((w) => !w.working);
  }

  /** Cancels what waits and resolves when no step is under way any more. No container is touched for it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#due.stop();
    for (const worker of this.#workers.values()) worker.step?.abort();
    await Promise.all([...this.#workers.values()].map((w) => w.done));
  }

  /** A new worker for what an earlier agent was ending. */
  #asLeft(uid: PodUid, update: WorkerUpdate): WorkerUpdate {
    const condemned = update.type === 'create' ? this.deps.condemned?.(uid) : undefined;
    if (condemned === undefined) return update;
    const { graceSeconds } = condemned;
    return { ...update, condemned: true, ...(graceSeconds !== undefined && { killGraceSeconds: graceSeconds }) };
  }

  #apply(uid: PodUid, known: Worker | undefined, { record, cancel }: Applied): void {
    const acted = 0 as Monotonic;
    const worker = known ?? { record, working: false, step: undefined, acted, lastError: undefined, done: Promise.resolve() };
    worker.record = record;
    if (known === undefined) this.#workers.set(uid, worker);
    if (cancel) worker.step?.abort();
    this.#kick(uid, worker);
  }

  /** The moment of the next look has come: the last wish again, unless a newer one waits. */
  #again(uid: PodUid): void {
    const worker = this.#workers.get(uid);
    if (worker === undefined || worker.record.state === 'finished') return;
    worker.record = { ...worker.record, pending: worker.record.pending ?? worker.record.active };
    this.#kick(uid, worker);
  }

  #kick(uid: PodUid, worker: Worker): void {
    if (worker.working || this.#stopped || worker.record.pending === undefined) return;
    switch (this.#turn(worker.record)) {
      case 'later':
        return;
      case 'never':
        if (this.deps.mayLive?.(uid) !== true) {
          this.#vanish(uid, worker);
          return;
        }
        // with its manifest at hand it ends like any other, and is told so
        worker.record = { ...worker.record, observedRuntime: true };
        worker.working = true;
        worker.done = this.#work(uid, worker);
        return;
      case 'yes':
        worker.working = true;
        worker.done = this.#work(uid, worker);
    }
  }

  #turn(record: PodRecord): ReturnType<typeof mayStart> {
    const records = () => [...this.#workers.values()].map((w) => w.record);
    const turn = mayStart(record, records());
    const pod = lastPod(record);
    if (turn !== 'yes' || record.started || record.observedRuntime || pod === undefined) return turn;
    const predecessors = this.deps.predecessors?.(pod) ?? [];
    if (predecessors === 'unknown') return 'later';
    for (const runtimePod of predecessors) {
      const other = runtimePod.uid;
      if (other === record.uid || this.#workers.has(other) || this.#ended.has(other)) continue;
      this.updatePod({ type: 'kill', runtimePod, reason: 'replaced' });
    }
    return mayStart(record, records());
  }

  /** Steps as long as a wish waits. */
  async #work(uid: PodUid, worker: Worker): Promise<void> {
    let followsUp = false;
    while (worker.record.pending !== undefined && !this.#stopped) {
      this.#due.delete(uid);
      const ran = worker.record.state;
      worker.record = beginStep(worker.record);
      const step = new AbortController();
      worker.step = step;
      const outcome = await takeStep(this.deps, worker.record, ran, worker.acted, step.signal);
      worker.step = undefined;
      // after a deed, and after a failure of which nobody knows how far it came, only newer news will do
      if (outcome.acted !== false) worker.acted = this.deps.cache.stamp();
      if (this.#stopped) break;
      worker.record = completeStep(worker.record, ran, outcome.result);
      if (worker.record.state === 'terminated' || worker.record.state === 'finished') this.#tellDown(uid);
      this.#note(worker, outcome, step.signal.aborted);
      // what a deed came to is asked for at once, not when the runtime's event comes; once, for a deed that shows nothing must not go round
      followsUp = !followsUp && ran === 'sync' && outcome.result === 'ok' && outcome.acted === true;
      if (followsUp) worker.record = { ...worker.record, pending: worker.record.pending ?? worker.record.active };
      if (worker.record.state === 'finished') break;
      if (worker.record.pending === undefined) {
        const ms = nextStepMs(outcome, this.deps.syncFrequencyMs(), this.deps.random());
        this.#due.set(uid, after(this.deps.clock.monotonic(), ms));
      }
    }
    // no await from here to the end: a wish that comes later finds a worker at rest
    worker.working = false;
    if (worker.record.state !== 'finished' || this.#stopped) return;
    if (this.#vanishIfUnwanted(uid, worker)) return;
    this.#wakeSuccessors(worker.record.fullName);
    if (worker.record.evicted) this.deps.evictionEnded?.(uid);
  }

  #tellDown(uid: PodUid): void {
    const waiting = this.#waiters.get(uid) ?? [];
    this.#waiters.delete(uid);
    for (const resolve of waiting) resolve();
  }

  /** A failure is worth a line when it is a new one. */
  #note(worker: Worker, { error }: StepOutcome, cancelled: boolean): void {
    const text = error === undefined ? undefined : describeError(error);
    const nouns = { pod: worker.record.fullName, uid: worker.record.uid, error };
    if (text !== undefined && cancelled) this.deps.log.debug(nouns, 'a step was cut short for a newer wish');
    else if (text !== undefined && text !== worker.lastError) this.deps.log.warn(nouns, 'a pod is not as desired yet');
    if (!cancelled) worker.lastError = text;
  }

  /** A finished instance stays known while it is desired, so that it does not run again. */
  #vanishIfUnwanted(uid: PodUid, worker: Worker): boolean {
    if (lastPod(worker.record) !== undefined && this.deps.effectivePod(uid) !== undefined) return false;
    this.#vanish(uid, worker);
    return true;
  }

  #vanish(uid: PodUid, worker: Worker): void {
    this.#workers.delete(uid);
    this.#due.delete(uid);
    if (worker.record.state === 'finished') this.#remember(uid);
    this.#tellDown(uid);
    this.deps.onFinished(uid);
    this.#wakeSuccessors(worker.record.fullName);
  }

  #remember(uid: PodUid): void {
    this.#ended.add(uid);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= endedKept) break;
      this.#ended.delete(oldest);
    }
  }

  #wakeSuccessors(fullName: string): void {
    for (const [uid, worker] of [...this.#workers]) {
      if (worker.record.fullName === fullName && !worker.record.started) this.#kick(uid, worker);
    }
  }
}

const shownState = (record: PodRecord): WorkerState | 'waiting' =>
  record.state === 'sync' && !record.started && !record.observedRuntime ? 'waiting' : record.state;
