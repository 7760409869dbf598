// pure
/**
 * What the node wants to hear, over any number of connections: the list of filters, which of them the broker's session has, and which it refuses.
 * A refusal is told and asked about again; it never keeps the others from being followed. Owns these lists; subscribes to nothing.
 */
import { isFilter } from './filters.ts';
import { quietMs } from './reconnect.ts';

/** Ends of connections during its SUBSCRIBE that make a filter suspect: some brokers hang up where others answer 0x87. */
const strikesToRefuse = 3;
const namedAtMost = 3;

interface Refusal {
  /** SUBACK's; undefined: the connection ended instead of an answer. */
  readonly code: number | undefined;
  /** Infinity: it may be asked about, and whoever asks has been told so. */
  readonly askAt: number;
}

export class Reads {
  #followed: readonly string[] = [];
  #refused = new Map<string, Refusal>();
  #strikes = new Map<string, number>();
  /** Filters the broker keeps for us in its session, as far as this agent knows. */
  readonly inSession = new Set<string>();

  /** The whole list. What is no filter is left out: a broker would end the connection over it. */
  follow(filters: readonly string[]): void {
    const gone = this.#followed;
    this.#followed = [...new Set(filters)].filter(isFilter);
    for (const filter of gone) if (!this.follows(filter)) this.forget(filter);
  }

  get followed(): readonly string[] {
    return this.#followed;
  }

  follows(filter: string): boolean {
    return this.#followed.includes(filter);
  }

  /** Whatever was refused may be granted to a new connection; what ended connections has to wait. */
  newConnection(sessionPresent: boolean): void {
    if (!sessionPresent) this.inSession.clear();
    for (const [filter, { code }] of this.#refused) if (code !== undefined) this.#mayBeAsked(filter, code);
  }

  mayAsk(filter: string, now: number): boolean {
    const { askAt } = this.#refused.get(filter) ?? { askAt: 0 };
    return now >= askAt || askAt === Number.POSITIVE_INFINITY;
  }

  /** Refused ones that may be asked about again; each is named once. */
  takeDue(now: number): string[] {
    const due = [...this.#refused].filter(([, { askAt }]) => askAt <= now);
    for (const [filter, { code }] of due) this.#mayBeAsked(filter, code);
    return due.map(([filter]) => filter);
  }

  /** When the next refused one is asked about again; Infinity: never. */
  get nextAskAt(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...[...this.#refused.values()].map((r) => r.askAt));
  }

  granted(filter: string): void {
    this.forget(filter);
  }

  refuse(filter: string, code: number | undefined, now: number): void {
    this.inSession.delete(filter);
    this.#refused.set(filter, { code, askAt: now + quietMs });
  }

  /** The connection ended before the answer. */
  struck(filter: string, now: number): void {
    const strikes = (this.#strikes.get(filter) ?? 0) + 1;
    this.#strikes.set(filter, strikes);
    if (strikes >= strikesToRefuse) this.refuse(filter, undefined, now);
  }

  #mayBeAsked(filter: string, code: number | undefined): void {
    this.#refused.set(filter, { code, askAt: Number.POSITIVE_INFINITY });
  }

  forget(filter: string): void {
    this.#refused.delete(filter);
    this.#strikes.delete(filter);
  }

  /** What is refused, in words; undefined: nothing. */
  trouble(): string | undefined {
    if (this.#refused.size === 0) return undefined;
    const words = [...this.#refused]
      .slice(0, namedAtMost)
      .map(
        ([filter, { code }]) => `${filter} (${code === undefined ? 'the connection ends instead of an answer' : `0x${code.toString(16)}`})`,
      );
    const more = this.#refused.size - words.length;
    return `the broker refuses to let this node read ${words.join(', ')}${more > 0 ? ` and ${more} more` : ''}; asked again every 5 min`;
  }
}
