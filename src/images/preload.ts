/**
 * Images that come as files: what lies in `<stateDir>/images` is in the runtime, and pinned, before a pod asks a registry for it. Owns the
 * record of which archive gave which images (on the card, written when it changed) and whether the first look of this run is over.
 * A look happens when the runtime comes up, when the folder changes and when a person asks; an archive is imported when it is new or changed,
 * or when the runtime lost one of its images. The image of sandboxes (sandboxImage.ts) comes first.
 * Never: removes an image (its pin goes with the file); imports a file that somebody but root can write; tells the same fault of the same
 * file twice; rejects into the wiring.
 */
import type { Stats } from 'node:fs';
import { watch } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isAbort, orAbort } from '../async/abort.ts';
import type { ContentStore, ImageService } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { codeOf } from '../world/errno.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { harmless } from '../world/terminal.ts';
import { fullName } from './fullName.ts';
import type { ImportOptions, ImportResult } from './importer.ts';
import { type ImportRecord, isArchiveName, isByHand, namesOfAll, pinnedLabel, readRecords, storedRecords } from './preloadRecords.ts';
import type { SandboxImage } from './sandboxImage.ts';

export interface PreloadDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** `<stateDir>/images`; made when it is not there. */
  readonly folder: string;
  readonly store: Store;
  readonly images: Pick<ImageService, 'imageStatus'>;
  readonly content: Pick<ContentStore, 'labelImage'>;
  readonly importFile: (path: string, o: ImportOptions) => Promise<ImportResult>;
  readonly sandboxImage: Pick<SandboxImage, 'look'>;
  /** Of the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** `condition` gives another text than before. */
  readonly changed: () => void;
  /** These are here now; pods may wait for them. */
  readonly imported: (names: readonly string[]) => void;
  /** Whose files are taken; default root. */
  readonly ownerUid?: number;
}

const storeKey = 'images/imports';
/** A file that is being copied here is left alone until it was quiet for so long. */
const quietMs = 5000;

