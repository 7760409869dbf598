/**
 * The indexes of all scopes: their parts as they stand at the broker, and which generation was followed last, stored, so that an older one
 * deletes nothing after a restart either. What an index says is decided in desiredIndex.ts.
 */
import type { KeyText, Source } from '../api/objects.ts';
import { keyText } from '../api/objects.ts';
import type { Store } from '../world/store.ts';
import { deletedBy, type IndexPart, isMissing, type Listed, type Received, wholeIndex } from './desiredIndex.ts';
import { generationProblem } from './generationRule.ts';
import type { RemoteObjects } from './remoteObjects.ts';
import type { Told } from './view.ts';

const storeKey = 'mqtt/indexes';
/** Of all indexes together: as many as topics are remembered. */
const mostListed = 4000;

interface Scope {
  readonly parts: Map<number, { readonly part: IndexPart; readonly hash: string }>;
  /** What the parts list together, by topic. */
  listed: ReadonlyMap<string, Listed>;
  /** Generation of the last whole one that was followed. */
  followed: number | undefined;
  /** It was followed first in a snapshot that has not ended: what that brings besides is struck off. */
  fresh: boolean;
}

export interface MissingObject {
  readonly topic: string;
  readonly text: KeyText;
  readonly source: Source;
  readonly generation?: number;
}

export class RemoteIndexes {
  #scopes = new Map<Source, Scope>();
  #dirty = false;

  constructor(
    private readonly store: Store,
    private readonly topicOf: (source: Source, key: Listed['key']) => string | undefined,
  ) {}

  /** Rejects when it cannot be read: then any index counts as newer. */
  async load(): Promise<void> {
    const stored = await this.store.get(storeKey);
    const followed: unknown = typeof stored === 'object' && stored !== null ? (stored as { followed?: unknown }).followed : undefined;
    if (typeof followed !== 'object' || followed === null) return;
    for (const [source, generation] of Object.entries(followed)) {
      if (typeof generation === 'number') this.#scope(source as Source).followed = generation;
    }
  }

  /** Whether the same payload stands there already. */
  isKnown(source: Source, part: number, hash: string): boolean {
    return this.#scopes.get(source)?.parts.get(part)?.hash === hash;
  }

  /** Takes a part in; what is against it, in words. */
  set(source: Source, number: number, part: IndexPart, hash: string): Told | undefined {
    const scope = this.#scope(source);
    const before = scope.parts.get(number);
    const known = before === undefined ? { generation: scope.followed } : { generation: before.part.generation, hash: before.hash };
    const told = generationProblem(
      { ...(known.generation !== undefined && { generation: known.generation }), ...(before !== undefined && { hash: before.hash }) },
      { generation: part.generation, hash },
    );
    if (told !== undefined) return told;
    let others = part.entries.length;
    for (const [of, { parts }] of this.#scopes)
      for (const [n, p] of parts) if (of !== source || n !== number) others += p.part.entries.length;
    if (others > mostListed) return { reason: 'TooManyObjects', message: `indexes list more than ${mostListed} objects together` };
    scope.parts.set(number, { part, hash });
    this.#list(source, scope);
    return undefined;
  }

  /** An empty payload: from now on nothing is listed there. It deletes nothing. */
  clear(source: Source, number: number): void {
    const scope = this.#scopes.get(source);
    if (scope?.parts.delete(number) === true) this.#list(source, scope);
  }

  /** The node left the group. */
  remove(source: Source): void {
    const scope = this.#scopes.get(source);
    this.#scopes.delete(source);
    if (scope?.followed !== undefined) this.#dirty = true;
  }

  sources(): Source[] {
    return [...this.#scopes.keys()];
  }

  /** A whole index that is newer than what was followed deletes what it leaves out. `inSnapshot`: more of this source may come of what stood there. */
  follow(source: Source, objects: RemoteObjects, inSnapshot: boolean): void {
    const scope = this.#scopes.get(source);
    const whole = scope && wholeIndex(new Map([...scope.parts].map(([n, { part }]) => [n, part])));
    if (scope === undefined || whole === undefined || (scope.followed !== undefined && whole.generation <= scope.followed)) return;
    const own = [...objects.records.values()].flatMap((record) =>
      record.place.source === source ? [{ topic: record.place.topic, record }] : [],
    );
    const gone = deletedBy({ generation: whole.generation, topics: scope.listed }, scope.followed, own);
    for (const { record } of gone) objects.remove(record, 'index', record.hash, undefined);
    scope.followed = whole.generation;
    scope.fresh = inSnapshot;
    this.#dirty = true;
  }

  snapshotEnded(source: Source): void {
    const scope = this.#scopes.get(source);
    if (scope !== undefined) scope.fresh = false;
  }

  /** An object that stood at the broker when an index that leaves it out was followed first. */
  strikes(source: Source, topic: string): boolean {
    const scope = this.#scopes.get(source);
    return scope?.fresh === true && !scope.listed.has(topic);
  }

  lists(source: Source, topic: string, hash: string): boolean {
    return this.#scopes.get(source)?.listed.get(topic)?.sha256 === hash;
  }

  /** What is listed and was not received. */
  missing(received: (topic: string) => Received | undefined, only?: Source): MissingObject[] {
    const out: MissingObject[] = [];
    for (const [source, { listed }] of this.#scopes) {
      if (only !== undefined && only !== source) continue;
      for (const [topic, { key, sha256, generation }] of listed) {
        if (!isMissing({ sha256, ...(generation !== undefined && { generation }) }, received(topic))) continue;
        out.push({ topic, text: keyText(key), source, ...(generation !== undefined && { generation }) });
      }
    }
    return out;
  }

  async save(): Promise<void> {
    if (!this.#dirty) return;
    const followed = [...this.#scopes].flatMap(([source, s]) => (s.followed === undefined ? [] : [[source, s.followed] as const]));
    await this.store.put(storeKey, { followed: Object.fromEntries(followed) });
    this.#dirty = false;
  }

  async forget(): Promise<void> {
    this.#scopes.clear();
    this.#dirty = false;
    await this.store.remove(storeKey);
  }

  #scope(source: Source): Scope {
    const scope = this.#scopes.get(source) ?? { parts: new Map(), listed: new Map(), followed: undefined, fresh: false };
    this.#scopes.set(source, scope);
    return scope;
  }

  #list(source: Source, scope: Scope): void {
    const listed = new Map<string, Listed>();
    const first = scope.parts.get(0)?.part;
    for (const [number, { part }] of scope.parts) {
      // left over from an index of more parts
      if (first !== undefined && number >= first.parts && part.generation <= first.generation) continue;
      for (const entry of part.entries) {
        const topic = this.topicOf(source, entry.key);
        if (topic !== undefined) listed.set(topic, entry);
      }
    }
    scope.listed = listed;
  }
}
