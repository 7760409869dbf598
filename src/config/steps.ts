/**
 * The steps of the sources: what the folder says now and what topics said since, put together and settled. Owns what was read of the folder,
 * whether it can be read, and which pods are too many for their source. Called in turn by the manager, never two at once.
 */
import type { KeyText, Source } from '../api/objects.ts';
import { describeError } from '../world/log.ts';
import { type Accepted, outcome } from './accepted.ts';
import { again, type Denial, denialOf, tooMany, withoutDenied } from './allowed.ts';
import type { Checkpoint, CheckpointState } from './checkpoint.ts';
import type { FileOptions } from './decode.ts';
import { DecodedFolder } from './decodedFolder.ts';
import type { ConfigDeps } from './manager.ts';
import {
  type Candidate,
  type Entry,
  hasNoInstance,
  isOpen,
  kindOfSource,
  mergeSources,
  pickWinner,
  type Rank,
  type RemoteChanges,
  ranking,
  runsOf,
  type Wanted,
  winnerOf,
} from './merge.ts';
import type { RemoteNote } from './remoteObjects.ts';
import type { PolicyPort } from './remoteWords.ts';
import type { Stretch } from './stretch.ts';
import type { FolderView } from './view.ts';

const none: RemoteChanges = new Map();

export class Steps {
  /** What the checkpoint was, when it was read. */
  state: CheckpointState = 'absent';
  /** A person said that what was lost with the checkpoint is wanted by nobody. */
  lostIsForgotten = false;
  readonly folder: DecodedFolder;
  #read = false;
  #fault: string | undefined;
  #insecure: string | undefined;
  /** Rises with each change of policy or keys. */
  #judged = 0;
  #order = '';
  #tooMany = new Map<KeyText, ReadonlyMap<Source, RemoteNote>>();

  constructor(
    private readonly deps: ConfigDeps,
    private readonly accepted: Accepted,
    private readonly checkpoint: Checkpoint,
    private readonly stretch: Stretch,
  ) {
    this.folder = new DecodedFolder(stretch);
  }

  policy(): PolicyPort {
    return this.deps.policy ?? {};
  }

  rank(): Rank {
    return this.deps.remote?.rank() ?? ranking([], (source) => this.policy().locked?.(source) === true);
  }

  isDenied(candidate: Candidate): boolean {
    return denialOf(again(candidate, this.deps.nodeName), this.policy()) !== undefined;
  }

