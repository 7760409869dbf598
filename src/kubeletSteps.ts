/** The wiring's half of one pod's steps: podsync.ts with the managers that it asks. Owns nothing of its own. */
import type { PodCache } from './container/cache.ts';
import type { RuntimeSide } from './kubeletRuntime.ts';
import type { StatusSide } from './kubeletStatus.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { RuntimeState } from './node/runtimeState.ts';
import type { Completions } from './pod/completions.ts';
import { PodSync, type PodSyncDeps } from './podsync.ts';

export interface StepParts extends Pick<PodSyncDeps, 'probes' | 'renew' | 'desired' | 'waits'> {
  readonly status: StatusSide;
  readonly setStatus: PodSyncDeps['status']['set'];
  readonly completions: Completions;
  readonly runtime: RuntimeSide;
  readonly runtimeState: RuntimeState;
  readonly cache: PodCache;
}

export function buildPodSync({ clock, log, bootId, volumes }: KubeletWorld, parts: StepParts): PodSync {
  const { status, completions, runtime, runtimeState, cache, probes, renew, waits, desired: wanted } = parts;
  return new PodSync({
    ...{ clock, log, bootId, volumes, probes, renew, waits, desired: wanted },
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
