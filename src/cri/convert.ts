/**
 * The sill: words on one side, protobuf messages on the other. Nanoseconds become WallTime milliseconds here and nowhere else.
 * Mirrors what kubelet v1.32 sends (kuberuntime_sandbox.go, kuberuntime_container.go, security_context.go).
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { PodUid } from '../api/objects.ts';
import type {
  ContainerConfig,
  ImageInfo,
  ImagePlatform,
  LinuxResources,
  Mount,
  NamespaceOptions,
  RuntimeCondition,
  RuntimeEvent,
  SandboxConfig,
  SecurityProfile,
  SeLinuxOptions,
} from '../container/runtime.ts';
import type {
  Container,
  ContainerId,
  ContainerState,
  ContainerStatus,
  NamespaceMode,
  Sandbox,
  SandboxId,
  SandboxStatus,
} from '../container/words.ts';
import type { WallTime } from '../world/clock.ts';
import * as pb from './gen/cri_pb.ts';

/** Wall milliseconds from CRI nanoseconds, whole digits first: a float has none left for nanoseconds since 1970. */
export const wallTime = (ns: bigint): WallTime => Number(ns / 1_000_000n) as WallTime;

const namespaceModes: Readonly<Record<NamespaceMode, pb.NamespaceMode>> = {
  POD: pb.NamespaceMode.POD,
  CONTAINER: pb.NamespaceMode.CONTAINER,
  NODE: pb.NamespaceMode.NODE,
  TARGET: pb.NamespaceMode.TARGET,
};
const namespaceWords: readonly NamespaceMode[] = ['POD', 'CONTAINER', 'NODE', 'TARGET'];
const containerStates: readonly ContainerState[] = ['created', 'running', 'exited', 'unknown'];
const eventTopics: readonly RuntimeEvent['topic'][] = ['create', 'start', 'exit', 'delete'];

// ---- to the runtime

export function sandboxConfigMessage(c: SandboxConfig): MessageInitShape<typeof pb.PodSandboxConfigSchema> {
  return {
    metadata: { name: c.name, uid: c.uid, namespace: c.namespace, attempt: c.attempt },
    hostname: c.hostname,
    logDirectory: c.logDirectory,
    dnsConfig: { servers: [...c.dns.servers], searches: [...c.dns.searches], options: [...c.dns.options] },
    portMappings: c.portMappings.map((p) => ({ ...p, protocol: pb.Protocol[p.protocol] })),
    labels: { ...c.labels },
    annotations: { ...c.annotations },
    linux: {
      cgroupParent: c.cgroupParent,
      securityContext: {
        namespaceOptions: namespaceMessage(c.namespaces),
        privileged: c.privileged,
        ...userMessage(c),
        // the sandbox's own process is always confined, whatever its containers ask for
        seccomp: profileMessage(c.seccomp ?? { type: 'RuntimeDefault' }),
      },
      sysctls: { ...c.sysctls },
      overhead: {},
      resources: resourcesMessage(c.resources),
    },
  };
}

export function containerConfigMessage(c: ContainerConfig): MessageInitShape<typeof pb.ContainerConfigSchema> {
  return {
    metadata: { name: c.name, attempt: c.attempt },
    image: { image: c.image, userSpecifiedImage: c.userSpecifiedImage },
    command: [...c.command],
    args: [...c.args],
    workingDir: c.workingDir,
    envs: c.envs.map((e) => ({ key: e.key, value: e.value })),
    mounts: c.mounts.map(mountMessage),
    devices: (c.devices ?? []).map(({ containerPath, hostPath, permissions }) => ({ containerPath, hostPath, permissions })),
    CDIDevices: (c.cdiDevices ?? []).map((name) => ({ name })),
    labels: { ...c.labels },
    annotations: { ...c.annotations },
    logPath: c.logPath,
    stdin: c.stdin,
    stdinOnce: c.stdinOnce,
    tty: c.tty,
    linux: {
      resources: resourcesMessage(c.resources),
      securityContext: {
        privileged: c.privileged,
        namespaceOptions: namespaceMessage(c.namespaces),
        ...userMessage(c),
        ...(c.capabilities && {
          capabilities: { addCapabilities: [...c.capabilities.add], dropCapabilities: [...c.capabilities.drop] },
        }),
        readonlyRootfs: c.readonlyRootFilesystem ?? false,
        noNewPrivs: c.noNewPrivileges ?? false,
        ...(c.appArmor && { apparmor: profileMessage(c.appArmor), apparmorProfile: appArmorText(c.appArmor) }),
        runAsUsername: c.runAsUserName ?? '',
        maskedPaths: [...c.maskedPaths],
        readonlyPaths: [...c.readonlyPaths],
        seccomp: profileMessage(c.seccomp ?? { type: 'Unconfined' }),
      },
    },
  };
}

