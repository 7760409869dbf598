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
import type { InstanceState, PodUpdate } from '../api/desired.ts';
import type { PodEdit } from '../api/edit.ts';
import type { NodeValues } from '../api/nodeValues.ts';
import type { ApiObject, KeyText, PodUid, Source } from '../api/objects.ts';
import { rollbackAnnotation } from '../api/rollback.ts';
import type { Clock } from '../world/clock.ts';
import type { FolderReader } from '../world/folder.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { Accepted, outcome } from './accepted.ts';
import { Checkpoint, type CheckpointState } from './checkpoint.ts';
import { DecodedFolder } from './decodedFolder.ts';
import type { Verdicts } from './edits.ts';
import { carriedOut, type Entry, hasNoInstance, isOpen, mergeFolder, runsOf, visibleTo, type Wanted, winnerOf } from './merge.ts';
import { Stretch } from './stretch.ts';
import { ConfigTeller, type ConfigTellerDeps } from './teller.ts';
import { type ConfigView, knownImages } from './view.ts';

export interface ConfigDeps extends ConfigTellerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
  readonly folder: FolderReader;
  readonly nodeName: string;
  strict(): boolean;
  allowedUnsafeSysctls?(): readonly string[];
  /** Classes of devices. Left out: nobody knows them, and any may be asked for. */
  deviceClasses?(): readonly string[];
  /** What `${NODE.…}` stands for. Left out: of the node only its name is known. */
  nodeFacts?(): NodeValues;
  newUid(): PodUid;
  /** The running side of an instance, for judging an edit. */
  instanceState(uid: PodUid): InstanceState;
  /** The instance that the runtime has of a pod whose UID is not known any more; 'unknown': the runtime was not listed yet. */
  runtimeUid(key: KeyText, podHash: string): PodUid | undefined | 'unknown';
  /**
   * Edits before anything is stopped, each call with all that is to be carried out or waits and that nobody holds: by key, what is not simply
   * carried out. Left out: every edit goes on.
   */
  judgeEdits?(edits: readonly PodEdit[]): Verdicts | Promise<Verdicts>;
  /** Who holds a pod at what runs of it, in words; undefined: nobody. Left out: nobody ever. */
  held?(key: KeyText, wanted: ApiObject): string | undefined;
  emit(u: PodUpdate): void;
}

export class Config {
  readonly #accepted: Accepted;
  readonly #checkpoint: Checkpoint;
  #state: CheckpointState = 'absent';
  #read = false;
  #fault: string | undefined;
  #insecure: string | undefined;
  #degraded: string | undefined;
  #turn: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  readonly #folder: DecodedFolder;
  readonly #teller: ConfigTeller;

