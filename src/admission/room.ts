// pure
/**
 * May a critical pod come in, if others go for it? Mirrors kubelet v1.32 preemption.go HandleAdmissionFailure (facts 12.3): only too little
 * room is a reason to end anybody, a port or the place is none. Unlike there the checks that come after (AppArmor) are made first, so that
 * nobody ends in vain; and who is ending already, for whatever reason, is waited for before others are chosen.
 */
import type { DesiredPod } from '../api/desired.ts';
import { type NodeFacts, type Refusal, refusals, type Verdict } from './admit.ts';
import type { PortHolder } from './hostPorts.ts';
import { chooseVictims, mayPreempt, type Requirement } from './preempt.ts';
import { cpuShortage, exclusiveCpus, missing, shortages } from './shortages.ts';

export interface Neighbours {
  /** Let in, and nobody ends them. */
  readonly staying: readonly DesiredPod[];
  /** Let in, still wanted, and being ended. */
  readonly leaving: readonly DesiredPod[];
  readonly holders: readonly PortHolder[];
}

/** room: it may come in when `victims`, which nobody ends yet, and all that leave have ended. */
export type Judgement = Verdict | { readonly admit: 'room'; readonly victims: readonly DesiredPod[] };

/** `mayGo`: besides what priorities say. */
export function judgeCritical(
  desired: DesiredPod,
  { staying, leaving, holders }: Neighbours,
  node: NodeFacts,
  mayGo: (other: DesiredPod) => boolean,
): Judgement {
  const against = refusals(desired, [...staying, ...leaving], holders, node);
  const [first] = against;
  if (first === undefined) return { admit: true };
  const firm = against.find((r) => r.kind !== 'resources');
  if (firm !== undefined) return { admit: false, ...firm };
  const candidates = staying.filter((other) => mayPreempt(desired, other) && mayGo(other));
  const choice = chooseVictims(requirements(desired, staying, node), candidates);
  return 'victims' in choice ? { admit: 'room', victims: choice.victims } : { admit: false, ...noRoom(choice.unmet, against) };
}

function requirements({ pod }: DesiredPod, others: readonly DesiredPod[], node: NodeFacts): readonly Requirement[] {
  const rest = others.map((o) => o.pod);
  const all = [...shortages(pod, rest, node), ...cpuShortage(pod, rest, node.exclusiveCpus)];
  return all.map((s) => ({ resource: s.resource, quantity: missing(s) }));
}

function noRoom(unmet: readonly Requirement[], against: readonly Refusal[]): Refusal {
  const told = unmet.filter((r) => r.resource !== exclusiveCpus);
  const [first] = against;
  // CPUs of its own: the CPU manager's words say more
  if (told.length === 0 && first !== undefined) return first;
  const list = told.map(({ resource, quantity }) => `(res: ${resource}, q: ${quantity}), `).join('');
  return {
    reason: 'UnexpectedAdmissionError',
    message:
      'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: ' +
      `no set of running pods found to reclaim resources: [${list}]`,
    kind: 'resources',
  };
}
