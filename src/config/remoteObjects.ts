/**
 * What each topic said last, by its hash, and what follows from it for the next step of the sources. Owns one small record for each topic of
 * this node (4,000 at most), never a payload and never a second copy of an object. What may take part is asked of the pure files and of
 * policy; here the answers are kept.
 */
import type { KeyText, Problem, Source } from '../api/objects.ts';
import { keyText } from '../api/objects.ts';
import type { DecodedObject } from './decode.ts';
import type { Delivery } from './delivery.ts';
import { groupOf, type ObjectPlace } from './desiredTopics.ts';
import type { Counted } from './generationRule.ts';
import type { Deleted, Generations } from './generations.ts';
import type { Candidate, Entry, RemoteCandidate, RemoteChanges } from './merge.ts';
import type { Told } from './view.ts';

/** How many topics are remembered. */
export const mostTopics = 4000;
/** Of each; of fewer when there are many topics, or what is wrong with all of them would fill the memory of a small board. */
const mostProblems = 20;
const fewProblems = 3;
const manyTopics = 500;

/** What is told of one source of an object, where it is more than that it was accepted. */
export interface RemoteNote extends Told {
  readonly phase: 'Accepted' | 'Refused' | 'Waiting';
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Of what the topic says now. */
  readonly generation?: number;
}

/** Why it is worth reading the same payload once more, some day. */
export type Again = 'policy' | 'room' | 'audience' | 'node';

export interface TopicRecord {
  readonly place: ObjectPlace;
  /** Of the payload that was read last; undefined: none was, or it is to be read again. */
  hash: string | undefined;
  generation: number | undefined;
  /** What takes part of it. */
  accepted: Counted | undefined;
  /** It stood at the broker on this connection. */
  seen: boolean;
  /** The snapshot has ended without it. */
  lost: boolean;
  note: (Told & { readonly phase: 'Refused' | 'Waiting'; readonly problems: readonly Problem[] }) | undefined;
  again: Again | undefined;
  /** The rollout it waits for. */
  rollout: string | undefined;
  warnings: readonly Problem[];
  /** Values of the node stand in it, so that it is another object when they are others. */
  substituted: boolean;
}

type MutableChanges = Map<KeyText, Map<Source, RemoteCandidate | undefined>>;

export class RemoteObjects {
  readonly records = new Map<string, TopicRecord>();
  #changes: MutableChanges = new Map();

  constructor(private readonly generations: Generations) {}

  /** What was accepted before, as the checkpoint has it. */
  restore(entries: Iterable<Entry>, placeOf: (candidate: Candidate) => ObjectPlace | undefined): void {
    for (const { candidates } of entries) {
      for (const candidate of candidates) {
        const { hash, generation, substituted } = candidate;
        const place = placeOf(candidate);
        if (place === undefined) continue;
        const record = this.#add(place);
        record.substituted = substituted === true;
        // the node's values may be others by now
        record.hash = substituted === true ? undefined : hash;
        record.generation = generation;
        record.accepted = counted(generation, hash);
      }
    }
  }

  get(topic: string): TopicRecord | undefined {
    return this.records.get(topic);
  }

  /** undefined: there are too many. */
  open(place: ObjectPlace): TopicRecord | undefined {
    return this.records.get(place.topic) ?? (this.records.size < mostTopics ? this.#add(place) : undefined);
  }

  /** What a new payload of the topic must come after: the greatest of what is accepted, what waits and what was deleted. */
  known({ place, accepted, note, generation, hash }: TopicRecord): Counted {
    const deleted = this.generations.get(place.topic);
    const waits = note?.phase === 'Waiting' ? counted(generation, hash) : {};
    const all: readonly Counted[] = [accepted ?? {}, waits, deleted === undefined ? {} : counted(deleted.generation, deleted.hash)];
    return all.reduce((a, b) => ((b.generation ?? -1) > (a.generation ?? -1) ? b : a));
  }

  /** It takes part from now on. */
  accept(
    record: TopicRecord,
    hash: string,
    { object, revision, warnings, substituted }: DecodedObject,
    delivery: Delivery,
    signed: string | undefined,
  ): void {
    const { source, topic } = record.place;
    const { generation } = delivery;
    record.hash = hash;
    record.generation = generation;
    record.accepted = counted(generation, hash);
    record.note = undefined;
    record.again = undefined;
    record.rollout = undefined;
    record.warnings = warnings.slice(0, this.#most);
    record.substituted = substituted === true;
    this.generations.returned(topic, generation);
    this.#change(record, {
      ...{ source, revision, object, hash },
      ...(generation !== undefined && { generation }),
      ...(signed !== undefined && { signed }),
      ...(substituted === true && { substituted }),
    });
  }

