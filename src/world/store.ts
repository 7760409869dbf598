/**
 * What a manager keeps beyond its own life. Two stores exist: stateDir (the card: what must outlive a power cut) and
 * runDir (tmpfs: what must outlive the agent but not the boot). Values are JSON.
 */
export interface Store {
  /** The stored value; undefined when there is none. Throws StoreCorrupt when neither the file nor its previous copy can be read. */
  get(key: string): Promise<unknown>;
  /** As `get`, and whether the newest could not be read, so that the value is that of the previous copy. */
  read(key: string): Promise<StoredValue | undefined>;
  /** Durable when it resolves. Writes nothing when the value is what is stored already. */
  put(key: string, value: unknown): Promise<void>;
  /** Removing what is not there is success. */
  remove(key: string): Promise<void>;
  /** Keys that begin with `prefix`, sorted; keys of unreadable entries are included. */
  list(prefix: string): Promise<string[]>;
}

export interface StoredValue {
  readonly value: unknown;
  /** Something newer was stored, and is lost. */
  readonly older: boolean;
}

/** An entry that exists and cannot be read, its previous copy neither. */
export class StoreCorrupt extends Error {
  constructor(
    readonly key: string,
    options: { cause: unknown },
  ) {
    super(`stored entry ${key} cannot be read`, options);
  }
}

export const isStoreCorrupt = (e: unknown): e is StoreCorrupt => e instanceof StoreCorrupt;

/** The store of a scenario: nothing but a map of JSON texts, as a disk would keep them. */
export class MemoryStore implements Store {
  readonly entries = new Map<string, string>();
  async get(key: string): Promise<unknown> {
    const text = this.entries.get(key);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new StoreCorrupt(key, { cause });
    }
  }
  async read(key: string): Promise<StoredValue | undefined> {
    const value = await this.get(key);
    return value === undefined ? undefined : { value, older: false };
  }
  async put(key: string, value: unknown): Promise<void> {
    this.entries.set(key, JSON.stringify(value));
  }
  async remove(key: string): Promise<void> {
    this.entries.delete(key);
  }
  async list(prefix: string): Promise<string[]> {
    return [...this.entries.keys()].filter((k) => k.startsWith(prefix)).sort();
  }
}
