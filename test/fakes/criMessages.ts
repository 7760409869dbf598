/** The other side of src/cri/convert.ts, for the fake server: requests become words, words become answers. Written apart from it on purpose. */
import type { PodUid } from '../../src/api/objects.ts';
import type {
  ContainerConfig,
  ImageInfo,
  LinuxResources,
  Mount,
  NamespaceOptions,
  SandboxConfig,
  SecurityProfile,
} from '../../src/container/runtime.ts';
import type { ContainerStats } from '../../src/container/stats.ts';
import type { Container, ContainerId, ContainerStatus, Sandbox, SandboxStatus } from '../../src/container/words.ts';
import * as pb from '../../src/cri/gen/cri_pb.ts';

const missing = (what: string): never => {
  throw new Error(`request without ${what}`);
};

export const uidOf = (text: string | undefined): PodUid | undefined => (text === undefined ? undefined : (text as PodUid));

export function sandboxConfig(c: pb.PodSandboxConfig | undefined): SandboxConfig {
  const m = c?.metadata ?? missing('sandbox metadata');
  const { linux } = c ?? missing('sandbox config');
  return {
    name: m.name,
    namespace: m.namespace,
    uid: m.uid as PodUid,
    attempt: m.attempt,
    hostname: c?.hostname ?? '',
    logDirectory: c?.logDirectory ?? '',
    dns: { servers: c?.dnsConfig?.servers ?? [], searches: c?.dnsConfig?.searches ?? [], options: c?.dnsConfig?.options ?? [] },
    portMappings: (c?.portMappings ?? []).map((p) => ({
      protocol: pb.Protocol[p.protocol] as 'TCP',
      containerPort: p.containerPort,
      hostPort: p.hostPort,
      hostIp: p.hostIp,
    })),
    labels: c?.labels ?? {},
    annotations: c?.annotations ?? {},
    cgroupParent: linux?.cgroupParent ?? '',
    privileged: linux?.securityContext?.privileged ?? false,
    namespaces: namespaces(linux?.securityContext?.namespaceOptions),
    resources: resources(linux?.resources),
    ...(Object.keys(linux?.sysctls ?? {}).length > 0 ? { sysctls: linux?.sysctls ?? {} } : {}),
    ...user(linux?.securityContext),
  };
}

export function containerConfig(c: pb.ContainerConfig | undefined): ContainerConfig {
  const m = c?.metadata ?? missing('container metadata');
  const config = c ?? missing('container config');
  const security = config.linux?.securityContext;
  return {
    name: m.name,
    attempt: m.attempt,
    image: config.image?.image ?? '',
    userSpecifiedImage: config.image?.userSpecifiedImage ?? '',
    command: config.command,
    args: config.args,
    workingDir: config.workingDir,
    envs: config.envs.map(({ key, value }) => ({ key, value })),
    mounts: config.mounts.map(mount),
    ...(config.devices.length === 0
      ? {}
      : { devices: config.devices.map(({ containerPath, hostPath, permissions }) => ({ containerPath, hostPath, permissions })) }),
    ...(config.CDIDevices.length === 0 ? {} : { cdiDevices: config.CDIDevices.map((d) => d.name) }),
    labels: config.labels,
    annotations: config.annotations,
    logPath: config.logPath,
    stdin: config.stdin,
    stdinOnce: config.stdinOnce,
    tty: config.tty,
    resources: resources(config.linux?.resources),
    privileged: security?.privileged ?? false,
    namespaces: namespaces(security?.namespaceOptions),
    ...user(security),
    ...(security?.capabilities === undefined
      ? {}
      : { capabilities: { add: security.capabilities.addCapabilities, drop: security.capabilities.dropCapabilities } }),
    ...(security?.readonlyRootfs ? { readonlyRootFilesystem: true } : {}),
    ...(security?.noNewPrivs ? { noNewPrivileges: true } : {}),
    ...(security?.apparmor === undefined ? {} : { appArmor: profile(security.apparmor) }),
    ...(security?.runAsUsername ? { runAsUserName: security.runAsUsername } : {}),
    maskedPaths: security?.maskedPaths ?? [],
    readonlyPaths: security?.readonlyPaths ?? [],
  };
}

