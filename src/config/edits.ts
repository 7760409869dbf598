/**
 * Edits of pods that have an instance, judged all together and before any of them is carried out: what one gives up another may need. What is
 * held waits, whatever the others say. Owns nothing.
 */
import type { DesiredPod, InstanceState } from '../api/desired.ts';
import { classifyEdit, type EditVerdict, type PodEdit } from '../api/edit.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import { type Candidate, carriedOut, type Entry, isSame, type Wanted } from './merge.ts';

export interface JudgedEdit {
  readonly edit: PodEdit;
  /** undefined: it is carried out as it is. */
  readonly verdict: EditVerdict | undefined;
}

export type Verdicts = ReadonlyMap<KeyText, EditVerdict>;

export interface EditView {
  entry(key: KeyText): Entry | undefined;
  /** What runs now, or should. */
  desired(key: KeyText): DesiredPod | undefined;
  desiredOf(entry: Entry): DesiredPod | undefined;
  instanceState(uid: PodUid): InstanceState;
  /** Who holds it, in words; undefined: nobody. */
  held(key: KeyText, winner: Candidate): string | undefined;
  judge(edits: readonly PodEdit[]): Verdicts | Promise<Verdicts>;
  /** Many edits at once hold up nobody else. */
  breathe(): Promise<void>;
}

/** By key, every edit among what is wanted. */
export async function judgeWanted(wanted: readonly Wanted[], view: EditView): Promise<Map<KeyText, JudgedEdit>> {
  const edits = new Map<KeyText, PodEdit>();
  const held = new Map<KeyText, EditVerdict>();
  for (const w of wanted) {
    if (isSame(view.entry(w.key), w)) continue;
    await view.breathe();
    try {
      const edit = editOf(w, view);
      if (edit === undefined) continue;
      edits.set(w.key, edit);
      const by = w.winner && view.held(w.key, w.winner);
      if (by !== undefined) held.set(w.key, { act: 'block', reason: 'Held', message: by });
    } catch {
      // it is told when the object's turn comes
    }
  }
  const waits = ({ effect, after }: PodEdit): boolean => held.has(after.key) && (effect === 'update' || effect === 'replace');
  const verdicts = await view.judge([...edits.values()].filter((e) => !waits(e)));
  const verdictOf = (key: KeyText, edit: PodEdit): EditVerdict | undefined => {
    const verdict = verdicts.get(key);
    return waits(edit) || verdict?.act === 'replace' ? (held.get(key) ?? verdict) : verdict;
  };
  return new Map([...edits].map(([key, edit]) => [key, { edit, verdict: verdictOf(key, edit) }]));
}

/** undefined: it is no edit of an instance that is known. */
export function editOf({ key, winner, candidates }: Wanted, view: EditView): PodEdit | undefined {
  const [before, old] = [view.entry(key), view.desired(key)];
  if (before?.uid === undefined || old === undefined || winner?.object.kind !== 'Pod') return undefined;
  const after = view.desiredOf(carriedOut(before, winner, candidates));
  return after && { before: old, after, effect: classifyEdit(old, after, view.instanceState(old.uid)) };
}
