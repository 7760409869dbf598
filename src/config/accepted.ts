/**
 * What is accepted, and what follows when something else is wanted: stored first, then carried out, or held back with its reason. Owns the
 * entries, what is desired of each, and why what is wanted is not what runs. Asks nobody what is wanted: that is the manager's.
 */
import type { DesiredPod, PodUpdate } from '../api/desired.ts';
import { toDesiredPod } from '../api/instance.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import { type Clock, toRfc3339 } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Checkpoint, inGroups } from './checkpoint.ts';
import { type EditView, editOf, type JudgedEdit, judgeWanted } from './edits.ts';
import { type Candidate, carriedOut, type Entry, isCandidate, isSame, isStoredSo, runsOf, type Wanted } from './merge.ts';
import type { Stretch } from './stretch.ts';
import type { Told } from './view.ts';

export interface AcceptedDeps extends Pick<EditView, 'instanceState' | 'judge' | 'held'> {
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeName: string;
  newUid(): PodUid;
  runtimeUid(key: KeyText, podHash: string): PodUid | undefined | 'unknown';
  emit(u: PodUpdate): void;
}

export type Outcome = Record<PodUpdate['op'], DesiredPod[]>;

export interface Pending extends Told {
  readonly sources: readonly Candidate[];
  /** Of these; undefined: it is to go. */
  readonly winner?: Candidate;
}

export const outcome = (): Outcome => ({ ADD: [], UPDATE: [], REMOVE: [], RECONCILE: [] });

export class Accepted {
  readonly entries = new Map<KeyText, Entry>();
  readonly desired = new Map<KeyText, DesiredPod>();
  /** Wanted, and held back before it is stored. */
  readonly pending = new Map<KeyText, Pending>();
  /** Why what is accepted is not what runs. */
  readonly blocked = new Map<KeyText, Told>();
  /**
   * Pods that the runtime may have without our knowing their UID: those that the folder names and the checkpoint does not, in the first
   * read, and with a lost checkpoint until no file is broken any more.
   */
  readonly adoptable = new Set<KeyText>();
  /** Pods that began before the first settled step: what the runtime has of them is known. */
  readonly begun = new Set<KeyText>();
  settledOnce = false;
  readonly #edits: EditView;

