/**
 * From sources to one ordered stream of pod updates.
 *
 * Owns: which objects are accepted, from which source, at which revision, and the UID of each pod's instance, in memory and in the
 * checkpoint (stored before anything runs of it). ConfigMaps and Secrets are kept here too; others read them through `object`.
 * Never: deletes for what cannot be read; takes time, file name or spelling for a change; makes a UID twice; asks whether a pod may run.
 * One step: `readFolder`. Steps never overlap. Pods of one step go out in the order REMOVE, ADD, UPDATE, RECONCILE.
 * Mirrors kubelet v1.32 config/config.go (merge into ADD, UPDATE, REMOVE, RECONCILE), with behaviour 1 to 3, 9 to 12 and 17 in place of
 * its identity by UID.
 */
import type { DesiredPod, InstanceState, PodUpdate } from '../api/desired.ts';
import type { EditVerdict, PodEdit } from '../api/edit.ts';
import { toDesiredPod } from '../api/instance.ts';
import type { NodeValues } from '../api/nodeValues.ts';
import type { ApiObject, KeyText, PodUid, Source } from '../api/objects.ts';
import { type Clock, toRfc3339 } from '../world/clock.ts';
import type { FolderReader } from '../world/folder.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { Checkpoint, type CheckpointState, inGroups } from './checkpoint.ts';
import { DecodedFolder } from './decodedFolder.ts';
import { type EditView, editOf, type JudgedEdit, judgeWanted } from './edits.ts';
import { type Candidate, type Entry, hasNoInstance, isSame, mergeFolder, saysTheSame, visibleTo, type Wanted, winnerOf } from './merge.ts';
import { Stretch } from './stretch.ts';
import { ConfigTeller, type ConfigTellerDeps } from './teller.ts';
import type { ConfigView, Told } from './view.ts';

export interface ConfigDeps extends ConfigTellerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
  readonly folder: FolderReader;
  readonly nodeName: string;
  strict(): boolean;
  allowedUnsafeSysctls?(): readonly string[];
  /** What `${NODE.…}` stands for. Left out: of the node only its name is known. */
  nodeFacts?(): NodeValues;
  newUid(): PodUid;
  /** The running side of an instance, for judging an edit. */
  instanceState(uid: PodUid): InstanceState;
  /** The instance that the runtime has of a pod whose UID is not known any more; 'unknown': the runtime was not listed yet. */
  runtimeUid(key: KeyText, podHash: string): PodUid | undefined | 'unknown';
  /**
   * What admission says of edits, each call with all that is to be carried out or waits: by key, what is not simply carried out. Left out:
   * every edit goes on.
   */
  judgeEdits?(edits: readonly PodEdit[]): ReadonlyMap<KeyText, EditVerdict>;
  emit(u: PodUpdate): void;
}

type Outcome = Record<PodUpdate['op'], DesiredPod[]>;
interface Pending extends Told {
  readonly sources: readonly Candidate[];
}

export class Config {
  #entries = new Map<KeyText, Entry>();
  #desired = new Map<KeyText, DesiredPod>();
  #pending = new Map<KeyText, Pending>();
  /** Why an accepted edit is not carried out. */
  #blocked = new Map<KeyText, Told>();
  readonly #checkpoint: Checkpoint;
  #state: CheckpointState = 'absent';
  /**
   * Pods that the runtime may have without our knowing their UID: those that the folder names and the checkpoint does not, in the first
   * read, and with a lost checkpoint until no file is broken any more.
   */
  #adoptable: Set<KeyText> | undefined;
  #settledOnce = false;
  /** Pods that began in this run: what the runtime has of them is known. */
  #begun = new Set<KeyText>();
  #read = false;
  #fault: string | undefined;
  #insecure: string | undefined;
  #degraded: string | undefined;
  #turn: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  readonly #stretch: Stretch;
  readonly #folder: DecodedFolder;
  readonly #teller: ConfigTeller;
  readonly #edits: EditView;

