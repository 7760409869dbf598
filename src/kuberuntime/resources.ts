// pure
/**
 * LinuxContainerResources of a container and of its sandbox, as the kubelet sends them on either kind of cgroup (facts 10.6). Mirrors kubelet
 * v1.32 kuberuntime_container_linux.go with its defaults: no swap, and a container that runs out of memory is killed as a whole.
 */
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import { cpuQuota, cpuShares, effectiveRequests, oomScoreAdj, podRequest } from '../api/resources.ts';
import type { Container, Pod } from '../api/v1.ts';
import type { LinuxResources } from '../container/runtime.ts';
import { hugepageLimits } from './hugepages.ts';

const cpuPeriodUs = 100_000;

/** `false`: only the process that asked for the memory is killed. Read when a container is made. */
export const oomGroupAnnotation = 'podsched.dev/memory-oom-group';

/** What the cgroups of this node can hold of a container. */
export interface NodeCgroups {
  /** cgroup v2: some limits go by the names of their files. */
  readonly unified: boolean;
  /** The controller is there. A limit of one that is not is left out: the runtime would not make the container. */
  readonly cpu: boolean;
  readonly memory: boolean;
}

/** Every node was so before it was asked. */
const plainCgroups: NodeCgroups = { unified: false, cpu: true, memory: true };

export interface ResourceInputs {
  readonly nodeMemoryBytes: number;
  /** Of this machine: `2MB`, `1GB`. */
  readonly hugepageSizes?: readonly string[];
  /** The kernel counts the swap of a cgroup. */
  readonly countsSwap?: boolean;
  /** Absent: cgroup v1 with all controllers. */
  readonly cgroups?: NodeCgroups;
  /** The CPUs it may use, as a list (`0-1,3`); absent: all. */
  readonly cpusetCpus?: string;
}

function linuxResources(
  pod: Pod,
  requestMilli: number,
  limitMilli: number,
  memoryBytes: number,
  cgroups: NodeCgroups | undefined,
): LinuxResources {
  const { unified, cpu, memory } = cgroups ?? plainCgroups;
  const quota = cpuQuota(limitMilli, cpuPeriodUs);
  return {
    ...(cpu && { cpuPeriod: cpuPeriodUs, ...(quota !== 0 && { cpuQuota: quota }), cpuShares: cpuShares(requestMilli) }),
    ...(memory && memoryBytes > 0 && { memoryLimitBytes: memoryBytes }),
    ...(unified && memory && pod.metadata.annotations?.[oomGroupAnnotation] !== 'false' && { unified: { 'memory.oom.group': '1' } }),
  };
}

/** The pod's sums; unlike its cgroup's limit, a limit counts here although another container has none. */
export function podLinuxResources(pod: Pod, cgroups?: NodeCgroups): LinuxResources {
  const limitsAsRequests = (c: Container): Container => ({ ...c, resources: { requests: c.resources?.limits ?? {} } });
  const { initContainers = [], containers } = pod.spec;
  const limits = {
    spec: { ...pod.spec, initContainers: initContainers.map(limitsAsRequests), containers: containers.map(limitsAsRequests) },
  };
  return linuxResources(pod, podRequest(pod, 'cpu'), podRequest(limits, 'cpu'), podRequest(limits, 'memory'), cgroups);
}

export function containerLinuxResources(pod: Pod, container: Container, o: ResourceInputs): LinuxResources {
  const limits = container.resources?.limits;
  const hugepages = hugepageLimits(limits ?? {}, o.hugepageSizes ?? []);
  const memoryBytes = quantityValue(limits?.memory);
  const requestMilli = quantityMilliValue(effectiveRequests(container).cpu);
  const common = linuxResources(pod, requestMilli, quantityMilliValue(limits?.cpu), memoryBytes, o.cgroups);
  return {
    ...common,
    ...noSwap(o, memoryBytes, common.unified),
    oomScoreAdj: oomScoreAdj(pod, container, o.nodeMemoryBytes),
    ...(hugepages.length > 0 && { hugepageLimits: hugepages }),
    ...(o.cpusetCpus !== undefined && { cpusetCpus: o.cpusetCpus }),
  };
}

/** What a container may not keep in memory it must not keep on the card either. */
function noSwap({ countsSwap, cgroups }: ResourceInputs, memoryBytes: number, unified: LinuxResources['unified']): LinuxResources {
  if (countsSwap !== true || cgroups?.memory === false) return {};
  if (cgroups?.unified === true) return { unified: { ...unified, 'memory.swap.max': '0' } };
  // the older kernel counts both together, and only beside a limit
  return memoryBytes > 0 ? { memorySwapLimitBytes: memoryBytes } : {};
}
