/**
 * What is told on retained topics: the last value of each, told again only when it changed, a flapping one slowed down. Owns what was last
 * told. Never talks to the broker itself and keeps nothing while it is away: that is the broker session's.
 * A topic may change four times at once (a normal start is never late), and then once in five seconds; the last value is always told.
 */
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';

export interface TellerDeps {
  readonly clock: Clock;
  readonly tell: (topic: string, payload: string | undefined, o: { readonly expirySeconds: number }) => void;
  readonly boot: () => number;
  /** max(last + 1, CLOCK_MONOTONIC in µs): asked once for each payload, when it is told. */
  readonly seq: () => number;
}

export interface Stamp {
  readonly boot: number;
  readonly seq: number;
}

/** A payload without its stamp. `volatile` fields count as no change of their own. */
export interface Value<T extends object = object> {
  readonly body: T;
  readonly stamp: (body: T, stamp: Stamp) => object;
  readonly expirySeconds: number;
  readonly volatile?: readonly string[];
  /** How often it may change at once; default 4. */
  readonly burst?: number;
}

const usualBurst = 4;
const refillMs = 5_000;

interface Entry {
  value: Value;
  /** What was told, for comparing; undefined: nothing yet. */
  told: string | undefined;
  stamp: Stamp | undefined;
  /** Tokens at `filledAt`; they grow by one in five seconds, up to the burst. */
  tokens: number;
  filledAt: Monotonic;
}

export class Teller {
  #entries = new Map<string, Entry>();
  #due: Deadlines<string>;

  constructor(private readonly deps: TellerDeps) {
    this.#due = new Deadlines(deps.clock, (topic) => {
      const entry = this.#entries.get(topic);
      if (entry) this.#tell(topic, entry, false);
    });
  }

  /** The newest value of a topic; undefined clears it, at once. `urgent`: not slowed down (an end is told when it is known). */
  set<T extends object>(topic: string, value: Value<T> | undefined, o: { readonly urgent?: boolean } = {}): void {
    const { deps } = this;
    if (value === undefined) {
      this.#due.delete(topic);
      this.#entries.delete(topic);
      deps.tell(topic, undefined, { expirySeconds: 0 });
      return;
    }
    const now = deps.clock.monotonic();
    // the stamp function only ever sees the body it came with
    const erased = value as unknown as Value;
    const entry = this.#entries.get(topic) ?? {
      value: erased,
      told: undefined,
      stamp: undefined,
      tokens: value.burst ?? usualBurst,
      filledAt: now,
    };
    entry.value = erased;
    this.#entries.set(topic, entry);
    this.#tell(topic, entry, o.urgent === true);
  }

  /** The newest value as it was or will be told; undefined: nothing is told on this topic. */
  get(topic: string): object | undefined {
    const entry = this.#entries.get(topic);
    return entry?.value.stamp(entry.value.body, entry.stamp ?? { boot: this.deps.boot(), seq: this.deps.seq() });
  }

  has(topic: string): boolean {
    return this.#entries.has(topic);
  }

  /** The topic stays as it is at the broker; from now on it is somebody else's. */
  forget(topic: string): void {
    this.#due.delete(topic);
    this.#entries.delete(topic);
  }

  /** Everything once more under a new stamp: the boot turned out to have another number. */
  retell(): void {
    for (const [topic, entry] of this.#entries) {
      if (entry.told === undefined) continue;
      entry.told = undefined;
      this.#tell(topic, entry, true);
    }
  }

  /** Topics with a value, sorted. */
  topics(): string[] {
    return [...this.#entries.keys()].sort();
  }

  stop(): void {
    this.#due.stop();
  }

  #tell(topic: string, entry: Entry, urgent: boolean): void {
    const { deps } = this;
    const text = comparable(entry.value);
    if (text === entry.told) {
      // it came back to what is told: nothing is owed
      this.#due.delete(topic);
      return;
    }
    const now = deps.clock.monotonic();
    entry.tokens = Math.min(entry.value.burst ?? usualBurst, entry.tokens + (now - entry.filledAt) / refillMs);
    entry.filledAt = now;
    // a hair below one: sums of fractions must not cost a turn
    if (!urgent && entry.tokens < 0.999) {
      this.#due.set(topic, after(now, (1 - entry.tokens) * refillMs));
      return;
    }
    this.#due.delete(topic);
    entry.tokens = Math.max(0, entry.tokens - 1);
    entry.told = text;
    entry.stamp = { boot: deps.boot(), seq: deps.seq() };
    deps.tell(topic, JSON.stringify(entry.value.stamp(entry.value.body, entry.stamp)), { expirySeconds: entry.value.expirySeconds });
  }
}

const comparable = ({ body, volatile }: Value): string =>
  JSON.stringify(volatile === undefined ? body : Object.fromEntries(Object.entries(body).filter(([k]) => !volatile.includes(k))));
