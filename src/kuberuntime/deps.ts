// pure
/** What the runtime manager asks of the world and of other rooms. */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { ObjectLookup } from '../api/references.ts';
import type { CgroupDriver } from '../api/resources.ts';
import type { Container, EphemeralContainer, ImageVolumeSource } from '../api/v1.ts';
import type { Backoff } from '../async/backoff.ts';
import type { ContainerDevices } from '../container/devices.ts';
import type { EnsureResult } from '../container/ensureResult.ts';
import type { ProbeResult } from '../container/probes.ts';
import type { Mount, RunnableImage, Runtime } from '../container/runtime.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { ContainerId, ContainerStatus, RuntimePodStatus } from '../container/words.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Dns } from './dns.ts';
import type { LogFolders } from './logs.ts';
import type { PodRef } from './names.ts';
import type { NodeCgroups } from './resources.ts';
import type { RestartOnChange } from './restartOnChange.ts';
import type { Restarts } from './restarts.ts';
import type { SeccompSettings } from './security.ts';

export interface KubeRuntimeSettings extends SeccompSettings {
  readonly nodeName: string;
  readonly podLogsDir: string;
  readonly bootId: string;
  readonly nodeMemoryBytes: number;
  readonly cgroupDriver: () => CgroupDriver;
  /** Where a pod's cgroup is, for that driver, as the runtime is told. Left out: where the kubelet puts it by default. */
  readonly cgroupParent?: (desired: DesiredPod, driver: CgroupDriver) => string;
  readonly hostDns: () => Dns;
  readonly clusterDns?: readonly string[];
  readonly clusterDomain?: string;
  /** Addresses, CPUs and storage of the node, for environments that ask for them. */
  readonly hostIps?: () => readonly string[];
  readonly nodeCpus?: number;
  readonly nodeStorageBytes?: () => number;
  /** The /sys/devices/system/cpu/cpuN/thermal_throttle folders that exist here; the kubelet masks them. */
  readonly thermalThrottlePaths?: readonly string[];
  /** Sizes of huge pages that this machine has, as cgroups name them: `2MB`, `1GB`. */
  readonly hugepageSizes?: readonly string[];
  /** The kernel counts the swap of a cgroup: memory.memsw.* of cgroup v1, memory.swap.* of v2. */
  readonly countsSwap?: boolean;
  /** What the cgroups of this node can hold. Left out: cgroup v1 with all controllers. */
  readonly cgroups?: NodeCgroups;
}

/** What the mounts of one attempt of a container are made with. */
export interface MountInputs {
  /** Looks up its environment: what subPathExpr names. */
  readonly env: (name: string) => string | undefined;
  /** Makes sure that the image of a volume is here. Rejects only when the sync was called off. */
  readonly ensureImage: (source: ImageVolumeSource) => Promise<EnsureResult>;
}

export interface KubeRuntimeDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Runtime;
  readonly logs: LogFolders;
  /**
   * What is mounted into this attempt of a container. `ips`: the pod's addresses, empty where it has none yet. It rejects with why the
   * container cannot be made (CreateContainerConfigError, or the reason of a HeldBack). Left out: nothing is mounted.
   */
  readonly mounts?: (
    desired: DesiredPod,
    container: Container | EphemeralContainer,
    attempt: number,
    ips: readonly string[],
    inputs: MountInputs,
  ) => Promise<readonly Mount[]>;
  /** What it is given of the node's devices; undefined: nothing. Throws, as `mounts` rejects, while it cannot have them. Left out: nothing. */
  readonly devices?: (desired: DesiredPod, container: Container | EphemeralContainer, image: RunnableImage) => ContainerDevices | undefined;
  /** Which running containers are made anew, since a device that they have lost is back. Left out: none. */
  readonly lostDevices?: {
    review(desired: DesiredPod, status: RuntimePodStatus): void;
    isBack(desired: DesiredPod, record: ContainerStatus): boolean;
  };
  /** Which CPUs containers run on. Left out: on all. */
  readonly cpus?: {
    /** As a list (`0-1,3`); undefined: all. Rejects, as `mounts` does, while too few are free. */
    cpusFor(desired: DesiredPod, container: string): Promise<string | undefined>;
    /** It was made with these. */
    made(uid: PodUid, container: string, id: ContainerId, cpus: string | undefined): void;
    started(id: ContainerId): void;
  };
  /** ConfigMaps and Secrets, as they are now. Left out: there are none. */
  readonly objects?: ObjectLookup;
  /** Which containers are made anew for a changed ConfigMap or Secret. Left out: none. */
  readonly restartOnChange?: Pick<RestartOnChange, 'annotationsFor' | 'review' | 'changed'>;
  /** Which containers a person asked to be restarted. Left out: none. */
  readonly restarts?: Pick<Restarts, 'isAsked' | 'review'>;
  readonly ensureImage: (desired: DesiredPod, container: Container, signal: AbortSignal) => Promise<EnsureResult>;
  /**
   * Replaces the image when the end of its last container shows that it is damaged; true: records were removed. Rejects only when the sync
   * was called off. Left out: nothing is repaired.
   */
  readonly repairImage?: (desired: DesiredPod, container: Container, ended: ContainerStatus, signal: AbortSignal) => Promise<boolean>;
  /** Restart back-off; its limits may look the pod up by `uidOfBackoffKey`. */
  readonly backoff: Backoff;
  /** When this agent saw the container's exit. */
  readonly exitSeenAt: (id: ContainerId) => Monotonic;
  readonly event: (pod: PodRef, container: string | undefined, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly adoption: {
    review(desired: DesiredPod, status: RuntimePodStatus): Promise<void>;
    sameHash(recorded: string, wanted: string, id: string): boolean;
  };
  readonly liveness: (id: ContainerId) => ProbeResult | undefined;
  readonly startup: (id: ContainerId) => ProbeResult | undefined;
  /** A postStart hook of this pod is over, well or not: its container may be judged. */
  readonly postStartEnded?: (uid: PodUid) => void;
  /** A start or stop of this sandbox or container has returned: the event stream should show it (it may have done so already). */
  readonly acted: (uid: PodUid, id: string) => void;
  readonly settings: KubeRuntimeSettings;
}

/** One sync of one pod, as its steps share it. */
export interface SyncRun {
  readonly desired: DesiredPod;
  readonly status: RuntimePodStatus;
  readonly signal: AbortSignal;
  readonly results: SyncResult[];
  /** A changing call was made, whatever came of it: what was known before is old. */
  acted: boolean;
}
