/**
 * What this node wants told, one last value per retained topic, and how far each has come. A value counts as told when its PUBACK came;
 * until then the topic is dirty. Never a queue: a topic that changed a hundred times while the broker was away is one message.
 * Owns the map; sends nothing.
 */

import type { PublishOptions } from '../world/broker.ts';
import type { Monotonic } from '../world/clock.ts';

export interface TellOptions {
  readonly qos: 0 | 1;
  readonly expirySeconds?: number;
}

interface Entry {
  /** undefined: to be cleared; the entry goes when the clearing was acknowledged. */
  payload: string | undefined;
  options: TellOptions;
  dirty: boolean;
  /** Raised with each change, so that an acknowledgement of an older value does not clean a newer one. */
  version: number;
  inFlight: boolean;
  /** Its place in the crowd after a connect; a new value is news and does not wait for it. */
  pacedUntil: number;
  /** Not before this moment: the broker refused it. Holds for later values too. */
  refusedUntil: number;
  /** Disconnects this value may have caused. */
  strikes: number;
  /** Given up until then, or until it changes. */
  droppedUntil: number;
  /** When the unchanged value is told again. */
  refreshAt: number;
}

export interface Outgoing {
  readonly topic: string;
  readonly payload: string;
  readonly options: PublishOptions;
  readonly version: number;
  readonly strikes: number;
}

export class RetainedTopics {
  #entries = new Map<string, Entry>();

  constructor(private readonly random: () => number) {}

  /** The last value of a topic; undefined clears it. True when there is something new to tell. */
  set(topic: string, payload: string | undefined, options: TellOptions): boolean {
    const before = this.#entries.get(topic);
    if (before === undefined) {
      // a topic never told may still be retained from an earlier life: clearing it is told too
      this.#entries.set(topic, { payload, options, ...fresh(1) });
      return true;
    }
    if (before.payload === payload && before.options.qos === options.qos && before.options.expirySeconds === options.expirySeconds)
      return false;
    const { inFlight, refusedUntil } = before;
    Object.assign(before, { payload, options, ...fresh(before.version + 1), inFlight, refusedUntil });
    return true;
  }

  /** What the topic should say; undefined for a cleared or unknown one. */
  payload(topic: string): string | undefined {
    return this.#entries.get(topic)?.payload;
  }

  /** Topics whose value was acknowledged and has not changed since. */
  toldTopics(): string[] {
    return [...this.#entries].filter(([, e]) => !e.dirty && e.payload !== undefined).map(([topic]) => topic);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Topics still to be told, those in flight included. */
  get dirtyCount(): number {
    let n = 0;
    for (const e of this.#entries.values()) if (e.dirty) n++;
    return n;
  }

  /** A topic the broker refuses at present; undefined: it takes all. */
  refusedTopic(): string | undefined {
    for (const [topic, e] of this.#entries) if (e.refusedUntil > 0) return topic;
    return undefined;
  }

  /** A person asks: what was given up or refused is tried again. */
  forgive(): void {
    for (const e of this.#entries.values()) Object.assign(e, { droppedUntil: 0, strikes: 0, refusedUntil: 0 });
  }

  /** Tell this one again, changed or not. */
  touch(topic: string): void {
    const e = this.#entries.get(topic);
    if (e !== undefined) e.dirty = true;
  }

  /**
   * The connection is new: what is dirty (`everything`: all) is told in turn, spread so that a fleet does not choke its broker:
   * within 2 s for up to 50 topics, else over 10 s.
   */
  spread(everything: boolean, now: Monotonic): void {
    const due: Entry[] = [];
    for (const e of this.#entries.values()) {
      if (everything) e.dirty = true;
      if (e.dirty) due.push(e);
    }
    const stepMs = due.length <= 50 ? 2_000 / 50 : 10_000 / due.length;
    for (const [i, e] of due.entries()) e.pacedUntil = now + i * stepMs;
  }

  /** The next one to send, those under suspicion only when asked for; undefined: none now. */
  next(now: Monotonic, suspects: boolean): Outgoing | undefined {
    for (const [topic, e] of this.#entries) {
      if (!this.#ready(e, now) || e.strikes > 0 !== suspects) continue;
      return {
        topic,
        payload: e.payload ?? '',
        options: {
          qos: e.options.qos,
          retain: true,
          ...(e.options.expirySeconds !== undefined && e.payload !== undefined && { expirySeconds: e.options.expirySeconds }),
        },
        version: e.version,
        strikes: e.strikes,
      };
    }
    return undefined;
  }

  /** When the next one is due that is not due now; Infinity: never. */
  nextAt(now: Monotonic): number {
    let at = Number.POSITIVE_INFINITY;
    for (const e of this.#entries.values()) {
      if (e.inFlight) continue;
      const due = dueAt(e);
      if (due > now && due < at) at = due;
    }
    return at;
  }

  sent(topic: string): void {
    const e = this.#entries.get(topic);
    if (e !== undefined) e.inFlight = true;
  }

  /** PUBACK came (or a QoS 0 message was written). */
  acked(o: Outgoing, now: Monotonic): void {
    const e = this.#entries.get(o.topic);
    if (e === undefined) return;
    e.inFlight = false;
    if (e.version !== o.version) return;
    if (e.payload === undefined) {
      this.#entries.delete(o.topic);
      return;
    }
    e.dirty = false;
    e.strikes = 0;
    e.refusedUntil = 0;
    // half the expiry, and a little earlier by chance: the topics of a fleet, told together at connect, drift apart
    const { expirySeconds } = e.options;
    if (expirySeconds !== undefined) e.refreshAt = now + expirySeconds * 500 * (0.8 + 0.2 * this.random());
  }

  /** Not told: dirty as before. `strike`: it may have ended the connection; `refusedUntil`: the broker said no, not before then. */
  failed(topic: string, o: { readonly strike?: boolean; readonly refusedUntil?: number } = {}): void {
    const e = this.#entries.get(topic);
    if (e === undefined) return;
    e.inFlight = false;
    e.dirty = true;
    if (o.strike) e.strikes++;
    if (o.refusedUntil !== undefined) e.refusedUntil = o.refusedUntil;
  }

  /** Given up until `until`, or until the value changes. False when it has changed already. */
  drop(topic: string, version: number, until: number): boolean {
    const e = this.#entries.get(topic);
    if (e === undefined || e.version !== version) return false;
    e.droppedUntil = until;
    return true;
  }

  #ready(e: Entry, now: Monotonic): boolean {
    return !e.inFlight && dueAt(e) <= now;
  }
}

const dueAt = (e: Entry): number => Math.max(e.dirty ? e.pacedUntil : e.refreshAt, e.refusedUntil, e.droppedUntil);

const fresh = (version: number) => ({
  dirty: true,
  version,
  inFlight: false,
  pacedUntil: 0,
  refusedUntil: 0,
  strikes: 0,
  droppedUntil: 0,
  refreshAt: Number.POSITIVE_INFINITY,
});
