/**
 * The ports to a container runtime, in the runtime's words. Implementations: cri/ (containerd over gRPC) and test/fakes (one contract
 * suite for both). Every call ends by itself: cri/ puts a deadline on it. Errors are RuntimeError with a code.
 */
import type { PodUid } from '../api/objects.ts';
import type { ContainerStats } from './stats.ts';
import type { Container, ContainerId, ContainerStatus, NamespaceMode, Sandbox, SandboxId, SandboxStatus } from './words.ts';

export type RuntimeErrorCode = 'notFound' | 'alreadyExists' | 'unavailable' | 'deadlineExceeded' | 'unimplemented' | 'unknown';

export class RuntimeError extends Error {
  constructor(
    readonly code: RuntimeErrorCode,
    message: string,
    options?: { cause: unknown },
  ) {
    super(message, options);
  }
}

export const isNotFound = (e: unknown): boolean => e instanceof RuntimeError && e.code === 'notFound';
export const isUnimplemented = (e: unknown): boolean => e instanceof RuntimeError && e.code === 'unimplemented';

export interface RuntimeVersion {
  /** `containerd`: the scheme of container ids in status. */
  readonly runtimeName: string;
  readonly runtimeVersion: string;
}

export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface PortMapping {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly containerPort: number;
  readonly hostPort: number;
  readonly hostIp: string;
}

export interface LinuxResources {
  readonly cpuPeriod?: number;
  readonly cpuQuota?: number;
  readonly cpuShares?: number;
  readonly memoryLimitBytes?: number;
  /** Of memory and swap together, where the kernel counts swap (cgroup v1). */
  readonly memorySwapLimitBytes?: number;
  readonly oomScoreAdj?: number;
  /** One per page size of the machine. */
  readonly hugepageLimits?: readonly { readonly pageSize: string; readonly limitBytes: number }[];
  /** The CPUs it may use, as the kernel writes a list: `0-1,3`. */
  readonly cpusetCpus?: string;
  /** The memory nodes it may use, written alike. */
  readonly cpusetMems?: string;
  /** Files of cgroup v2 by their names (`memory.oom.group`) and what is written to them. A runtime refuses them on cgroup v1. */
  readonly unified?: Readonly<Record<string, string>>;
}

export interface NamespaceOptions {
  readonly network: NamespaceMode;
  readonly pid: NamespaceMode;
  readonly ipc: NamespaceMode;
  /** With pid TARGET: the container whose process namespace is shared. */
  readonly targetId?: ContainerId;
}

/** SecurityProfile: `Localhost` names a file by `localhostRef`. */
export interface SecurityProfile {
  readonly type: 'RuntimeDefault' | 'Unconfined' | 'Localhost';
  readonly localhostRef?: string;
}

export interface SeLinuxOptions {
  readonly user: string;
  readonly role: string;
  readonly type: string;
  readonly level: string;
}

