/**
 * Messages that are not retained (events), kept while the broker is away: the newest N (and not too many bytes), and a count of what had to go. A message older than
 * its expiry is not worth sending any more. Owns the queue; sends nothing.
 */
import type { Monotonic } from '../world/clock.ts';
import type { TellOptions } from './retained.ts';

/** Characters of all payloads together: events are short, and a flood of long ones must not fill the memory. */
const mostChars = 512 * 1024;

export interface RingMessage {
  readonly topic: string;
  readonly payload: string;
  readonly options: TellOptions;
  readonly since: Monotonic;
  readonly strikes: number;
}

export class MessageRing {
  #messages: RingMessage[] = [];
  #dropped = 0;
  #chars = 0;

  constructor(private readonly capacity: number) {}

  push(topic: string, payload: string, options: TellOptions, now: Monotonic): void {
    this.#chars += payload.length;
    this.#messages.push({ topic, payload, options, since: now, strikes: 0 });
    this.#bound();
  }

  /** The oldest message still worth sending, taken out; those under suspicion only when asked for. */
  take(now: Monotonic, suspects: boolean): RingMessage | undefined {
    const fresh = this.#messages.filter((m) => m.options.expirySeconds === undefined || now - m.since < m.options.expirySeconds * 1000);
    this.#dropped += this.#messages.length - fresh.length;
    const i = fresh.findIndex((m) => m.strikes > 0 === suspects);
    const before = this.#messages.length;
    this.#messages = i < 0 ? fresh : fresh.toSpliced(i, 1);
    if (this.#messages.length < before) this.#count();
    return fresh[i];
  }

  /** Not sent after all: back to the front, in the order given. */
  putBack(messages: readonly RingMessage[]): void {
    this.#messages.unshift(...messages);
    this.#count();
    this.#bound();
  }

  get length(): number {
    return this.#messages.length;
  }

  /** Messages lost since the start: the ring was full, or they had expired. */
  get dropped(): number {
    return this.#dropped;
  }

  #bound(): void {
    let excess = Math.max(0, this.#messages.length - this.capacity);
    let chars = this.#chars;
    for (const [i, m] of this.#messages.entries()) {
      if (i >= excess && chars <= mostChars) break;
      chars -= m.payload.length;
      excess = Math.max(excess, i + 1);
    }
    if (excess === 0) return;
    this.#messages.splice(0, excess);
    this.#chars = chars;
    this.#dropped += excess;
  }

  #count(): void {
    this.#chars = this.#messages.reduce((sum, m) => sum + m.payload.length, 0);
  }
}
