/**
 * The store on a disk: one file per key, so that a power cut can hurt one entry at most, and never its previous copy.
 *
 * Owns: the files of its folder. Each write goes to a temporary file, is synced, and is renamed; what was there becomes `.prev`. Reading
 * falls back to `.prev` when the file is missing, empty, cut, damaged or a folder.
 * Never: writes a value that is stored already (an idle agent writes nothing to the card); leaves a readable copy of what was removed
 * (the previous copy goes first, so that a cut between the two cannot bring an old object back).
 * `durable: false` is for tmpfs: the same order of steps, without waiting for a disk
 * (and without the way through the thread pool, which takes longer than what is done there).
 */
import { constants, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, isMissing, isNowhere } from '../world/errno.ts';
import { type Store, StoreCorrupt, type StoredValue } from '../world/store.ts';
import { entryText, fileNameOf, keyOfFileName, parseEntry } from './entry.ts';

const suffix = '.json';
const previous = '.json.prev';
const temporary = '.json.tmp';

type Read =
  | { readonly is: 'absent' }
  | { readonly is: 'good'; readonly text: string; readonly value: unknown }
  | { readonly is: 'bad'; readonly cause: unknown };

export class FileStore implements Store {
  #prepared: Promise<void> | undefined;
  /** The last act of each key: acts on one key never overlap. */
  #tails = new Map<string, Promise<unknown>>();
  #dirSync: { running: Promise<void>; next: Promise<void> | undefined } | undefined;

  constructor(
    private readonly dir: string,
    private readonly options: { readonly durable: boolean },
  ) {}

  async get(key: string): Promise<unknown> {
    return (await this.read(key))?.value;
  }

  read(key: string): Promise<StoredValue | undefined> {
    return this.#inTurn(key, async () => {
      const now = await this.#read(this.#path(key, suffix), key);
      if (now.is === 'good') return { value: now.value, older: false };
      const before = await this.#read(this.#path(key, previous), key);
      // a cut between the two renames leaves no newest: then nothing newer was ever used
      if (before.is === 'good') return { value: before.value, older: now.is === 'bad' };
      if (now.is === 'absent' && before.is === 'absent') return undefined;
      throw new StoreCorrupt(key, { cause: now.is === 'bad' ? now.cause : before.is === 'bad' ? before.cause : undefined });
    });
  }

  put(key: string, value: unknown): Promise<void> {
    return this.#inTurn(key, async () => {
      await this.#prepare();
      const text = entryText(key, value);
      const path = this.#path(key, suffix);
      const now = await this.#read(path, key);
      if (now.is === 'good' && now.text === text) return;
      const temp = this.#path(key, temporary);
      try {
        await this.#write(temp, text);
        // a damaged file never takes the place of a good previous copy
        if (now.is === 'good') await this.#replace(path, this.#path(key, previous));
        await this.#replace(temp, path);
      } catch (e) {
        await rm(temp, { force: true, recursive: true }).catch(() => {}); // the first failure is the one to tell
        throw new Error(`cannot store ${key}`, { cause: e });
      }
      await this.#syncDir();
    });
  }

  remove(key: string): Promise<void> {
    return this.#inTurn(key, async () => {
      let removed = false;
      for (const path of [this.#path(key, previous), this.#path(key, suffix)]) {
        try {
          await unlink(path);
        } catch (e) {
          if (isNowhere(e)) continue;
          if (codeOf(e) !== 'EISDIR' && codeOf(e) !== 'EPERM') throw new Error(`cannot remove ${key}`, { cause: e });
          await rm(path, { recursive: true, force: true });
        }
        removed = true;
        await this.#syncDir();
      }
      if (!removed) return;
    });
  }

  async list(prefix: string): Promise<string[]> {
    let names: string[];
    try {
      names = await readdir(this.dir);
    } catch (e) {
      if (isMissing(e)) return [];
      throw new Error(`cannot list ${this.dir}`, { cause: e });
    }
    const keys = new Set<string>();
    for (const name of new Set(names.map(baseName))) {
      if (name === undefined) continue;
      const { key, whole } = keyOfFileName(name);
      const full = whole ? key : ((await this.#keyInside(name)) ?? key);
      if (full.startsWith(prefix)) keys.add(full);
    }
    return [...keys].sort();
  }

  #path(key: string, end: string): string {
    return join(this.dir, fileNameOf(key) + end);
  }

  async #inTurn<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    const mine = before === undefined ? act() : before.then(act, act);
    this.#tails.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === mine) this.#tails.delete(key);
    }
  }

  /** The folder is there, and nothing lies in it that a cut left half-written. Tried again by the next act when it fails. */
  #prepare(): Promise<void> {
    this.#prepared ??= this.#makeFolder().catch((e) => {
      this.#prepared = undefined;
      throw new Error(`cannot make the folder ${this.dir}`, { cause: e });
    });
    return this.#prepared;
  }

  async #makeFolder(): Promise<void> {
    const made = await mkdir(this.dir, { recursive: true, mode: 0o700 });
    if (made !== undefined && this.options.durable) await syncFolder(dirname(made));
    for (const name of await readdir(this.dir)) {
      if (name.endsWith(temporary)) await rm(join(this.dir, name), { force: true, recursive: true });
    }
  }

  async #read(path: string, key: string): Promise<Read> {
    let text: string;
    try {
      text = this.options.durable ? await readFile(path, 'utf8') : readFileSync(path, 'utf8');
    } catch (e) {
      return isNowhere(e) ? { is: 'absent' } : { is: 'bad', cause: e };
    }
    try {
      return { is: 'good', text, value: parseEntry(text, key.includes('~') ? undefined : key).value };
    } catch (cause) {
      return { is: 'bad', cause };
    }
  }

  /** The key of a long entry stands inside; undefined when neither copy can be read. */
  async #keyInside(name: string): Promise<string | undefined> {
    for (const end of [suffix, previous]) {
      try {
        return parseEntry(await readFile(join(this.dir, name + end), 'utf8')).key;
      } catch {} // unreadable: the other copy, else the short name
    }
    return undefined;
  }

  async #write(path: string, text: string): Promise<void> {
    if (!this.options.durable) return writeFileSync(path, text, { mode: 0o600 });
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Renames over whatever is there, a folder put there by mistake included. */
  async #replace(from: string, to: string): Promise<void> {
    try {
      if (this.options.durable) await rename(from, to);
      else renameSync(from, to);
    } catch (e) {
      if (codeOf(e) !== 'EISDIR' && codeOf(e) !== 'ENOTEMPTY' && codeOf(e) !== 'EEXIST') throw e;
      await rm(to, { recursive: true, force: true });
      await rename(from, to);
    }
  }

  /** One sync of the folder serves everyone whose rename came before it began. */
  #syncDir(): Promise<void> {
    if (!this.options.durable) return Promise.resolve();
    if (this.#dirSync === undefined) {
      const running = syncFolder(this.dir);
      this.#dirSync = { running, next: undefined };
      this.#endDirSync(running);
      return running;
    }
    this.#dirSync.next ??= this.#dirSync.running.then(
      () => this.#syncDir(),
      () => this.#syncDir(),
    );
    return this.#dirSync.next;
  }

  #endDirSync(running: Promise<void>): void {
    const end = (): void => {
      if (this.#dirSync?.running === running) this.#dirSync = undefined;
    };
    running.then(end, end);
  }
}

async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const baseName = (name: string): string | undefined => {
  if (name.endsWith(previous)) return name.slice(0, -previous.length);
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
};
