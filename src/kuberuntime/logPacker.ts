/**
 * Packs rotated logs, one after the other, in a fifth of one CPU. Owns the queue and the file being packed. What becomes of a file that
 * cannot be packed is its caller's to decide.
 */
import { join } from 'node:path';
import { isAbort } from '../async/abort.ts';
import type { Clock } from '../world/clock.ts';
import { codeOf, isMissing } from '../world/errno.ts';
import { describeError, type Log } from '../world/log.ts';
import { packLog } from './logFiles.ts';

export interface LogPackerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the files of `dir` may take `bytes` more beside those that are there. */
  readonly mayGrow: (dir: string, bytes: number) => boolean;
  /** One file's turn is over. `noRoom`: neither the disk nor the cap has room for a packed copy. */
  readonly ended: (dir: string, how: 'packed' | 'noRoom' | 'failed') => void;
}

interface Job {
  readonly dir: string;
  readonly name: string;
  readonly stop: AbortController;
  bytes: number;
}

const noRoom = new Error('the packed copy would not fit under the cap');

export class LogPacker {
  #queue: { readonly dir: string; readonly name: string }[] = [];
  #job: Job | undefined;
  #working = false;

  constructor(private readonly deps: LogPackerDeps) {}

  /** The file of this folder that is being packed, and how large its packed copy is by now. */
  now(dir: string): { readonly name: string; readonly bytes: number } | undefined {
    return this.#job?.dir === dir ? this.#job : undefined;
  }

  /** Replaces what waits for this folder. */
  queue(dir: string, names: readonly string[]): void {
    const doing = this.now(dir)?.name;
    this.#queue = [...this.#queue.filter((q) => q.dir !== dir), ...names.filter((n) => n !== doing).map((name) => ({ dir, name }))];
    void this.#work();
  }

  /** These files are about to go. */
  drop(dir: string, names: readonly string[]): void {
    this.#queue = this.#queue.filter((q) => q.dir !== dir || !names.includes(q.name));
    if (this.#job?.dir === dir && names.includes(this.#job.name)) this.#job.stop.abort();
  }

  /** The folder is nobody's any more. */
  forget(dir: string): void {
    this.#queue = this.#queue.filter((q) => q.dir !== dir);
    if (this.#job?.dir === dir) this.#job.stop.abort();
  }

  stop(): void {
    this.#queue = [];
    this.#job?.stop.abort();
  }

  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#job = { ...next, stop: new AbortController(), bytes: 0 };
      const how = await this.#pack(this.#job);
      this.#job = undefined;
      if (how !== undefined) this.deps.ended(next.dir, how);
    }
    this.#working = false;
  }

  async #pack(job: Job): Promise<'packed' | 'noRoom' | 'failed' | undefined> {
    const written = (bytes: number): void => {
      job.bytes = bytes;
      if (!this.deps.mayGrow(job.dir, bytes)) throw noRoom;
    };
    try {
      await packLog(join(job.dir, job.name), { clock: this.deps.clock, signal: job.stop.signal, written });
      return 'packed';
    } catch (e) {
      if (isAbort(e) || isMissing(e)) return undefined; // it was to go
      if (e === noRoom || codeOf(e) === 'ENOSPC' || codeOf(e) === 'EDQUOT') return 'noRoom';
      this.deps.log.warn({ file: join(job.dir, job.name), error: describeError(e) }, 'a rotated log could not be compressed');
      return 'failed';
    }
  }
}
