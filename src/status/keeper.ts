/**
 * Writing behind, to the store in runDir: the newest value of each key, in rounds, not more often than asked. Losing runDir is
 * never an error, so a failing write is told in the log and forgotten.
 */
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { isStoreCorrupt, type Store } from '../world/store.ts';

export interface KeeperDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Store;
  /** Milliseconds between two rounds of writing; 0: at once. */
  readonly periodMs: number;
}

interface Pending {
  value: unknown;
  readonly written: Promise<void>;
  readonly resolve: () => void;
}

export class Keeper {
  #dirty = new Map<string, Pending>();
  #round: Promise<void> | undefined;
  #earliest: Monotonic | undefined;
  #hurry = new AbortController();

  constructor(private readonly deps: KeeperDeps) {}

  /** Resolves when this value, or a newer one of the key, is stored (or could not be). `undefined` removes. Never rejects. */
  put(key: string, value: unknown): Promise<void> {
    const waiting = this.#dirty.get(key);
    if (waiting !== undefined) {
      waiting.value = value;
      return waiting.written;
    }
    let resolve = () => {};
    const written = new Promise<void>((r) => {
      resolve = r;
    });
    this.#dirty.set(key, { value, written, resolve });
    this.#round ??= this.#writeAll();
    return written;
  }

  /** All that was put is stored when it resolves; waits for no period. */
  async flush(): Promise<void> {
    this.#hurry.abort();
    while (this.#round !== undefined) await this.#round;
    this.#hurry = new AbortController();
  }

  /** Entries below `prefix` that can be read. */
  async load(prefix: string): Promise<Map<string, unknown>> {
    const found = new Map<string, unknown>();
    try {
      for (const key of await this.deps.store.list(prefix)) {
        try {
          const value = await this.deps.store.get(key);
          if (value !== undefined) found.set(key, value);
        } catch (e) {
          if (!isStoreCorrupt(e)) throw e;
          this.deps.log.warn({ key }, 'an entry of the run directory cannot be read and is left out');
        }
      }
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'the run directory cannot be read');
    }
    return found;
  }

  async #writeAll(): Promise<void> {
    const { clock, log, store, periodMs } = this.deps;
    // the values of this very turn go together
    await Promise.resolve();
    while (this.#dirty.size > 0) {
      const waitMs = (this.#earliest ?? clock.monotonic()) - clock.monotonic();
      if (waitMs > 0) await clock.sleep(waitMs, this.#hurry.signal).catch(() => {}); // told to hurry: write now
      this.#earliest = periodMs === 0 ? undefined : after(clock.monotonic(), periodMs);
      const batch = this.#dirty;
      this.#dirty = new Map();
      const write = async ([key, { value, resolve }]: [string, Pending]): Promise<void> => {
        try {
          await (value === undefined ? store.remove(key) : store.put(key, value));
        } catch (e) {
          log.warn({ key, error: describeError(e) }, 'the run directory could not be written');
        }
        resolve();
      };
      // side by side: no pod's news wait for those of all the others
      await Promise.all([...batch].map(write));
    }
    this.#round = undefined;
  }
}