  /** What it says takes no part; what was accepted of it goes on. */
  refuse(
    record: TopicRecord,
    hash: string | undefined,
    told: Told & { readonly problems: readonly Problem[] },
    generation?: number | undefined,
    again?: Again | undefined,
  ): void {
    record.hash = hash;
    record.generation = generation;
    record.note = { ...told, problems: told.problems.slice(0, this.#most), phase: 'Refused' };
    record.again = again;
    record.rollout = undefined;
  }

  /** It is right, and its time has not come; what was accepted of it goes on. */
  wait(record: TopicRecord, hash: string, rollout: string, message: string, generation: number | undefined): void {
    record.hash = hash;
    record.generation = generation;
    record.note = { phase: 'Waiting', reason: 'Rollout', message, problems: [] };
    record.again = undefined;
    record.rollout = rollout;
  }

  /** A wish that it go. `hash` of the payload by which it is known again. */
  remove(record: TopicRecord, by: Deleted['by'], hash: string | undefined, generation: number | undefined): void {
    const { place, accepted } = record;
    const greatest = Math.max(generation ?? -1, accepted?.generation ?? -1);
    const deleted = { by, ...(hash !== undefined && { hash }), ...(greatest >= 0 && { generation: greatest }) };
    this.generations.add(place.topic, deleted);
    if (accepted !== undefined) this.#change(record, undefined);
    this.records.delete(place.topic);
  }

  /** Policy or want of room: it takes no part any more, and is told. */
  deny(record: TopicRecord, told: Told & { readonly problems: readonly Problem[] }, again: Again): void {
    const { accepted } = record;
    if (accepted !== undefined) {
      this.generations.add(record.place.topic, { by: 'payload', ...accepted });
      this.#change(record, undefined);
      record.accepted = undefined;
    }
    this.refuse(record, record.hash, told, record.generation, again);
  }

  /** What was taken, and is in nobody's hands yet. */
  untaken(): RemoteCandidate[] {
    return [...this.#changes.values()].flatMap((of) => [...of.values()].filter((candidate) => candidate !== undefined));
  }

  /** An index had left these out when the power went, and the card has them still. */
  finishDeletions(): void {
    for (const record of [...this.records.values()]) {
      const { accepted, place } = record;
      const deleted = this.generations.get(place.topic);
      if (deleted?.by === 'index' && accepted?.hash !== undefined && deleted.hash === accepted.hash)
        this.remove(record, 'index', deleted.hash, undefined);
    }
  }

  /** Nothing of it takes part, and nothing of it stands at the broker. */
  forgetRefused(source: Source): void {
    for (const [topic, { place, accepted, seen }] of this.records)
      if (place.source === source && accepted === undefined && !seen) this.records.delete(topic);
  }

  /** Those of which the broker has nothing, as far as anybody knows: nothing was said of them in this connection. */
  leftOut(source: Source): TopicRecord[] {
    return [...this.records.values()].filter((r) => r.place.source === source && r.accepted !== undefined && !r.seen);
  }

  ofGroupsBeside(groups: readonly string[]): TopicRecord[] {
    return [...this.records.values()].filter(({ place }) => {
      const group = groupOf(place.source);
      return group !== undefined && !groups.includes(group);
    });
  }

  get hasChanges(): boolean {
    return this.#changes.size > 0;
  }

  /** All that is different since the last step; it stays so until `consumed`. Without deletions: those wait. */
  changes(o: { readonly deletions: boolean }): RemoteChanges {
    const chosen = [...this.#changes].map(([key, of]) => {
      const some = [...of].filter(([, candidate]) => o.deletions || candidate !== undefined);
      return [key, new Map(some)] as const;
    });
    return new Map(chosen.filter(([, of]) => of.size > 0));
  }

  /** These are in the sources' hands; what came meanwhile stays. */
  consumed(changes: RemoteChanges): void {
    for (const [key, of] of changes) {
      const mine = this.#changes.get(key);
      for (const [source, candidate] of of) if (mine?.get(source) === candidate) mine?.delete(source);
      if (mine?.size === 0) this.#changes.delete(key);
    }
  }

  /** Those whose rollout lets them in by now are to be read once more. Their topics. */
  released(waits: (rollout: string, source: Source) => string | undefined): string[] {
    const topics: string[] = [];
    for (const record of this.records.values()) {
      const { rollout, note, place } = record;
      if (rollout === undefined || note === undefined || record.hash === undefined) continue;
      const message = waits(rollout, place.source);
      if (message !== undefined) record.note = { ...note, message };
      else {
        record.hash = undefined;
        topics.push(place.topic);
      }
    }
    return topics;
  }

  /** The broker will be asked for them once more. Their topics. */
  reread(which: (record: TopicRecord) => boolean): string[] {
    const topics: string[] = [];
    for (const record of this.records.values()) {
      if (!which(record)) continue;
      record.hash = undefined;
      topics.push(record.place.topic);
    }
    return topics;
  }

  /** As it will be taken in the next step. */
  changed(key: KeyText, source: Source): { readonly candidate: RemoteCandidate | undefined } | undefined {
    const of = this.#changes.get(key);
    return of?.has(source) === true ? { candidate: of.get(source) } : undefined;
  }

  forget(): void {
    this.records.clear();
    this.#changes.clear();
  }

  get #most(): number {
    return this.records.size > manyTopics ? fewProblems : mostProblems;
  }

  #add(place: ObjectPlace): TopicRecord {
    const record: TopicRecord = {
      place,
      hash: undefined,
      generation: undefined,
      accepted: undefined,
      seen: false,
      lost: false,
      note: undefined,
      again: undefined,
      rollout: undefined,
      warnings: [],
      substituted: false,
    };
    this.records.set(place.topic, record);
    return record;
  }

  #change({ place }: TopicRecord, candidate: RemoteCandidate | undefined): void {
    const of = this.#changes.get(place.text) ?? new Map<Source, RemoteCandidate | undefined>();
    of.set(place.source, candidate);
    this.#changes.set(place.text, of);
  }
}

const counted = (generation: number | undefined, hash: string | undefined): Counted => ({
  ...(generation !== undefined && { generation }),
  ...(hash !== undefined && { hash }),
});

/** The place of an object that the checkpoint has of a topic. */
export function placeIn(source: Source, key: ObjectPlace['key'], topic: string | undefined): ObjectPlace | undefined {
  return topic === undefined ? undefined : { of: 'object', topic, source, key, text: keyText(key) };
}
