// pure
/**
 * What the cgroups above the pods are given: that of all pods, so much of the node as the reservations leave, and those of the QoS classes.
 * Mirrors kubelet v1.32 cm/node_container_manager_linux.go and qos_container_manager_linux.go (facts 11.3, 11.4).
 */
import type { Limit } from 'cgroup-ts';
import type { NodeAmounts } from '../api/nodeResources.ts';
import { cpuShares, cpuWeight, podRequest, qosClass } from '../api/resources.ts';
import type { Pod } from '../api/v1.ts';
import { type Hugepages, hugetlbLimits, type Limits, wholePages } from './podLimits.ts';

/** What a node has, or what all its pods together may have. */
export interface PodsAmounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  /** Processes; absent: the kernel does not say how many there may be. */
  readonly pids?: number;
  /** Bytes by resource name. */
  readonly hugepages: Readonly<Record<string, number>>;
}

/** What all pods together may have: eviction thresholds are not taken off here, unlike from what a pod may ask for. Never below 0. */
export function leftForPods(has: PodsAmounts, reserved: Pick<NodeAmounts, 'cpuMilli' | 'memoryBytes' | 'pids'>): PodsAmounts {
  const left = (amount: number, taken: number): number => Math.max(0, amount - taken);
  return {
    cpuMilli: left(has.cpuMilli, reserved.cpuMilli),
    memoryBytes: left(has.memoryBytes, reserved.memoryBytes),
    ...(has.pids !== undefined && { pids: left(has.pids, reserved.pids) }),
    hugepages: has.hugepages,
  };
}

/** The cgroup of all pods. */
export const nodeLimits = (may: PodsAmounts, o: { readonly hugepages: Hugepages; readonly pageBytes: number }): Limits => ({
  cpu: { weight: cpuWeight(cpuShares(may.cpuMilli)) },
  memory: { max: wholePages(may.memoryBytes, o.pageBytes) },
  ...(may.pids !== undefined && { pids: { max: may.pids } }),
  hugetlb: hugetlbLimits(o.hugepages, may.hugepages),
});

const unlimited = (hugepages: Hugepages): Readonly<Record<string, Limit>> =>
  Object.fromEntries(hugepages({}).map(({ pageSize }) => [pageSize, 'max']));

/** That of Burstable pods weighs as much as they ask for together. `active`: the pods that are let in and have not ended. */
export function burstableLimits(active: readonly Pick<Pod, 'spec'>[], hugepages: Hugepages): Limits {
  const asked = active.filter((pod) => qosClass(pod) === 'Burstable').reduce((sum, pod) => sum + podRequest(pod, 'cpu'), 0);
  return { cpu: { weight: cpuWeight(cpuShares(asked)) }, hugetlb: unlimited(hugepages) };
}

/** That of BestEffort pods weighs least. */
export const bestEffortLimits = (hugepages: Hugepages): Limits => ({
  cpu: { weight: cpuWeight(cpuShares(0)) },
  hugetlb: unlimited(hugepages),
});
