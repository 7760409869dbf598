// pure
/** What the prober asks of the world and of other rooms. */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Runtime } from '../container/runtime.ts';
import type { ContainerId, RuntimePodStatus } from '../container/words.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { GrpcCheck } from './attempt.ts';

export interface ProbeManagerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly store: Store;
  /** 0 ≤ n < 1. */
  readonly random: () => number;
  readonly runtime: Pick<Runtime, 'execSync' | 'containerStatus'>;
  readonly grpcCheck: GrpcCheck;
  /** What the runtime last showed of a pod. */
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  /** Its postStart hook is not over: it is not asked yet. When it is, `look` is called. Left out: never. */
  readonly starting?: (id: ContainerId) => boolean;
  /** Addresses of a pod in the host's network. */
  readonly hostIps: () => readonly string[];
  readonly event: (
    pod: Pick<DesiredPod, 'uid' | 'name' | 'namespace'>,
    container: string,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ) => void;
  /** A result changed: the pod is to be synced, and told. */
  readonly changed: (uid: PodUid) => void;
  /** How many exec probes run at once. */
  readonly maxExecProbes: number;
}
