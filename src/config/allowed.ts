// pure
/** Whether policy and keys allow still what was accepted before; and which pods are too many for their kind of source. */
import { topicAudience } from '../api/delivery.ts';
import type { KeyText, Problem } from '../api/objects.ts';
import { keyOf } from '../api/objects.ts';
import { type Candidate, type Entry, kindOfSource, type Wanted, winnerOf } from './merge.ts';
import type { PolicyPort } from './remoteWords.ts';
import type { Told } from './view.ts';

export interface Denial extends Told {
  readonly problems: readonly Problem[];
}

/** As a problem of the whole object, for what is told in words. */
export const wholly = (got: string): Problem => ({ path: '', expected: 'nothing', got });

/** What comes with an object, and is judged with it. */
export interface Arrived extends Pick<Candidate, 'object' | 'source' | 'signed' | 'generation'> {
  /** As it was written; what is signed has one. */
  readonly audience?: string;
}

/** What was accepted once, to be judged again: its audience was right then. */
export const again = (c: Arrived, nodeName: string): Arrived =>
  c.signed === undefined ? c : { ...c, audience: topicAudience(c.source, nodeName) ?? nodeName };

/** Why an object may not take part; undefined: it may. */
export function denialOf(arrived: Arrived, policy: PolicyPort): Denial | undefined {
  const { object, source, signed, generation } = arrived;
  if (signed === undefined) {
    if (policy.requiresSignature?.(source) === true) {
      const message = 'it is not signed, and policy asks for a signature';
      return { reason: 'Unsigned', message, problems: [wholly(message)] };
    }
    return denied(policy.judge?.(object, { source }));
  }
  const { audience } = arrived;
  const words = { ...(audience !== undefined && { audience }), ...(generation !== undefined && { generation }) };
  const told = policy.trust?.({ source, signed, of: 'manifest', key: keyOf(object), ...words });
  if (told !== undefined) return { ...told, problems: [wholly(told.message)] };
  return denied(policy.judge?.(object, { source, signed }));
}

const denied = (problems: readonly Problem[] = []): Denial | undefined =>
  problems.length === 0 ? undefined : { reason: 'PolicyDenied', message: 'policy does not allow it', problems };

/** An entry without the candidates that are denied, and without what would go back to one; undefined: nothing is left of it. */
export function withoutDenied(
  entry: Entry,
  isDenied: (candidate: Candidate) => boolean,
): { readonly entry: Entry; readonly same: boolean } | undefined {
  const candidates = entry.candidates.filter((c) => !isDenied(c));
  const [runs, good, before] = [entry.running, entry.good, entry.before].map((c) => (c !== undefined && isDenied(c) ? undefined : c));
  const known = candidates.length === entry.candidates.length;
  const same = known && runs === entry.running && good === entry.good && before === entry.before;
  if (same) return { entry, same };
  if (candidates.length === 0) return undefined;
  const { running: _, good: __, givenUp: ___, before: ____, ...rest } = entry;
  const kept = entry.givenUp !== undefined && good !== undefined && runs !== undefined;
  return {
    entry: {
      ...rest,
      candidates,
      ...(runs && { running: runs }),
      ...(good && { good }),
      ...(before && { before }),
      ...(kept && entry.givenUp && { givenUp: entry.givenUp }),
    },
    same,
  };
}

/** Pods beyond the most of their winner's kind of source: the newest of what is accepted, and what is not accepted yet comes last. */
export function tooMany(
  wanted: readonly Wanted[],
  entries: ReadonlyMap<KeyText, Entry>,
  most: (of: 'file' | 'mqtt') => number | undefined,
): readonly Wanted[] {
  const beyond: Wanted[] = [];
  for (const kind of ['file', 'mqtt'] as const) {
    const limit = most(kind);
    if (limit === undefined) continue;
    const pods = wanted.filter((w) => w.winner?.object.kind === 'Pod' && kindOfSource(w.winner.source) === kind);
    if (pods.length <= limit) continue;
    const since = ({ key }: Wanted): string => {
      const entry = entries.get(key);
      const winner = entry && winnerOf(entry);
      return winner !== undefined && kindOfSource(winner.source) === kind ? (entry?.since ?? '') : '~';
    };
    const order = pods.map((w) => ({ w, since: since(w) }));
    order.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : a.w.key < b.w.key ? -1 : 1));
    beyond.push(...order.slice(limit).map(({ w }) => w));
  }
  return beyond;
}
