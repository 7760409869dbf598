// pure
/**
 * What the cgroup of a pod is given, and which part of it may be written when: a limit that rises is written before a container is replaced,
 * one that falls after. Mirrors kubelet v1.32 cm/pod_container_manager_linux.go (facts 11.1, 11.3), whose pods never change their limits.
 */
import type { Limit, Resources } from 'cgroup-ts';
import { podRequest, podResources } from '../api/resources.ts';
import type { Container, Pod, Quantity } from '../api/v1.ts';

/** As the kernel's files spell it; what is not mentioned is left alone. */
export type Limits = Pick<Resources, 'cpu' | 'memory' | 'pids' | 'hugetlb'>;

export const periodUs = 100_000;

/** A limit for each page size of this machine, from amounts by resource name (`hugepages-2Mi`). */
export type Hugepages = (
  amounts: Readonly<Record<string, Quantity>>,
) => readonly { readonly pageSize: string; readonly limitBytes: number }[];

export interface PodLimitSettings {
  /** Processes of one pod; 0 or less: as many as it likes. */
  readonly podPidsLimit: number;
  readonly hugepages: Hugepages;
  /** Bytes of one page of memory: what the kernel rounds down to. */
  readonly pageBytes: number;
}

const everyOne = ({ spec }: Pick<Pod, 'spec'>): readonly Container[] => [...spec.containers, ...(spec.initContainers ?? [])];

/** Names of the huge pages that a pod asks for. */
const hugepageNames = (pod: Pick<Pod, 'spec'>): string[] => {
  const names = everyOne(pod).flatMap((c) => [...Object.keys(c.resources?.requests ?? {}), ...Object.keys(c.resources?.limits ?? {})]);
  return [...new Set(names)].filter((name) => name.startsWith('hugepages-'));
};

/** Amounts of huge pages as the limits of one cgroup: 0 for a size that is not named. */
export const hugetlbLimits = (hugepages: Hugepages, amounts: Readonly<Record<string, Quantity>>): Readonly<Record<string, Limit>> =>
  Object.fromEntries(hugepages(amounts).map(({ pageSize, limitBytes }) => [pageSize, limitBytes]));

export const wholePages = (bytes: number, pageBytes: number): number => bytes - (bytes % pageBytes);

/** All that a pod's cgroup is given, `max` where the pod has no limit: an edit may have taken one away. */
export function podLimits(pod: Pick<Pod, 'spec'>, { podPidsLimit, hugepages, pageBytes }: PodLimitSettings): Limits {
  const { cpuWeight, cpuQuota, cpuPeriodUs, memoryBytes } = podResources(pod, { enforceCpuLimits: true, periodUs });
  const amounts = Object.fromEntries(hugepageNames(pod).map((name) => [name, podRequest(pod, name)]));
  return {
    cpu: {
      weight: cpuWeight,
      max: { quota: cpuQuota === undefined || cpuQuota < 0 ? 'max' : cpuQuota, period: cpuPeriodUs ?? periodUs },
    },
    memory: { max: memoryBytes === undefined ? 'max' : wholePages(memoryBytes, pageBytes) },
    pids: { max: podPidsLimit > 0 ? podPidsLimit : 'max' },
    hugetlb: hugetlbLimits(hugepages, amounts),
  };
}

const amount = (limit: Limit | undefined): number => (limit === undefined || limit === 'max' ? Number.POSITIVE_INFINITY : limit);

const larger = (a: Limit | undefined, b: Limit): Limit => (amount(a) > amount(b) ? (a ?? b) : b);

/** What may be written before containers are replaced: of each limit the larger one, of what stands and what is wanted. */
export function risen(stands: Limits, wanted: Limits): Limits {
  const { cpu, memory, pids, hugetlb } = wanted;
  const weight = cpu?.weight === undefined ? undefined : Math.max(cpu.weight, stands.cpu?.weight ?? 0);
  // one period for all of ours, so quotas can be compared
  const quota = cpu?.max && { ...cpu.max, quota: larger(stands.cpu?.max?.quota ?? 0, cpu.max.quota) };
  return {
    ...(cpu && { cpu: { ...(weight !== undefined && { weight }), ...(quota && { max: quota }) } }),
    ...(memory?.max !== undefined && { memory: { max: larger(stands.memory?.max ?? 0, memory.max) } }),
    ...(pids?.max !== undefined && { pids: { max: larger(stands.pids?.max ?? 0, pids.max) } }),
    ...(hugetlb && {
      hugetlb: Object.fromEntries(Object.entries(hugetlb).map(([size, max]) => [size, larger(stands.hugetlb?.[size] ?? 0, max)])),
    }),
  };
}

/** Only what the controllers that are here can hold. */
export const heldBy = (limits: Limits, controllers: ReadonlySet<string>): Limits =>
  Object.fromEntries(Object.entries(limits).filter(([controller]) => controllers.has(controller)));

/** Nothing differs, in whatever order it is written. */
export const sameLimits = (a: Limits, b: Limits): boolean => spelled(a) === spelled(b);

const spelled = (value: unknown): string =>
  typeof value === 'object' && value !== null
    ? `{${Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, inner]) => `${key}:${spelled(inner)}`)
        .join()}}`
    : String(value);
