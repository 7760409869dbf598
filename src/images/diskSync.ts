/**
 * What was pulled or imported is on the disk before anything is started from it. containerd writes down at once that a snapshot is whole and
 * leaves its files to the kernel, which takes up to half a minute: a power cut in between leaves them empty for good (damaged.ts). containerd
 * has a switch of its own (`image_pull_with_sync_fs`, from 1.7.14 on, off by default); 1.6, as in Debian 12, has none. Node has no syncfs, so
 * coreutils' `sync -f` is called: once after a pull that fetched something, one at a time. What it writes had to be written anyway.
 * The start waits for it, for it would read from the same card what is being written; after half a minute it goes on, and so does the writing.
 * Never rejects: a disk that cannot be asked is no reason not to run.
 */
import { spawn } from 'node:child_process';
import type { ImageService } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { withPull } from './withPull.ts';

export interface DiskSyncDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: Pick<ImageService, 'imageFilesystems'>;
  /** Resolves when everything of this path's file system is written. */
  readonly flush: (path: string) => Promise<void>;
}

const longestWaitMs = 30_000;

export class DiskSync {
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #told = false;

  constructor(private readonly deps: DiskSyncDeps) {}

  /** What was written before this call is on the disk when it resolves, or half a minute has passed. */
  async sync(): Promise<void> {
    const done = new AbortController();
    const patience = this.deps.clock.sleep(longestWaitMs, done.signal).catch(() => undefined); // it was faster
    try {
      await Promise.race([this.#joined(), patience]);
    } finally {
      done.abort();
    }
  }

  /** One that runs may have passed by what was written since its beginning: whoever comes then shares the next. */
  #joined(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#flushAll().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#joined();
    });
    return this.#next;
  }

  async #flushAll(): Promise<void> {
    const { images, flush, log } = this.deps;
    try {
      const paths = new Set((await images.imageFilesystems()).map((f) => f.mountpoint).filter((path) => path !== ''));
      for (const path of paths) await flush(path);
    } catch (e) {
      if (!this.#told)
        log.warn(
          { error: describeError(e) },
          'images cannot be written to the disk at once: a power cut soon after a pull may damage them',
        );
      this.#told = true;
    }
  }
}

/** The same images, where a pull that fetched something ends when that is on the disk. */
export function pullsToDisk(images: ImageService, disk: Pick<DiskSync, 'sync'>): ImageService {
  return withPull(images, async (image, o) => {
    const before = await images.imageStatus(image).catch(() => undefined); // the pull itself will tell what is wrong
    const id = await images.pullImage(image, o);
    if (before?.id !== id) await disk.sync();
    return id;
  });
}

/** coreutils' and busybox' `sync -f`: only the file system that this path is on. Rejects with what it said. */
export function flushFilesystem(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('sync', ['-f', path], { stdio: ['ignore', 'ignore', 'pipe'] });
    let words = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      words = (words + part).slice(0, 500);
    });
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(words.trim() || `sync ended with ${code}`))));
  });
}
