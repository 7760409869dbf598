/**
 * Owns which keys this node trusts: what stands in `keys.d`. `*.pub` is a PEM text (SPKI) of an ed25519 key without bounds; `*.json` is
 * `{publicKey, keyid?, namespaces?, sources?, verbs?}`. A file that cannot be read or understood keeps what it said before, over restarts of
 * the agent too (else a damaged card would end what was signed); one that is gone takes its key along. Read when told to: at start, at
 * SIGHUP, at resync; no watch, no polling.
 * Never: takes a word of a scope that it does not know (the key would have more room than was meant); puts text of a file into a problem.
 */
import { constants, type Stats } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, isMissing } from '../world/errno.ts';
import type { Log } from '../world/log.ts';
import { isStoreCorrupt, type Store } from '../world/store.ts';
import type { TrustedKey } from './dsse.ts';
import { keyFileText, readKeyFile } from './keyFile.ts';
import { rawText } from './rawKeys.ts';

/** What is wrong in one file, or with the folder. */
export interface KeyProblem {
  /** `keys.d/ops.pub`. */
  readonly file: string;
  readonly message: string;
}

export interface KeyFolderDeps {
  readonly log: Log;
  /** `<staticPodPath>/keys.d`. */
  readonly dir: string;
  /** Files that others may write are refused. */
  readonly strict: () => boolean;
  /** stateDir: the keys as they were read last, written when one changed. */
  readonly store: Pick<Store, 'get' | 'put'>;
  /** What is wrong changed. */
  readonly onProblems?: (problems: readonly KeyProblem[]) => void;
}

const label = 'keys.d';
const entry = 'trusted-keys';
const maxFileBytes = 64 << 10;
const maxFiles = 200;

export class KeyFolder {
  /** By file; undefined: the stored ones were not read yet. */
  #good: ReadonlyMap<string, TrustedKey> | undefined;
  #keys: readonly TrustedKey[] = [];
  #problems: readonly KeyProblem[] = [];

  constructor(private readonly deps: KeyFolderDeps) {}

  /** The keys as they were read last, in the order of their files. */
  keys(): readonly TrustedKey[] {
    return this.#keys;
  }

  problems(): readonly KeyProblem[] {
    return this.#problems;
  }

  /** Reads the folder. Never rejects. Resolves true when a key came, went or changed. */
  async read(): Promise<boolean> {
    const problems: KeyProblem[] = [];
    const say = (file: string, message: string): void => void problems.push({ file: file === '' ? label : `${label}/${file}`, message });
    const before = this.#good ?? (await this.#stored());
    const names = await this.#names(say);
    // a folder that cannot be read just now has not lost its keys
    const good = new Map(names === undefined ? before : []);
    for (const name of names ?? []) {
      const read = await readOne(join(this.deps.dir, name), name, this.deps.strict(), (message) => say(name, message));
      const key = read === 'refused' ? undefined : (read ?? before.get(name));
      if (key !== undefined) good.set(name, key);
    }
    this.#good = good;
    const keys = withoutTwins([...good.values()], (file, message) => say(file, message));
    const changed = textOf(keys) !== textOf(this.#keys);
    if (changed) this.#keys = keys;
    if (storedText(good) !== storedText(before)) await this.#store(good);
    this.#tell(problems);
    return changed;
  }

  async #stored(): Promise<ReadonlyMap<string, TrustedKey>> {
    const stored = await this.deps.store.get(entry).catch((e: unknown) => {
      if (!isStoreCorrupt(e)) this.deps.log.warn({ error: e }, 'trusted keys: the stored ones cannot be read');
      return undefined; // the files say it all, but where one is damaged
    });
    if (typeof stored !== 'object' || stored === null) return new Map();
    return new Map(
      Object.entries(stored).flatMap(([file, text]: [string, unknown]) => {
        const key = typeof text === 'string' ? readKeyFile('.json', text) : '';
        return typeof key === 'string' ? [] : [[file, { ...key, file }] as const];
      }),
    );
  }