  constructor(
    private readonly deps: AcceptedDeps,
    private readonly checkpoint: Checkpoint,
    private readonly stretch: Stretch,
  ) {
    this.#edits = {
      entry: (key) => this.entries.get(key),
      desired: (key) => this.desired.get(key),
      desiredOf: (entry) => this.desiredOf(entry),
      instanceState: (uid) => deps.instanceState(uid),
      held: (key, winner) => deps.held(key, winner),
      judge: (edits) => deps.judge(edits),
      breathe: () => stretch.breathe(),
    };
  }

  /** Stores what is wanted, object by object, and carries it out; what cannot be stored stays as it was and is tried again. */
  async settle(wanted: readonly Wanted[]): Promise<void> {
    const out = outcome();
    for (const { key } of wanted) this.pending.delete(key);
    const edits = await judgeWanted(wanted, this.#edits);
    await inGroups(wanted, async (w) => {
      await this.stretch.breathe();
      const before = this.entries.get(w.key);
      if (isSame(before, w)) {
        // the same objects by content: those of the files are kept, so that none is in memory twice
        if (before?.candidates.some((c, i) => c !== w.candidates[i])) this.entries.set(w.key, { ...before, candidates: w.candidates });
        this.blocked.delete(w.key);
        return;
      }
      try {
        await this.#settleOne(before, w, edits.get(w.key), out);
      } catch (e) {
        const { candidates: sources, winner } = w;
        this.pending.set(w.key, { reason: 'StoreFailed', message: describeError(e), sources, ...(winner && { winner }) });
        this.deps.log.error({ key: w.key, error: describeError(e) }, 'an object cannot be stored');
      }
    });
    this.emit(out);
  }

  desiredOf(entry: Entry): DesiredPod | undefined {
    const runs = runsOf(entry);
    if (runs?.object.kind !== 'Pod' || entry.uid === undefined) return undefined;
    return toDesiredPod(runs.object, { uid: entry.uid, source: runs.source, nodeName: this.deps.nodeName, firstSeen: entry.since });
  }

  accept(entry: Entry, desired: DesiredPod | undefined, op: PodUpdate['op'], out: Outcome): void {
    this.entries.set(entry.key, entry);
    if (desired === undefined) return;
    if (!this.settledOnce) this.begun.add(entry.key);
    this.desired.set(entry.key, desired);
    out[op].push(desired);
  }

  emit(out: Outcome): void {
    for (const op of ['REMOVE', 'ADD', 'UPDATE', 'RECONCILE'] as const) {
      const pods = out[op].sort((a, b) => (a.key < b.key ? -1 : 1));
      if (pods.length > 0) this.deps.emit({ op, pods });
    }
  }

  now(): string {
    return toRfc3339(this.deps.clock.now());
  }

  async #settleOne(before: Entry | undefined, wanted: Wanted, judged: JudgedEdit | undefined, out: Outcome): Promise<void> {
    const old = this.desired.get(wanted.key);
    const { winner } = wanted;
    if (winner === undefined) {
      await this.checkpoint.remove(wanted.key);
      this.entries.delete(wanted.key);
      this.desired.delete(wanted.key);
      this.adoptable.delete(wanted.key);
      this.blocked.delete(wanted.key);
      if (old !== undefined) out.REMOVE.push(old);
      return;
    }
    const base = { key: wanted.key, winner: winner.source, candidates: wanted.candidates };
    if (winner.object.kind !== 'Pod') {
      const entry: Entry = { ...base, since: before?.since ?? this.now() };
      await this.checkpoint.save(entry);
      this.accept(entry, undefined, 'ADD', out);
      return;
    }
    if (before?.uid === undefined || old === undefined) return this.#settleNew(base, wanted, out);
    const edit = judged?.edit ?? editOf(wanted, this.#edits);
    if (edit === undefined) return;
    const same = carriedOut(before, winner, wanted.candidates);
    const verdict = edit.effect === 'none' ? undefined : judged?.verdict;
    if (verdict?.act === 'block') return this.#block(before, winner, same, verdict);
    const { after } = edit;
    const effect = verdict?.act === 'replace' ? 'replace' : edit.effect;
    if (effect === 'replace') {
      const next: Entry = { ...same, uid: this.deps.newUid(), since: this.now() };
      const desired = this.desiredOf(next);
      await this.checkpoint.save(next);
      this.#tellOpen(next);
      out.REMOVE.push(old);
      return this.accept(next, desired, 'ADD', out);
    }
    if (!isStoredSo(before, same)) await this.checkpoint.save(same);
    this.#tellOpen(same);
    // a shadowed file came, changed or went: nothing of the running pod is different
    if (effect === 'none' && old.source === after.source && old.revision === after.revision) this.entries.set(same.key, same);
    else this.accept(same, after, effect === 'update' ? 'UPDATE' : 'RECONCILE', out);
  }

  #tellOpen({ key, running, givenUp }: Entry): void {
    if (running === undefined || givenUp === undefined) this.blocked.delete(key);
    else this.blocked.set(key, { reason: 'RolledBack', message: givenUp.why });
  }

  /** Accepted and not carried out: what runs goes on, and both are stored. Written only when something of it is different. */
  async #block(before: Entry, winner: Candidate, same: Entry, { reason, message }: Told): Promise<void> {
    const runs = runsOf(before);
    const { running: _, ...rest } = same;
    const entry: Entry = { ...rest, ...(runs !== undefined && !isCandidate(runs, winner) && { running: runs }) };
    // a given-up winner stays so also while the way back is blocked
    if (!isStoredSo(before, entry)) await this.checkpoint.save(entry);
    this.entries.set(entry.key, entry);
    const { givenUp } = entry;
    const told = givenUp === undefined ? message : `revision ${givenUp.revision} was given up, and the one to go back to waits: ${message}`;
    this.blocked.set(entry.key, { reason, message: told });
  }

  /** A pod without an instance that we know: the runtime's, when our own knowledge was lost, else a new one. */
  async #settleNew(base: Omit<Entry, 'uid' | 'since'>, wanted: Wanted, out: Outcome): Promise<void> {
    const draft: Entry = { ...base, uid: this.deps.newUid(), since: this.now() };
    let desired = this.desiredOf(draft);
    if (desired === undefined) return;
    let entry = draft;
    if (this.adoptable.has(base.key)) {
      const uid = this.deps.runtimeUid(base.key, desired.podHash);
      if (uid === 'unknown') {
        const message = 'the runtime has not been listed yet, and it may have this pod already';
        const { candidates: sources, winner } = wanted;
        this.pending.set(base.key, { reason: 'RuntimeDown', message, sources, ...(winner && { winner }) });
        return;
      }
      if (uid !== undefined) {
        entry = { ...draft, uid };
        desired = this.desiredOf(entry);
      }
    }
    await this.checkpoint.save(entry);
    this.adoptable.delete(base.key);
    this.accept(entry, desired, 'ADD', out);
  }
}