const mountMessage = (m: Mount): MessageInitShape<typeof pb.MountSchema> => ({
  containerPath: m.containerPath,
  hostPath: m.hostPath,
  readonly: m.readonly,
  propagation: pb.MountPropagation[`PROPAGATION_${m.propagation ?? 'PRIVATE'}`],
  recursiveReadOnly: m.recursiveReadOnly ?? false,
  selinuxRelabel: m.selinuxRelabel ?? false,
  ...(m.image !== undefined && { image: { image: m.image } }),
});

const namespaceMessage = (n: NamespaceOptions): MessageInitShape<typeof pb.NamespaceOptionSchema> => ({
  network: namespaceModes[n.network],
  pid: namespaceModes[n.pid],
  ipc: namespaceModes[n.ipc],
  targetId: n.targetId ?? '',
});

const profileMessage = (p: SecurityProfile): MessageInitShape<typeof pb.SecurityProfileSchema> => ({
  profileType: pb.SecurityProfile_ProfileType[p.type],
  localhostRef: p.localhostRef ?? '',
});

/** What sandboxes and containers say alike: who they run as, and under which label. User 0 is said, no user is not. */
const userMessage = (c: {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly supplementalGroups?: readonly number[];
  readonly seLinux?: SeLinuxOptions;
}) => ({
  ...(c.runAsUser !== undefined && { runAsUser: { value: BigInt(c.runAsUser) } }),
  ...(c.runAsGroup !== undefined && { runAsGroup: { value: BigInt(c.runAsGroup) } }),
  supplementalGroups: (c.supplementalGroups ?? []).map(BigInt),
  ...(c.seLinux && { selinuxOptions: { ...c.seLinux } }),
});

/** The older spelling of the same, for runtimes that read only that. */
function appArmorText(p: SecurityProfile): string {
  switch (p.type) {
    case 'RuntimeDefault':
      return 'runtime/default';
    case 'Unconfined':
      return 'unconfined';
    case 'Localhost':
      return `localhost/${p.localhostRef ?? ''}`;
  }
}

/** Whole numbers: CRI has no fractions, and 0 is "not set". */
export const resourcesMessage = (r: LinuxResources): MessageInitShape<typeof pb.LinuxContainerResourcesSchema> => ({
  cpuPeriod: BigInt(r.cpuPeriod ?? 0),
  cpuQuota: BigInt(r.cpuQuota ?? 0),
  cpuShares: BigInt(r.cpuShares ?? 0),
  memoryLimitInBytes: BigInt(r.memoryLimitBytes ?? 0),
  oomScoreAdj: BigInt(r.oomScoreAdj ?? 0),
  memorySwapLimitInBytes: BigInt(r.memorySwapLimitBytes ?? 0),
  cpusetCpus: r.cpusetCpus ?? '',
  cpusetMems: r.cpusetMems ?? '',
  hugepageLimits: (r.hugepageLimits ?? []).map((h) => ({ pageSize: h.pageSize, limit: BigInt(h.limitBytes) })),
  unified: { ...r.unified },
});

// ---- from the runtime

export function conditionWord(c: pb.RuntimeCondition): RuntimeCondition {
  return { type: c.type, status: c.status, reason: c.reason, message: c.message };
}

