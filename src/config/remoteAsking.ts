/**
 * What is asked for by its exact topic: listed objects that did not come, and payloads that were not kept or may be judged in another way now.
 * Owns the list until it is asked; without a connection the next snapshot brings all of it.
 */
import type { Source } from '../api/objects.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Hearing } from './remoteHearing.ts';
import type { MissingObject, RemoteIndexes } from './remoteIndexes.ts';
import type { RemoteObjects } from './remoteObjects.ts';

/** An object is often published just after its index. */
const indexPatienceMs = 2000;
/** More than topics are remembered. */
const mostAsked = 5000;

export interface AskingDeps {
  readonly clock: Clock;
  readonly log: Log;
  fetch(topics: readonly string[]): Promise<void>;
  /** A step of the sources is due. */
  soon(): void;
}

export class Asking {
  #topics = new Set<string>();
  #late = new Set<Source>();
  #looking = new Set<Source>();
  /** A list is out: what comes meanwhile is asked for after it. */
  #out = false;

  constructor(
    private readonly deps: AskingDeps,
    private readonly rooms: { readonly objects: RemoteObjects; readonly indexes: RemoteIndexes; readonly hearing: Hearing },
  ) {}

  /** Beyond what anybody can want the next snapshot brings the rest. */
  add(topics: Iterable<string>): void {
    for (const topic of topics) if (this.#topics.size < mostAsked) this.#topics.add(topic);
  }

  /** An index came: what it lists is looked for when it had its time to come by itself. */
  later(source: Source, signal: AbortSignal): void {
    if (this.#looking.has(source)) return;
    this.#looking.add(source);
    this.deps.clock.sleep(indexPatienceMs, signal).then(
      () => {
        this.#looking.delete(source);
        this.#late.add(source);
        this.deps.soon();
      },
      () => {}, // the agent ends
    );
  }

  /** Of this source, what its index lists and nobody sent; each topic once in a connection. */
  missing(source: Source): void {
    for (const { topic } of this.#listed(source)) if (!this.rooms.hearing.wasAsked(topic)) this.add([topic]);
  }

  /** Listed, asked for, and all came that would. */
  stillMissing(): MissingObject[] {
    return this.#listed().filter(({ topic }) => this.rooms.hearing.wasAnswered(topic));
  }

  /** At the end of a step. */
  flush(): void {
    for (const source of this.#late) this.missing(source);
    this.#late.clear();
    if (!this.rooms.hearing.isConnected) this.#topics.clear();
    if (this.#topics.size === 0 || this.#out) return;
    const topics = [...this.#topics];
    this.#topics.clear();
    this.#out = true;
    const answered = this.rooms.hearing.asks(topics);
    this.deps.fetch(topics).then(
      () => {
        this.#out = false;
        answered(true);
        this.deps.soon();
      },
      (e) => {
        this.#out = false;
        answered(false);
        this.deps.log.debug({ error: describeError(e) }, 'desired topics could not be asked for');
      },
    );
  }

  clear(): void {
    this.#topics.clear();
    this.#late.clear();
  }

  #listed(source?: Source): MissingObject[] {
    return this.rooms.indexes.missing((topic) => this.rooms.objects.get(topic), source);
  }
}