  constructor(private readonly deps: ConfigDeps) {
    this.#checkpoint = new Checkpoint(deps.store);
    const stretch = new Stretch(deps.clock);
    this.#folder = new DecodedFolder(stretch);
    this.#teller = new ConfigTeller(deps);
    const { clock, log, nodeName } = deps;
    this.#accepted = new Accepted(
      {
        ...{ clock, log, nodeName },
        newUid: () => deps.newUid(),
        instanceState: (uid) => deps.instanceState(uid),
        runtimeUid: (key, podHash) => deps.runtimeUid(key, podHash),
        held: (key, { object }) => deps.held?.(key, object),
        judge: (edits) => deps.judgeEdits?.(edits) ?? new Map(),
        emit: (update) => deps.emit(update),
      },
      this.#checkpoint,
      stretch,
    );
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
          this.#accepted.accept(entry, this.#accepted.desiredOf(entry), 'ADD', out);
          if (hasNoInstance(entry)) this.#accepted.adoptable.add(entry.key);
        } catch (e) {
          this.#state = 'lost';
          this.deps.log.error({ key: entry.key, error: describeError(e) }, 'a stored object cannot be used');
        }
      }
      this.#accepted.emit(out);
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
    const entry = this.#accepted.entries.get(key);
    return entry === undefined ? undefined : winnerOf(entry)?.object;
  }

  /** The same with its revision. */
  wanted(key: KeyText): { readonly object: ApiObject; readonly revision: string } | undefined {
    const entry = this.#accepted.entries.get(key);
    return entry && winnerOf(entry);
  }

  /** What a pod of `source` may see of it: files see files, topics see topics (behaviour 13). */
  objectFor(key: KeyText, source: Source): ApiObject | undefined {
    const entry = this.#accepted.entries.get(key);
    return entry === undefined ? undefined : visibleTo(entry, source)?.object;
  }

  /** Some source names it, accepted or not yet. */
  has(key: KeyText): boolean {
    return this.#accepted.entries.has(key) || this.#accepted.pending.has(key);
  }

  /** Images that a known pod may need: of what is wanted, of what runs, and of what a rollback would go back to. */
  knownImages(): ReadonlySet<string> {
    return knownImages(this.#accepted.entries.values());
  }

  /** The same object as a new instance: stored, then REMOVE and ADD. Nothing happens when no accepted pod has this UID. */
  renewInstance(uid: PodUid): Promise<void> {
    return this.#inTurn(async () => {
      const { desired, entries, blocked } = this.#accepted;
      const before = [...desired.values()].find((p) => p.uid === uid);
      const entry = before === undefined ? undefined : entries.get(before.key);
      const winner = entry && winnerOf(entry);
      if (before === undefined || entry === undefined || winner === undefined) return;
      const held = this.deps.held?.(entry.key, winner.object) !== undefined;
      // a new instance is of what is accepted, unless that is held back on purpose
      const next: Entry = {
        ...(held ? entry : carriedOut(entry, winner, entry.candidates)),
        uid: this.deps.newUid(),
        since: this.#accepted.now(),
      };
      await this.#checkpoint.save(next);
      const out = outcome();
      if (next.running === undefined) blocked.delete(next.key);
      out.REMOVE.push(before);
      this.#accepted.accept(next, this.#accepted.desiredOf(next), 'ADD', out);
      this.#accepted.emit(out);
      this.#tell();
    });
  }

  /** All edits that wait are judged again, and these objects. */
  retryBlocked(keys: readonly KeyText[] = []): Promise<void> {
    return this.#inTurn(async () => {
      await this.#settleAgain((e) => isOpen(e) || keys.includes(e.key));
      this.#tell();
    });
  }

  /** This revision was Ready, or succeeded: from now on it is what a rollback goes back to. On the card only where a rollback is asked for. */
  markGood(key: KeyText, revision: string): Promise<void> {
    return this.#inTurn(async () => {
      const entry = this.#accepted.entries.get(key);
      const runs = entry && runsOf(entry);
      if (entry === undefined || runs?.revision !== revision || entry.good?.revision === revision) return;
      const { givenUp, ...rest } = entry;
      // it became ready while the way back was blocked: there is no reason to go
      const late = givenUp?.revision === revision;
      const next: Entry = { ...rest, good: runs, ...(givenUp && !late && { givenUp }) };
      // a full card takes nobody back: that it was Ready is true in memory, too
      if (!late) this.#accepted.entries.set(key, next);
      if (late || asksForRollback(winnerOf(entry)?.object)) await this.#checkpoint.save(next);
      if (!late) return;
      this.#accepted.entries.set(key, next);
      await this.#settleAgain((e) => e.key === key || isOpen(e));
      this.#tell();
    });
  }

  /** It is the revision that a rollback would go back to, so none is needed for it. */
  isGood(key: KeyText, revision: string): boolean {
    return this.#accepted.entries.get(key)?.good?.revision === revision;
  }

  /** What a rollback of this winner would go back to; undefined: nothing, or it is not what runs. */
  wayBack(key: KeyText, revision: string): string | undefined {
    const entry = this.#accepted.entries.get(key);
    if (entry === undefined || runsOf(entry)?.revision !== revision || winnerOf(entry)?.revision !== revision) return undefined;
    return entry.good?.revision === revision ? undefined : entry.good?.revision;
  }

  /** The winner was not Ready in its time: the last good one is to run again, as soon as it may. Rejects when it cannot be stored. */
  giveUp(key: KeyText, revision: string, why: string): Promise<void> {
    return this.#inTurn(async () => {
      const entry = this.#accepted.entries.get(key);
      if (entry === undefined || this.wayBack(key, revision) === undefined) return;
      const next: Entry = { ...entry, givenUp: { revision, why } };
      await this.#checkpoint.save(next);
      this.#accepted.entries.set(key, next);
      await this.#settleAgain((e) => e.key === key || isOpen(e));
      this.#tell();
    });
  }

  /** A revision that was given up is tried once more. False: none was. Rejects when it cannot be stored. */
  async tryAgain(key: KeyText): Promise<boolean> {
    let given = false;
    await this.#inTurn(async () => {
      const entry = this.#accepted.entries.get(key);
      if (entry?.givenUp === undefined) return;
      const { givenUp: _, ...next } = entry;
      await this.#checkpoint.save(next);
      this.#accepted.entries.set(key, next);
      given = true;
      await this.#settleAgain((e) => e.key === key || isOpen(e));
      this.#tell();
    });
    return given;
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => {}); // the failure is the caller's; the next act is not concerned
    return mine;
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
      await this.#settleAgain((e) => hasNoInstance(e) || isOpen(e));
      return this.#tell();
    }
    const allowedUnsafeSysctls = this.deps.allowedUnsafeSysctls?.() ?? [];
    const node = this.deps.nodeFacts?.() ?? { name: this.deps.nodeName, labels: {} };
    const deviceClasses = this.deps.deviceClasses?.();
    const options = { strict, allowedUnsafeSysctls, node, ...(deviceClasses !== undefined && { deviceClasses }) };
    const fresh = await this.#folder.take(listing.files, options);
    const first = !this.#read;
    if (!fresh && !first && this.#accepted.pending.size === 0) return this.#tell();
    const { entries, pending, adoptable, begun } = this.#accepted;
    const wanted = mergeFolder(entries, this.#folder.besides(entries), this.#accepted.now());
    if (this.#state !== 'read' && !this.#accepted.settledOnce) {
      for (const key of this.#unknownPods(wanted)) if (!begun.has(key)) adoptable.add(key);
    }
    pending.clear();
    await this.#accepted.settle(wanted);
    this.#read = true;
    this.#accepted.settledOnce ||= this.ready();
    if (this.ready() && pending.size === 0) {
      await this.#checkpoint
        .forgetLost()
        .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'unreadable state cannot be removed'));
    }
    this.#tell();
  }

  /** The folder is not asked: what was accepted before is all there is, and what it said since and could not be stored. */
  async #settleAgain(which: (entry: Entry) => boolean): Promise<void> {
    const again = [...this.#accepted.entries.values()].filter(which);
    if (again.length === 0) return;
    await this.#accepted.settle(
      again.map((entry) => {
        const newer = this.#accepted.pending.get(entry.key);
        const [candidates, winner] = newer === undefined ? [entry.candidates, winnerOf(entry)] : [newer.sources, newer.winner];
        return { key: entry.key, candidates, ...(winner === undefined ? {} : { winner }) };
      }),
    );
  }

  /** Pods without an entry that the folder names, refused ones too. */
  #unknownPods(wanted: readonly Wanted[]): Set<KeyText> {
    const keys = [...wanted.map((w) => w.key), ...this.#folder.keys];
    return new Set(keys.filter((key) => key.startsWith('Pod/') && !this.#accepted.entries.has(key)));
  }

  #tell(): void {
    const folder = {
      read: this.#read,
      ...(this.#fault === undefined ? {} : { fault: this.#fault }),
      ...(this.#insecure === undefined ? {} : { insecure: this.#insecure }),
      ...(this.#degraded === undefined ? {} : { degraded: this.#degraded }),
    };
    const { entries, pending, blocked } = this.#accepted;
    const heldBy = (entry: Entry): string | undefined => {
      const winner = winnerOf(entry);
      return winner?.object.kind === 'Pod' ? this.deps.held?.(entry.key, winner.object) : undefined;
    };
    const hiddenRevision = (revision: string): string => this.#checkpoint.hiddenRevision(revision);
    this.#teller.update({ entries, files: this.#folder.besides(entries), pending, blocked, heldBy, hiddenRevision, folder });
  }
}

const asksForRollback = (object: ApiObject | undefined): boolean => object?.metadata.annotations?.[rollbackAnnotation] !== undefined;