function user(s: pb.LinuxSandboxSecurityContext | pb.LinuxContainerSecurityContext | undefined) {
  const { user = '', role = '', type = '', level = '' } = s?.selinuxOptions ?? {};
  return {
    ...(s?.runAsUser === undefined ? {} : { runAsUser: Number(s.runAsUser.value) }),
    ...(s?.runAsGroup === undefined ? {} : { runAsGroup: Number(s.runAsGroup.value) }),
    ...((s?.supplementalGroups ?? []).length === 0 ? {} : { supplementalGroups: (s?.supplementalGroups ?? []).map(Number) }),
    ...(s?.selinuxOptions === undefined ? {} : { seLinux: { user, role, type, level } }),
  };
}

const mount = (m: pb.Mount): Mount => ({
  containerPath: m.containerPath,
  hostPath: m.hostPath,
  readonly: m.readonly,
  ...(m.propagation === pb.MountPropagation.PROPAGATION_PRIVATE
    ? {}
    : { propagation: pb.MountPropagation[m.propagation].slice('PROPAGATION_'.length) as 'BIDIRECTIONAL' }),
  ...(m.recursiveReadOnly ? { recursiveReadOnly: true } : {}),
  ...(m.selinuxRelabel ? { selinuxRelabel: true } : {}),
});

const profile = (p: pb.SecurityProfile): SecurityProfile => ({
  type: pb.SecurityProfile_ProfileType[p.profileType] as 'RuntimeDefault',
  ...(p.localhostRef ? { localhostRef: p.localhostRef } : {}),
});

function namespaces(n: pb.NamespaceOption | undefined): NamespaceOptions {
  const mode = (m: pb.NamespaceMode | undefined) => pb.NamespaceMode[m ?? 0] as NamespaceOptions['pid'];
  return {
    network: mode(n?.network),
    pid: mode(n?.pid),
    ipc: mode(n?.ipc),
    ...(n?.targetId ? { targetId: n.targetId as ContainerId } : {}),
  };
}

export function resources(r: pb.LinuxContainerResources | undefined): LinuxResources {
  const set = (name: keyof LinuxResources, value: bigint | undefined) => (value ? { [name]: Number(value) } : {});
  return {
    ...set('cpuPeriod', r?.cpuPeriod),
    ...set('cpuQuota', r?.cpuQuota),
    ...set('cpuShares', r?.cpuShares),
    ...set('memoryLimitBytes', r?.memoryLimitInBytes),
    ...set('oomScoreAdj', r?.oomScoreAdj),
    ...set('memorySwapLimitBytes', r?.memorySwapLimitInBytes),
    ...(r?.cpusetCpus ? { cpusetCpus: r.cpusetCpus } : {}),
    ...(r?.cpusetMems ? { cpusetMems: r.cpusetMems } : {}),
    ...(r !== undefined && Object.keys(r.unified).length > 0 ? { unified: r.unified } : {}),
    ...(r !== undefined && r.hugepageLimits.length > 0
      ? { hugepageLimits: r.hugepageLimits.map((h) => ({ pageSize: h.pageSize, limitBytes: Number(h.limit) })) }
      : {}),
  };
}

/** Real runtimes have nanoseconds: digits below the millisecond that must not disturb anybody. */
const ns = (ms: number | undefined): bigint => (ms === undefined ? 0n : BigInt(ms) * 1_000_000n + 123_457n);

export const sandbox = (s: Sandbox) => ({
  id: s.id,
  metadata: { name: s.name, namespace: s.namespace, uid: s.uid, attempt: s.attempt },
  state: s.state === 'ready' ? pb.PodSandboxState.SANDBOX_READY : pb.PodSandboxState.SANDBOX_NOTREADY,
  createdAt: ns(s.createdAt),
  labels: { ...s.labels },
  annotations: { ...s.annotations },
});

export const sandboxStatus = (s: SandboxStatus) => ({
  ...sandbox(s),
  ...(s.network === undefined ? {} : { network: { ip: s.network.ip, additionalIps: s.network.additionalIps.map((ip) => ({ ip })) } }),
  linux: { namespaces: { options: { network: pb.NamespaceMode[s.networkMode] } } },
});

