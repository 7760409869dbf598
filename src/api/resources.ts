// pure
/**
 * What requests and limits come to: QoS class, CPU shares, weight and quota, oom_score_adj, cgroup names, the sums of a pod. Formulas of
 * kubelet v1.32 (cm/helpers_linux.go, qos/policy.go, component-helpers resource); the conformance table resources.json holds them.
 */
import { compareQuantities, parseQuantity, quantityMilliValue, quantityValue } from './quantity.ts';
import type { Container, Pod, Quantity } from './v1.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';
export type CgroupDriver = 'cgroupfs' | 'systemd';
type ResourceList = Readonly<Record<string, Quantity>>;
type PodLike = Pick<Pod, 'spec'>;

/** Requests, each missing one taken from the limit, as defaulting does. */
export const effectiveRequests = (c: Pick<Container, 'resources'>): ResourceList => ({
  ...c.resources?.limits,
  ...c.resources?.requests,
});
export const isSidecar = (c: Container): boolean => c.restartPolicy === 'Always';

const positive = (q: Quantity | undefined): boolean => q !== undefined && (parseQuantity(q)?.nano ?? 0n) > 0n;

/** The QoS class: only CPU and memory count, zero counts as absent, init containers count too. */
export function qosClass(pod: PodLike): QosClass {
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  let any = false;
  let guaranteed = true;
  for (const container of all) {
    const requests = effectiveRequests(container);
    const limits = container.resources?.limits ?? {};
    for (const name of ['cpu', 'memory']) {
      const request = requests[name];
      const limit = limits[name];
      if (positive(request) || positive(limit)) any = true;
      if (limit === undefined || !positive(limit) || request === undefined || compareQuantities(request, limit) !== 0) guaranteed = false;
    }
  }
  return !any ? 'BestEffort' : guaranteed ? 'Guaranteed' : 'Burstable';
}

/** cgroup v1 style shares of a milli-CPU request, 2 to 262144. */
export const cpuShares = (milliCpu: number): number => Math.max(2, Math.min(262_144, Math.floor((milliCpu * 1024) / 1000)));
/** cgroup v2 cpu.weight of shares, 1 to 10000. */
export const cpuWeight = (shares: number): number => (shares >= 262_144 ? 10_000 : 1 + Math.floor(((shares - 2) * 9999) / 262_142));
/** Shares read back from cpu.weight. */
export const sharesFromWeight = (weight: number): number => 2 + Math.floor(((weight - 1) * 262_142) / 9999);
/** Microseconds per period that a milli-CPU limit allows; 0: no limit. */
export const cpuQuota = (milliCpu: number, periodUs: number): number =>
  milliCpu === 0 ? 0 : Math.max(1000, Math.floor((milliCpu * periodUs) / 1000));

const memoryRequest = (c: Container): number => quantityValue(effectiveRequests(c).memory);

/** oom_score_adj of one container. */
export function oomScoreAdj(pod: PodLike, container: Container, nodeMemoryBytes: number): number {
  if (pod.spec.priorityClassName === 'system-node-critical') return -997;
  const qos = qosClass(pod);
  if (qos === 'Guaranteed') return -997;
  if (qos === 'BestEffort') return 1000;
  const score = (requestBytes: number): number => 1000 - Math.floor((1000 * requestBytes) / nodeMemoryBytes);
  let adjust = score(memoryRequest(container));
  // a sidecar is never killed before the containers it serves
  const serves = isSidecar(container) && (pod.spec.initContainers ?? []).some((c) => c.name === container.name);
  if (serves) adjust = Math.min(adjust, score(Math.min(...pod.spec.containers.map(memoryRequest))));
  return adjust < 3 ? 3 : adjust === 1000 ? 999 : adjust;
}