/** PodSandboxConfig, the part that podsched sends. */
export interface SandboxConfig {
  readonly name: string;
  readonly namespace: string;
  readonly uid: PodUid;
  readonly attempt: number;
  readonly hostname: string;
  readonly logDirectory: string;
  readonly dns: { readonly servers: readonly string[]; readonly searches: readonly string[]; readonly options: readonly string[] };
  readonly portMappings: readonly PortMapping[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly cgroupParent: string;
  readonly privileged: boolean;
  readonly namespaces: NamespaceOptions;
  readonly resources: LinuxResources;
  readonly seccomp?: SecurityProfile;
  /** By their names with dots. */
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly supplementalGroups?: readonly number[];
  readonly seLinux?: SeLinuxOptions;
}

/** A folder or file of the host inside a container, or the files of an image. */
export interface Mount {
  readonly containerPath: string;
  /** '' with an image. */
  readonly hostPath: string;
  readonly readonly: boolean;
  /** Resolved image id, as ImageService gave it. Only for runtimes that have it (containerd 2.1): others make an empty folder of it. */
  readonly image?: string;
  /** Absent: PRIVATE. */
  readonly propagation?: 'PRIVATE' | 'HOST_TO_CONTAINER' | 'BIDIRECTIONAL';
  readonly recursiveReadOnly?: boolean;
  readonly selinuxRelabel?: boolean;
}

/** A device node of the host inside a container. `permissions` of `rwm`: read, write, make nodes. */
export interface Device {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly permissions: string;
}

/** What a command in a container came to. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/** What a runtime handler can do; the default handler's name is empty. */
export interface RuntimeHandler {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
}

/** ContainerConfig, the part that podsched sends. */
export interface ContainerConfig {
  readonly name: string;
  readonly attempt: number;
  /** Resolved image id, as ImageService gave it. */
  readonly image: string;
  /** The text of the manifest. */
  readonly userSpecifiedImage: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly envs: readonly { readonly key: string; readonly value: string }[];
  readonly mounts: readonly Mount[];
  readonly devices?: readonly Device[];
  /** Complete names of the Container Device Interface, `vendor.com/class=name`. */
  readonly cdiDevices?: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Relative to the sandbox's logDirectory. */
  readonly logPath: string;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  readonly resources: LinuxResources;
  readonly privileged: boolean;
  readonly namespaces: NamespaceOptions;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly runAsUserName?: string;
  readonly maskedPaths: readonly string[];
  readonly readonlyPaths: readonly string[];
  readonly seccomp?: SecurityProfile;
  /** Absent: the runtime's own choice. `localhostRef` is the profile's name. */
  readonly appArmor?: SecurityProfile;
  readonly seLinux?: SeLinuxOptions;
  /** Names without `CAP_`, as the manifest has them. */
  readonly capabilities?: { readonly add: readonly string[]; readonly drop: readonly string[] };
  readonly supplementalGroups?: readonly number[];
  readonly readonlyRootFilesystem?: boolean;
  readonly noNewPrivileges?: boolean;
}

/** "Look at this": the runtime saw something happen. Never what happened: the list tells that. */
export interface RuntimeEvent {
  readonly containerId: string;
  readonly topic: 'start' | 'exit' | 'oom' | 'create' | 'delete' | 'other';
}

export interface Runtime {
  version(): Promise<RuntimeVersion>;
  /** RuntimeReady, NetworkReady. */
  status(): Promise<readonly RuntimeCondition[]>;
  /** How the runtime makes cgroups; undefined when it does not say. */
  cgroupDriver(): Promise<'cgroupfs' | 'systemd' | undefined>;
  /** The name of the image that sandboxes are made of; undefined where the runtime does not say (containerd 2). */
  sandboxImage(): Promise<string | undefined>;
  /** The runtime's handlers and what they can; empty where it does not tell (containerd before 2.0). */
  handlers(): Promise<readonly RuntimeHandler[]>;
  /** Also the sandboxes of others; the caller sorts out what is ours. `uid` asks for one pod's only. */
  listSandboxes(uid?: PodUid): Promise<readonly Sandbox[]>;
  listContainers(uid?: PodUid): Promise<readonly Container[]>;
  /** What containers use now, read from the kernel at the call: it costs, so nothing asks for it again and again. `uid`: of one pod's only. */
  listContainerStats(uid?: PodUid): Promise<readonly ContainerStats[]>;
  sandboxStatus(id: SandboxId): Promise<SandboxStatus>;
  containerStatus(id: ContainerId): Promise<ContainerStatus>;
  runSandbox(config: SandboxConfig, runtimeHandler: string): Promise<SandboxId>;
  /** Idempotent; not found is success. */
  stopSandbox(id: SandboxId): Promise<void>;
  /** Idempotent; not found is success. */
  removeSandbox(id: SandboxId): Promise<void>;
  createContainer(sandboxId: SandboxId, config: ContainerConfig, sandboxConfig: SandboxConfig): Promise<ContainerId>;
  startContainer(id: ContainerId): Promise<void>;
  /** TERM, then KILL after `graceSeconds`; resolves when it is down. Not found is success. */
  stopContainer(id: ContainerId, graceSeconds: number): Promise<void>;
  /** Idempotent; not found is success. */
  removeContainer(id: ContainerId): Promise<void>;
  /** Changes what is given and leaves the rest as it is, at once or, of a container that does not run, for its start. */
  updateContainerResources(id: ContainerId, resources: LinuxResources): Promise<void>;
  /**
   * Runs a command in a running container and waits for its end. `timeoutSeconds` 0: no limit but the caller's patience; when it is over, the
   * command is killed and the call rejects with `deadlineExceeded`. An abort ends the waiting, not the command.
   */
  execSync(id: ContainerId, command: readonly string[], timeoutSeconds: number, signal?: AbortSignal): Promise<ExecResult>;
  /** The container's log file was moved: the runtime opens it anew. */
  reopenLog(id: ContainerId): Promise<void>;
  /**
   * The event stream, until aborted or broken (then it rejects with RuntimeError). `onReady` when events flow from now on.
   * Rejects with `unimplemented` where the runtime has none.
   */
  events(onEvent: (e: RuntimeEvent) => void, onReady: () => void, signal: AbortSignal): Promise<void>;
}

export interface StreamOptions {
  readonly stdin: boolean;
  readonly stdout: boolean;
  /** Never with `tty`: a terminal has one output. */
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** Where the runtime serves one session, by HTTP upgrade on this machine's loopback: for one use, and for about a minute. */
export interface StreamTarget {
  readonly host: string;
  readonly port: number;
  /** With its query. */
  readonly path: string;
}

/** Sessions with what runs in a container. */
export interface Streams {
  /** A new process in a running container. */
  execTarget(id: ContainerId, command: readonly string[], o: StreamOptions): Promise<StreamTarget>;
  /** The container's own process; `tty` as the container was made. */
  attachTarget(id: ContainerId, o: StreamOptions): Promise<StreamTarget>;
}

/** What an image was built for, in Go's words: `linux`, `arm64`, `v8`. */
export interface ImagePlatform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}

export interface ImageInfo {
  /** What CreateContainer takes: the image id. */
  readonly id: string;
  /** Its names, complete (`docker.io/library/busybox:1`); an image without one has only an id. */
  readonly tags: readonly string[];
  /** Its names by digest: `docker.io/library/busybox@sha256:…`. */
  readonly digests: readonly string[];
  /** The runtime itself says that it must stay (the sandbox image). */
  readonly pinned: boolean;
  /** uid of the image's user when it is numeric. */
  readonly uid?: number;
  readonly username: string;
  /** Bytes on disk, where the runtime tells them. */
  readonly sizeBytes?: number;
  /** Told by `imageStatus` only, where the runtime says it. */
  readonly platform?: ImagePlatform;
}

/** What a container is made of: its image and who runs in it. */
export type RunnableImage = Pick<ImageInfo, 'id' | 'uid' | 'username'>;

/** What a registry is shown: one of name and password, `auth` (both, in base64), or a token. Never in a log, an event or an error. */
export interface RegistryAuth {
  readonly username?: string;
  readonly password?: string;
  readonly auth?: string;
  readonly serverAddress?: string;
  readonly identityToken?: string;
  readonly registryToken?: string;
}

export interface PullOptions {
  readonly signal?: AbortSignal;
  /** Left out: nobody in particular. */
  readonly auth?: RegistryAuth;
}

/** Where images lie. */
export interface ImageFilesystem {
  readonly mountpoint: string;
  readonly usedBytes: number;
  /** Absent where the runtime does not count them. */
  readonly inodesUsed?: number;
}

export interface ImageService {
  listImages(): Promise<readonly ImageInfo[]>;
  /** undefined: not on this node. By name, id or digest. */
  imageStatus(image: string): Promise<ImageInfo | undefined>;
  /** The id of the pulled image. An abort ends the pull. */
  pullImage(image: string, o?: PullOptions): Promise<string>;
  /** All names of it. Not found is success. */
  removeImage(image: string): Promise<void>;
  imageFilesystems(): Promise<readonly ImageFilesystem[]>;
}

/** A piece of an image that is being written now. */
export interface Ingest {
  /** `layer-sha256:…`, `manifest-sha256:…`, `config-sha256:…`. */
  readonly ref: string;
  readonly offsetBytes: number;
  /** 0: not known. */
  readonly totalBytes: number;
}

/** containerd's own services behind CRI. Each rejects with `unimplemented` where the runtime is another. */
export interface ContentStore {
  /** Everything that is being written now, of all pulls. */
  ingests(): Promise<readonly Ingest[]>;
  /** Sets labels of an image by its complete name, and leaves its others as they are; `''` takes a label away. */
  labelImage(name: string, labels: Readonly<Record<string, string>>): Promise<void>;
  /** Takes a name away, and when it was the last one also what only that image used: snapshots and content, before this resolves. */
  dropImage(name: string): Promise<void>;
  /** Removes a blob, whoever names it. Not found is success. */
  dropContent(digest: string): Promise<void>;
  /** The digest an image's name points at; undefined: there is no such image. */
  target(name: string): Promise<string | undefined>;
}
