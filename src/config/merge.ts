// pure
/**
 * What the sources say, put together: which candidates an object has, and which of them wins. The decision only: what was accepted before,
 * what the folder says now and what topics said since go in, what should be accepted comes out.
 *
 * Only an absent file deletes, or a file that was read as a whole and does not name the object any more; of topics, only what remote.ts calls
 * a wish. A broken document keeps whatever that file said before (behaviour 11). The same object in two files: the one that runs keeps running (behaviour 1). No field is merged.
 */
import type { ApiObject, KeyText, PodUid, Source } from '../api/objects.ts';
import type { DecodedFile, DecodedObject } from './decode.ts';

/** What one source wants for an object: the last good of it. */
export interface Candidate {
  readonly source: Source;
  readonly revision: string;
  /** When this source first said this revision, RFC 3339. */
  readonly firstSeen: string;
  readonly object: ApiObject;
  /** Of a topic: its counter, and the first 16 hex digits of SHA-256 of the payload, by which the same one again is known. */
  readonly generation?: number;
  readonly hash?: string;
  /** The id of the key that signed it. */
  readonly signed?: string;
  /** Of a topic: values of the node stand in it. */
  readonly substituted?: true;
}

/** An accepted object: what a checkpoint entry holds. */
export interface Entry {
  readonly key: KeyText;
  /** The instance of a pod; ConfigMaps and Secrets have none. A pod without: which it is must be asked of the runtime. */
  readonly uid?: PodUid;
  /** When this instance was first accepted, RFC 3339. */
  readonly since: string;
  readonly winner: Source;
  readonly candidates: readonly Candidate[];
  /** What runs, where it is another than the winner: the edit is blocked or the winner given up, and this goes on. */
  readonly running?: Candidate;
  /** The last one that was Ready, or Succeeded, as far as anybody saw: what a rollback goes back to. */
  readonly good?: Candidate;
  /** The one that was Ready before `good` was: what a person goes back to from a good one. Its images may go. */
  readonly before?: Candidate;
  /** The winner was not Ready in its time: `good` runs in its place, until the winner is another or somebody releases it. */
  readonly givenUp?: GivenUp;
}

export interface GivenUp {
  readonly revision: string;
  /** For people, with both revisions. */
  readonly why: string;
}

/** What an object should become; without candidates it goes. */
export interface Wanted {
  readonly key: KeyText;
  readonly winner?: Candidate;
  readonly candidates: readonly Candidate[];
}

export const fileSource = (name: string): Source => `file:${name}`;
export const fileOf = (source: Source): string | undefined => (source.startsWith('file:') ? source.slice(5) : undefined);
export const winnerOf = (entry: Entry): Candidate | undefined => entry.candidates.find((c) => c.source === entry.winner);
/** What runs of it, or should. */
export const runsOf = (entry: Entry): Candidate | undefined => entry.running ?? winnerOf(entry);
export const isCandidate = (a: Candidate | undefined, b: Candidate | undefined): boolean =>
  a?.source === b?.source && a?.revision === b?.revision;

/** The entry once what is wanted is carried out: the winner runs, or in place of one that was given up the last good one. */
export function carriedOut(before: Entry, winner: Candidate, candidates: readonly Candidate[]): Entry {
  const { key, uid, since, good, givenUp } = before;
  const older = before.before;
  const kept: Entry = {
    ...{ key, winner: winner.source, candidates, since },
    ...(uid !== undefined && { uid }),
    ...(good && { good }),
    ...(older && { before: older }),
  };
  if (good === undefined || givenUp?.revision !== winner.revision || good.revision === winner.revision) return kept;
  return { ...kept, givenUp, running: good };
}

/** `file` or `mqtt`: what policy and sight go by. */
export const kindOfSource = (source: Source): 'file' | 'mqtt' => (source.startsWith('file:') ? 'file' : 'mqtt');

/** The strongest candidate of the same kind of source as `source`, the winner if it is one; of the other kind where that may be read and there is no own. */
export function visibleTo(entry: Entry, source: Source, rank: Rank = rankOf, mayReadOthers = false): Candidate | undefined {
  const isOwn = (c: Candidate): boolean => kindOfSource(c.source) === kindOfSource(source);
  const winner = winnerOf(entry);
  const own = winner !== undefined && isOwn(winner) ? winner : strongest(entry.candidates.filter(isOwn), rank)[0];
  return own ?? (mayReadOthers ? winner : undefined);
}