  async #store(good: ReadonlyMap<string, TrustedKey>): Promise<void> {
    try {
      await this.deps.store.put(entry, JSON.parse(storedText(good)));
    } catch (e) {
      this.deps.log.warn({ error: e }, 'trusted keys: they cannot be stored');
    }
  }

  /** undefined: the folder cannot be read. */
  async #names(say: (file: string, message: string) => void): Promise<readonly string[] | undefined> {
    const { dir, strict } = this.deps;
    try {
      const writable = othersMayWrite(await stat(dir));
      if (writable !== undefined) {
        say('', `InsecurePermissions: ${writable}`);
        if (strict()) return [];
      }
      const names = (await readdir(dir)).filter((n) => /\.(pub|json)$/.test(n) && !n.startsWith('.')).sort();
      if (names.length > maxFiles) say('', `has ${names.length} files; the first ${maxFiles} are read`);
      return names.slice(0, maxFiles);
    } catch (e) {
      // no folder, no keys; but where all above it is missing too, something has not been mounted
      if (isMissing(e) && (await isThere(dirname(dir)))) return [];
      say('', `cannot be read (${codeOf(e)})`);
      return undefined;
    }
  }

  #tell(problems: readonly KeyProblem[]): void {
    const text = (p: KeyProblem): string => `${p.file}: ${p.message}`;
    const told = new Set(this.#problems.map(text));
    const same = problems.length === told.size && problems.every((p) => told.has(text(p)));
    this.#problems = problems;
    if (same) return;
    for (const { file, message } of problems.filter((p) => !told.has(text(p))))
      this.deps.log.warn({ file, problem: message }, 'trusted keys: something is wrong');
    this.deps.onProblems?.(problems);
  }
}

const storedText = (keys: ReadonlyMap<string, TrustedKey>): string =>
  JSON.stringify(Object.fromEntries([...keys].map(([file, key]) => [file, keyFileText(key)])));
const textOf = (keys: readonly TrustedKey[]): string => JSON.stringify(keys.map((key) => [key.file, keyFileText(key)]));

/** Two files with one key would give it the room of both; two keys of one name could not be told apart. The first file counts. */
function withoutTwins(keys: readonly TrustedKey[], say: (file: string, message: string) => void): readonly TrustedKey[] {
  const seen = new Map<string, string>();
  return keys.filter((key) => {
    const names = [`id ${key.keyid}`, `key ${rawText(key.publicKey)}`];
    const first = names.map((name) => seen.get(name)).find((file) => file !== undefined);
    if (first !== undefined) {
      say(key.file, `has the key or the keyid of ${first}, which counts`);
      return false;
    }
    for (const name of names) seen.set(name, key.file);
    return true;
  });
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false, // whatever it is, nothing can be said of what lies in it
  );

const othersMayWrite = ({ mode }: Pick<Stats, 'mode'>): string | undefined =>
  (mode & 0o022) === 0 ? undefined : `others may write it (mode ${(mode & 0o777).toString(8).padStart(4, '0')}): chmod go-w`;

/** undefined: it says nothing that can be understood now. `refused`: what it says must not be taken. */
async function readOne(
  path: string,
  name: string,
  strict: boolean,
  say: (message: string) => void,
): Promise<TrustedKey | 'refused' | undefined> {
  try {
    // a FIFO does not block
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) return void say('is no regular file');
      const writable = othersMayWrite(stats);
      if (writable !== undefined) {
        say(`InsecurePermissions: ${writable}`);
        if (strict) return 'refused';
      }
      const bytes = Buffer.alloc(maxFileBytes + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await handle.read(bytes, length, bytes.length - length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      if (length > maxFileBytes) return void say(`is larger than ${maxFileBytes} bytes`);
      const key = readKeyFile(name, bytes.toString('utf8', 0, length));
      if (typeof key !== 'string') return key;
      say(key);
    } finally {
      await handle.close();
    }
  } catch (e) {
    say(`cannot be read (${codeOf(e)})`);
  }
  return undefined;
}
