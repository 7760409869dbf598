/** Holding a pod at what runs of it, and letting go: edits wait as long as it is held. Letting go also tries what was rolled back once more. */
import type { KeyText } from '../api/objects.ts';
import { keyText } from '../api/objects.ts';
import { type Answered, pathParts, refused } from './answered.ts';

export interface HoldRequest {
  readonly act: 'hold' | 'release';
  readonly namespace: string;
  readonly pod: string;
}

/** What came of it, for people. */
export interface HoldAnswer {
  readonly message: string;
}

export interface HoldDeps {
  /** Some source has an accepted pod of this name. */
  readonly isWanted: (key: KeyText) => boolean;
  /** False: it was held already. Rejects when it cannot be stored. */
  readonly hold: (key: KeyText) => Promise<boolean>;
  readonly release: (key: KeyText) => Promise<{ readonly hold: boolean; readonly rollback: boolean; readonly stillHeld: boolean }>;
}

const paths = /^\/(hold|release)\//;

/** Whether the path is one of holds. */
export const asksForHold = (path: string): boolean => paths.test(path);

/** The pod of a path for which `asksForHold`. */
export function holdRequest(path: string): Answered<HoldRequest> {
  const act = path.startsWith('/hold/') ? 'hold' : 'release';
  const named = pathParts(path, `/${act}/`, ['namespace', 'pod']);
  return named.ok ? { ok: true, value: { act, ...named.value } } : named;
}

/** On the card when it resolves. Rejects when it cannot be stored. */
export async function holdPod({ act, namespace, pod: name }: HoldRequest, deps: HoldDeps): Promise<Answered<HoldAnswer>> {
  const key = keyText({ kind: 'Pod', namespace, name });
  if (!deps.isWanted(key)) return refused(404, `pod "${name}" not found in namespace "${namespace}"`);
  const said = (message: string): Answered<HoldAnswer> => ({ ok: true, value: { message: `pod/${name} ${message}` } });
  if (act === 'hold') return said((await deps.hold(key)) ? 'held' : 'was held already');
  const { hold, rollback, stillHeld } = await deps.release(key);
  if (stillHeld) {
    const first = hold ? `the hold of pod "${name}" by command is gone, and it` : `pod "${name}"`;
    return refused(409, `${first} is held by its annotation podsched.dev/hold: take it out of the manifest`);
  }
  if (rollback) return said('released: the revision that was rolled back is tried again');
  return said(hold ? 'released' : 'was not held');
}
