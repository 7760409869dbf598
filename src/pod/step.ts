/**
 * One step of one pod: read news newer than the last deed, then sync, terminate or close, as the record's state says.
 * Owns nothing; an error is an outcome here, never an exception. Mirrors the switch of kubelet v1.32 pod_workers.go podWorkerLoop.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { PodCache } from '../container/cache.ts';
import type { RuntimePod, RuntimePodStatus } from '../container/words.ts';
import type { Monotonic } from '../world/clock.ts';
import type { PodRecord, StepResult, WorkerState } from './lifecycle.ts';

/** How a step went. Anything but `acted: false` means that the runtime may have changed. */
export interface SyncOutcome {
  /** The pod has ended by itself: nothing more is to be run. */
  readonly terminal: boolean;
  /** Something is to be done at this moment (a back-off or a deadline ends); counts when it is earlier than the usual next look. */
  readonly retryAfterMs?: number;
  readonly error?: unknown;
  readonly acted?: boolean;
}

export interface KillOptions {
  /** undefined: each container's own rule. */
  readonly graceSeconds: number | undefined;
  readonly evicted?: boolean;
  readonly reason?: string;
}

export interface StepDeps {
  readonly cache: Pick<PodCache, 'getNewerThan' | 'stamp'>;
  readonly syncPod: (desired: DesiredPod, status: RuntimePodStatus, signal: AbortSignal) => Promise<SyncOutcome>;
  /** The signal says: a shorter grace was asked for. The step ends early (in error), and the kill begins anew. */
  readonly syncTerminatingPod: (
    desired: DesiredPod,
    status: RuntimePodStatus,
    kill: KillOptions,
    signal: AbortSignal,
  ) => Promise<SyncOutcome>;
  readonly syncTerminatingRuntimePod: (runtimePod: RuntimePod, signal: AbortSignal) => Promise<void>;
  readonly syncTerminatedPod: (desired: DesiredPod, status: RuntimePodStatus) => Promise<void>;
  /** What is to run of this instance now; undefined: it is not desired any more. */
  readonly effectivePod: (uid: PodUid) => DesiredPod | undefined;
  /** The pod's state could not be read (kubelet: Warning `FailedSync`). */
  readonly unreadable?: (desired: DesiredPod, error: unknown) => void;
}

/** A step's end, in the words of retries. */
export type StepOutcome = Pick<SyncOutcome, 'error' | 'retryAfterMs' | 'acted'> & { readonly result: StepResult };

/** Takes the step that `ran` asks for, with the record's active wish. `acted`: the moment of the pod's last deed. */
export async function takeStep(
  deps: StepDeps,
  record: PodRecord,
  ran: WorkerState,
  acted: Monotonic,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const wish = record.active;
  if (wish === undefined || ran === 'finished') return { result: 'ok', acted: false };
  try {
    if (!('pod' in wish)) return await endOrphan(deps, wish.runtimePod, signal);
    const pod = deps.effectivePod(record.uid) ?? wish.pod;
    let status: RuntimePodStatus;
    try {
      status = await deps.cache.getNewerThan(record.uid, acted, signal);
    } catch (error) {
      if (!signal.aborted) deps.unreadable?.(pod, error);
      return { result: 'failed', error, acted: false };
    }
    // a newer wish came in the very moment of the news: what that one told of the pod is not to be taken for the pod's own doing
    if (signal.aborted && ran === 'sync') return { result: 'failed', error: signal.reason, acted: false };
    // the runtime has nothing of it, so only the manifest knows its name
    if (status.name === '') status = { ...status, name: pod.name, namespace: pod.namespace };
    switch (ran) {
      case 'sync':
        return asOutcome(await deps.syncPod(pod, status, signal), true);
      case 'terminating': {
        const kill = { graceSeconds: record.graceSeconds, evicted: record.evicted };
        const options: KillOptions = record.reason === undefined ? kill : { ...kill, reason: record.reason };
        return asOutcome(await deps.syncTerminatingPod(pod, status, options, signal), false);
      }
      case 'terminated':
        await deps.syncTerminatedPod(pod, status);
        return { result: 'ok' };
    }
  } catch (error) {
    return { result: 'failed', error };
  }
}

/** An orphan has no podsync to check that it is down, and a successor may wait for it: its end is what the runtime says. */
async function endOrphan(deps: StepDeps, runtimePod: RuntimePod, signal: AbortSignal): Promise<StepOutcome> {
  await deps.syncTerminatingRuntimePod(runtimePod, signal);
  const now = await deps.cache.getNewerThan(runtimePod.uid, deps.cache.stamp(), signal);
  const runs = now.containers.filter((c) => c.state === 'running').map((c) => c.name);
  if (runs.length > 0) return { result: 'failed', error: new Error(`the runtime still shows running: ${runs.join(', ')}`) };
  if (now.sandboxes.some((s) => s.state === 'ready'))
    return { result: 'failed', error: new Error('the runtime still shows a ready sandbox') };
  return { result: 'ok' };
}

/** Only a sync can find that the pod has ended; for the other steps success is enough. */
function asOutcome(outcome: SyncOutcome, mayBeTerminal: boolean): StepOutcome {
  if (outcome.error !== undefined) return { ...outcome, result: 'failed' };
  return { ...outcome, result: mayBeTerminal && outcome.terminal ? 'terminal' : 'ok' };
}
