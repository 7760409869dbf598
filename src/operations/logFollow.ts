/**
 * A container's log as a stream: what is there, and with `follow` what comes, until the container has ended and nothing is left. The folder
 * is watched and looked at each second anyway, as the kubelet does. A rotated file is read to its end before its successor. Read only as
 * fast as it is taken, so a slow reader costs no memory.
 */
import { watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseLogName } from '../kuberuntime/logPlan.ts';
import type { Clock } from '../world/clock.ts';
import { LogRenderer, type RenderOptions } from './criLog.ts';
import { LogFile } from './logFile.ts';

export interface LogStreamOptions extends RenderOptions {
  readonly path: string;
  /** Only so many of the last lines that are there now. */
  readonly tail?: number;
  readonly follow: boolean;
  /** Whether the container may still write. */
  readonly running: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const lookMs = 1000;
/** Writes come in swarms: one look for all that come within it. */
const swarmMs = 20;
/** A runtime that has opened the new file may still be in a write to the old one. */
const lastWriteMs = 100;
/** Between the renaming of a file and its reopening there is none for a moment. */
const absentTries = 10;

/**
 * Opens the log; undefined: there is no such file. The stream must be read or ended, which closes the file. It ends when the signal is
 * aborted, and rejects with the file system's errors.
 */
export async function openLogStream(o: LogStreamOptions): Promise<AsyncGenerator<Buffer, void> | undefined> {
  let file = await LogFile.open(o.path);
  for (let tries = 0; file === undefined && tries < absentTries && o.running() && !o.signal.aborted; tries++) {
    await pause(o.clock, lastWriteMs, o.signal);
    file = await LogFile.open(o.path);
  }
  return file && read(file, o);
}

async function* read(first: LogFile, o: LogStreamOptions): AsyncGenerator<Buffer, void> {
  const out = new LogRenderer(o);
  let file = first;
  // before the first reading: what comes after it is noticed
  const folder = o.follow ? new FolderWake(dirname(o.path)) : undefined;
  try {
    if (o.tail !== undefined) file.seek(await file.tailStart(o.tail));
    // a busy container would never let a reader end that does not follow
    const size = o.follow ? Number.POSITIVE_INFINITY : await file.size();
    for (;;) {
      const running = o.running();
      yield* drain(file, out, size, o.signal);
      if (folder === undefined || out.full || o.signal.aborted) break;
      const next = await LogFile.open(o.path);
      if (next !== undefined && !next.same(file)) {
        let successor = next;
        try {
          await pause(o.clock, lastWriteMs, o.signal);
          yield* drain(file, out, size, o.signal);
          out.add(file.rest);
          successor = (await partAfter(file, o.path)) ?? next;
        } finally {
          await file.close();
          if (successor !== next) await next.close();
          file = successor;
        }
        continue;
      }
      await next?.close();
      if ((await file.size()) < file.position) {
        file.seek(0); // emptied in place
        continue;
      }
      if (!running) break;
      await folder.wait(o.clock, o.signal);
    }
    out.add(file.rest);
    const last = out.take();
    if (last.length > 0 && !o.signal.aborted) yield last;
  } finally {
    folder?.close();
    await file.close();
  }
}

/**
 * A log that is rotated faster than it is read: the part that was written after `file`, so that no line is passed over while it is there.
 * undefined: that is the current one. The oldest parts go and are packed first, so what is left is newer than what is gone.
 */
async function partAfter(file: LogFile, path: string): Promise<LogFile | undefined> {
  const names = (await readdir(dirname(path))).filter((name) => {
    const log = name.startsWith(`${basename(path)}.`) ? parseLogName(name) : undefined;
    return log?.kind === 'plain' && log.stamp !== '';
  });
  let oldest: LogFile | undefined;
  for (const name of names.sort().reverse()) {
    const part = await LogFile.open(join(dirname(path), name));
    if (part === undefined) continue;
    if (part.same(file)) {
      await part.close();
      return oldest;
    }
    await oldest?.close();
    oldest = part;
  }
  return oldest;
}

/** Up to the end of the file, or to the end of the line in which `size` lies. */
async function* drain(file: LogFile, out: LogRenderer, size: number, signal: AbortSignal): AsyncGenerator<Buffer, void> {
  while (!out.full && !signal.aborted && (file.position < size || file.rest.length > 0)) {
    const lines = await file.next();
    if (lines === undefined) return;
    for (const line of lines) out.add(line);
    const bytes = out.take();
    if (bytes.length > 0) yield bytes;
  }
}

/** Also returns, early, when the signal is aborted. */
const pause = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> => clock.sleep(ms, signal).catch(() => {});

/** Changes in a folder. Where it cannot be watched (no inotify watches left), only time passes. */
class FolderWake {
  readonly #stop: () => void;
  #changed = false;
  #wake: (() => void) | undefined;

  constructor(folder: string) {
    try {
      const watcher = watch(folder, { persistent: false }, () => {
        this.#changed = true;
        this.#wake?.();
      });
      watcher.on('error', () => watcher.close());
      this.#stop = () => watcher.close();
    } catch {
      this.#stop = () => {};
    }
  }

  /** Until something has changed since the last wait, for a second at most. */
  async wait(clock: Clock, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    if (!this.#changed) await pause(clock, lookMs, AbortSignal.any([signal, woken.signal]));
    this.#wake = undefined;
    if (this.#changed) await pause(clock, swarmMs, signal);
    this.#changed = false;
  }

  close(): void {
    this.#stop();
  }
}
