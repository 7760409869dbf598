/**
 * From sources to one ordered stream of pod updates: the manifest folder, and what topics say (remote.ts).
 *
 * Owns: which objects are accepted, from which source, at which revision, and the UID of each pod's instance, in memory and in the
 * checkpoint (stored before anything runs of it). ConfigMaps and Secrets are kept here too; others read them through `object`.
 * Never: deletes for what cannot be read; takes time, file name or spelling for a change; makes a UID twice; asks whether a pod may run.
 * Steps (`readFolder`, `readRemote`) never overlap. Pods of one step go out in the order REMOVE, ADD, UPDATE, RECONCILE.
 * Mirrors kubelet v1.32 config/config.go (merge into ADD, UPDATE, REMOVE, RECONCILE), with behaviour 1 to 3, 9 to 12 and 17 in place of
 * its identity by UID.
 */
import type { InstanceState, PodUpdate } from '../api/desired.ts';
import type { PodEdit } from '../api/edit.ts';
import type { NodeValues } from '../api/nodeValues.ts';
import type { ApiObject, KeyText, PodUid, Source } from '../api/objects.ts';
import type { Clock } from '../world/clock.ts';
import type { FolderReader } from '../world/folder.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { Accepted, outcome } from './accepted.ts';
import { Checkpoint, type CheckpointState } from './checkpoint.ts';
import type { Verdicts } from './edits.ts';
import { carriedOut, type Entry, hasNoInstance, isOpen, visibleTo, winnerOf } from './merge.ts';
import type { RemoteSource } from './remote.ts';
import type { PolicyPort } from './remoteWords.ts';
import { Sealed } from './sealed.ts';
import { Steps } from './steps.ts';
import { Stretch } from './stretch.ts';
import { ConfigTeller, type ConfigTellerDeps } from './teller.ts';
import { type ConfigView, knownImages, splitKey, type Told } from './view.ts';
import { WayBack } from './wayBack.ts';

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
  /** Groups of the node where no topics are taken in. Left out: it is in none. */
  groups?(): readonly string[];
  /** Topics. Left out: there are only files. */
  readonly remote?: RemoteSource;
  /** Policy and keys as they are at each call; `policyChanged` when they are others. Left out: everything is allowed. */
  readonly policy?: PolicyPort;
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
  readonly #steps: Steps;
  readonly #wayBack: WayBack;
  readonly #sealed: Sealed;
  readonly #teller: ConfigTeller;
  #loaded = false;
  #degraded: string | undefined;
  #turn: Promise<void> = Promise.resolve();
  #waiting: { readonly fromFolder: boolean; readonly done: Promise<void> } | undefined;

  constructor(private readonly deps: ConfigDeps) {
    this.#checkpoint = new Checkpoint(deps.store);
    const stretch = new Stretch(deps.clock);
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
    this.#steps = new Steps(deps, this.#accepted, this.#checkpoint, stretch);
    this.#wayBack = new WayBack(this.#accepted, this.#checkpoint, (which) => this.#steps.settleAgain(which));
    this.#sealed = new Sealed(() => deps.policy ?? {});
    deps.remote?.attach({ step: () => this.#soon(), policy: () => deps.policy ?? {} });
  }

  /**
   * Reads the checkpoint, once, before anything else. What it accepted, and policy allows still, is desired again, under the same UIDs. Never
   * rejects for bad state.
   */
  load(): Promise<void> {
    return this.#inTurn(async () => {
      const { state, entries, lost } = await this.#checkpoint.load();
      this.#steps.state = state;
      for (const e of lost) this.deps.log.error({ error: describeError(e) }, 'stored state cannot be read');
      const { remote } = this.deps;
      await remote?.load(entries, state !== 'lost');
      remote?.judgeAgain(entries);
      const out = outcome();
      for (const entry of entries) {
        try {
          await this.#begin(entry, out);
        } catch (e) {
          this.#steps.state = 'lost';
          this.deps.log.error({ key: entry.key, error: describeError(e) }, 'a stored object cannot be used');
        }
      }
      this.#loaded = true;
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
      const end = (): void => {
        this.deps.remote?.stop();
        resolve();
      };
      if (signal.aborted) return end();
      signal.addEventListener('abort', end, { once: true });
      this.deps.folder.watch(read, degraded, signal);
      read();
    });
  }

  /** One step: reads the folder, accepts what is new, of topics too, and sends what follows from it. Calls during a step share the next one. */
  readFolder(): Promise<void> {
    return this.#nextStep(true);
  }

  /** As `readFolder`, and the folder is not looked at. */
  readRemote(): Promise<void> {
    return this.#nextStep(false);
  }

  /** All sources anew: the folder, and what stands at the broker. */
  readAgain(): Promise<void> {
    this.deps.remote?.readAgain();
    return this.readFolder();
  }

  /** Policy or keys are others now: all that is accepted is judged again. What is denied ends by its grace; what was denied may come. */
  policyChanged(): Promise<void> {
    return this.#inTurn(async () => {
      this.#sealed.tryAgain();
      await this.#steps.judgeAgain();
      this.#tell();
    });
  }

  /** Everything that came over MQTT ends and is forgotten, and nothing more is taken of it until the agent starts anew. Files stay. */
  forgetRemote(): Promise<void> {
    return this.#inTurn(async () => {
      await this.deps.remote?.forget();
      await this.#steps.dropRemote();
      this.#tell();
    });
  }

  /** With a lost checkpoint: whatever no source has named by now is wanted by nobody. */
  forgetLost(): Promise<void> {
    return this.#inTurn(async () => {
      this.#steps.lostIsForgotten = true;
      await this.#steps.step(true, true);
      this.#tell();
    });
  }

  /**
   * The sources have said what they want, so that what nobody wants may go. With a lost checkpoint only a folder without broken files says
   * so, since a broken one may be the only place that names a running pod, and what stands at the broker, heard to its end. `of`: for what
   * only files can have wanted.
   */
  ready(of?: 'file'): boolean {
    return this.#steps.ready(of);
  }

  checkpoint(): CheckpointState {
    return this.#steps.state;
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

  /**
   * What a pod of `source` may see of it: files see files, topics see topics (behaviour 13), and others' where policy says so. A sealed Secret
   * is opened; undefined also when that fails (`whyUnopened`).
   */
  objectFor(key: KeyText, source: Source): ApiObject | undefined {
    const object = this.#visible(key, source);
    return object && this.#sealed.open(object).object;
  }

  /** Why a pod of `source` does not see a Secret that is there: it is sealed, and cannot be opened. */
  whyUnopened(key: KeyText, source: Source): Told | undefined {
    const object = key.startsWith('Secret/') ? this.#visible(key, source) : undefined;
    const opened = object && this.#sealed.open(object);
    return opened?.object === undefined ? opened?.told : undefined;
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
      await this.#steps.settleAgain((e) => isOpen(e) || keys.includes(e.key));
      this.#tell();
    });
  }

  /** This revision was Ready, or succeeded: from now on it is what a rollback goes back to. */
  markGood(key: KeyText, revision: string): Promise<void> {
    return this.#inTurn(async () => {
      if (await this.#wayBack.markGood(key, revision)) this.#tell();
    });
  }

  /** It is the revision that a rollback would go back to, so none is needed for it. */
  isGood(key: KeyText, revision: string): boolean {
    return this.#wayBack.isGood(key, revision);
  }

  /**
   * What a rollback of this winner would go back to; undefined: nothing, or it is not what runs. `byPerson`: also from a good one, to the one
   * that was good before it.
   */
  wayBack(key: KeyText, revision: string, byPerson = false): string | undefined {
    return this.#wayBack.wayBack(key, revision, byPerson);
  }

  /** The winner was not Ready in its time: the last good one is to run again, as soon as it may. Rejects when it cannot be stored. */
  giveUp(key: KeyText, revision: string, why: string, byPerson = false): Promise<void> {
    return this.#inTurn(async () => {
      if (await this.#wayBack.giveUp(key, revision, why, byPerson)) this.#tell();
    });
  }

  /** A revision that was given up is tried once more. False: none was. Rejects when it cannot be stored. */
  async tryAgain(key: KeyText): Promise<boolean> {
    let given = false;
    await this.#inTurn(async () => {
      given = await this.#wayBack.tryAgain(key);
      if (given) this.#tell();
    });
    return given;
  }

  #visible(key: KeyText, source: Source): ApiObject | undefined {
    const entry = this.#accepted.entries.get(key);
    if (entry === undefined) return undefined;
    const mayReadOthers = this.deps.policy?.mayRead?.(source, splitKey(key).namespace) === true;
    return visibleTo(entry, source, this.#steps.rank(), mayReadOthers)?.object;
  }

  /** A stored entry begins again, as far as policy allows it. What the runtime has of what is denied is nobody's, and ends by its grace. */
  async #begin(stored: Entry, out: ReturnType<typeof outcome>): Promise<void> {
    const left = this.#steps.allowedOf(stored);
    if (left === undefined) return this.#checkpoint.remove(stored.key);
    const { entry } = left;
    if (!left.same) await this.#checkpoint.save(entry);
    this.#accepted.accept(entry, this.#accepted.desiredOf(entry), 'ADD', out);
    if (hasNoInstance(entry)) this.#accepted.adoptable.add(entry.key);
  }

  #nextStep(fromFolder: boolean): Promise<void> {
    const waiting = this.#waiting;
    if (waiting !== undefined && (waiting.fromFolder || !fromFolder)) return waiting.done;
    const done = this.#inTurn(async () => {
      if (this.#waiting === mine) this.#waiting = undefined;
      await this.#steps.step(fromFolder);
      this.#tell();
    });
    const mine = { fromFolder, done };
    this.#waiting = mine;
    return done;
  }

  /** Before the checkpoint was read nobody knows what runs already; the first reading of the folder takes in what came until then. */
  #soon(): void {
    if (!this.#loaded) return;
    this.readRemote().catch((e) => this.deps.log.error({ error: describeError(e) }, 'taking in what topics say failed'));
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => {}); // the failure is the caller's; the next act is not concerned
    return mine;
  }

  #tell(): void {
    const folder = { ...this.#steps.folderView(), ...(this.#degraded === undefined ? {} : { degraded: this.#degraded }) };
    const { entries, pending, blocked } = this.#accepted;
    const heldBy = (entry: Entry): string | undefined => {
      const winner = winnerOf(entry);
      return winner?.object.kind === 'Pod' ? this.deps.held?.(entry.key, winner.object) : undefined;
    };
    const hiddenRevision = (revision: string): string => this.#checkpoint.hiddenRevision(revision);
    this.#teller.update({
      ...{ entries, pending, blocked, heldBy, hiddenRevision, folder, rank: this.#steps.rank() },
      files: this.#steps.folder.besides(entries),
      notes: [this.deps.remote?.notes() ?? new Map(), this.#steps.beyond],
      wrongTopics: this.deps.remote?.wrong().list() ?? [],
      unopened: (key, source) => this.whyUnopened(key, source),
    });
  }
}
