/**
 * The MQTT source: what each desired topic says now, as changes for the one step that puts all sources together (manager.ts).
 *
 * Owns: what was heard of each topic (by hash), generations of what is gone, indexes, rollouts and `_config`; the last four are stored but for
 * rollouts. Missing is not deleted: an object goes when its topic says so (an empty payload, a tombstone), when a newer index leaves it out, or
 * when the node leaves the group. That the broker has lost it is told (`SourceGone`), and it runs on. What an index lists and nobody sent is
 * asked for by its exact topic, once in a connection. Waits for no broker: what was accepted before needs none.
 * Never: keeps a payload, runs anything, decides between sources, takes the same payload twice, throws out of `message`.
 */
import type { NodeConfig } from '../api/messages.ts';
import { keyOf, type Problem, type Source } from '../api/objects.ts';
import { describeError } from '../world/log.ts';
import { again, type Denial, denialOf } from './allowed.ts';
import type { DocumentOptions } from './decode.ts';
import { desiredFilters, groupOf, type Listener, placeOf, sourceOfFilter, topicOf } from './desiredTopics.ts';
import { Generations } from './generations.ts';
import { type Candidate, type Entry, kindOfSource, type Rank, type RemoteChanges, ranking } from './merge.ts';
import { Asking } from './remoteAsking.ts';
import { RemoteConfig } from './remoteConfig.ts';
import { Hearing } from './remoteHearing.ts';
import { RemoteIndexes } from './remoteIndexes.ts';
import { RemoteIntake, type Waiting } from './remoteIntake.ts';
import { computeNotes, type RemoteNotes } from './remoteNotes.ts';
import { mostTopics, placeIn, RemoteObjects } from './remoteObjects.ts';
import { type Arrival, openWords, type ReaderContext, readIndexPart, readObject } from './remoteReader.ts';
import { RemoteRollouts } from './remoteRollouts.ts';
import type { RemoteDeps, RemoteMessage, RemotePort, TakeContext } from './remoteWords.ts';
import { rolloutWait } from './rollouts.ts';
import { WrongTopics } from './wrongTopics.ts';

export class RemoteSource {
  readonly #generations: Generations;
  readonly #objects: RemoteObjects;
  readonly #indexes: RemoteIndexes;
  readonly #config: RemoteConfig;
  readonly #rollouts = new RemoteRollouts();
  readonly #wrong = new WrongTopics();
  readonly #intake: RemoteIntake;
  readonly #hearing: Hearing;
  readonly #asking: Asking;
  readonly #stop = new AbortController();
  #port: RemotePort = { step: () => {}, policy: () => ({}) };
  /** Filters whose snapshot has ended: what follows from it is done in the next step. */
  #ended: readonly string[] = [];
  #news = false;
  #unsaved = false;
  #decodedWith = '';
  #checkpointRead = false;
  #heardAll = false;
  #loaded = false;
  #followed: readonly string[] = [];
  #off = false;
  #notes: RemoteNotes | undefined;

