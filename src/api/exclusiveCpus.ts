// pure
/**
 * Which containers have CPUs of their own under the CPU manager policy `static`, and whether there are enough: those of Guaranteed pods that
 * ask for a whole number. Mirrors kubelet v1.32 cm/cpumanager/policy_static.go (facts 11.7); which CPUs they are is src/cm's to say.
 */
import { quantityMilliValue } from './quantity.ts';
import { effectiveRequests, isSidecar, qosClass } from './resources.ts';
import type { Container, Pod } from './v1.ts';

/** In the order in which CPUs are given. */
export interface CpuClaim {
  readonly container: string;
  /** At least 1. */
  readonly cpus: number;
  /** A plain init container: when it has ended, those that come after it in the pod have its CPUs. */
  readonly lends: boolean;
}

/** Empty for a pod that runs on the CPUs that all share. */
export function cpuClaims(pod: Pick<Pod, 'spec'>): readonly CpuClaim[] {
  const { initContainers = [], containers } = pod.spec;
  const all = [...initContainers, ...containers];
  if (all.every((c) => wholeCpus(c) === 0) || qosClass(pod) !== 'Guaranteed') return [];
  const claim = (init: boolean) => (c: Container) => ({ container: c.name, cpus: wholeCpus(c), lends: init && !isSidecar(c) });
  return [...initContainers.map(claim(true)), ...containers.map(claim(false))].filter((c) => c.cpus > 0);
}

function wholeCpus(container: Container): number {
  const milli = quantityMilliValue(effectiveRequests(container).cpu);
  return milli % 1000 === 0 ? milli / 1000 : 0;
}

/** The kubelet's words for too few CPUs. */
export const notEnoughCpus = (requested: number, available: number): string =>
  `not enough cpus available to satisfy request: requested=${requested}, available=${available}`;

/** All that a pod holds at once, or at which claim it does not fit into `free` CPUs. */
export function holdCpus(
  claims: readonly CpuClaim[],
  free: number,
): { readonly held: number } | { readonly requested: number; readonly available: number } {
  let held = 0;
  let lent = 0;
  for (const { cpus, lends } of claims) {
    const again = Math.min(cpus, lent);
    const fresh = cpus - again;
    if (fresh > free - held) return { requested: cpus, available: free - held + lent };
    held += fresh;
    lent += lends ? fresh : -again;
  }
  return { held };
}

/** A refusal of admission, in the kubelet's words. */
export interface CpuRefusal {
  readonly reason: 'UnexpectedAdmissionError';
  readonly message: string;
}

/**
 * Why the pod does not fit beside `others`, who have their CPUs; undefined: it does. `exclusive`: how many CPUs can be given away at all;
 * undefined: the policy gives none, so that nobody asks for any.
 */
export function cpuRefusal(
  pod: Pick<Pod, 'spec'>,
  others: readonly Pick<Pod, 'spec'>[],
  exclusive: number | undefined,
): CpuRefusal | undefined {
  const claims = exclusive === undefined ? [] : cpuClaims(pod);
  if (exclusive === undefined || claims.length === 0) return undefined;
  const taken = others.reduce((sum, other) => {
    const hold = holdCpus(cpuClaims(other), Number.POSITIVE_INFINITY);
    return sum + ('held' in hold ? hold.held : 0);
  }, 0);
  const hold = holdCpus(claims, Math.max(0, exclusive - taken));
  if ('held' in hold) return undefined;
  const message = `Allocate failed due to ${notEnoughCpus(hold.requested, hold.available)}, which is unexpected`;
  return { reason: 'UnexpectedAdmissionError', message };
}
