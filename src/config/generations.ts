/**
 * What was deleted, by topic: its generation, which must not come back lower, and the payload that an index struck off, which stands at the
 * broker still. Owns that memory, in stateDir; the 1,000 newest are kept. What is accepted carries its generation itself.
 */
import type { Store } from '../world/store.ts';

const storeKey = 'mqtt/deleted';
/** How many deletions are remembered, of what had a generation, and as many of what had none. */
export const mostRemembered = 1000;

export interface Deleted {
  /** The greatest seen on this topic. */
  readonly generation?: number;
  /** First 16 hex digits of SHA-256 of the payload it is about: the tombstone, or else what was deleted. */
  readonly hash?: string;
  /** index: the payload stands there still, and is not wanted. */
  readonly by: 'payload' | 'tombstone' | 'index' | 'group';
}

export class Generations {
  /** The oldest first. */
  #deleted = new Map<string, Deleted>();
  #dirty = false;

  constructor(private readonly store: Store) {}

  /** Rejects when it cannot be read: then nothing is remembered. */
  async load(): Promise<void> {
    const stored = await this.store.get(storeKey);
    const list: readonly unknown[] =
      typeof stored === 'object' && stored !== null && Array.isArray((stored as { deleted?: unknown }).deleted)
        ? (stored as { deleted: unknown[] }).deleted
        : [];
    for (const item of list.slice(-2 * mostRemembered)) {
      if (!Array.isArray(item)) continue;
      const [topic, by, generation, hash]: readonly unknown[] = item;
      if (typeof topic !== 'string' || (by !== 'payload' && by !== 'tombstone' && by !== 'index' && by !== 'group')) continue;
      const counted = typeof generation === 'number' && Number.isSafeInteger(generation);
      this.#deleted.set(topic, { by, ...(counted && { generation }), ...(typeof hash === 'string' && { hash }) });
    }
  }

  get(topic: string): Deleted | undefined {
    return this.#deleted.get(topic);
  }

  get size(): number {
    return this.#deleted.size;
  }

  /** The greatest generation ever heard of a topic stays; the rest is of the last deletion. */
  add(topic: string, deleted: Deleted): void {
    const before = this.#deleted.get(topic);
    const generation = greatest(before?.generation, deleted.generation);
    const { generation: _, ...rest } = deleted;
    const next: Deleted = { ...rest, ...(generation !== undefined && { generation }) };
    // of the others nobody would ever ask
    if (next.generation === undefined && next.by !== 'tombstone' && next.by !== 'index') return;
    if (before?.generation === next.generation && before?.hash === next.hash && before?.by === next.by) return;
    this.#deleted.delete(topic);
    this.#deleted.set(topic, next);
    this.#makeRoom(next.generation !== undefined);
    this.#dirty = true;
  }

  /** Of those with a generation, and of those without: whoever may write topics must not push generations out by what has none. */
  #makeRoom(counted: boolean): void {
    const same = [...this.#deleted].filter(([, { generation }]) => (generation !== undefined) === counted);
    for (const [oldest] of same.slice(0, Math.max(0, same.length - mostRemembered))) this.#deleted.delete(oldest);
  }

  /** An object stands there again: its own generation says all, unless it has none. */
  returned(topic: string, generation: number | undefined): void {
    const before = this.#deleted.get(topic);
    if (before === undefined) return;
    if (generation === undefined && before.generation !== undefined) {
      if (before.by === 'payload') return;
      this.#deleted.set(topic, { ...before, by: 'payload' });
    } else this.#deleted.delete(topic);
    this.#dirty = true;
  }

  /** Writes only when something is different. Rejects when it cannot be stored; then the next one tries again. */
  async save(): Promise<void> {
    if (!this.#dirty) return;
    await this.store.put(storeKey, {
      deleted: [...this.#deleted].map(([topic, { by, generation, hash }]) => [
        topic,
        by,
        generation ?? null,
        ...(hash === undefined ? [] : [hash]),
      ]),
    });
    this.#dirty = false;
  }

  async forget(): Promise<void> {
    this.#deleted.clear();
    this.#dirty = false;
    await this.store.remove(storeKey);
  }
}

const greatest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);