  /** What is unknown is wanted by nobody. `of: 'file'`: as far as only files can want it. */
  ready(of?: 'file'): boolean {
    if (!this.#read) return false;
    if (this.state !== 'lost' || this.lostIsForgotten) return true;
    return this.folder.whole && (of === 'file' || this.deps.remote === undefined || this.deps.remote.heardAll());
  }

  folderView(): Omit<FolderView, 'degraded'> {
    return {
      read: this.#read,
      ...(this.#fault === undefined ? {} : { fault: this.#fault }),
      ...(this.#insecure === undefined ? {} : { insecure: this.#insecure }),
    };
  }

  /** Pods that have no place under `maxPods` of their source. */
  get beyond(): ReadonlyMap<KeyText, ReadonlyMap<Source, RemoteNote>> {
    return this.#tooMany;
  }

  /** One step. `fromFolder`: the folder is read again. `force`: all is put together anew, though nothing was said. */
  async step(fromFolder: boolean, force = false): Promise<void> {
    const options = this.#options();
    let fresh = false;
    if (fromFolder) {
      const listing = await this.deps.folder.read();
      this.#insecure = listing.ok ? listing.insecure : undefined;
      const refused = options.strict && this.#insecure !== undefined;
      this.#fault = !listing.ok ? listing.message : refused ? `${this.#insecure}, which strict refuses` : undefined;
      if (!listing.ok || refused) await this.settleAgain((e) => hasNoInstance(e) || isOpen(e));
      else fresh = (await this.folder.take(listing.files, options)) || !this.#read;
    }
    const changes = await this.#takeRemote(options);
    const { entries, pending, adoptable, begun } = this.accepted;
    const folderRead = fromFolder && this.#fault === undefined;
    const reordered = this.#reordered();
    if (!force && !fresh && !reordered && changes.size === 0 && (pending.size === 0 || !folderRead)) return;
    const known = this.#fault === undefined && (this.#read || folderRead);
    const wanted = this.#withinLimits(
      mergeSources({
        ...{ before: entries, pending, remote: changes, rank: this.rank(), now: this.accepted.now() },
        files: known ? this.folder.besides(entries) : undefined,
        allowed: (candidate) => !this.isDenied(candidate),
      }),
    );
    if (this.state !== 'read' && !this.accepted.settledOnce) {
      for (const key of this.#unknownPods(wanted)) if (!begun.has(key)) adoptable.add(key);
    }
    await this.accepted.settle(wanted);
    this.deps.remote?.consumed(changes);
    if (folderRead) this.#read = true;
    await this.#settled();
  }

  /** Whatever became of the sources since: nobody reads them for it. */
  async settleAgain(which: (entry: Entry) => boolean): Promise<void> {
    const again = [...this.accepted.entries.values()].filter(which);
    if (again.length === 0) return;
    await this.accepted.settle(
      again.map((entry) => {
        const newer = this.accepted.pending.get(entry.key);
        const [candidates, winner] = newer === undefined ? [entry.candidates, winnerOf(entry)] : [newer.sources, newer.winner];
        return { key: entry.key, candidates, ...(winner === undefined ? {} : { winner }) };
      }),
    );
  }

  /** Policy or keys are others: what is accepted is judged anew. */
  async judgeAgain(): Promise<void> {
    this.#judged++;
    const { entries, pending } = this.accepted;
    this.deps.remote?.judgeAgain([...entries.values(), ...[...pending.values()].map(({ sources: candidates }) => ({ candidates }))]);
    // candidates of files and topics go by the step; what runs in place of one goes here
    await this.#dropRunning((candidate) => this.isDenied(candidate));
    await this.step(true, true);
  }

  /** All candidates of topics go, and what runs of them. */
  async dropRemote(): Promise<void> {
    const isRemote = ({ source }: Candidate): boolean => kindOfSource(source) === 'mqtt';
    await this.#dropRunning(isRemote);
    const rank = this.rank();
    const left = [...this.accepted.entries.values()].filter((entry) => entry.candidates.some(isRemote));
    const pending = [...this.accepted.pending].filter(([key, { sources }]) => sources.some(isRemote) && !left.some((e) => e.key === key));
    await this.accepted.settle([
      ...left.map((entry) =>
        wantedOf(
          entry.key,
          entry,
          entry.candidates.filter((c) => !isRemote(c)),
          rank,
        ),
      ),
      ...pending.map(([key, { sources }]) =>
        wantedOf(
          key,
          undefined,
          sources.filter((c) => !isRemote(c)),
          rank,
        ),
      ),
    ]);
  }

  /** A stored entry as policy allows it now, before anything of it has begun; undefined: nothing of it is allowed. */
  allowedOf(entry: Entry): { readonly entry: Entry; readonly same: boolean } | undefined {
    const left = withoutDenied(entry, (candidate) => this.isDenied(candidate));
    if (left === undefined || left.same) return left;
    const winner = pickWinner(left.entry, left.entry.candidates, this.rank());
    if (winner === undefined) return undefined;
    const runs = runsOf(entry);
    const goesOn = runs !== undefined && !this.isDenied(runs) && (left.entry.running !== undefined || runs === winner);
    // what the runtime has of it is of something that is denied: it ends, and another takes its place
    const fresh = goesOn || entry.uid === undefined ? {} : { uid: this.deps.newUid(), since: this.accepted.now() };
    return { entry: { ...left.entry, ...fresh, winner: winner.source }, same: false };
  }

  /** Another source may win now: the groups are in another order, or policy locks one. */
  #reordered(): boolean {
    const order = JSON.stringify([this.deps.remote?.groups(), ...(['file:', 'mqtt:node'] as const).map((s) => this.policy().locked?.(s))]);
    const different = order !== this.#order;
    this.#order = order;
    return different;
  }

  #options(): FileOptions & { readonly strict: boolean } {
    const deviceClasses = this.deps.deviceClasses?.();
    return {
      strict: this.deps.strict(),
      allowedUnsafeSysctls: this.deps.allowedUnsafeSysctls?.() ?? [],
      node: this.deps.nodeFacts?.() ?? { name: this.deps.nodeName, labels: {} },
      ...(deviceClasses !== undefined && { deviceClasses }),
      groups: this.deps.remote?.groups() ?? this.deps.groups?.() ?? [],
      judged: this.#judged,
      policy: this.policy(),
    };
  }

  /** What topics said since. Where what goes with it cannot be stored nothing of it is taken, and it is tried again with the folder. */
  async #takeRemote({ policy: _, groups: __, judged: ___, ...decode }: FileOptions): Promise<RemoteChanges> {
    const { remote, log } = this.deps;
    if (remote?.waits !== true) return none;
    try {
      return await remote.take({ decode, entries: this.accepted.entries, breathe: () => this.stretch.breathe() });
    } catch (e) {
      log.error({ error: describeError(e) }, 'what topics say cannot be taken in');
      return none;
    }
  }

