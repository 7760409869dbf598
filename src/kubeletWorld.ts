/** What the wiring is built around: everything that a test replaces, and the settings it reads. */
import type { PodUid } from './api/objects.ts';
import type { CgroupDriver } from './api/resources.ts';
import type { ImageService, Runtime } from './container/runtime.ts';
import type { Dns } from './kuberuntime/dns.ts';
import type { LogFolders } from './kuberuntime/logs.ts';
import type { Clock } from './world/clock.ts';
import type { FolderReader } from './world/folder.ts';
import type { Log } from './world/log.ts';
import type { Store } from './world/store.ts';

/** All that a test replaces. */
export interface KubeletWorld {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Runtime;
  readonly images: ImageService;
  readonly folder: FolderReader;
  readonly stateStore: Store;
  readonly runStore: Store;
  readonly logFolders: LogFolders;
  readonly broker: {
    /** Retained, QoS 1; undefined clears. */
    tell(topic: string, payload: string | undefined, o: { readonly expirySeconds: number }): void;
    /** Not retained, QoS 1. */
    send(topic: string, payload: string, o: { readonly expirySeconds: number }): void;
    /** What is desired is known and has been told: what else stands under our topics is a ghost. */
    setReady(): void;
    maxBytes(): number;
  };
  readonly random: () => number;
  readonly newUid: () => PodUid;
  readonly bootId: string;
  readonly boot: () => number;
  readonly seq: () => number;
  readonly hostDns: () => Dns;
  readonly hostIps: () => readonly string[];
  readonly nodeMemoryBytes: number;
  readonly thermalThrottlePaths: readonly string[];
  /** CPUs of the node; absent: 1. */
  readonly nodeCpus?: number;
  /** Bytes of the file system that pods write to. */
  readonly nodeStorageBytes?: () => number;
  /** Node conditions may have changed. */
  readonly conditionsChanged: () => void;
}

export interface KubeletSettings {
  readonly nodeName: string;
  readonly formerNames: readonly string[];
  readonly prefix: string;
  readonly podLogsDir: string;
  /** `auto`: as the runtime says, cgroupfs when it does not. */
  readonly cgroupDriver: 'auto' | CgroupDriver;
  readonly syncFrequencyMs: () => number;
  readonly maxContainerRestartMs: number;
  readonly serializeImagePulls: boolean;
  readonly strict: () => boolean;
  readonly allowedUnsafeSysctls?: readonly string[];
  readonly clusterDns?: readonly string[];
  readonly clusterDomain?: string;
  readonly seccompDefault?: boolean;
  /** The folder of Localhost seccomp profiles. */
  readonly seccompFolder?: string;
}