  constructor(private readonly deps: RemoteDeps) {
    this.#generations = new Generations(deps.store);
    this.#objects = new RemoteObjects(this.#generations);
    this.#indexes = new RemoteIndexes(deps.store, (source, key) => topicOf(this.#listener(), source, key));
    this.#config = new RemoteConfig(deps.store);
    this.#intake = new RemoteIntake({ objects: this.#objects, generations: this.#generations, indexes: this.#indexes });
    this.#hearing = new Hearing(deps.clock, () => this.#port.step());
    const { clock, log } = deps;
    const asking = { clock, log, fetch: (topics: readonly string[]) => deps.fetch(topics), soon: () => this.#soon() };
    this.#asking = new Asking(asking, { objects: this.#objects, indexes: this.#indexes, hearing: this.#hearing });
  }

  /** Once, by the sources themselves. */
  attach(port: RemotePort): void {
    this.#port = port;
  }

  /** Reads what is stored, after the checkpoint. Never rejects. */
  async load(entries: Iterable<Entry>, checkpointRead: boolean): Promise<void> {
    this.#checkpointRead = checkpointRead;
    const before = this.filters();
    for (const part of [this.#generations, this.#indexes, this.#config]) {
      await part.load().catch((e) => this.deps.log.error({ error: describeError(e) }, 'stored state of the MQTT source cannot be read'));
    }
    const listener = this.#listener();
    this.#objects.restore(entries, ({ source, object }) => placeIn(source, keyOf(object), topicOf(listener, source, keyOf(object))));
    this.#objects.finishDeletions();
    this.#followed = before;
    this.#followAnew();
    if (this.#config.takeChanged()) this.deps.configChanged?.(this.#config.value);
    this.#loaded = true;
    this.#news = true;
  }

  stop(): void {
    this.#stop.abort();
    this.#hearing.stop();
  }

  /** A message on a topic below `desired/` or `rollouts/`. Never throws; what follows from it follows in a step of the sources. */
  message({ topic, payload, retain }: RemoteMessage): void {
    if (this.#off) return;
    try {
      const place = placeOf(this.#listener(), topic);
      if (place.of === 'foreign') return;
      const heard = this.#intake.hear(place, topic, payload, retain);
      if (heard === 'known') return;
      if (heard === 'full') this.#asking.add([topic]);
      this.#notes = undefined;
      this.#news = true;
      this.#hearing.heard(retain);
    } catch (e) {
      this.deps.log.error({ error: describeError(e) }, 'a desired topic could not be read');
    }
  }

  /** The snapshot of these filters has ended on this connection. */
  snapshot(filters: readonly string[]): void {
    if (this.#off) return;
    this.#hearing.snapshot(filters);
    this.#ended = [...this.#ended, ...filters];
    this.#soon();
  }

  connected(): void {
    if (this.#off) return;
    this.#hearing.connected(this.filters());
    for (const record of this.#objects.records.values()) record.seen = false;
  }

  disconnected(): void {
    this.#hearing.disconnected();
  }

  /** What is to be followed now, the strongest source first. */
  filters(): string[] {
    return this.#off ? [] : desiredFilters(this.#listener());
  }

  /** `_config`, if there is one. */
  config(): NodeConfig | undefined {
    return this.#config.value;
  }

  /** Groups as they count: those of `_config`, else of the file. */
  groups(): readonly string[] {
    return this.#config.value?.groups ?? this.deps.groups();
  }

  /** The checkpoint was read, or snapshots of all filters have ended in this run: what is not wanted may go. */
  ready(): boolean {
    return this.#checkpointRead || this.heardAll();
  }

  /** All filters were heard to their end in this run. */
  heardAll(): boolean {
    this.#heardAll ||= this.#hearing.heardAll(this.filters());
    return this.#heardAll;
  }

  /** Precedence of sources, with the groups of this moment. */
  rank(): Rank {
    const policy = this.#port.policy();
    return ranking(this.groups(), (source) => policy.locked?.(source) === true);
  }

  /** Groups or labels of the file are others now. */
  settingsChanged(): void {
    this.#soon();
  }

  /** Takes the source in anew: every filter is let go and followed again. */
  readAgain(): void {
    if (this.#off) return;
    if (this.#hearing.isConnected) this.connected();
    this.deps.follow([]);
    this.deps.follow(this.filters());
  }

  /** Something waits to be taken in. */
  get waits(): boolean {
    if (!this.#loaded) return false;
    return this.#news || this.#unsaved || this.#intake.size > 0 || this.#objects.hasChanges;
  }

  /** Reads what came since, and says what is different. What must be stored before anything goes is stored; rejects when it cannot be. */
  async take(c: TakeContext): Promise<RemoteChanges> {
    this.#news = false;
    this.#notes = undefined;
    this.#lookAtValues(c.decode);
    // what comes while these are read is for the next step
    const waiting = this.#intake.take();
    const ended = this.#ended;
    this.#ended = [];
    const reader = this.#reader(c);
    for (const one of waiting) {
      await c.breathe();
      this.#takeOne(one, reader);
    }
    if (this.#config.takeChanged()) this.deps.configChanged?.(this.#config.value);
    this.#regroup();
    this.#followIndexes();
    for (const filter of ended) this.#snapshotEnded(filter);
    this.#lookAtRollouts();
    this.#unsaved = true;
    // what an index leaves out is on the card before the index counts as followed
    await this.#generations.save();
    await Promise.all([this.#indexes.save(), this.#config.save()]);
    this.#unsaved = false;
    this.#asking.flush();
    return this.#objects.changes({ deletions: this.ready() });
  }

  /** What was taken is in the sources' hands. */
  consumed(changes: RemoteChanges): void {
    this.#objects.consumed(changes);
  }

  /** Policy or keys are others now: what they deny of `entries` goes, and what they denied is read once more. */
  judgeAgain(entries: Iterable<Pick<Entry, 'candidates'>>): void {
    const policy = this.#port.policy();
    this.#asking.add(this.#objects.reread((r) => r.again === 'policy'));
    for (const { candidates } of [...entries, { candidates: this.#objects.untaken() }]) {
      for (const candidate of candidates) {
        if (kindOfSource(candidate.source) === 'file') continue;
        const denial = denialOf(again(candidate, this.deps.nodeName), policy);
        if (denial !== undefined) this.deny(candidate, denial, 'policy');
      }
    }
    this.#soon();
  }

  /** A candidate takes no part any more. */
  deny({ object, source }: Pick<Candidate, 'object' | 'source'>, told: Denial, why: 'policy' | 'room'): void {
    const topic = topicOf(this.#listener(), source, keyOf(object));
    const record = topic === undefined ? undefined : this.#objects.get(topic);
    if (record === undefined) return;
    this.#objects.deny(record, told, why);
    this.#soon();
  }

  /** A pod went: those that had no room are read once more. */
  roomAgain(): void {
    const topics = this.#objects.reread((r) => r.again === 'room');
    this.#asking.add(topics);
    if (topics.length > 0) this.#soon();
  }

  /** All that was stored goes, and nothing is taken any more until the agent starts anew. */
  async forget(): Promise<void> {
    this.#off = true;
    this.#intake.take();
    this.#objects.forget();
    this.#rollouts.clear();
    this.#wrong.clear();
    this.#notes = undefined;
    this.#asking.clear();
    await Promise.all([this.#generations.forget(), this.#indexes.forget(), this.#config.forget()]);
    if (this.#config.takeChanged()) this.deps.configChanged?.(undefined);
    this.deps.follow([]);
  }

  /** By object and source, where there is more to tell than that it was accepted. */
  notes(): RemoteNotes {
    this.#notes ??= computeNotes(this.#objects.records, this.#asking.stillMissing());
    return this.#notes;
  }

  /** Topics that hold nothing that can be told at an object. */
  wrong(): WrongTopics {
    return this.#wrong;
  }

  #listener(): Listener {
    return { prefix: this.deps.prefix, nodeName: this.deps.nodeName, groups: this.groups() };
  }

  #soon(): void {
    this.#notes = undefined;
    this.#news = true;
    this.#port.step();
  }

  #node(): { readonly name: string; readonly labels: Readonly<Record<string, string>> } {
    return { name: this.deps.nodeName, labels: { ...this.deps.labels(), ...this.#config.value?.labels } };
  }

  #reader({ decode, entries }: TakeContext): ReaderContext {
    return {
      node: this.#node(),
      groups: this.groups(),
      policy: this.#port.policy(),
      decode,
      rollouts: this.#rollouts.byId,
      candidate: ({ text, source }) => {
        const changed = this.#objects.changed(text, source);
        return changed === undefined ? entries.get(text)?.candidates.find((o) => o.source === source) : changed.candidate;
      },
    };
  }

  #takeOne({ place, topic, arrival }: Waiting, reader: ReaderContext): void {
    if (place.of === 'object') {
      const record = this.#objects.open(place);
      const full = { path: '', expected: `at most ${mostTopics} desired topics`, got: 'more' };
      this.#wrong.set('desired', record === undefined ? [full] : []);
      if (record === undefined) return;
      record.seen = arrival.bytes > 0;
      record.lost = false;
      readObject(record, arrival, { objects: this.#objects, indexes: this.#indexes }, reader);
    } else if (place.of !== 'foreign') this.#wrong.set(topic, this.#takeWords(place, topic, arrival, reader));
  }

  /** What is no object; what is wrong with it. */
  #takeWords(
    place: Exclude<Waiting['place'], { of: 'object' | 'foreign' }>,
    topic: string,
    arrival: Arrival,
    reader: ReaderContext,
  ): readonly Problem[] {
    switch (place.of) {
      case 'index': {
        const rooms = { objects: this.#objects, indexes: this.#indexes };
        const told = readIndexPart(place.source, place.part, arrival, rooms, reader);
        // in a snapshot its end asks
        if (told === undefined && arrival.bytes > 0 && !this.#hearsSnapshotOf(place.source))
          this.#asking.later(place.source, this.#stop.signal);
        return told?.problems ?? [];
      }
      case 'config': {
        const opened = arrival.bytes === 0 ? undefined : openWords('mqtt:node', 'config', arrival, reader);
        const told = opened !== undefined && 'reason' in opened ? opened : this.#config.take(opened, arrival.hash, reader);
        return told?.problems ?? [];
      }
      case 'rollout':
        return this.#rollouts.take(place.id, arrival);
      case 'wrong':
        return arrival.bytes === 0 ? [] : [{ path: '', expected: place.expected, got: topic.slice(0, 200) }];
    }
  }

  /** Objects in which values of the node stand are others when those are, and what was refused may be right. */
  #lookAtValues(decode: DocumentOptions): void {
    const now = JSON.stringify(decode);
    if (this.#decodedWith === now) return;
    const first = this.#decodedWith === '';
    this.#decodedWith = now;
    if (!first) this.#asking.add(this.#objects.reread((r) => r.again === 'node' || r.substituted));
  }

  #snapshotEnded(filter: string): void {
    const source = sourceOfFilter(this.#listener(), filter);
    if (source === undefined) return;
    this.#indexes.snapshotEnded(source);
    this.#objects.forgetRefused(source);
    for (const record of this.#objects.leftOut(source)) {
      const { accepted, place } = record;
      // a broker's full queue drops some: the index, which came, says that it is wanted
      record.lost = accepted?.hash === undefined || !this.#indexes.lists(source, place.topic, accepted.hash);
    }
    this.#asking.missing(source);
  }

  /** The list of groups may be another: what was of a group that the node left goes. */
  #regroup(): void {
    const groups = this.groups();
    if (this.#config.sure) {
      for (const record of this.#objects.ofGroupsBeside(groups)) this.#objects.remove(record, 'group', record.accepted?.hash, undefined);
      const isLeft = (group: string | undefined): boolean => group !== undefined && !groups.includes(group);
      for (const source of this.#indexes.sources()) if (isLeft(groupOf(source))) this.#indexes.remove(source);
    }
    if (this.#followAnew()) this.#asking.add(this.#objects.reread((r) => r.again === 'audience'));
  }

  /** True when the filters are others than before. */
  #followAnew(): boolean {
    const filters = this.filters();
    if (filters.join('\n') === this.#followed.join('\n')) return false;
    this.#hearing.refollowed(this.#followed, filters);
    this.#followed = filters;
    this.deps.follow(filters);
    return true;
  }

  #followIndexes(): void {
    if (this.ready())
      for (const source of this.#indexes.sources()) this.#indexes.follow(source, this.#objects, this.#hearsSnapshotOf(source));
  }

  #hearsSnapshotOf(source: Source): boolean {
    const listener = this.#listener();
    return this.#hearing.isOpen(this.filters().find((f) => sourceOfFilter(listener, f) === source));
  }

  /** What waits for a rollout waits still, or is read once more. */
  #lookAtRollouts(): void {
    const node = this.#node();
    const waits = (id: string, source: Source): string | undefined => rolloutWait(id, source, this.#rollouts.byId, node);
    this.#asking.add(this.#objects.released(waits));
  }
}
