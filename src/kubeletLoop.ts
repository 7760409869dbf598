/** The wiring's half of the loop: what its events set off. Owns nothing of its own. */
import type { Admission } from './admission/manager.ts';
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { TellSide } from './kubeletTelling.ts';
import type { Upkeep } from './kubeletUpkeep.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { PodWorkers } from './pod/workers.ts';
import { SyncLoop, type SyncLoopDeps } from './syncloop.ts';

export interface LoopParts extends Pick<SyncLoopDeps, 'pods' | 'reject' | 'finished'> {
  readonly workers: PodWorkers;
  readonly admission: Admission;
  readonly telling: TellSide;
  readonly upkeep: Upkeep;
  /** With the ephemeral containers it was given. */
  readonly applied: (pod: DesiredPod) => DesiredPod;
  /** It was edited while it is being ended. */
  readonly edited: (uid: PodUid) => void;
}

export function buildLoop({ log }: Pick<KubeletWorld, 'log'>, parts: LoopParts): SyncLoop {
  const { pods, reject, finished, workers, admission, telling, upkeep } = parts;
  return new SyncLoop({
    ...{ log, pods, reject, finished },
    workers: {
      updatePod: (given) => {
        const update = given.pod === undefined ? given : { ...given, pod: parts.applied(given.pod) };
        workers.updatePod(update);
        if (update.pod === undefined) return;
        if (update.type === 'update') admission.again();
        telling.mark([update.pod.key]);
        if (update.type === 'update' && workers.isTerminationRequested(update.pod.uid)) parts.edited(update.pod.uid);
      },
    },
    admit: (pod) => admission.admit(pod),
    cleanUpContainers: (uid) => upkeep.cleanUp(uid),
    housekeeping: () => {
      telling.checkReady();
      upkeep.round();
    },
    changed: () => upkeep.soon(),
  });
}
