/**
 * Archives become images: `importFile` hands one file to containerd, finds out which names came, says what is wrong with them, and pins them.
 * Owns the order (one import at a time) and nothing else: which files are imported when is preload.ts's.
 * Never: takes the archive into the agent's memory; trusts a name in it; calls an import good whose names the runtime does not show.
 * An archive is imported for this node's platform; when nothing in it is for that, once more for all, so that the pod that asks for the image
 * hears what it was built for instead of asking a registry.
 */
import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ContentStore, ImageInfo, ImageService } from '../container/runtime.ts';
import { describeError, type Log } from '../world/log.ts';
import { harmless } from '../world/terminal.ts';
import { isOtherPlatform, nameProblem, namesIn, packingOf } from './importOutput.ts';
import { type CtrDeps, type CtrResult, importThrough } from './importThrough.ts';
import { type NodePlatform, platformProblem } from './platform.ts';
import { pinnedLabel } from './preloadRecords.ts';
import { PullQueue } from './queue.ts';

export interface ImporterDeps extends CtrDeps {
  readonly log: Log;
  readonly images: Pick<ImageService, 'listImages' | 'imageStatus'>;
  readonly content: Pick<ContentStore, 'labelImage'>;
  readonly node: NodePlatform | undefined;
  /** What was written is on the disk; left out: what was imported is on the disk when the machine gets to it. */
  readonly flush?: () => Promise<void>;
}

export type ImportResult =
  /** `names`: complete, usable on this node, pinned. `problems`: what else was in it, in sentences. */
  | { readonly ok: true; readonly names: readonly string[]; readonly problems: readonly string[] }
  | { readonly ok: false; readonly message: string };

export interface ImportOptions {
  readonly signal?: AbortSignal;
  /** Why this file is not imported, from what was opened; undefined: it is. */
  readonly refuse?: (s: Stats) => string | undefined;
}

/** open(2): a place in the tree, neither read nor written. The same on every machine that Node runs on. */
const O_PATH = 0o10000000;

/** CRI hears of an image that came past it a moment later. */
const knownAfterMs = [50, 100, 200, 400, 800, 1600];

export class Importer {
  #queue = new PullQueue(1);

  constructor(private readonly deps: ImporterDeps) {}

  /** Rejects only when the signal is aborted; everything else is an answer. The message names the file, without its folder. */
  async importFile(path: string, o: ImportOptions = {}): Promise<ImportResult> {
    const signal = o.signal ?? new AbortController().signal;
    return this.#queue.run(async () => {
      const shown = harmless(basename(path));
      const failed = (why: string): ImportResult => ({ ok: false, message: `${shown}: ${why}` });
      let place: FileHandle | undefined;
      let file: FileHandle | undefined;
      try {
        // looked at before it is opened: to open a FIFO lets its writer go on, and a device may act (a watchdog begins to count)
        place = await open(path, O_PATH);
        const stats = await place.stat();
        const refused = stats.isFile() ? o.refuse?.(stats) : 'it is not a regular file';
        if (refused !== undefined) return failed(refused);
        if (stats.size === 0) return failed('it is empty');
        file = await open(`/proc/self/fd/${place.fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
        const result = await this.#import(file, stats.size, signal);
        return result.ok ? result : failed(result.message);
      } catch (e) {
        signal.throwIfAborted();
        return failed(describeError(e));
      } finally {
        await file?.close();
        await place?.close();
      }
    }, signal);
  }

  async #import(file: FileHandle, sizeBytes: number, signal: AbortSignal): Promise<ImportResult> {
    const first = Buffer.alloc(4);
    await file.read(first, 0, 4, 0);
    const packing = packingOf(first);
    const before = tagsOf(await this.deps.images.listImages());
    const pass = async (allPlatforms: boolean): Promise<CtrResult> => {
      // the same file, whatever its name leads to now, and from its beginning
      const reading = await open(`/proc/self/fd/${file.fd}`, constants.O_RDONLY);
      try {
        return await importThrough(this.deps, reading.fd, { packing, sizeBytes, allPlatforms }, signal);
      } finally {
        await reading.close();
      }
    };
    let result = await pass(false);
    if (!result.ok && isOtherPlatform(result.words)) result = await pass(true);
    if (!result.ok) return { ok: false, message: result.words };
    await this.deps.flush?.();
    return this.#judge(namesIn(result.output), before, signal);
  }

  /** What came, of which names can be used. */
  async #judge(said: readonly string[], before: ReadonlyMap<string, string>, signal: AbortSignal): Promise<ImportResult> {
    const { images, node } = this.deps;
    const names: string[] = [];
    const problems: string[] = [];
    // a newer ctr may say it in other words: then it is what is there now and was not before
    const now = said.length > 0 ? [] : tagsOf(await images.listImages());
    const came = said.length > 0 ? said : [...now].filter(([name, id]) => before.get(name) !== id).map(([name]) => name);
    for (const name of came) {
      const bad = nameProblem(name);
      if (bad !== undefined) {
        problems.push(bad);
        continue;
      }
      const image = await this.#shown(name, signal);
      const wrong = platformProblem(image?.platform, node);
      if (image === undefined) problems.push(`${name} was imported and the runtime does not show it`);
      else if (wrong !== undefined) problems.push(`WrongPlatform: ${wrong} (${name})`);
      else names.push(name);
    }
    for (const name of names) await this.#pin(name);
    if (names.length > 0) return { ok: true, names, problems };
    return { ok: false, message: problems.length > 0 ? problems.join('; ') : 'no image in it has a name' };
  }

  async #shown(name: string, signal: AbortSignal): Promise<ImageInfo | undefined> {
    for (const waitMs of knownAfterMs) {
      const image = await this.deps.images.imageStatus(name);
      if (image !== undefined) return image;
      await this.deps.clock.sleep(waitMs, signal);
    }
    return this.deps.images.imageStatus(name);
  }

  /** For others that look at containerd; our own image collection asks preload.ts. */
  async #pin(name: string): Promise<void> {
    try {
      await this.deps.content.labelImage(name, { [pinnedLabel]: 'pinned' });
    } catch (e) {
      this.deps.log.debug({ image: name, error: describeError(e) }, 'an imported image could not be labelled');
    }
  }
}

const tagsOf = (images: readonly ImageInfo[]): Map<string, string> =>
  new Map(images.flatMap(({ id, tags }) => tags.map((tag): [string, string] => [tag, id])));