export class Preload {
  #records = new Map<string, ImportRecord>();
  #loaded = false;
  /** Archives that failed since the runtime came up: not tried again before they change. */
  #failed = new Set<string>();
  #firstEnded: () => void = () => {};
  #first = new Promise<void>((resolve) => {
    this.#firstEnded = resolve;
  });
  #firstPending = true;
  #running: Promise<void> | undefined;
  #again = false;

  constructor(private readonly deps: PreloadDeps) {}

  /** Images that must stay because they came as files. */
  imported(): readonly string[] {
    return namesOfAll(this.#records);
  }

  /** What is wrong with archives that lie in the folder, as it was told; undefined: nothing. */
  condition(): string | undefined {
    const problems = [...this.#records.values()].flatMap(({ problem }) => problem ?? []);
    return problems.length === 0 ? undefined : problems.join('; ').slice(0, 1000);
  }

  /** What was imported before; without it every archive would be read again. Never rejects. */
  async load(): Promise<void> {
    if (this.#loaded) return;
    this.#loaded = true;
    try {
      this.#records = readRecords(await this.deps.store.get(storeKey));
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which archives were imported before cannot be read');
    }
  }

  /** Resolves when the first look of this run is over: nobody asks a registry for what is just being imported. Rejects when aborted. */
  settled(signal: AbortSignal): Promise<void> {
    return this.#firstPending ? orAbort(this.#first, signal) : Promise.resolve();
  }

  /** The runtime is up: what failed before is tried again. */
  runtimeUp(signal: AbortSignal): Promise<void> {
    this.#failed.clear();
    return this.look(signal);
  }

  /** Looks at the folder and imports what is to be imported. Asked again meanwhile, one more look follows. Never rejects. */
  look(signal: AbortSignal): Promise<void> {
    this.#again = true;
    this.#running ??= this.#lookAll(signal).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Looks whenever the folder changed and was quiet again, until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, folder, log } = this.deps;
    let quiet: AbortController | undefined;
    const changed = (): void => {
      quiet?.abort();
      quiet = new AbortController();
      clock.sleep(quietMs, AbortSignal.any([signal, quiet.signal])).then(
        () => this.look(signal),
        () => undefined, // there was more, or it is over
      );
    };
    try {
      await mkdir(folder, { recursive: true, mode: 0o755 });
      const watcher = watch(folder, changed);
      watcher.on('error', (e) => log.warn({ error: describeError(e) }, 'the folder of images is not watched any more'));
      signal.addEventListener('abort', () => watcher.close(), { once: true });
      if (signal.aborted) watcher.close();
    } catch (e) {
      log.warn({ error: describeError(e) }, 'the folder of images cannot be watched: it is looked at when the runtime comes up');
    }
  }

  /** A person brings a file: from the folder, or from anywhere else; its images are pinned for as long as they are here. */
  async importByHand(path: string, signal: AbortSignal): Promise<ImportResult> {
    await this.load();
    const key = dirname(path) === this.deps.folder ? path.slice(this.deps.folder.length + 1) : path;
    return this.#import(key, path, await this.#signature(path), signal, true);
  }

  /** The archive that an image came from is imported once more; false: none is there, or it failed. */
  async importAgain(image: string, signal: AbortSignal): Promise<boolean> {
    const name = fullName(image);
    for (const [key, { names, signature }] of this.#records) {
      if (name === undefined || !names.includes(name)) continue;
      const path = isByHand(key) ? key : join(this.deps.folder, key);
      if ((await this.#signature(path)) === signature) return (await this.#import(key, path, signature, signal)).ok;
    }
    return false;
  }

  async #lookAll(signal: AbortSignal): Promise<void> {
    try {
      await this.load();
      while (this.#again && !signal.aborted) {
        this.#again = false;
        await this.deps.sandboxImage.look(signal);
        await this.#lookFolder(signal);
      }
    } catch (e) {
      if (!isAbort(e)) this.deps.log.warn({ error: describeError(e) }, 'looking at the archives of images failed');
    } finally {
      this.#firstPending = false;
      this.#firstEnded();
    }
  }

  async #lookFolder(signal: AbortSignal): Promise<void> {
    const files = await this.#archives();
    for (const name of files) {
      if (signal.aborted) return;
      const path = join(this.deps.folder, name);
      const signature = await this.#signature(path);
      const known = this.#records.get(name);
      const same = known?.signature === signature;
      if (same && this.#failed.has(name)) continue;
      if (same && known.failed !== true && known.names.length > 0 && (await this.#allHere(known.names))) continue;
      await this.#import(name, path, signature, signal);
    }
    for (const [key, { names }] of [...this.#records]) {
      const gone = isByHand(key) ? !(await this.#allHere(names)) : !files.includes(key);
      if (gone) await this.#forget(key);
    }
  }

  async #import(key: string, path: string, signature: string, signal: AbortSignal, byHand = false): Promise<ImportResult> {
    const { clock, event, log } = this.deps;
    const began = clock.monotonic();
    const result = await this.deps.importFile(path, { signal, ...(!byHand && { refuse: (s) => this.#refuse(s) }) });
    // still being written: the watch brings it again
    if ((await this.#signature(path)) !== signature) return result;
    // who named the file is answered, and nothing is kept of it
    if (isByHand(key) && !result.ok) return result;
    const problems = result.ok ? result.problems.join('; ') : result.message;
    const before = this.#records.get(key);
    const file = harmless(key);
    if (problems !== '' && (before?.signature !== signature || before.problem !== problems))
      event('Warning', 'ImportFailed', result.ok ? `${file}: ${problems}` : problems);
    // what an earlier content gave stays pinned while the new one cannot be read
    const names = result.ok ? result.names : (before?.names ?? []);
    await this.#record(key, {
      signature,
      names,
      ...(problems !== '' && !isByHand(key) && { problem: problems }),
      ...(!result.ok && { failed: true }),
    });
    if (!result.ok) {
      this.#failed.add(key);
      log.warn({ file: key, error: result.message }, 'an archive of images could not be imported');
      return result;
    }
    this.#failed.delete(key);
    const took = `${((clock.monotonic() - began) / 1000).toFixed(1)}s`;
    event('Normal', 'Imported', `Imported ${result.names.join(', ')} from ${file} in ${took}`);
    this.deps.imported(result.names);
    return result;
  }

  /** The file is gone, and with it what kept its images. */
  async #forget(key: string): Promise<void> {
    const names = this.#records.get(key)?.names ?? [];
    this.#failed.delete(key);
    await this.#record(key, undefined);
    const still = new Set(this.imported());
    for (const name of names.filter((n) => !still.has(n))) {
      await this.deps.content.labelImage(name, { [pinnedLabel]: '' }).catch(() => undefined); // it is gone, too
    }
  }

  async #record(key: string, record: ImportRecord | undefined): Promise<void> {
    const before = this.condition();
    if (record === undefined) this.#records.delete(key);
    else this.#records.set(key, record);
    if (this.condition() !== before) this.deps.changed();
    try {
      await this.deps.store.put(storeKey, storedRecords(this.#records));
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which archives were imported could not be stored');
    }
  }

  async #archives(): Promise<string[]> {
    await mkdir(this.deps.folder, { recursive: true, mode: 0o755 });
    return (await readdir(this.deps.folder)).filter(isArchiveName).sort();
  }

  async #signature(path: string): Promise<string> {
    try {
      const { size, mtimeNs, ino, uid, mode } = await stat(path, { bigint: true });
      return `${size} ${mtimeNs} ${ino} ${uid} ${(mode & 0o7777n).toString(8)}`;
    } catch (e) {
      return `none: ${codeOf(e)}`; // importing it says why
    }
  }

  async #allHere(names: readonly string[]): Promise<boolean> {
    for (const name of names) if ((await this.deps.images.imageStatus(name)) === undefined) return false;
    return true;
  }

  #refuse({ uid, mode }: Stats): string | undefined {
    const { ownerUid = 0 } = this.deps;
    if (uid !== ownerUid)
      return `it belongs to the user ${uid}: only files of ${ownerUid === 0 ? 'root' : `the user ${ownerUid}`} are imported`;
    if ((mode & 0o002) === 0) return undefined;
    return `others may write it (mode ${(mode & 0o7777).toString(8).padStart(4, '0')}): chmod o-w`;
  }
}
