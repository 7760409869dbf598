// pure
/**
 * What the runtime is told about a pod and its containers: PodSandboxConfig and ContainerConfig from the desired pod. Mirrors kubelet v1.32
 * kuberuntime_sandbox.go and kuberuntime_container.go (facts 10); test/conformance/kubelet-1.32 holds what a real kubelet sent.
 */
import type { DesiredPod } from '../api/desired.ts';
import { type CgroupDriver, cgroupParent, qosClass } from '../api/resources.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import type { ContainerDevices } from '../container/devices.ts';
import { expand } from '../container/expand.ts';
import type { ContainerConfig, Mount, RunnableImage, SandboxConfig } from '../container/runtime.ts';
import type { ContainerId } from '../container/words.ts';
import { bareDomain, type DnsSettings, podDns } from './dns.ts';
import { containerEnvironment, type NodeFacts } from './environment.ts';
import { containerAnnotations, containerLabels, sandboxAnnotations, sandboxLabels } from './marks.ts';
import { hostname, podLogFolder } from './names.ts';
import { portMappings } from './ports.ts';
import { containerLinuxResources, type NodeCgroups, podLinuxResources, type ResourceInputs } from './resources.ts';
import { containerSecurity, hiddenPaths, namespaceOptions, runAs, type SeccompSettings, sandboxSecurity } from './security.ts';

export interface SandboxInputs extends DnsSettings {
  readonly attempt: number;
  readonly nodeName: string;
  readonly podLogsDir: string;
  /** `<boot id>/<ms>`, see container/started.ts. */
  readonly started: string;
  readonly cgroupDriver: CgroupDriver;
  readonly cgroupParent?: (desired: DesiredPod, driver: CgroupDriver) => string;
  /** Absent: cgroup v1 with all controllers. */
  readonly cgroups?: NodeCgroups;
}

/** Throws when the pod's full host name is too long. */
export function sandboxConfig(desired: DesiredPod, o: SandboxInputs): SandboxConfig {
  const { pod } = desired;
  const all: readonly Container[] = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  return {
    name: desired.name,
    namespace: desired.namespace,
    uid: desired.uid,
    attempt: o.attempt,
    hostname: hostname(pod, bareDomain(o.clusterDomain)),
    logDirectory: `${o.podLogsDir}/${podLogFolder(desired)}`,
    dns: podDns(pod, o).dns,
    portMappings: portMappings(pod),
    labels: sandboxLabels(desired, o.nodeName),
    annotations: sandboxAnnotations(desired, o.started),
    cgroupParent: o.cgroupParent?.(desired, o.cgroupDriver) ?? cgroupParent(o.cgroupDriver, qosClass(pod), desired.uid),
    // a plain sandbox refuses privileged containers
    privileged: all.some((c) => c.securityContext?.privileged === true),
    namespaces: namespaceOptions(pod),
    resources: podLinuxResources(pod, o.cgroups),
    seccomp: { type: 'RuntimeDefault' },
    ...sandboxSecurity(pod),
  };
}

export interface ContainerInputs extends NodeFacts, SeccompSettings, ResourceInputs {
  readonly attempt: number;
  readonly image: RunnableImage;
  /** Folders of this machine that the kubelet masks too, see hiddenPaths. */
  readonly thermalThrottlePaths: readonly string[];
  readonly mounts?: readonly Mount[];
  /** Of the node's devices. */
  readonly given?: ContainerDevices;
  /** Its environment, where it was made before. */
  readonly env?: ReadonlyMap<string, string>;
  /** What is written on it beside its own marks. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** An ephemeral container's target. */
  readonly targetId?: ContainerId;
}

/** Throws when a value of the environment cannot be told. */
export function containerConfig(desired: DesiredPod, container: Container | EphemeralContainer, o: ContainerInputs): ContainerConfig {
  const { pod } = desired;
  const spec: Container = { ...container, image: container.image ?? '' };
  const env = o.env ?? containerEnvironment(pod, spec, o);
  const expanded = (texts: readonly string[] | undefined): string[] => (texts ?? []).map((t) => expand(t, (name) => env.get(name)));
  return {
    name: spec.name,
    attempt: o.attempt,
    image: o.image.id,
    userSpecifiedImage: spec.image,
    command: expanded(spec.command),
    args: expanded(spec.args),
    workingDir: spec.workingDir ?? '',
    envs: [...env].map(([key, value]) => ({ key, value })),
    mounts: o.mounts ?? [],
    ...(o.given !== undefined && o.given.devices.length > 0 && { devices: o.given.devices }),
    ...(o.given !== undefined && o.given.cdiDevices.length > 0 && { cdiDevices: o.given.cdiDevices }),
    labels: containerLabels(desired, spec.name, o.nodeName),
    annotations: { ...containerAnnotations(desired, spec, o.attempt), ...o.annotations, ...o.given?.annotations },
    logPath: `${spec.name}/${o.attempt}.log`,
    stdin: spec.stdin ?? false,
    stdinOnce: spec.stdinOnce ?? false,
    tty: spec.tty ?? false,
    resources: containerLinuxResources(pod, spec, o),
    privileged: spec.securityContext?.privileged ?? false,
    namespaces: namespaceOptions(pod, o.targetId),
    ...runAs(pod, spec, o.image),
    ...hiddenPaths(spec, o.thermalThrottlePaths),
    ...withGroups(containerSecurity(pod, spec, o), o.given?.groups ?? []),
  };
}

/** Beside its own, the groups that a device asks for. */
function withGroups(security: ReturnType<typeof containerSecurity>, groups: readonly number[]): ReturnType<typeof containerSecurity> {
  if (groups.length === 0) return security;
  return { ...security, supplementalGroups: [...new Set([...(security.supplementalGroups ?? []), ...groups])] };
}