  #withinLimits(wanted: readonly Wanted[]): readonly Wanted[] {
    const { maxPods } = this.policy();
    this.#tooMany = new Map();
    if (maxPods === undefined) return wanted;
    const most = (of: 'file' | 'mqtt'): number | undefined => this.policy().maxPods?.(of);
    const beyond = new Set(tooMany(wanted, this.accepted.entries, most));
    if (beyond.size === 0) return wanted;
    const rank = this.rank();
    return wanted.map((w) => {
      if (!beyond.has(w) || w.winner === undefined) return w;
      const kind = kindOfSource(w.winner.source);
      const message = `policy.${kind}.maxPods allows ${most(kind)} pods of ${kind === 'file' ? 'files' : 'topics'}`;
      const denial: Denial = { reason: 'TooManyPods', message, problems: [{ path: '', expected: 'nothing', got: message }] };
      const notes = new Map<Source, RemoteNote>();
      for (const candidate of w.candidates) {
        if (kindOfSource(candidate.source) !== kind) continue;
        if (kind === 'mqtt') this.deps.remote?.deny(candidate, denial, 'room');
        else notes.set(candidate.source, { ...denial, phase: 'Refused', warnings: [] });
      }
      if (notes.size > 0) this.#tooMany.set(w.key, notes);
      return wantedOf(
        w.key,
        this.accepted.entries.get(w.key),
        w.candidates.filter((c) => kindOfSource(c.source) !== kind),
        rank,
      );
    });
  }

  /** Pods without an entry that a source names, refused ones too. */
  #unknownPods(wanted: readonly Wanted[]): Set<KeyText> {
    const keys = [...wanted.map((w) => w.key), ...this.folder.keys];
    return new Set(keys.filter((key) => key.startsWith('Pod/') && !this.accepted.entries.has(key)));
  }

  async #settled(): Promise<void> {
    this.accepted.settledOnce ||= this.ready();
    if (this.ready() && this.accepted.pending.size === 0) {
      await this.checkpoint
        .forgetLost()
        .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'unreadable state cannot be removed'));
    }
    const limit = this.policy().maxPods?.('mqtt');
    if (limit === undefined || this.deps.remote === undefined) return;
    const { entries, pending } = this.accepted;
    const winners = new Map<KeyText, Source | undefined>([...entries].map(([key, { winner }]) => [key, winner]));
    // what cannot be stored just now has its place all the same
    for (const [key, { winner }] of pending) winners.set(key, winner?.source);
    const pods = [...winners].filter(([key, source]) => key.startsWith('Pod/') && source !== undefined && kindOfSource(source) === 'mqtt');
    if (pods.length < limit) this.deps.remote.roomAgain();
  }

  /** What runs in place of its winner and may not: the winner takes its place as a new instance. What would be gone back to is forgotten. */
  async #dropRunning(isGone: (candidate: Candidate) => boolean): Promise<void> {
    const out = outcome();
    for (const entry of [...this.accepted.entries.values()]) {
      const { running, good, before: older, givenUp, ...rest } = entry;
      const [runs, back, far] = [running, good, older].map((c) => c !== undefined && isGone(c));
      if (!runs && !back && !far) continue;
      const before = this.accepted.desired.get(entry.key);
      const kept: Entry = {
        ...rest,
        ...(!back && good && { good }),
        ...(!far && older && { before: older }),
        ...(!runs && !back && givenUp && { givenUp }),
      };
      const next: Entry = runs
        ? { ...kept, uid: this.deps.newUid(), since: this.accepted.now() }
        : { ...kept, ...(running && { running }) };
      try {
        await this.checkpoint.save(next);
      } catch (e) {
        this.deps.log.error({ key: entry.key, error: describeError(e) }, 'an object cannot be stored');
        if (!runs) continue; // it is only gone back to
      }
      this.accepted.entries.set(entry.key, next);
      if (!runs) continue;
      this.accepted.blocked.delete(entry.key);
      if (before !== undefined) out.REMOVE.push(before);
      this.accepted.accept(next, this.accepted.desiredOf(next), 'ADD', out);
    }
    this.accepted.emit(out);
  }
}

function wantedOf(key: KeyText, entry: Entry | undefined, candidates: readonly Candidate[], rank: Rank): Wanted {
  const winner = pickWinner(entry, candidates, rank);
  return { key, candidates, ...(winner === undefined ? {} : { winner }) };
}