/** A lower number wins over a higher one. */
export type Rank = (source: Source) => number;

/** Precedence of sources without locks, all groups alike. */
function rankOf(source: Source): number {
  if (source.startsWith('file:')) return 0;
  if (source === 'mqtt:node') return 1;
  return source === 'mqtt:all' ? 3 : 2;
}

/** Precedence with the groups in the order of the node's list; what policy locks comes before all others. */
export function ranking(groups: readonly string[], locked: (source: Source) => boolean = () => false): Rank {
  return (source) => {
    const place = source.startsWith('mqtt:group/') ? groups.indexOf(source.slice('mqtt:group/'.length)) : 0;
    const among = place < 0 ? groups.length : place;
    return rankOf(source) + among / (groups.length + 1) - (locked(source) ? 10 : 0);
  };
}

// the order of storing is the same whatever the groups and locks are
const bySource = (a: Candidate, b: Candidate): number =>
  rankOf(a.source) - rankOf(b.source) || (a.source < b.source ? -1 : a.source > b.source ? 1 : 0);

function strongest(candidates: readonly Candidate[], rank: Rank): Candidate[] {
  const best = Math.min(...candidates.map((c) => rank(c.source)));
  return candidates.filter((c) => rank(c.source) === best).sort(bySource);
}

/** What a topic says now. */
export type RemoteCandidate = Omit<Candidate, 'firstSeen'>;
/** What is different of topics since the last step, by object and source; undefined: it says nothing any more. */
export type RemoteChanges = ReadonlyMap<KeyText, ReadonlyMap<Source, RemoteCandidate | undefined>>;

export interface MergeInput {
  readonly before: ReadonlyMap<KeyText, Entry>;
  /** Wanted, and not stored yet: of topics, what they said last. */
  readonly pending?: ReadonlyMap<KeyText, { readonly sources: readonly Candidate[] }>;
  /** undefined: the folder was not read, so that of files what was accepted stays. */
  readonly files: readonly DecodedFile[] | undefined;
  readonly remote?: RemoteChanges;
  readonly rank?: Rank;
  /** Whether policy allows still what was accepted of a file before. */
  allowed?(candidate: Candidate): boolean;
  /** For people. */
  readonly now: string;
}

/** Every object that was accepted, or that a source names now, as it should be. */
export function mergeSources(o: MergeInput): Wanted[] {
  const { before, pending, remote, now, rank = rankOf, allowed = () => true } = o;
  const folder = o.files && new Folder(o.files);
  const wanted: Wanted[] = [];
  for (const key of new Set([...before.keys(), ...(pending?.keys() ?? []), ...(remote?.keys() ?? []), ...(folder?.keys() ?? [])])) {
    const entry = before.get(key);
    const changes = remote?.get(key);
    const known = pending?.get(key)?.sources ?? entry?.candidates ?? [];
    const candidates: Candidate[] = [];
    for (const candidate of known) {
      if (kindOfSource(candidate.source) === 'mqtt') {
        if (changes?.has(candidate.source) !== true) candidates.push(candidate);
        continue;
      }
      const kept = folder === undefined ? candidate : folder.keep(key, candidate, now);
      // the last good of a broken file takes part only as long as policy allows it
      const isSaid = folder?.of(key).has(candidate.source) === true;
      if (kept !== undefined && (isSaid || allowed(candidate))) candidates.push(kept);
    }
    for (const [source, said] of changes ?? []) {
      if (said === undefined) continue;
      const old = known.find((c) => c.source === source);
      candidates.push({ ...said, firstSeen: old?.revision === said.revision ? old.firstSeen : now });
    }
    for (const [source, said] of folder?.of(key) ?? []) {
      if (!candidates.some((c) => c.source === source)) candidates.push({ source, ...saidBy(said), firstSeen: now });
    }
    candidates.sort(bySource);
    const winner = pickWinner(entry, candidates, rank);
    wanted.push({ key, candidates, ...(winner === undefined ? {} : { winner }) });
  }
  return wanted;
}

