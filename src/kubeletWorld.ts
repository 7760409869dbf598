/** What the wiring is built around: everything that a test replaces, and the settings it reads. */

import type { NodeFacts } from './admission/admit.ts';
import type { HostSocket, SocketHolder } from './admission/hostPorts.ts';
import type { DeviceClasses } from './api/deviceClasses.ts';
import type { NodeValues } from './api/nodeValues.ts';
import type { PodUid } from './api/objects.ts';
import type { CgroupDriver } from './api/resources.ts';
import type { DeviceFiles } from './cm/deviceFiles.ts';
import type { RemoteSource } from './config/remote.ts';
import type { PolicyPort } from './config/remoteWords.ts';
import type { ContentStore, ImageService, Runtime } from './container/runtime.ts';
import { type ContainerStatus, labels } from './container/words.ts';
import type { GateFacts } from './gates/facts.ts';
import type { CredentialsFolder } from './images/credentialsFolder.ts';
import type { ImageGcSettings } from './images/gc.ts';
import type { DiskUse } from './images/gcPlan.ts';
import type { NodePlatform } from './images/platform.ts';
import type { CmSettings, CmWorld } from './kubeletCm.ts';
import type { CpuSettings } from './kubeletCpu.ts';
import type { EvictionWorld } from './kubeletEviction.ts';
import type { Dns } from './kuberuntime/dns.ts';
import type { LogFolders } from './kuberuntime/logs.ts';
import type { GrpcCheck } from './prober/attempt.ts';
import type { VolumeManager } from './volumes/manager.ts';
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
  /** containerd's own services; absent: pulls are not watched. */
  readonly content?: ContentStore;
  /** What eviction goes by; absent: nobody is ever evicted. */
  readonly eviction?: EvictionWorld;
  /** The node's registry credentials; absent: none. */
  readonly credentials?: Pick<CredentialsFolder, 'all' | 'problems'>;
  /** What this node runs; absent: any image will do. */
  readonly nodePlatform?: NodePlatform;
  readonly diskUse: (path: string) => Promise<DiskUse>;
  /** Images that come as files. Left out: none do. */
  readonly archives?: {
    /** The first look of this run is over. */
    settled(signal: AbortSignal): Promise<void>;
    /** Whether the image of sandboxes is here is known, and ours is if it is meant. */
    sandboxSettled(signal: AbortSignal): Promise<void>;
    runtimeUp(signal: AbortSignal): Promise<void>;
    /** Names of the images that came so. */
    imported(): Iterable<string>;
    /** Imports the archive that has this image once more; false: there is none, or it failed. */
    importAgain(name: string, signal: AbortSignal): Promise<boolean>;
  };
  /** The end of a container's log, '' for none. */
  readonly logEnd?: (logPath: string) => Promise<string>;
  /** Where cgroups are, if not at their usual place. */
  readonly cgroupRoot?: string;
  /** This machine's cgroups. Left out: only the runtime makes some. */
  readonly cgroups?: CmWorld;
  readonly folder: FolderReader;
  /** What topics say. Left out: files are the only source. */
  readonly remote?: RemoteSource;
  /** What each source may ask for. Left out: anything. */
  readonly policy?: PolicyPort;
  readonly stateStore: Store;
  readonly runStore: Store;
  readonly logFolders: LogFolders;
  readonly volumes: Pick<VolumeManager, 'setUp' | 'mounts' | 'tearDown' | 'retain' | 'hostsChanged'> &
    Partial<Pick<VolumeManager, 'refresh'>>;
  /** What start gates ask of this machine. */
  readonly gates: GateFacts;
  /** /dev. */
  readonly deviceFiles: DeviceFiles;
  readonly grpcCheck: GrpcCheck;
  /** What an ended container said at its end; '' for nothing. Never rejects. */
  readonly lastWords: (status: ContainerStatus) => Promise<string>;
  /** The runtime has news of a pod: for what looks at containers beside the agent's own loop. */
  readonly podNews?: () => void;
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
  /** Sizes of huge pages that the kernel knows, as cgroups name them. */
  readonly hugepageSizes?: readonly string[];
  /** The kernel counts swap beside memory (cgroup v1 with swap accounting). */
  readonly countsSwap?: boolean;
  /** Which CPUs containers are kept to. Absent: none are. */
  readonly cpus?: CpuSettings;
  /** CPUs of the node; absent: 1. */
  readonly nodeCpus?: number;
  /** Bytes of the file system that pods write to. */
  readonly nodeStorageBytes?: () => number;
  /** The node as admission sees it; its labels may change while running. */
  readonly nodeFacts: () => Omit<NodeFacts, 'hostPortsInUse'>;
  /** What listens on the host now. */
  readonly hostSockets: () => readonly HostSocket[];
  /** Whose a socket of the host is; absent: nobody knows. */
  readonly socketHolder?: SocketHolder;
  /** Node conditions may have changed. */
  readonly conditionsChanged: () => void;
}

export interface KubeletSettings extends Partial<CmSettings> {
  /** May change while running. */
  readonly imageGc: () => ImageGcSettings;
  readonly nodeName: string;
  readonly formerNames: readonly string[];
  readonly prefix: string;
  readonly podLogsDir: string;
  /** `auto`: as the runtime says, cgroupfs when it does not. */
  readonly cgroupDriver: 'auto' | CgroupDriver;
  readonly syncFrequencyMs: () => number;
  readonly maxContainerRestartMs: number;
  readonly serializeImagePulls: boolean;
  /** 0 or absent: all at once, where they are not one at a time. */
  readonly maxParallelImagePulls?: number;
  readonly strict: () => boolean;
  /** What `${NODE.…}` stands for; the labels may change while running. */
  readonly nodeValues: () => NodeValues;
  readonly allowedUnsafeSysctls?: readonly string[];
  /** They may change while running. */
  readonly deviceClasses: () => DeviceClasses;
  readonly clusterDns?: readonly string[];
  readonly clusterDomain?: string;
  readonly seccompDefault?: boolean;
  /** The folder of Localhost seccomp profiles. */
  readonly seccompFolder?: string;
}

/** What of it the sources ask for. */
export const configWorld = ({ clock, log, stateStore, folder, newUid, remote, policy }: KubeletWorld, settings: KubeletSettings) => ({
  ...{ clock, log, folder, newUid },
  ...(remote && { remote }),
  ...(policy && { policy }),
  store: stateStore,
  nodeName: settings.nodeName,
  strict: settings.strict,
  allowedUnsafeSysctls: () => settings.allowedUnsafeSysctls ?? [],
  deviceClasses: () => Object.keys(settings.deviceClasses()),
  nodeFacts: settings.nodeValues,
});

/** By a sandbox's or container's labels: whether this node made it, under this name or a former one (behaviour 8). */
export const ownedBy =
  ({ nodeName, formerNames }: Pick<KubeletSettings, 'nodeName' | 'formerNames'>) =>
  (of: Readonly<Record<string, string>>): boolean => {
    const owner = of[labels.managed];
    return owner !== undefined && (owner === nodeName || formerNames.includes(owner));
  };
