// pure
/** What eviction asks of others. */
import type { DesiredPod } from '../api/desired.ts';
import type { Eviction } from '../api/evicted.ts';
import type { EvictionThreshold } from '../api/evictionThresholds.ts';
import type { PodUid } from '../api/objects.ts';
import type { PressureType } from '../api/pressures.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { FilesystemReading, MemoryReading, PodDiskUsage, PodUsage, ProcessReading } from './words.ts';

/** Readings of the node; undefined: it cannot be told now. None rejects. */
export interface NodeReadings {
  memory(): MemoryReading | undefined;
  processes(): ProcessReading | undefined;
  /** Where pods' folders lie. */
  nodefs(): Promise<FilesystemReading | undefined>;
  /** Where the runtime keeps images and what containers write. */
  imagefs(): Promise<FilesystemReading | undefined>;
  /** Of all pods together, where their cgroup has a limit; left out: it has none. */
  podsMemory?(): { readonly limitBytes: number; readonly workingSetBytes: number } | undefined;
}

/** What may go of the disk before a pod does. Each may reject, which is told in the log, and the next is tried. */
export interface Reclaim {
  /** Rotated logs, and logs of attempts before the last one. */
  deadLogs(): Promise<unknown>;
  /** Ended containers, and all that is left of pods that have ended. */
  deadContainers(): Promise<unknown>;
  /** Images that nothing needs and nobody pinned. */
  unusedImages(): Promise<unknown>;
}

export interface EvictOptions extends Eviction {
  /** The pod comes back when this is over; undefined: no pressure stands against it. */
  readonly until: PressureType | undefined;
  /** undefined: the pod's own grace. */
  readonly graceSeconds: number | undefined;
}

export interface EvictionDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir: pressures outlive the agent, not the boot. */
  readonly store: Store;
  readonly thresholds: readonly EvictionThreshold[];
  /** How long a pressure is reported after it was last seen. */
  readonly pressureTransitionMs: number;
  readonly node: NodeReadings;
  /** Pods that run or are being started, and are not being ended. */
  readonly pods: () => readonly DesiredPod[];
  /** Of all pods asked for, at once; what is not known is left out. Never rejects. */
  readonly usage: (uids: readonly PodUid[]) => Promise<ReadonlyMap<PodUid, PodUsage>>;
  /** Walks through what the pods have written; costs, so it is asked only when it matters. Never rejects. */
  readonly diskUsage: (pods: readonly DesiredPod[], signal: AbortSignal) => Promise<ReadonlyMap<PodUid, PodDiskUsage>>;
  readonly reclaim: Reclaim;
  /**
   * A pod that is about to go gets no more memory than it has: it goes on allocating until it is killed, and the rest would go first. Left
   * out: nobody can do that here. Never rejects.
   */
  readonly brake?: ((uid: PodUid) => Promise<void>) | undefined;
  /** Resolves when nothing of the pod runs any more; rejects when it did not end in time. */
  readonly evict: (uid: PodUid, o: EvictOptions) => Promise<void>;
  /** All that an ended pod left on the disk but its name goes. Never rejects. */
  readonly removeContent: (uid: PodUid) => Promise<void>;
  /** About the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** A pressure began or ended. */
  readonly changed: (pressures: readonly PressureType[]) => void;
}