const states: Readonly<Record<Container['state'], pb.ContainerState>> = {
  created: pb.ContainerState.CONTAINER_CREATED,
  running: pb.ContainerState.CONTAINER_RUNNING,
  exited: pb.ContainerState.CONTAINER_EXITED,
  unknown: pb.ContainerState.CONTAINER_UNKNOWN,
};

const shared = (c: Container) => ({
  id: c.id,
  metadata: { name: c.name, attempt: c.attempt },
  image: { image: c.image },
  imageRef: c.imageRef,
  state: states[c.state],
  createdAt: ns(c.createdAt),
  labels: { ...c.labels },
  annotations: { ...c.annotations },
});

export const container = (c: Container) => ({ ...shared(c), podSandboxId: c.sandboxId });

export const containerStatus = (c: ContainerStatus) => ({
  ...shared(c),
  startedAt: ns(c.startedAt),
  finishedAt: ns(c.finishedAt),
  exitCode: c.exitCode,
  reason: c.reason,
  message: c.message,
  logPath: c.logPath,
  mounts: c.mounts.map((m) => ({ ...m })),
  ...(c.cpusetCpus === undefined ? {} : { resources: { linux: { cpusetCpus: c.cpusetCpus } } }),
});

export const imageMessage = (i: ImageInfo) => ({
  id: i.id,
  username: i.username,
  repoTags: [...i.tags],
  repoDigests: [...i.digests],
  pinned: i.pinned,
  ...(i.sizeBytes === undefined ? {} : { size: BigInt(i.sizeBytes) }),
  ...(i.uid === undefined ? {} : { uid: { value: BigInt(i.uid) } }),
});

/** With containerd's verbose words. */
export const image = (i: ImageInfo | undefined) =>
  i === undefined ? {} : { image: imageMessage(i), ...(i.platform && { info: { info: JSON.stringify({ imageSpec: i.platform }) } }) };

/** The part of containerd 1.x's configuration that says which cgroup driver it uses, and of what it makes sandboxes. */
export const verboseConfig = (driver: 'cgroupfs' | 'systemd' | undefined, sandboxImage?: string): string =>
  JSON.stringify({
    ...(sandboxImage !== undefined && { sandboxImage }),
    ...(driver !== undefined && {
      containerd: { defaultRuntimeName: 'runc', runtimes: { runc: { options: { SystemdCgroup: driver === 'systemd' } } } },
    }),
  });

/** Nanoseconds, and a value only where there is one. */
export function containerStats({ id, name, attempt, labels, cpu, memory, swap, writableLayer }: ContainerStats) {
  const timestamp = (atMs: number) => BigInt(Math.round(atMs * 1000)) * 1000n;
  const value = (v: number | undefined) => (v === undefined ? undefined : { value: BigInt(v) });
  return {
    attributes: { id, metadata: { name, attempt }, labels },
    ...(cpu && { cpu: { timestamp: timestamp(cpu.atMs), usageCoreNanoSeconds: value(cpu.usageNs) } }),
    ...(memory && {
      memory: {
        timestamp: timestamp(memory.atMs),
        workingSetBytes: value(memory.workingSetBytes),
        availableBytes: value(memory.availableBytes),
        usageBytes: value(memory.usageBytes),
        rssBytes: value(memory.rssBytes),
        pageFaults: value(memory.pageFaults),
        majorPageFaults: value(memory.majorPageFaults),
      },
    }),
    ...(swap && {
      swap: {
        timestamp: timestamp(swap.atMs),
        swapUsageBytes: value(swap.usageBytes),
        swapAvailableBytes: value(swap.availableBytes),
      },
    }),
    ...(writableLayer && {
      writableLayer: {
        timestamp: timestamp(writableLayer.atMs),
        fsId: { mountpoint: writableLayer.mountpoint },
        usedBytes: value(writableLayer.usedBytes),
        inodesUsed: value(writableLayer.inodesUsed),
      },
    }),
  };
}
