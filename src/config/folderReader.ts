/**
 * The manifest folder on a real disk: which files are read, how one is read without ever blocking, and when to look again.
 *
 * Owns: the watch on the folder. Watches the folder and never a file (a replaced file is a new inode), takes any event only as "look again"
 * once 20 ms were quiet (5 ms when files only came, went or took another's place whole; at most 1 s later), and polls as well: links may lead anywhere, and inotify may be exhausted. Links are followed
 * at each read; the watch is armed again when the folder is another one than before (git-sync flips a link).
 * Never: opens what is no regular file (a FIFO would block, a device may act); reads more than 1 MiB of one file; takes a missing folder
 * for an empty one.
 * Mirrors kubelet v1.32 config/file_linux.go (poll and inotify), with the name rules of behaviour 9.
 */
import { constants, type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { type FileHandle, lstat, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isAbort } from '../async/abort.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { codeOf, isMissing } from '../world/errno.ts';
import type { FileText, FolderListing, FolderReader } from '../world/folder.ts';
import { isManifestName } from './names.ts';

export const maxFileBytes = 1 << 20;
/** All files together, so that a folder full of large ones does not fill the memory of a small board. */
const maxFolderBytes = 64 << 20;
const maxFiles = 10_000;
const signatureEnding = '.sig';
const quietMs = 20;
const movedQuietMs = 5;
const longestQuietMs = 1000;
/** How often a file that was there is looked for again before it counts as gone. */
const goneAfterMs = [5, 10, 15];

export interface FolderReaderDeps {
  readonly clock: Clock;
  /** fileCheckFrequency in milliseconds. */
  pollMs(): number;
  /** node:fs watch; a test may refuse it, as an exhausted inotify does. */
  readonly watch?: typeof watch;
}

const unreadable = (reason: string, message: string): FileText['content'] => ({ ok: false, reason, message });

export class FsFolderReader implements FolderReader {
  #watcher: { readonly handle: FSWatcher; readonly identity: string } | undefined;
  #debounce: { readonly since: Monotonic; until: number } | undefined;
  #names = new Set<string>();

  constructor(
    private readonly dir: string,
    private readonly deps: FolderReaderDeps,
  ) {}

  async read(): Promise<FolderListing> {
    try {
      const folder = await stat(this.dir);
      const { names, signed } = await this.#list();
      if (names.length > maxFiles) return { ok: false, message: `${this.dir} has ${names.length} manifests; at most ${maxFiles} are read` };
      const files = new Map<string, FileText>();
      let room = maxFolderBytes;
      const take = async (name: string): Promise<void> => {
        const file = await readOne(join(this.dir, name), name, room);
        if (file === undefined) return;
        const signature = signed.has(name) ? await readSignature(join(this.dir, name + signatureEnding)) : undefined;
        if (file.content.ok) room -= file.content.bytes.length + (signature?.length ?? 0);
        files.set(name, { ...file, ...(signature !== undefined && { signature }) });
      };
      for (const name of names) await take(name);
      // an editor moves a file away and writes it anew: only what stays away is gone
      for (const waitMs of goneAfterMs) {
        const missing = [...this.#names].filter((n) => !files.has(n));
        if (missing.length === 0) break;
        await this.deps.clock.sleep(waitMs);
        for (const name of missing) await take(name);
      }
      this.#names = new Set(files.keys());
      const insecure = insecureMode('the folder', folder);
      return {
        ok: true,
        files: [...files.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
        ...(insecure === undefined ? {} : { insecure }),
      };
    } catch (e) {
      return { ok: false, message: describeFolder(this.dir, codeOf(e)) };
    }
  }

  /** Arms the watch before it returns, so that what changes after a first read is not missed. */
  watch(onTick: () => void, onDegraded: (reason: string | undefined) => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    let degraded: string | undefined;
    const tell = (reason: string | undefined): void => {
      if (reason === degraded) return;
      degraded = reason;
      onDegraded(reason);
    };
    const arm = (): boolean => this.#arm(onTick, tell, signal);
    arm();
    signal.addEventListener('abort', () => this.#disarm(), { once: true });
    const poll = async (): Promise<void> => {
      while (!signal.aborted) {
        await this.deps.clock.sleep(this.deps.pollMs(), signal);
        arm();
        onTick();
      }
    };
    poll().catch((e) => {
      if (!isAbort(e)) throw e;
    });
  }

  /** Manifests by name, and those that have a signature beside them. */
  async #list(): Promise<{ readonly names: string[]; readonly signed: ReadonlySet<string> }> {
    const all = await readdir(this.dir);
    const signed = all.flatMap((name) => (name.endsWith(signatureEnding) ? [name.slice(0, -signatureEnding.length)] : []));
    return { names: all.filter(isManifestName).sort(), signed: new Set(signed) };
  }

  /** The watch stands on the folder that the path names now. True when it is a new watch. */
  #arm(onTick: () => void, tell: (reason: string | undefined) => void, signal: AbortSignal): boolean {
    let identity: string;
    try {
      const s = statSync(this.dir);
      if (!s.isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' });
      identity = `${s.dev}:${s.ino}`;
    } catch {
      // told by read(): without a folder there is nothing to watch, and polling finds it
      this.#disarm();
      return false;
    }
    if (this.#watcher?.identity === identity) return false;
    this.#disarm();
    try {
      const handle = (this.deps.watch ?? watch)(this.dir, (type, name) => {
        const waitMs = name === null || mayBeHalf(type, this.dir, name) ? quietMs : movedQuietMs;
        this.#changed(waitMs, onTick, tell, signal);
      });
      handle.on('error', (e) => {
        if (this.#watcher?.handle === handle) this.#disarm();
        tell(`watching ${this.dir} failed (${codeOf(e)}): polling only`);
      });
      this.#watcher = { handle, identity };
      tell(undefined);
      return true;
    } catch (e) {
      tell(`cannot watch ${this.dir} (${codeOf(e)}${inotifyHint(codeOf(e))}): polling only`);
      return false;
    }
  }

  #disarm(): void {
    this.#watcher?.handle.close();
    this.#watcher = undefined;
  }

  #changed(quiet: number, onTick: () => void, tell: (reason: string | undefined) => void, signal: AbortSignal): void {
    const { clock } = this.deps;
    const now = clock.monotonic();
    if (this.#debounce !== undefined) {
      this.#debounce.until = Math.max(this.#debounce.until, now + quiet);
      return;
    }
    const debounce = { since: now, until: now + quiet };
    this.#debounce = debounce;
    const settle = async (): Promise<void> => {
      for (;;) {
        const at = clock.monotonic();
        const waitMs = Math.min(debounce.until, debounce.since + longestQuietMs) - at;
        if (waitMs <= 0) break;
        await clock.sleep(waitMs, signal);
      }
      this.#debounce = undefined;
      // the event may have been the folder's own end: what stands there now is watched
      this.#arm(onTick, tell, signal);
      onTick();
    };
    settle().catch((e) => {
      if (!isAbort(e)) throw e;
    });
  }
}

/** Somebody writes into a manifest, or has made one and not written yet. A file that was moved here is whole. */
function mayBeHalf(type: string, dir: string, name: string): boolean {
  if (!isManifestName(name)) return false;
  if (type !== 'rename') return true;
  try {
    return statSync(join(dir, name), { throwIfNoEntry: false })?.size === 0;
  } catch {
    return false; // what is wrong with it, reading will tell
  }
}

/** One file, following links; undefined when it is not there any more. */
async function readOne(path: string, name: string, room: number): Promise<FileText | undefined> {
  let handle: FileHandle | undefined;
  try {
    const before = await stat(path);
    if (!before.isFile()) return { name, content: unreadable('NotAFile', `${kindOf(before)}, not a regular file`) };
    // NONBLOCK: should a FIFO have taken its place meanwhile, opening it does not wait for a writer
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const now = await handle.stat();
    if (!now.isFile()) return { name, content: unreadable('NotAFile', `${kindOf(now)}, not a regular file`) };
    const insecure = insecureMode('the file', now);
    return { name, content: await readContent(handle, now.size, room), ...(insecure === undefined ? {} : { insecure }) };
  } catch (e) {
    if (isMissing(e)) {
      const link = await lstat(path).catch(() => undefined); // gone altogether is what is asked here
      return link === undefined ? undefined : { name, content: unreadable('Unreadable', 'a link that leads nowhere') };
    }
    const code = codeOf(e);
    return {
      name,
      content: unreadable('Unreadable', code === 'EACCES' ? 'permission denied' : code === 'ELOOP' ? 'a link that leads to itself' : code),
    };
  } finally {
    await handle?.close();
  }
}

/** The bytes of a `.sig`. One that cannot be read counts as none: where a signature is asked for, the manifest is refused. */
async function readSignature(path: string): Promise<Uint8Array | undefined> {
  const file = await readOne(path, '', 2 * maxFileBytes);
  return file?.content.ok === true ? file.content.bytes : undefined;
}

async function readContent(handle: FileHandle, size: number, room: number): Promise<FileText['content']> {
  if (size > maxFileBytes) return unreadable('TooLarge', `${size} bytes; at most ${maxFileBytes} are read`);
  const buffer = Buffer.alloc(Math.min(maxFileBytes + 1, size + 4096));
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  if (length > maxFileBytes) return unreadable('TooLarge', `more than ${maxFileBytes} bytes`);
  // it grew while it was read: half of something
  if (length === buffer.length) return unreadable('Changing', 'it grows while it is read');
  if (length > room) return unreadable('TooLarge', `the files before it have the ${maxFolderBytes} bytes that are read of one folder`);
  return { ok: true, bytes: buffer.subarray(0, length) };
}

const kindOf = (s: Stats): string => {
  if (s.isDirectory()) return 'a folder';
  if (s.isFIFO()) return 'a FIFO';
  return s.isSocket() ? 'a socket' : 'a device';
};

/** Group or others may write: whoever they are, they may say what this machine runs. */
function insecureMode(what: string, s: Stats): string | undefined {
  if ((s.mode & 0o022) === 0) return undefined;
  const who = (s.mode & 0o002) !== 0 ? 'others' : 'its group';
  return `${what} has mode ${(s.mode & 0o7777).toString(8).padStart(4, '0')}: ${who} may write`;
}

const describeFolder = (dir: string, code: string): string => {
  if (code === 'ENOENT') return `${dir} does not exist`;
  if (code === 'ENOTDIR') return `${dir} is not a folder`;
  return code === 'EACCES' ? `${dir} may not be read` : `${dir} cannot be read (${code})`;
};

const inotifyHint = (code: string): string => {
  if (code === 'ENOSPC') return ', raise fs.inotify.max_user_watches';
  return code === 'EMFILE' ? ', raise fs.inotify.max_user_instances' : '';
};
