// pure
/**
 * Edits of running pods, judged before anything is stopped (behaviour.md, "What an edit does"): without the predecessor, against the others as
 * they will be. No room, or a port that somebody has: the old one goes on. Not meant for this node any more: the old one ends.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { EditVerdict, PodEdit } from '../api/edit.ts';
import type { KeyText } from '../api/objects.ts';
import { moves, type NodeFacts, type Refusal, refusals } from './admit.ts';
import type { PortHolder, PortOwner } from './hostPorts.ts';

export interface EditWorld {
  /** Pods that were let in, are wanted and have not ended, with what they are now. */
  readonly active: readonly DesiredPod[];
  /** Ports of pods that nobody wants any more and that have not ended. */
  readonly ending: readonly PortOwner[];
  /** What listens on the host counts unless the predecessor is on the host's network: then it may be its own socket. */
  readonly node: (edit: PodEdit) => NodeFacts;
}

export type JudgedEdit = EditVerdict & { readonly byHost?: boolean };

/** By key, what is not simply carried out. All edits of one step together: each may free what another needs. */
export function judgeEdits(edits: readonly PodEdit[], world: EditWorld): Map<KeyText, JudgedEdit> {
  const verdicts = new Map<KeyText, JudgedEdit>();
  const inRoom: PodEdit[] = [];
  for (const edit of edits) {
    const placed = edit.effect === 'replace' || placementChanged(edit);
    if (placed && moves(edit.after.pod, world.node(edit))) verdicts.set(edit.after.key, { act: 'replace' });
    else if (edit.effect === 'replace' || edit.effect === 'update') inRoom.push(edit);
  }
  let blocked = blockedOf(inRoom, world, true);
  // nothing of this step will end by itself and free a port: those that wait for one another's ports go together
  if (blocked.size > 0 && !inRoom.some((e) => e.effect === 'replace' && !blocked.has(e.after.key))) {
    blocked = blockedOf(inRoom, world, false);
  }
  for (const [key, { reason, message, byHost }] of blocked) verdicts.set(key, { act: 'block', reason, message, byHost: byHost === true });
  return verdicts;
}

/**
 * The edits that cannot be carried out beside the others. One that is blocked stays as it is, which may block another: so round and round,
 * the last one first, so that of two which want the same the first gets it, and before them those that have no room as things are now: who
 * waits for something never stands against who has it. `patient`: a port that another edit gives up is still held.
 */
function blockedOf(edits: readonly PodEdit[], world: EditWorld, patient: boolean): Map<KeyText, Refusal> {
  const blocked = new Map<KeyText, Refusal>();
  const byKey = new Map(edits.map((e) => [e.after.key, e]));
  const asItWillBe = (pod: DesiredPod): DesiredPod => (blocked.has(pod.key) ? pod : (byKey.get(pod.key)?.after ?? pod));
  const refusal = (edit: PodEdit, others: readonly DesiredPod[], held: readonly DesiredPod[]): Refusal | undefined => {
    const holders: PortHolder[] = [
      ...held.map((pod) => ({ pod, ending: false })),
      ...world.ending.filter((p) => p.key !== edit.after.key).map((pod) => ({ pod, ending: true })),
    ];
    return refusals(edit.after, others, holders, world.node(edit)).find((r) => r.kind !== 'place');
  };
  const findOne = (alsoNow: boolean): readonly [KeyText, Refusal] | undefined => {
    for (const edit of [...edits].reverse()) {
      const { key } = edit.after;
      if (blocked.has(key)) continue;
      const before = world.active.filter((p) => p.key !== key);
      if (alsoNow && refusal(edit, before, before) === undefined) continue;
      const others = before.map(asItWillBe);
      const held = patient ? [...others, ...before.filter((p) => byKey.has(p.key) && !blocked.has(p.key))] : others;
      const why = refusal(edit, others, held);
      if (why !== undefined) return [key, why];
    }
    return undefined;
  };
  const next = () => findOne(true) ?? findOne(false);
  for (let found = next(); found !== undefined; found = next()) blocked.set(found[0], found[1]);
  return blocked;
}

/** Whether what the pod says of its place is different now. A place that stopped fitting by itself moves nobody. */
function placementChanged({ before, after }: PodEdit): boolean {
  const said = ({ pod }: DesiredPod): string =>
    JSON.stringify([pod.spec.nodeSelector, pod.spec.affinity, pod.spec.os, pod.metadata.labels?.['kubernetes.io/os']]);
  return said(before) !== said(after);
}
