/**
 * Edits of pods that have an instance, put before admission all together and before any of them is carried out: what one gives up another may
 * need. Owns nothing.
 */
import type { DesiredPod, InstanceState } from '../api/desired.ts';
import { classifyEdit, type EditVerdict, type PodEdit } from '../api/edit.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import { type Entry, isSame, type Wanted } from './merge.ts';

export interface JudgedEdit {
  readonly edit: PodEdit;
  /** undefined: it is carried out as it is. */
  readonly verdict: EditVerdict | undefined;
}

export interface EditView {
  entry(key: KeyText): Entry | undefined;
  /** What runs now, or should. */
  desired(key: KeyText): DesiredPod | undefined;
  desiredOf(entry: Entry): DesiredPod | undefined;
  instanceState(uid: PodUid): InstanceState;
  judge(edits: readonly PodEdit[]): ReadonlyMap<KeyText, EditVerdict>;
  /** Many edits at once hold up nobody else. */
  breathe(): Promise<void>;
}

/** By key, every edit among what is wanted. */
export async function judgeWanted(wanted: readonly Wanted[], view: EditView): Promise<Map<KeyText, JudgedEdit>> {
  const edits = new Map<KeyText, PodEdit>();
  for (const w of wanted) {
    if (isSame(view.entry(w.key), w)) continue;
    await view.breathe();
    try {
      const edit = editOf(w, view);
      if (edit !== undefined) edits.set(w.key, edit);
    } catch {
      // it is told when the object's turn comes
    }
  }
  const verdicts = view.judge([...edits.values()]);
  return new Map([...edits].map(([key, edit]) => [key, { edit, verdict: verdicts.get(key) }]));
}

/** undefined: it is no edit of an instance that is known. */
export function editOf({ key, winner, candidates }: Wanted, view: EditView): PodEdit | undefined {
  const [before, old] = [view.entry(key), view.desired(key)];
  if (before?.uid === undefined || old === undefined || winner?.object.kind !== 'Pod') return undefined;
  const after = view.desiredOf({ key, winner: winner.source, candidates, uid: before.uid, since: before.since });
  return after && { before: old, after, effect: classifyEdit(old, after, view.instanceState(old.uid)) };
}
