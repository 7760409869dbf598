/**
 * How much of a connection was heard: which snapshots are under way, and which topics were asked for by name. By that it says when to take in
 * what came: at once what is new, and what stood at the broker together with the rest of its snapshot, or after 5 s if that does not end.
 */
import { after, type Clock, type Monotonic } from '../world/clock.ts';

const longestSnapshotMs = 5000;
const mostAnswered = 10_000;

export class Hearing {
  #connected = false;
  /** Snapshots under way. */
  #open = new Set<string>();
  /** Heard to their end in this run. */
  #ended = new Set<string>();
  /** In this connection. */
  #asked = new Set<string>();
  #answered = new Set<string>();
  #asking = 0;
  #connection = 0;
  #timer: { readonly at: Monotonic; readonly stop: AbortController } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly step: () => void,
  ) {}

  get isConnected(): boolean {
    return this.#connected;
  }

  connected(filters: readonly string[]): void {
    this.#connected = true;
    this.#open = new Set(filters);
    this.#asked.clear();
    this.#asking = 0;
    this.#connection++;
  }

  disconnected(): void {
    this.#connected = false;
    this.#open.clear();
    this.#asking = 0;
    this.#connection++;
  }

  /** The list is another: what is new in it has a snapshot to come. */
  refollowed(before: readonly string[], now: readonly string[]): void {
    if (!this.#connected) return;
    for (const filter of now) if (!before.includes(filter)) this.#open.add(filter);
    for (const filter of before) {
      if (now.includes(filter)) continue;
      this.#open.delete(filter);
      this.#ended.delete(filter);
    }
  }

  snapshot(filters: readonly string[]): void {
    for (const filter of filters) {
      this.#open.delete(filter);
      this.#ended.add(filter);
    }
  }

  isOpen(filter: string | undefined): boolean {
    return filter !== undefined && this.#open.has(filter);
  }

  /** Each of them was heard to its end in this run. */
  heardAll(filters: readonly string[]): boolean {
    return filters.every((f) => this.#ended.has(f));
  }

  /** A message came; `retain`: it stood there already. */
  heard(retain: boolean): void {
    if (!retain || (this.#open.size === 0 && this.#asking === 0)) {
      this.step();
      return;
    }
    if (this.#timer !== undefined) return;
    const timer = { at: after(this.clock.monotonic(), longestSnapshotMs), stop: new AbortController() };
    this.#timer = timer;
    this.clock.sleep(longestSnapshotMs, timer.stop.signal).then(
      () => {
        if (this.#timer !== timer) return;
        this.#timer = undefined;
        this.step();
      },
      () => {}, // nobody waits any more
    );
  }

  /** Topics are asked for by name; to be called when all that will come has come, or the connection ended before. */
  asks(topics: readonly string[]): (whole: boolean) => void {
    const connection = this.#connection;
    if (this.#asked.size > mostAnswered) this.#asked.clear();
    for (const topic of topics) this.#asked.add(topic);
    this.#asking++;
    return (whole) => {
      if (connection === this.#connection) this.#asking--;
      if (!whole) return;
      // names that came and went with indexes
      if (this.#answered.size > mostAnswered) this.#answered.clear();
      for (const topic of topics) this.#answered.add(topic);
    };
  }

  /** Whether it was asked for on this connection. */
  wasAsked(topic: string): boolean {
    return this.#asked.has(topic);
  }

  /** It was asked for once, and all came that would. */
  wasAnswered(topic: string): boolean {
    return this.#answered.has(topic);
  }

  stop(): void {
    this.#timer?.stop.abort();
    this.#timer = undefined;
  }
}
