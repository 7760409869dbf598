// pure
/**
 * Which pods go so that a critical one has room. Mirrors kubelet v1.32 preemption/preemption.go (facts 12.3): better ones are spared where
 * lesser ones do, so Guaranteed pods go only for what all others together cannot give, then Burstable ones; inside a class whoever comes
 * nearest to what is missing, and of two that come equally near the smaller one.
 * podsched's own: the last tie goes by priority and age, so that the same pods always go; and CPUs of a pod's own are room as well.
 */
import type { DesiredPod } from '../api/desired.ts';
import { isCriticalPod, podPriority } from '../api/priority.ts';
import { type QosClass, qosClass } from '../api/resources.ts';
import { amountOf } from './shortages.ts';

/** So much of a resource must become free; above 0. */
export interface Requirement {
  readonly resource: string;
  readonly quantity: number;
}

export type Choice = { readonly victims: readonly DesiredPod[] } | { readonly unmet: readonly Requirement[] };

/** Whether `pod` may take another's room: it is critical, and the other is not, or has a lower priority. */
export const mayPreempt = ({ pod }: DesiredPod, { pod: other }: DesiredPod): boolean =>
  isCriticalPod(pod) && (!isCriticalPod(other) || podPriority(pod) > podPriority(other));

/** `unmet`: what would be missing even if all of them went. */
export function chooseVictims(requirements: readonly Requirement[], candidates: readonly DesiredPod[]): Choice {
  const unmet = without(requirements, candidates);
  if (unmet.length > 0) return { unmet };
  const of = (qos: QosClass): readonly DesiredPod[] => candidates.filter((c) => qosClass(c.pod) === qos);
  const [bestEffort, burstable] = [of('BestEffort'), of('Burstable')];
  const guaranteed = nearest(of('Guaranteed'), without(requirements, [...bestEffort, ...burstable]));
  const second = nearest(burstable, without(requirements, [...bestEffort, ...guaranteed]));
  const first = nearest(bestEffort, without(requirements, [...second, ...guaranteed]));
  return { victims: [...first, ...second, ...guaranteed] };
}

/** What is still missing when these have gone. */
const without = (requirements: readonly Requirement[], gone: readonly DesiredPod[]): readonly Requirement[] =>
  requirements.flatMap(({ resource, quantity }) => {
    const left = gone.reduce((rest, { pod }) => rest - amountOf(pod, resource), quantity);
    return left > 0 ? [{ resource, quantity: left }] : [];
  });

/** The candidates suffice together. */
function nearest(candidates: readonly DesiredPod[], requirements: readonly Requirement[]): readonly DesiredPod[] {
  const chosen: DesiredPod[] = [];
  let left = [...candidates];
  for (let missing = requirements; missing.length > 0; ) {
    const [best] = left
      .map((pod) => ({ pod, far: distance(missing, pod) }))
      .sort((a, b) => a.far - b.far || bySize(a.pod, b.pod))
      .map(({ pod }) => pod);
    if (best === undefined) break;
    chosen.push(best);
    left = left.filter((p) => p !== best);
    missing = without(missing, [best]);
  }
  return chosen;
}

/** 0: it gives all that is missing; 1 for each resource of which it gives nothing. */
const distance = (missing: readonly Requirement[], { pod }: DesiredPod): number =>
  missing.reduce((sum, { resource, quantity }) => {
    const left = quantity - amountOf(pod, resource);
    return left > 0 ? sum + (left / quantity) ** 2 : sum;
  }, 0);

const bySize = (a: DesiredPod, b: DesiredPod): number =>
  amountOf(a.pod, 'memory') - amountOf(b.pod, 'memory') ||
  amountOf(a.pod, 'cpu') - amountOf(b.pod, 'cpu') ||
  podPriority(a.pod) - podPriority(b.pod) ||
  (a.firstSeen === b.firstSeen ? 0 : a.firstSeen < b.firstSeen ? 1 : -1) ||
  (a.key < b.key ? -1 : 1);
