// pure
/** What an edit does to a running instance: the table "What an edit does" of behaviour.md, read from its last row upwards. */
import type { DesiredPod, InstanceState } from './desired.ts';
import type { PodHashes } from './hash.ts';
import type { Pod } from './v1.ts';

/** One side of an edit; a DesiredPod is one. The hashes say all, the pod may come with them. */
export interface EditSide extends PodHashes {
  readonly pod?: Pod;
}

/**
 * none: the same object. reconcile: same instance, nothing restarts. update: same instance, containers (or a dead sandbox) are made anew in
 * place. replace: a new instance under a new UID, the old one fully gone first.
 */
export type EditEffect = 'none' | 'reconcile' | 'update' | 'replace';

/** An edit of an instance as it would be carried out, for admission to judge before anything is stopped. Both sides have the old UID. */
export interface PodEdit {
  readonly before: DesiredPod;
  readonly after: DesiredPod;
  readonly effect: EditEffect;
}

/**
 * block: there is no room for what is wanted now; the instance goes on as it is, and the edit is tried again. replace: the instance ends
 * whatever the edit is (the pod is not meant for this node any more, or this instance was never let in), and a new one is judged.
 */
export type EditVerdict = { readonly act: 'block'; readonly reason: string; readonly message: string } | { readonly act: 'replace' };

/** Judges an edit by what changed and by the state of the instance it meets. */
export function classifyEdit(before: EditSide, after: EditSide, state: InstanceState): EditEffect {
  if (before.revision === after.revision) return 'none';
  const pod = before.podHash !== after.podHash;
  const containers = differ(before.containerHashes, after.containerHashes);
  // An instance that is ending or has ended takes no container edit any more, and init containers never run beside a started edit.
  const over = state.finished || state.terminating;
  if (containers && (over || state.initUnfinished)) return 'replace';
  // After a reboot the sandbox is made anew in any case: with the same UID only if it would be the same sandbox.
  if (state.sandboxDead && !over) return pod ? 'replace' : 'update';
  if (pod) return 'replace';
  return containers ? 'update' : 'reconcile';
}

/** Whether any container of one side has another hash on the other, or is missing there. */
function differ(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length !== Object.keys(b).length || names.some((name) => !Object.hasOwn(b, name) || a[name] !== b[name]);
}
