/**
 * The last good revision of each object, and the winners that were given up for it: what a rollback goes by. Owns no entry; it writes into
 * those of accepted.ts, each stored before it counts. Called in the turns of the sources only.
 */
import type { ApiObject, KeyText } from '../api/objects.ts';
import { rollbackAnnotation } from '../api/rollback.ts';
import type { Accepted } from './accepted.ts';
import type { Checkpoint } from './checkpoint.ts';
import { type Entry, isOpen, runsOf, winnerOf } from './merge.ts';

export class WayBack {
  constructor(
    private readonly accepted: Accepted,
    private readonly checkpoint: Checkpoint,
    private readonly settleAgain: (which: (entry: Entry) => boolean) => Promise<void>,
  ) {}

  /** On the card only where a rollback is asked for. True when what runs was judged again. */
  async markGood(key: KeyText, revision: string): Promise<boolean> {
    const { entries } = this.accepted;
    const entry = entries.get(key);
    const runs = entry && runsOf(entry);
    if (entry === undefined || runs?.revision !== revision || entry.good?.revision === revision) return false;
    const { givenUp, ...rest } = entry;
    // it became ready while the way back was blocked: there is no reason to go
    const late = givenUp?.revision === revision;
    const before = entry.good ?? entry.before;
    const next: Entry = { ...rest, good: runs, ...(before && { before }), ...(givenUp && !late && { givenUp }) };
    // a full card takes nobody back: that it was Ready is true in memory, too
    if (!late) entries.set(key, next);
    if (late || asksForRollback(winnerOf(entry)?.object)) await this.checkpoint.save(next);
    if (!late) return false;
    await this.#set(key, next);
    return true;
  }

  isGood(key: KeyText, revision: string): boolean {
    return this.accepted.entries.get(key)?.good?.revision === revision;
  }

  /** `byPerson`: also from a good one, to the one that was good before it. */
  wayBack(key: KeyText, revision: string, byPerson = false): string | undefined {
    const entry = this.accepted.entries.get(key);
    if (entry === undefined || runsOf(entry)?.revision !== revision || winnerOf(entry)?.revision !== revision) return undefined;
    const to = byPerson && entry.good?.revision === revision ? entry.before : entry.good;
    return to?.revision === revision ? undefined : to?.revision;
  }

  /** Rejects when it cannot be stored. */
  async giveUp(key: KeyText, revision: string, why: string, byPerson = false): Promise<boolean> {
    const entry = this.accepted.entries.get(key);
    if (entry === undefined || this.wayBack(key, revision, byPerson) === undefined) return false;
    // a person goes back from a good one: it is the one before that is good now
    const { good, before, ...rest } = entry;
    const to = good?.revision === revision ? before : good;
    const older = to === before ? undefined : before;
    const next: Entry = { ...rest, ...(to && { good: to }), ...(older && { before: older }), givenUp: { revision, why } };
    await this.checkpoint.save(next);
    await this.#set(key, next);
    return true;
  }

  /** False: none was given up. Rejects when it cannot be stored. */
  async tryAgain(key: KeyText): Promise<boolean> {
    const entry = this.accepted.entries.get(key);
    if (entry?.givenUp === undefined) return false;
    const { givenUp: _, ...next } = entry;
    await this.checkpoint.save(next);
    await this.#set(key, next);
    return true;
  }

  async #set(key: KeyText, next: Entry): Promise<void> {
    this.accepted.entries.set(key, next);
    await this.settleAgain((e) => e.key === key || isOpen(e));
  }
}

const asksForRollback = (object: ApiObject | undefined): boolean => object?.metadata.annotations?.[rollbackAnnotation] !== undefined;
