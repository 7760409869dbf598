/** The wiring's half of one pod's steps: podsync.ts with the managers that it asks, and the workers that take them. Owns nothing of its own. */
import type { PodUid } from './api/objects.ts';
import type { PodCache } from './container/cache.ts';
import { mayLive } from './kubeletAdmission.ts';
import type { RuntimeSide } from './kubeletRuntime.ts';
import type { StatusSide } from './kubeletStatus.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import type { RuntimeState } from './node/runtimeState.ts';
import { predecessorsOf } from './pleg/adoption.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { Completions } from './pod/completions.ts';
import { PodWorkers, type PodWorkersDeps } from './pod/workers.ts';
import { PodSync, type PodSyncDeps } from './podsync.ts';
import { describeError } from './world/log.ts';

export interface StepParts extends Pick<PodSyncDeps, 'probes' | 'renew' | 'desired' | 'waits' | 'gates' | 'cgroups'> {
  readonly status: StatusSide;
  readonly setStatus: PodSyncDeps['status']['set'];
  readonly completions: Completions;
  readonly runtime: RuntimeSide;
  readonly runtimeState: RuntimeState;
  readonly cache: PodCache;
}

export function buildPodSync({ clock, log, bootId, volumes }: KubeletWorld, parts: StepParts): PodSync {
  const { status, completions, runtime, runtimeState, cache, probes, renew, waits, desired: wanted, gates, cgroups } = parts;
  return new PodSync({
    ...{ clock, log, bootId, volumes, probes, renew, waits, desired: wanted, ...(gates && { gates }), ...(cgroups && { cgroups }) },
    status: {
      generate: (desired, runtimeStatus, inputs) => status.generate(desired, runtime.manager.asStarted(runtimeStatus), inputs),
      get: (uid) => status.manager.get(uid),
      set: parts.setStatus,
      setReasons: (uid, results) => status.manager.setReasons(uid, results),
      terminate: (uid) => status.manager.terminate(uid),
    },
    completions: {
      find: (desired) => completions.find(desired.key, desired.workHash),
      record: (desired, exits, told) => completions.record(desired, told.phase, exits, told),
      adopt: (desired) => completions.adopt(desired.key, desired.workHash),
    },
    madeOtherwise: (desired, runtimeStatus) => runtime.madeOtherwise(desired, runtimeStatus),
    endedOtherwise: (desired, runtimeStatus) => runtime.endedOtherwise(desired, runtimeStatus),
    runtime: {
      syncPod: (desired, runtimeStatus, signal) => runtime.syncPod(desired, runtimeStatus, signal),
      killPod: (target, runtimeStatus, grace) => runtime.manager.killPod(target, runtimeStatus, grace),
    },
    latestStatus: (uid) => cache.get(uid),
    newerStatus: (uid, signal) => cache.getNewerThan(uid, cache.stamp(), signal),
    networkError: () => runtimeState.networkError(),
    runtimeUp: () => runtimeState.down() === undefined,
    event: (desired, type, reason, message) => status.event(desired, undefined, type, reason, message),
  });
}

export interface WorkerParts extends Pick<PodWorkersDeps, 'syncPod' | 'effectivePod' | 'onFinished' | 'condemned' | 'evictionEnded'> {
  readonly status: StatusSide;
  readonly cache: PodCache;
  readonly pleg: Pleg;
  readonly podSync: PodSync;
  /** What an instance had of the node is free, also when it is still wanted. */
  readonly ended: (uid: PodUid) => void;
}

export function buildWorkers({ clock, log, random }: KubeletWorld, settings: KubeletSettings, parts: WorkerParts): PodWorkers {
  const { status, cache, pleg, podSync, syncPod, effectivePod, onFinished, condemned, evictionEnded } = parts;
  return new PodWorkers({
    ...{
      clock,
      log,
      random,
      cache,
      syncPod,
      effectivePod,
      onFinished,
      ...(condemned && { condemned }),
      ...(evictionEnded && { evictionEnded }),
    },
    syncTerminatingPod: (desired, runtimeStatus, kill, signal) => podSync.syncTerminatingPod(desired, runtimeStatus, kill, signal),
    syncTerminatingRuntimePod: (pod) => podSync.syncTerminatingRuntimePod(pod),
    syncTerminatedPod: async (desired, runtimeStatus) => {
      await podSync.syncTerminatedPod(desired, runtimeStatus);
      parts.ended(desired.uid);
    },
    unreadable: (desired, error) =>
      status.event(desired, undefined, 'Warning', 'FailedSync', `error determining status: ${describeError(error)}`),
    syncFrequencyMs: settings.syncFrequencyMs,
    predecessors: (desired) => (pleg.listed() ? predecessorsOf(pleg.pods(), desired) : 'unknown'),
    mayLive: (uid) => mayLive(pleg, uid, status.manager.get(uid)),
  });
}
