// pure
/**
 * What pods take of the node, and of what too little is left. Mirrors kubelet v1.32 scheduler noderesources Fit, as admission uses it (facts
 * 12.2): requests of the pods that were let in count, not what they use. Resources that the node does not have at all, but huge pages, are
 * nobody's business; a device that is not there is waited for.
 */
import { deviceShortages } from '../api/deviceClasses.ts';
import { cpuClaims, holdCpus } from '../api/exclusiveCpus.ts';
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import { effectiveRequests, podRequest } from '../api/resources.ts';
import type { Pod } from '../api/v1.ts';

export interface Amounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  /** Absent: not known, not checked. */
  readonly ephemeralBytes?: number;
  readonly pods: number;
  /** Bytes by resource name (`hugepages-2Mi`); what is missing is none. */
  readonly hugepages?: Readonly<Record<string, number>>;
}

export interface ResourceFacts {
  readonly allocatable: Amounts;
  /** How many devices of a class are there now. Absent: this node does not look after devices. */
  readonly devices?: (deviceClass: string) => number;
  /** How many CPUs containers can be given for themselves. Absent: the policy gives none. */
  readonly exclusiveCpus?: number;
}

/** In the unit of its resource: thousandths of a CPU, bytes, pieces. */
export interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

type PodLike = Pick<Pod, 'spec'>;

/** CPUs that a pod has for itself: no resource of a manifest, but room all the same. */
export const exclusiveCpus = 'exclusive-cpus';

/** What a pod takes of a resource as a whole. */
export function amountOf(pod: PodLike, resource: string): number {
  if (resource === 'pods') return 1;
  if (resource === exclusiveCpus) {
    const hold = holdCpus(cpuClaims(pod), Number.POSITIVE_INFINITY);
    return 'held' in hold ? hold.held : 0;
  }
  return podRequest(pod, resource) + (resource === 'cpu' ? quantityMilliValue : quantityValue)(pod.spec.overhead?.[resource]);
}

/** In the order in which they are told. CPUs of the pod's own are not among them: the CPU manager has words for these. */
export function shortages(pod: PodLike, others: readonly PodLike[], { allocatable, devices }: ResourceFacts): readonly Shortage[] {
  const hugePages = allocatable.hugepages ?? {};
  const check = (resource: string, capacity: number | undefined): readonly Shortage[] =>
    capacity === undefined ? [] : shortage(pod, others, resource, capacity);
  return [
    ...check('pods', allocatable.pods),
    ...check('cpu', allocatable.cpuMilli),
    ...check('memory', allocatable.memoryBytes),
    ...check('ephemeral-storage', allocatable.ephemeralBytes),
    ...hugePageNames(pod).flatMap((name) => check(name, Object.hasOwn(hugePages, name) ? hugePages[name] : 0)),
    ...(devices ? deviceShortages(pod, others, devices) : []),
  ];
}

/** The same of CPUs of the pod's own. */
export const cpuShortage = (pod: PodLike, others: readonly PodLike[], free: number | undefined): readonly Shortage[] =>
  free === undefined ? [] : shortage(pod, others, exclusiveCpus, free);

export const missing = ({ requested, used, capacity }: Shortage): number => requested - (capacity - used);

function shortage(pod: PodLike, others: readonly PodLike[], resource: string, capacity: number): readonly Shortage[] {
  const requested = amountOf(pod, resource);
  // what nobody asks for is not summed up
  if (requested <= 0) return [];
  const used = resource === 'pods' ? others.length : others.reduce((sum, other) => sum + amountOf(other, resource), 0);
  return requested <= capacity - used ? [] : [{ resource, requested, used, capacity }];
}

const hugePageNames = ({ spec }: PodLike): string[] => {
  const names = [...spec.containers, ...(spec.initContainers ?? [])].flatMap((c) => Object.keys(effectiveRequests(c)));
  return [...new Set(names.filter((name) => name.startsWith('hugepages-')))].sort();
};