/** Components of a cgroup's name as the driver spells them: a path under the cgroup file system, with a leading slash. */
export function cgroupPath(driver: CgroupDriver, name: readonly string[]): string {
  if (driver === 'cgroupfs') return `/${name.join('/')}`;
  // systemd names nest: each slice carries its parents' names; `-` is the separator, so it may not stand in a component
  const parts = name.map((part) => part.replaceAll('-', '_'));
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('-')}.slice`).join('');
}

/** The cgroup of a pod, or of its QoS class without a uid, below `root`: `cgroup_parent` of the CRI, and the path under the cgroup root. */
export function cgroupParent(driver: CgroupDriver, qos: QosClass, uid?: string, root: readonly string[] = []): string {
  const level = qos === 'Guaranteed' ? [] : [qos.toLowerCase()];
  return cgroupPath(driver, [...root, 'kubepods', ...level, ...(uid === undefined ? [] : [`pod${uid}`])]);
}

/** Requests or limits of a whole pod: app containers and sidecars together, or one init container with the sidecars before it, if more. */
function podTotal(pod: PodLike, amountOf: (c: Container) => number): number {
  let sidecars = 0;
  let atInit = 0;
  for (const container of pod.spec.initContainers ?? []) {
    if (isSidecar(container)) sidecars += amountOf(container);
    atInit = Math.max(atInit, sidecars + (isSidecar(container) ? 0 : amountOf(container)));
  }
  return Math.max(atInit, sidecars + pod.spec.containers.reduce((sum, c) => sum + amountOf(c), 0));
}

export interface PodResources {
  readonly cpuShares: number;
  readonly cpuWeight: number;
  /** Absent: leave cpu.max alone. −1: `max`. */
  readonly cpuQuota?: number;
  readonly cpuPeriodUs?: number;
  /** Absent: leave memory.max alone. */
  readonly memoryBytes?: number;
}

/** What the pod's own cgroup is given (kubelet ResourceConfigForPod). A limit holds only when every container has one. */
export function podResources(pod: PodLike, o: { readonly enforceCpuLimits: boolean; readonly periodUs: number }): PodResources {
  const qos = qosClass(pod);
  const limitOf = (name: string) => (c: Container) => c.resources?.limits?.[name];
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const limited = (name: string): boolean => all.every((c) => positive(limitOf(name)(c)));
  const shares = qos === 'BestEffort' ? 2 : cpuShares(podTotal(pod, (c) => quantityMilliValue(effectiveRequests(c).cpu)));
  const quota = cpuQuota(
    podTotal(pod, (c) => quantityMilliValue(limitOf('cpu')(c))),
    o.periodUs,
  );
  const memory = podTotal(pod, (c) => quantityValue(limitOf('memory')(c)));
  return {
    cpuShares: shares,
    cpuWeight: cpuWeight(shares),
    ...(qos !== 'BestEffort' && limited('cpu') && { cpuQuota: o.enforceCpuLimits ? quota : -1, cpuPeriodUs: o.periodUs }),
    ...(qos !== 'BestEffort' && limited('memory') && { memoryBytes: memory }),
  };
}

/** Milli-CPU or bytes a pod asks for as a whole, for admission. */
export const podRequest = (pod: PodLike, name: string): number =>
  podTotal(pod, (c) => (name === 'cpu' ? quantityMilliValue : quantityValue)(effectiveRequests(c)[name]));

/** Bytes of swap a Burstable, non-critical container may use under LimitedSwap. */
export const limitedSwap = (memoryRequestBytes: number, memoryBytes: number, swapBytes: number): number =>
  Math.floor((memoryRequestBytes / memoryBytes) * swapBytes);

/** The cgroup v2 keys of MemoryQoS; `memory.high` only where it lies above the request. A limit of 0 is none. */
export function memoryQos(o: {
  readonly requestBytes: number;
  readonly limitBytes: number;
  readonly nodeAllocatableBytes: number;
  readonly throttlingFactor: number;
  readonly pageSize: number;
}): Readonly<Record<string, string>> {
  const top = o.limitBytes > 0 ? o.limitBytes : o.nodeAllocatableBytes;
  const high = Math.floor((o.requestBytes + o.throttlingFactor * (top - o.requestBytes)) / o.pageSize) * o.pageSize;
  return {
    ...(o.requestBytes > 0 && { 'memory.min': String(o.requestBytes) }),
    ...(o.requestBytes !== o.limitBytes && high > o.requestBytes && { 'memory.high': String(high) }),
  };
}

/** A resourceFieldRef as text: the value over its divisor, rounded up. An absent or zero divisor is 1; CPU is counted in thousandths. */
export function downwardResource(resource: string, value: Quantity, divisor: Quantity | undefined): string {
  const one = divisor === undefined || divisor === '' || !positive(divisor) ? '1' : divisor;
  const amount = resource.endsWith('cpu') ? quantityMilliValue : quantityValue;
  return String(Math.ceil(amount(value) / amount(one)));
}
