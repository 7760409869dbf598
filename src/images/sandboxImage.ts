/**
 * The image that sandboxes are made of, without a registry: when the runtime names ours and it is not here, it comes out of this program.
 * Another one is left to the runtime, which pulls it at the first sandbox; that it is missing is a condition at once, and an event when it
 * still is some time later. Owns what was seen last. Never touches the runtime's configuration: that is `podsched doctor --fix`.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAbort, orAbort } from '../async/abort.ts';
import type { ImageService } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { fullName } from './fullName.ts';
import type { ImportOptions, ImportResult } from './importer.ts';

/** The name under which the image in this program is known. */
export const ourSandboxImage = 'podsched.dev/pause:1';

export interface SandboxImageDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** As the runtime says it, or its configuration; undefined: neither does. */
  readonly sandboxImage: () => Promise<string | undefined>;
  readonly images: Pick<ImageService, 'imageStatus'>;
  readonly importFile: (path: string, o: ImportOptions) => Promise<ImportResult>;
  /** A folder in memory, ours alone. */
  readonly runDir: string;
  /** Of the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** `condition` gives another text than before. */
  readonly changed: () => void;
}

/** How soon a missing one is looked for again: the runtime pulls it by itself and does not say when it has. */
const missingMs = 30_000;
const patienceMs = 20_000;
const remedy = '`podsched doctor --fix` lets containerd take the one that podsched brings';

export class SandboxImage {
  #missing: string | undefined;
  #seen: () => void = () => {};
  #first = new Promise<void>((resolve) => {
    this.#seen = resolve;
  });
  #awaited = false;
  #told = false;

  constructor(private readonly deps: SandboxImageDeps) {}

  /** Why no sandbox can be made from what is on this node; undefined: it can, as far as anybody knows. */
  condition(): string | undefined {
    return this.#missing === undefined ? undefined : `${this.#missing}; ${remedy}`;
  }

  /**
   * Resolves when the first look of this run is over, or has taken too long: no sandbox is asked for while its image is being brought. Rejects
   * when aborted.
   */
  async settled(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const patience = this.deps.clock.sleep(patienceMs, over.signal).catch(() => undefined); // the look was first
    try {
      await orAbort(Promise.race([this.#first, patience]), signal);
    } finally {
      over.abort();
    }
  }

  /** Brings ours where that is wanted. Looks again by itself while one is missing, until aborted. Never rejects. */
  async look(signal: AbortSignal): Promise<void> {
    const before = this.#missing;
    try {
      this.#missing = await this.#keep(signal);
    } catch (e) {
      if (!isAbort(e)) this.deps.log.warn({ error: describeError(e) }, 'whether the image of sandboxes is here could not be found out');
    }
    this.#seen();
    if (this.#missing !== before) this.deps.changed();
    if (this.#missing === undefined || this.#awaited) return;
    this.#awaited = true;
    this.deps.clock.sleep(missingMs, signal).then(
      () => this.#again(signal),
      () => undefined, // it is over
    );
  }

  /** The runtime may have been pulling it at the first look: the event comes at the second. */
  async #again(signal: AbortSignal): Promise<void> {
    this.#awaited = false;
    await this.look(signal);
    const message = this.condition();
    if (message === undefined || this.#told) return;
    this.#told = true;
    this.deps.event('Warning', 'SandboxImageMissing', message);
  }

  /** What is missing, in a sentence. */
  async #keep(signal: AbortSignal): Promise<string | undefined> {
    const image = await this.deps.sandboxImage();
    if (image === undefined || (await this.deps.images.imageStatus(image)) !== undefined) return undefined;
    if (fullName(image) !== ourSandboxImage)
      return `the sandbox image ${image} is not on this node; the runtime pulls it at the first pod, if the registry can be reached`;
    const result = await this.#bring(signal);
    return result.ok ? undefined : `the sandbox image ${image} of this program could not be imported: ${result.message}`;
  }

  async #bring(signal: AbortSignal): Promise<ImportResult> {
    const { pauseArchive } = await import('./pauseArchive.ts');
    const path = join(this.deps.runDir, 'pause.tar.gz');
    try {
      await writeFile(path, Buffer.from(pauseArchive, 'base64'), { mode: 0o600 });
      return await this.deps.importFile(path, { signal });
    } finally {
      await rm(path, { force: true });
    }
  }
}
