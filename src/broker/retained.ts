/**
 * What this node wants told, one last value per retained topic, and how far each has come. A value counts as told when its PUBACK came;
 * until then the topic is dirty. Never a queue: a topic that changed a hundred times while the broker was away is one message.
 * Owns the map; sends nothing.
 */

import { DueQueue } from '../async/dueQueue.ts';
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
  /** What is not in flight, by when it is due; what is under suspicion waits in a line of its own. */
  #due = new DueQueue<string>();
  #suspectsDue = new DueQueue<string>();

  constructor(private readonly random: () => number) {}

  /** The last value of a topic; undefined clears it. True when there is something new to tell. */
  set(topic: string, payload: string | undefined, options: TellOptions): boolean {
    const before = this.#entries.get(topic);
    if (before === undefined) {
      // a topic never told may still be retained from an earlier life: clearing it is told too
      const entry = { payload, options, ...fresh(1) };
      this.#entries.set(topic, entry);
      this.#place(topic, entry);
      return true;
    }
    if (before.payload === payload && before.options.qos === options.qos && before.options.expirySeconds === options.expirySeconds)
      return false;
    const { inFlight, refusedUntil } = before;
    Object.assign(before, { payload, options, ...fresh(before.version + 1), inFlight, refusedUntil });
    this.#place(topic, before);
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
    for (const [topic, e] of this.#entries) {
      Object.assign(e, { droppedUntil: 0, strikes: 0, refusedUntil: 0 });
      this.#place(topic, e);
    }
  }

  /** Everything is to be cleared. */
  clear(): void {
    for (const [topic, e] of this.#entries) this.set(topic, undefined, e.options);
  }

  /** Tell this one again, changed or not. */
  touch(topic: string): void {
    const e = this.#entries.get(topic);
    if (e === undefined) return;
    e.dirty = true;
    this.#place(topic, e);
  }

  /**
   * The connection is new: what is dirty (`everything`: all) is told in turn, spread so that a fleet does not choke its broker:
   * within 2 s for up to 50 topics, else over 10 s.
   */
  spread(everything: boolean, now: Monotonic): void {
    const due: [string, Entry][] = [];
    for (const [topic, e] of this.#entries) {
      if (everything) e.dirty = true;
      if (e.dirty) due.push([topic, e]);
    }
    const stepMs = due.length <= 50 ? 2_000 / 50 : 10_000 / due.length;
    for (const [i, [topic, e]] of due.entries()) {
      e.pacedUntil = now + i * stepMs;
      this.#place(topic, e);
    }
  }

  /** The next one to send, those under suspicion only when asked for; undefined: none now. */
  next(now: Monotonic, suspects: boolean): Outgoing | undefined {
    const first = (suspects ? this.#suspectsDue : this.#due).first();
    const e = first === undefined || first.at > now ? undefined : this.#entries.get(first.key);
    if (first === undefined || e === undefined) return undefined;
    return {
      topic: first.key,
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

  /** When the next one is due. What is due now waits for something else than time; Infinity: for time only. */
  nextAt(now: Monotonic): number {
    let at = Number.POSITIVE_INFINITY;
    for (const { at: due } of [this.#due.first(), this.#suspectsDue.first()].filter((first) => first !== undefined))
      if (due > now && due < at) at = due;
    return at;
  }

  sent(topic: string): void {
    const e = this.#entries.get(topic);
    if (e === undefined) return;
    e.inFlight = true;
    this.#place(topic, e);
  }

  /** PUBACK came (or a QoS 0 message was written). */
  acked(o: Outgoing, now: Monotonic): void {
    const e = this.#entries.get(o.topic);
    if (e === undefined) return;
    e.inFlight = false;
    if (e.version === o.version) this.#told(o.topic, e, now);
    this.#place(o.topic, e);
  }

  #told(topic: string, e: Entry, now: Monotonic): void {
    if (e.payload === undefined) {
      this.#entries.delete(topic);
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
    this.#place(topic, e);
  }

  /** Given up until `until`, or until the value changes. False when it has changed already. */
  drop(topic: string, version: number, until: number): boolean {
    const e = this.#entries.get(topic);
    if (e === undefined || e.version !== version) return false;
    e.droppedUntil = until;
    this.#place(topic, e);
    return true;
  }

  /** After each change of an entry: where it waits. */
  #place(topic: string, e: Entry): void {
    const [line, other] = e.strikes > 0 ? [this.#suspectsDue, this.#due] : [this.#due, this.#suspectsDue];
    const at = e.inFlight || !this.#entries.has(topic) ? Number.POSITIVE_INFINITY : dueAt(e);
    other.delete(topic);
    if (at === Number.POSITIVE_INFINITY) line.delete(topic);
    else line.set(topic, at);
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