/** The strongest source; among equals the one that wins already, else the one that says the same (a renamed file), else the first by name. */
export function pickWinner(before: Entry | undefined, candidates: readonly Candidate[], rank: Rank = rankOf): Candidate | undefined {
  const among = strongest(candidates, rank);
  if (before === undefined) return among[0];
  const running = winnerOf(before)?.revision;
  return among.find((c) => c.source === before.winner) ?? among.find((c) => c.revision === running) ?? among[0];
}

/** A pod whose entry was read from an older copy, and which has not begun. */
export const hasNoInstance = (entry: Entry): boolean => entry.uid === undefined && winnerOf(entry)?.object.kind === 'Pod';

/** Whether the checkpoint already says what is wanted. */
export function isSame(entry: Entry | undefined, wanted: Wanted): boolean {
  if (entry === undefined) return wanted.winner === undefined;
  if (hasNoInstance(entry) || isOpen(entry)) return false;
  return saysTheSame(entry, wanted);
}

/** What runs is not the winner, or should not be: it is judged again whenever something may have changed. */
export const isOpen = (entry: Entry): boolean => entry.running !== undefined || entry.givenUp !== undefined;

/** Nothing is different that is worth a write. */
export const isStoredSo = (a: Entry, b: Entry): boolean =>
  a.uid === b.uid &&
  saysTheSame(a, { candidates: b.candidates, winner: { source: b.winner } }) &&
  isCandidate(a.running, b.running) &&
  isCandidate(a.good, b.good) &&
  isCandidate(a.before, b.before) &&
  a.givenUp?.revision === b.givenUp?.revision;

/** The same winner and the same candidates, whatever runs. */
function saysTheSame(entry: Entry, wanted: Pick<Wanted, 'candidates'> & { readonly winner?: Pick<Candidate, 'source'> }): boolean {
  if (entry.winner !== wanted.winner?.source || entry.candidates.length !== wanted.candidates.length) return false;
  return entry.candidates.every((c, i) => isSaidSo(c, wanted.candidates[i]));
}

/** The same text, counter and signature: what a topic said must be known after a restart, too. */
const isSaidSo = (a: Candidate, b: Candidate | undefined): boolean =>
  isCandidate(a, b) && a.generation === b?.generation && a.hash === b?.hash && a.signed === b?.signed;

const saidBy = ({ object, revision, signed, generation }: DecodedObject): Omit<Candidate, 'source' | 'firstSeen'> => ({
  ...{ revision, object },
  ...(signed !== undefined && { signed }),
  ...(generation !== undefined && { generation }),
});

/** What the folder says, by object and file. */
class Folder {
  #files = new Map<string, DecodedFile>();
  #objects = new Map<KeyText, Map<Source, DecodedObject>>();

  constructor(files: readonly DecodedFile[]) {
    for (const file of files) {
      this.#files.set(file.name, file);
      for (const decoded of file.objects) {
        const bySource = this.#objects.get(decoded.key) ?? new Map<Source, DecodedObject>();
        bySource.set(fileSource(file.name), decoded);
        this.#objects.set(decoded.key, bySource);
      }
    }
  }

  keys(): Iterable<KeyText> {
    return this.#objects.keys();
  }

  of(key: KeyText): ReadonlyMap<Source, DecodedObject> {
    return this.#objects.get(key) ?? new Map();
  }

  /** What becomes of a candidate: newer, as it was, or gone. */
  keep(key: KeyText, candidate: Candidate, now: string): Candidate | undefined {
    const name = fileOf(candidate.source);
    if (name === undefined) return candidate;
    const said = this.of(key).get(candidate.source);
    if (said !== undefined) {
      const { signed, generation, object } = candidate;
      if (said.object === object && said.revision === candidate.revision && said.signed === signed && said.generation === generation)
        return candidate;
      const firstSeen = said.revision === candidate.revision ? candidate.firstSeen : now;
      return { source: candidate.source, ...saidBy(said), firstSeen };
    }
    const file = this.#files.get(name);
    return file === undefined || file.whole ? undefined : candidate;
  }
}