  constructor(private readonly deps: ConfigDeps) {
    this.#checkpoint = new Checkpoint(deps.store);
    this.#stretch = new Stretch(deps.clock);
    this.#folder = new DecodedFolder(this.#stretch);
    this.#teller = new ConfigTeller(deps);
    this.#edits = {
      entry: (key) => this.#entries.get(key),
      desired: (key) => this.#desired.get(key),
      desiredOf: (entry) => this.#desiredOf(entry),
      instanceState: (uid) => deps.instanceState(uid),
      judge: (edits) => deps.judgeEdits?.(edits) ?? new Map(),
      breathe: () => this.#stretch.breathe(),
    };
  }

  /** Reads the checkpoint, once, before anything else. What it accepted is desired again, under the same UIDs. Never rejects for bad state. */
  load(): Promise<void> {
    return this.#inTurn(async () => {
      const { state, entries, lost } = await this.#checkpoint.load();
      this.#state = state;
      for (const e of lost) this.deps.log.error({ error: describeError(e) }, 'stored state cannot be read');
      const out = outcome();
      for (const entry of entries) {
        try {
          this.#accept(entry, this.#desiredOf(entry), 'ADD', out);
          if (hasNoInstance(entry)) this.#adoptable = new Set([...(this.#adoptable ?? []), entry.key]);
        } catch (e) {
          this.#state = 'lost';
          this.deps.log.error({ key: entry.key, error: describeError(e) }, 'a stored object cannot be used');
        }
      }
      this.#emit(out);
      this.#tell();
    });
  }

  /** Reads the folder now and whenever it may have changed, until aborted. */
  run(signal: AbortSignal): Promise<void> {
    const read = (): void => {
      this.readFolder().catch((e) => this.deps.log.error({ error: describeError(e) }, 'reading the manifests failed'));
    };
    const degraded = (reason: string | undefined): void => {
      this.#degraded = reason;
      this.#tell();
    };
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
      this.deps.folder.watch(read, degraded, signal);
      read();
    });
  }

  /** One step: reads the folder, accepts what is new, and sends what follows from it. Calls during a step share the next one. */
  readFolder(): Promise<void> {
    this.#waiting ??= this.#inTurn(async () => {
      this.#waiting = undefined;
      await this.#step();
    });
    return this.#waiting;
  }

  /**
   * The folder has said what it wants, so that what nobody wants may go. With a lost checkpoint only a folder without broken files says
   * so: a broken one may be the only place that names a running pod.
   */
  ready(): boolean {
    return this.#read && (this.#state !== 'lost' || this.#folder.whole);
  }

  checkpoint(): CheckpointState {
    return this.#state;
  }

  view(): ConfigView {
    return this.#teller.view;
  }

  /** The accepted winner. */
  object(key: KeyText): ApiObject | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : winnerOf(entry)?.object;
  }

  /** What a pod of `source` may see of it: files see files, topics see topics (behaviour 13). */
  objectFor(key: KeyText, source: Source): ApiObject | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : visibleTo(entry, source)?.object;
  }

  /** Some source names it, accepted or not yet. */
  has(key: KeyText): boolean {
    return this.#entries.has(key) || this.#pending.has(key);
  }

  /** The same object as a new instance: stored, then REMOVE and ADD. Nothing happens when no accepted pod has this UID. */
  renewInstance(uid: PodUid): Promise<void> {
    return this.#inTurn(async () => {
      const before = [...this.#desired.values()].find((p) => p.uid === uid);
      const entry = before === undefined ? undefined : this.#entries.get(before.key);
      if (before === undefined || entry === undefined) return;
      // a new instance is of what is accepted
      const { running: _, ...accepted } = entry;
      const next: Entry = { ...accepted, uid: this.deps.newUid(), since: this.#now() };
      await this.#checkpoint.save(next);
      const out = outcome();
      this.#blocked.delete(next.key);
      out.REMOVE.push(before);
      this.#accept(next, this.#desiredOf(next), 'ADD', out);
      this.#emit(out);
      this.#tell();
    });
  }

  /** Edits that were blocked are judged again. */
  retryBlocked(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#settleAgain((e) => e.running !== undefined);
      this.#tell();
    });
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => {}); // the failure is the caller's; the next act is not concerned
    return mine;
  }

  #now(): string {
    return toRfc3339(this.deps.clock.now());
  }

  async #step(): Promise<void> {
    const listing = await this.deps.folder.read();
    const strict = this.deps.strict();
    this.#insecure = listing.ok ? listing.insecure : undefined;
    this.#fault = !listing.ok
      ? listing.message
      : strict && listing.insecure !== undefined
        ? `${listing.insecure}, which strict refuses`
        : undefined;
    if (!listing.ok || this.#fault !== undefined) {
      await this.#settleAgain((e) => hasNoInstance(e) || e.running !== undefined);
      return this.#tell();
    }
    const allowedUnsafeSysctls = this.deps.allowedUnsafeSysctls?.() ?? [];
    const node = this.deps.nodeFacts?.() ?? { name: this.deps.nodeName, labels: {} };
    const fresh = await this.#folder.take(listing.files, { strict, allowedUnsafeSysctls, node });
    const first = !this.#read;
    if (!fresh && !first && this.#pending.size === 0) return this.#tell();
    const wanted = mergeFolder(this.#entries, this.#folder.files, this.#now());
    if (this.#state !== 'read' && !this.#settledOnce) {
      const unknown = [...this.#unknownPods(wanted)].filter((key) => !this.#begun.has(key));
      this.#adoptable = new Set([...(this.#adoptable ?? []), ...unknown]);
    }
    this.#pending.clear();
    await this.#settle(wanted);
    this.#read = true;
    this.#settledOnce ||= this.ready();
    if (this.ready() && this.#pending.size === 0) {
      await this.#checkpoint
        .forgetLost()
        .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'unreadable state cannot be removed'));
    }
    this.#tell();
  }

  /** The folder is not asked: what was accepted before is all there is. */
  async #settleAgain(which: (entry: Entry) => boolean): Promise<void> {
    const again = [...this.#entries.values()].filter(which);
    if (again.length === 0) return;
    await this.#settle(
      again.map((entry) => {
        const winner = winnerOf(entry);
        return { key: entry.key, candidates: entry.candidates, ...(winner === undefined ? {} : { winner }) };
      }),
    );
  }

  /** Pods without an entry that the folder names, refused ones too. */
  #unknownPods(wanted: readonly Wanted[]): Set<KeyText> {
    const keys = [...wanted.map((w) => w.key), ...this.#folder.keys];
    return new Set(keys.filter((key) => key.startsWith('Pod/') && !this.#entries.has(key)));
  }

  /** Stores what is wanted, object by object; what cannot be stored stays as it was and is tried again. */
  async #settle(wanted: readonly Wanted[]): Promise<void> {
    const out = outcome();
    for (const { key } of wanted) this.#pending.delete(key);
    const edits = await judgeWanted(wanted, this.#edits);
    await inGroups(wanted, async (w) => {
      await this.#stretch.breathe();
      const before = this.#entries.get(w.key);
      if (isSame(before, w)) {
        // the same objects by content: those of the files are kept, so that none is in memory twice
        if (before !== undefined) this.#entries.set(w.key, { ...before, candidates: w.candidates });
        return;
      }
      try {
        await this.#settleOne(before, w, edits.get(w.key), out);
      } catch (e) {
        this.#pending.set(w.key, { reason: 'StoreFailed', message: describeError(e), sources: w.candidates });
        this.deps.log.error({ key: w.key, error: describeError(e) }, 'an object cannot be stored');
      }
    });
    this.#emit(out);
  }

  async #settleOne(before: Entry | undefined, wanted: Wanted, judged: JudgedEdit | undefined, out: Outcome): Promise<void> {
    const old = this.#desired.get(wanted.key);
    if (wanted.winner === undefined) {
      await this.#checkpoint.remove(wanted.key);
      this.#entries.delete(wanted.key);
      this.#desired.delete(wanted.key);
      this.#adoptable?.delete(wanted.key);
      this.#blocked.delete(wanted.key);
      if (old !== undefined) out.REMOVE.push(old);
      return;
    }
    const base = { key: wanted.key, winner: wanted.winner.source, candidates: wanted.candidates };
    if (wanted.winner.object.kind !== 'Pod') {
      const entry: Entry = { ...base, since: before?.since ?? this.#now() };
      await this.#checkpoint.save(entry);
      this.#accept(entry, undefined, 'ADD', out);
      return;
    }
    if (before?.uid === undefined || old === undefined) return this.#settleNew(base, wanted, out);
    const same: Entry = { ...base, uid: before.uid, since: before.since };
    const edit = judged?.edit ?? editOf(wanted, this.#edits);
    if (edit === undefined) return;
    const verdict = edit.effect === 'none' ? undefined : judged?.verdict;
    if (verdict?.act === 'block') return this.#block(before, wanted, same, verdict);
    const { after } = edit;
    const effect = verdict?.act === 'replace' ? 'replace' : edit.effect;
    this.#blocked.delete(wanted.key);
    if (effect === 'replace') {
      const next: Entry = { ...base, uid: this.deps.newUid(), since: this.#now() };
      const desired = this.#desiredOf(next);
      await this.#checkpoint.save(next);
      out.REMOVE.push(old);
      return this.#accept(next, desired, 'ADD', out);
    }
    await this.#checkpoint.save(same);
    // a shadowed file came, changed or went: nothing of the running pod is different
    if (effect === 'none' && old.source === after.source && old.revision === after.revision) this.#entries.set(same.key, same);
    else this.#accept(same, after, effect === 'update' ? 'UPDATE' : 'RECONCILE', out);
  }

  /** Accepted and not carried out: what runs goes on, and both are stored. Written only when something of it is different. */
  async #block(before: Entry, wanted: Wanted, same: Entry, { reason, message }: Told): Promise<void> {
    const running = before.running ?? winnerOf(before);
    const entry: Entry = { ...same, ...(running !== undefined && { running }) };
    if (before.running === undefined || !saysTheSame(before, wanted)) await this.#checkpoint.save(entry);
    this.#entries.set(entry.key, entry);
    this.#blocked.set(entry.key, { reason, message });
  }

  /** A pod without an instance that we know: the runtime's, when our own knowledge was lost, else a new one. */
  async #settleNew(base: Omit<Entry, 'uid' | 'since'>, wanted: Wanted, out: Outcome): Promise<void> {
    const draft: Entry = { ...base, uid: this.deps.newUid(), since: this.#now() };
    let desired = this.#desiredOf(draft);
    if (desired === undefined) return;
    let entry = draft;
    if (this.#adoptable?.has(base.key)) {
      const uid = this.deps.runtimeUid(base.key, desired.podHash);
      if (uid === 'unknown') {
        const message = 'the runtime has not been listed yet, and it may have this pod already';
        this.#pending.set(base.key, { reason: 'RuntimeDown', message, sources: wanted.candidates });
        return;
      }
      if (uid !== undefined) {
        entry = { ...draft, uid };
        desired = this.#desiredOf(entry);
      }
    }
    await this.#checkpoint.save(entry);
    this.#adoptable?.delete(base.key);
    this.#accept(entry, desired, 'ADD', out);
  }

  #desiredOf(entry: Entry): DesiredPod | undefined {
    const runs = entry.running ?? winnerOf(entry);
    if (runs?.object.kind !== 'Pod' || entry.uid === undefined) return undefined;
    return toDesiredPod(runs.object, { uid: entry.uid, source: runs.source, nodeName: this.deps.nodeName, firstSeen: entry.since });
  }

  #accept(entry: Entry, desired: DesiredPod | undefined, op: PodUpdate['op'], out: Outcome): void {
    this.#entries.set(entry.key, entry);
    if (desired === undefined) return;
    if (!this.#settledOnce) this.#begun.add(entry.key);
    this.#desired.set(entry.key, desired);
    out[op].push(desired);
  }

  #emit(out: Outcome): void {
    for (const op of ['REMOVE', 'ADD', 'UPDATE', 'RECONCILE'] as const) {
      const pods = out[op].sort((a, b) => (a.key < b.key ? -1 : 1));
      if (pods.length > 0) this.deps.emit({ op, pods });
    }
  }

  #tell(): void {
    const folder = {
      read: this.#read,
      ...(this.#fault === undefined ? {} : { fault: this.#fault }),
      ...(this.#insecure === undefined ? {} : { insecure: this.#insecure }),
      ...(this.#degraded === undefined ? {} : { degraded: this.#degraded }),
    };
    this.#teller.update({ entries: this.#entries, files: this.#folder.files, pending: this.#pending, blocked: this.#blocked, folder });
  }
}

const outcome = (): Outcome => ({ ADD: [], UPDATE: [], REMOVE: [], RECONCILE: [] });
