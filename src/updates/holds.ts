/**
 * Pods that a person holds at what runs of them by command. Owns the entries `holds/…` of stateDir and their copy in memory: a hold outlives
 * reboots and upgrades, and goes with its pod. What an annotation holds is not here.
 */
import type { KeyText } from '../api/objects.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';

export interface HoldsDeps {
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
}

const prefix = 'holds/';

export class Holds {
  #held = new Set<KeyText>();

  constructor(private readonly deps: HoldsDeps) {}

  /** An entry that cannot be read holds all the same: it was put there. */
  async load(): Promise<void> {
    try {
      for (const name of await this.deps.store.list(prefix)) this.#held.add(name.slice(prefix.length) as KeyText);
    } catch (e) {
      this.deps.log.error({ error: describeError(e) }, 'what is held cannot be listed');
    }
  }

  has(key: KeyText): boolean {
    return this.#held.has(key);
  }

  /** On the card when it resolves. False: it was held already. Rejects when it cannot be stored. */
  async hold(key: KeyText): Promise<boolean> {
    if (this.#held.has(key)) return false;
    await this.deps.store.put(prefix + key, { version: 1 });
    this.#held.add(key);
    return true;
  }

  /** False: it was not held. Rejects when it cannot be stored. */
  async release(key: KeyText): Promise<boolean> {
    if (!this.#held.has(key)) return false;
    await this.deps.store.remove(prefix + key);
    this.#held.delete(key);
    return true;
  }

  /** Holds of pods that are gone are forgotten. Never rejects: what cannot be removed is removed the next time. */
  async retain(known: (key: KeyText) => boolean): Promise<void> {
    for (const key of [...this.#held]) {
      if (known(key)) continue;
      await this.release(key).catch((e) => this.deps.log.warn({ key, error: describeError(e) }, 'a hold cannot be forgotten'));
    }
  }
}