export function sandboxWord(s: pb.PodSandbox | pb.PodSandboxStatus): Sandbox {
  return {
    id: s.id as SandboxId,
    name: s.metadata?.name ?? '',
    namespace: s.metadata?.namespace ?? '',
    uid: (s.metadata?.uid ?? '') as PodUid,
    attempt: s.metadata?.attempt ?? 0,
    state: s.state === pb.PodSandboxState.SANDBOX_READY ? 'ready' : 'notready',
    createdAt: wallTime(s.createdAt),
    labels: s.labels,
    annotations: s.annotations,
  };
}

export function sandboxStatusWord(s: pb.PodSandboxStatus): SandboxStatus {
  return {
    ...sandboxWord(s),
    networkMode: namespaceWords[s.linux?.namespaces?.options?.network ?? 0] ?? 'POD',
    ...(s.network === undefined ? {} : { network: { ip: s.network.ip, additionalIps: s.network.additionalIps.map((a) => a.ip) } }),
  };
}

export function containerWord(c: pb.Container): Container {
  return {
    id: c.id as ContainerId,
    sandboxId: c.podSandboxId as SandboxId,
    name: c.metadata?.name ?? '',
    attempt: c.metadata?.attempt ?? 0,
    image: imageText(c.image),
    imageRef: c.imageRef,
    state: containerState(c.state),
    createdAt: wallTime(c.createdAt),
    labels: c.labels,
    annotations: c.annotations,
  };
}

/** A status names no sandbox: the caller knows it from a list. */
export function containerStatusWord(c: pb.ContainerStatus, sandboxId: SandboxId): ContainerStatus {
  return {
    id: c.id as ContainerId,
    sandboxId,
    name: c.metadata?.name ?? '',
    attempt: c.metadata?.attempt ?? 0,
    image: imageText(c.image),
    imageRef: c.imageRef,
    state: containerState(c.state),
    createdAt: wallTime(c.createdAt),
    ...(c.startedAt === 0n ? {} : { startedAt: wallTime(c.startedAt) }),
    ...(c.finishedAt === 0n ? {} : { finishedAt: wallTime(c.finishedAt) }),
    exitCode: c.exitCode,
    reason: c.reason,
    message: c.message,
    logPath: c.logPath,
    mounts: c.mounts.map((m) => ({ containerPath: m.containerPath, hostPath: m.hostPath })),
    ...(c.resources?.linux?.cpusetCpus ? { cpusetCpus: c.resources.linux.cpusetCpus } : {}),
    labels: c.labels,
    annotations: c.annotations,
  };
}

export function imageWord(i: pb.Image): ImageInfo {
  return {
    id: i.id,
    tags: i.repoTags,
    digests: i.repoDigests,
    pinned: i.pinned,
    username: i.username,
    ...(i.uid === undefined ? {} : { uid: Number(i.uid.value) }),
    ...(i.size === 0n ? {} : { sizeBytes: Number(i.size) }),
  };
}

/** The platform in what containerd says of an image with `verbose`; undefined where it does not say. */
export function imagePlatform(info: string | undefined): ImagePlatform | undefined {
  if (info === undefined) return undefined;
  try {
    const { imageSpec } = JSON.parse(info) as { imageSpec?: { os?: unknown; architecture?: unknown; variant?: unknown } };
    const { os, architecture, variant } = imageSpec ?? {};
    if (typeof architecture !== 'string' || architecture === '') return undefined;
    const word: ImagePlatform = { os: typeof os === 'string' && os !== '' ? os : 'linux', architecture };
    return typeof variant === 'string' && variant !== '' ? { ...word, variant } : word;
  } catch {
    return undefined; // it is another runtime's, and says something else
  }
}

export const containerState = (s: pb.ContainerState | undefined): ContainerState => containerStates[s ?? -1] ?? 'unknown';

export const eventTopic = (t: pb.ContainerEventType): RuntimeEvent['topic'] => eventTopics[t] ?? 'other';

const imageText = (i: pb.ImageSpec | undefined): string => i?.userSpecifiedImage || i?.image || '';
