/**
 * The checkpoint: one store entry for each accepted object, written before anything runs of it, so that the node starts again without the
 * folder. Owns which entries could not be read; they are left alone until the folder has said what it wants.
 */

import { createHmac, randomBytes } from 'node:crypto';
import type { KeyText, PodUid, Source } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import type { Store } from '../world/store.ts';
import { type Candidate, type Entry, type GivenUp, isCandidate } from './merge.ts';

const prefix = 'objects/';
/** Tells a checkpoint without objects from none at all. */
const marker = 'config/checkpoint';
const atOnce = 8;
const keyBytes = 32;

export type CheckpointState = 'read' | 'absent' | 'lost';

export class Checkpoint {
  /** Store keys of entries that cannot be read. */
  #lost = new Set<string>();
  #marked = false;
  #key: Uint8Array = randomBytes(keyBytes);

  constructor(private readonly store: Store) {}

  /** Everything that can be read. Never throws: what cannot be read makes it 'lost'. A pod read from an older copy has no UID. */
  async load(): Promise<{ readonly state: CheckpointState; readonly entries: readonly Entry[]; readonly lost: readonly unknown[] }> {
    const entries: Entry[] = [];
    const lost: unknown[] = [];
    let keys: string[];
    try {
      keys = await this.store.list(prefix);
    } catch (e) {
      return { state: 'lost', entries, lost: [e] };
    }
    await inGroups(keys, async (key) => {
      try {
        const stored = await this.store.read(key);
        const entry = readEntry(stored?.value, key);
        entries.push(stored?.older === true ? withoutInstance(entry) : entry);
      } catch (e) {
        this.#lost.add(key);
        lost.push(e);
      }
    });
    let marked = false;
    try {
      const found = await this.store.get(marker);
      marked = found !== undefined;
      const key = keyOf(found);
      // without one it is an earlier release's: the next save writes it anew
      this.#marked = key !== undefined;
      if (key !== undefined) this.#key = key;
    } catch (e) {
      if (keys.length === 0) lost.push(e);
    }
    const state = lost.length > 0 ? 'lost' : keys.length > 0 || marked ? 'read' : 'absent';
    return { state, entries: entries.sort((a, b) => (a.key < b.key ? -1 : 1)), lost };
  }

  async save(entry: Entry): Promise<void> {
    if (!this.#marked) {
      await this.store.put(marker, { version: 1, key: Buffer.from(this.#key).toString('base64') });
      this.#marked = true;
    }
    await this.store.put(prefix + entry.key, stored(entry));
    this.#lost.delete(prefix + entry.key);
  }

  /** Tells one revision from another, and nothing of what it was made from: under a random key of this node. */
  hiddenRevision(revision: string): string {
    return createHmac('sha256', this.#key).update(revision).digest('hex').slice(0, revision.length);
  }

  async remove(key: KeyText): Promise<void> {
    await this.store.remove(prefix + key);
    this.#lost.delete(prefix + key);
  }

  /** Once all sources have said what they want, what cannot be read is wanted by nobody. */
  async forgetLost(): Promise<void> {
    for (const key of this.#lost) {
      await this.store.remove(key);
      this.#lost.delete(key);
    }
  }
}

function keyOf(stored: unknown): Buffer | undefined {
  const key = isPlain(stored) && typeof stored.key === 'string' ? Buffer.from(stored.key, 'base64') : undefined;
  return key?.length === keyBytes ? key : undefined;
}

/** An older copy may speak of an instance that was replaced since, and of a text that was edited since: which instance lives, the runtime knows. */
const withoutInstance = ({ uid: _, running: __, givenUp: ___, ...entry }: Entry): Entry => entry;

/** The last good one is most often one that the entry has anyway: it is written once. */
function stored({ good, before, ...entry }: Entry): object {
  const known = [...entry.candidates, entry.running];
  const once = (c: Candidate): object => (known.some((k) => isCandidate(k, c)) ? named(c) : c);
  return { ...entry, ...(good && { good: once(good) }), ...(before && { before: once(before) }) };
}
const named = ({ source, revision }: Candidate) => ({ source, revision });

/** Acts on all items, a few at once: a card takes several syncs together as fast as one. Rejects with the first failure. */
export async function inGroups<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const item = items[next++];
      if (item !== undefined) await act(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
}

/** Trusts what this agent wrote, but not that the file is one of its own. */
function readEntry(value: unknown, storeKey: string): Entry {
  const wrong = (what: string): Error => new Error(`stored entry ${storeKey}: ${what}`);
  if (!isPlain(value) || typeof value.key !== 'string' || typeof value.winner !== 'string') throw wrong('not an object entry');
  const list: readonly unknown[] = Array.isArray(value.candidates) ? value.candidates : [];
  const readCandidate = (c: unknown): Candidate => {
    if (!isPlain(c) || typeof c.source !== 'string' || typeof c.revision !== 'string' || !isPlain(c.object))
      throw wrong('a candidate is damaged');
    const firstSeen = typeof c.firstSeen === 'string' ? c.firstSeen : '';
    const { generation, hash, signed } = c;
    return {
      source: c.source as Source,
      revision: c.revision,
      firstSeen,
      object: c.object as unknown as Candidate['object'],
      ...(typeof generation === 'number' && { generation }),
      ...(typeof hash === 'string' && { hash }),
      ...(typeof signed === 'string' && { signed }),
      ...(c.substituted === true && { substituted: true as const }),
    };
  };
  const candidates = list.map(readCandidate);
  const winner = candidates.find((c) => c.source === value.winner);
  if (winner === undefined) throw wrong('its winner is missing');
  if (winner.object.kind === 'Pod' && typeof value.uid !== 'string') throw wrong('it has no UID');
  const running = value.running === undefined ? undefined : readCandidate(value.running);
  const known = running === undefined ? candidates : [...candidates, running];
  const [good, before] = [value.good, value.before].map((c) => readGood(c, known, readCandidate));
  const givenUp = readGivenUp(value.givenUp);
  return {
    key: value.key as KeyText,
    ...(typeof value.uid === 'string' ? { uid: value.uid as PodUid } : {}),
    since: typeof value.since === 'string' ? value.since : winner.firstSeen,
    winner: winner.source,
    candidates,
    ...(running && { running }),
    ...(good && { good }),
    ...(before && { before }),
    ...(givenUp && { givenUp }),
  };
}

/** It only says where to go back to: without it the rest of the entry stands. */
function readGood(value: unknown, known: readonly Candidate[], read: (value: unknown) => Candidate): Candidate | undefined {
  if (!isPlain(value)) return undefined;
  if (value.object !== undefined) return read(value);
  return known.find((c) => c.source === value.source && c.revision === value.revision);
}

function readGivenUp(value: unknown): GivenUp | undefined {
  if (!isPlain(value) || typeof value.revision !== 'string') return undefined;
  return { revision: value.revision, why: typeof value.why === 'string' ? value.why : '' };
}
