// pure
/**
 * What the runtime is told about a pod and its containers: PodSandboxConfig and ContainerConfig from the desired pod. Mirrors kubelet v1.32
 * kuberuntime_sandbox.go and kuberuntime_container.go (facts 10); test/conformance/kubelet-1.32 holds what a real kubelet sent.
 */
import type { DesiredPod } from '../api/desired.ts';
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import {
  type CgroupDriver,
  cgroupParent,
  cpuQuota,
  cpuShares,
  effectiveRequests,
  oomScoreAdj,
  podRequest,
  qosClass,
} from '../api/resources.ts';
import type { Container, EphemeralContainer, Pod } from '../api/v1.ts';
import { expand } from '../container/expand.ts';
import type { ContainerConfig, LinuxResources, Mount, RunnableImage, SandboxConfig } from '../container/runtime.ts';
import type { ContainerId } from '../container/words.ts';
import { bareDomain, type DnsSettings, podDns } from './dns.ts';
import { containerEnvironment, type NodeFacts } from './environment.ts';
import { hugepageLimits } from './hugepages.ts';
import { containerAnnotations, containerLabels, sandboxAnnotations, sandboxLabels } from './marks.ts';
import { hostname, podLogFolder } from './names.ts';
import { portMappings } from './ports.ts';
import { containerSecurity, hiddenPaths, namespaceOptions, runAs, type SeccompSettings, sandboxSecurity } from './security.ts';

const cpuPeriodUs = 100_000;

function linuxResources(requestMilli: number, limitMilli: number, memoryBytes: number): LinuxResources {
  const quota = cpuQuota(limitMilli, cpuPeriodUs);
  return {
    cpuPeriod: cpuPeriodUs,
    ...(quota !== 0 && { cpuQuota: quota }),
    cpuShares: cpuShares(requestMilli),
    ...(memoryBytes > 0 && { memoryLimitBytes: memoryBytes }),
  };
}

/** The pod's sums; unlike its cgroup's limit, a limit counts here although another container has none. */
function podLinuxResources(pod: Pod): LinuxResources {
  const limitsAsRequests = (c: Container): Container => ({ ...c, resources: { requests: c.resources?.limits ?? {} } });
  const { initContainers = [], containers } = pod.spec;
  const limits = {
    spec: { ...pod.spec, initContainers: initContainers.map(limitsAsRequests), containers: containers.map(limitsAsRequests) },
  };
  return linuxResources(podRequest(pod, 'cpu'), podRequest(limits, 'cpu'), podRequest(limits, 'memory'));
}

function containerLinuxResources(pod: Pod, container: Container, o: ContainerInputs): LinuxResources {
  const limits = container.resources?.limits;
  const hugepages = hugepageLimits(limits ?? {}, o.hugepageSizes ?? []);
  const memoryBytes = quantityValue(limits?.memory);
  return {
    ...linuxResources(quantityMilliValue(effectiveRequests(container).cpu), quantityMilliValue(limits?.cpu), memoryBytes),
    // no swap beyond the limit: what a container may not keep in memory it must not keep on the card either
    ...(o.countsSwap === true && memoryBytes > 0 && { memorySwapLimitBytes: memoryBytes }),
    oomScoreAdj: oomScoreAdj(pod, container, o.nodeMemoryBytes),
    ...(hugepages.length > 0 && { hugepageLimits: hugepages }),
  };
}

export interface SandboxInputs extends DnsSettings {
  readonly attempt: number;
  readonly nodeName: string;
  readonly podLogsDir: string;
  /** `<boot id>/<ms>`, see container/started.ts. */
  readonly started: string;
  readonly cgroupDriver: CgroupDriver;
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
    cgroupParent: cgroupParent(o.cgroupDriver, qosClass(pod), desired.uid),
    // a plain sandbox refuses privileged containers
    privileged: all.some((c) => c.securityContext?.privileged === true),
    namespaces: namespaceOptions(pod),
    resources: podLinuxResources(pod),
    seccomp: { type: 'RuntimeDefault' },
    ...sandboxSecurity(pod),
  };
}

export interface ContainerInputs extends NodeFacts, SeccompSettings {
  readonly attempt: number;
  readonly image: RunnableImage;
  /** Folders of this machine that the kubelet masks too, see hiddenPaths. */
  readonly thermalThrottlePaths: readonly string[];
  /** Of this machine: `2MB`, `1GB`. */
  readonly hugepageSizes?: readonly string[];
  readonly countsSwap?: boolean;
  readonly mounts?: readonly Mount[];
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
    labels: containerLabels(desired, spec.name, o.nodeName),
    annotations: { ...containerAnnotations(desired, spec, o.attempt), ...o.annotations },
    logPath: `${spec.name}/${o.attempt}.log`,
    stdin: spec.stdin ?? false,
    stdinOnce: spec.stdinOnce ?? false,
    tty: spec.tty ?? false,
    resources: containerLinuxResources(pod, spec, o),
    privileged: spec.securityContext?.privileged ?? false,
    namespaces: namespaceOptions(pod, o.targetId),
    ...runAs(pod, spec, o.image),
    ...hiddenPaths(spec, o.thermalThrottlePaths),
    ...containerSecurity(pod, spec, o),
  };
}
