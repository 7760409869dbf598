/** Deeds on the log files of containers. Only regular files are logs: a link is neither followed nor counted. */
import { constants, createWriteStream } from 'node:fs';
import { lstat, open, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Clock } from '../world/clock.ts';
import { isNowhere } from '../world/errno.ts';
import type { LogFileSeen } from './logPlan.ts';

const blockBytes = 64 << 10;
const newline = 0x0a;
/** A runtime writes lines of up to 16 KiB; with less than this it cannot go on. */
const fullBytes = 64 << 10;

const unlessMissing = (e: unknown): undefined => {
  if (!isNowhere(e)) throw e;
};

/** Bytes of a log; undefined: there is no regular file of that name. */
export async function logSize(path: string): Promise<number | undefined> {
  const stat = await lstat(path).catch(unlessMissing);
  return stat?.isFile() ? stat.size : undefined;
}

/** The regular files of a folder; none when it is not there. */
export async function listLogs(dir: string): Promise<LogFileSeen[]> {
  const files: LogFileSeen[] = [];
  for (const name of (await readdir(dir).catch(unlessMissing)) ?? []) {
    const size = await logSize(join(dir, name));
    if (size !== undefined) files.push({ name, size });
  }
  return files;
}

/** Not there is done. */
export const removeFile = (path: string): Promise<void> => rm(path, { force: true });

/** Whether the file system under `dir` has no room for another line, not even for root. */
export async function isFull(dir: string): Promise<boolean> {
  const { bfree, bsize } = await statfs(dir);
  return bfree * bsize < fullBytes;
}

/** Empties a log that is being written: runtimes append, so that the next line is the first one. */
export async function emptyLog(path: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    await file.truncate(0);
  } finally {
    await file.close();
  }
}

/** Leaves at most the last `bytes` of a log that nobody writes any more, from a line's start. In place: it works on a full disk. */
export async function keepTail(path: string, bytes: number): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    if (size <= bytes) return;
    const block = Buffer.allocUnsafe(blockBytes);
    // the byte before tells whether a line begins here
    let from = size - bytes - 1;
    for (let found = false; !found && from < size; ) {
      const { bytesRead } = await file.read(block, 0, blockBytes, from);
      const end = block.subarray(0, bytesRead).indexOf(newline);
      found = end >= 0;
      from = found ? from + end + 1 : bytesRead === 0 ? size : from + bytesRead;
    }
    let to = 0;
    for (;;) {
      const { bytesRead } = await file.read(block, 0, blockBytes, from + to);
      if (bytesRead === 0) break;
      await file.write(block, 0, bytesRead, to);
      to += bytesRead;
    }
    await file.truncate(to);
  } finally {
    await file.close();
  }
}

export interface PackOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told before each block how many bytes the packed file has; what it throws ends the packing. */
  readonly written: (bytes: number) => void;
}

/** Of the time it works this many times as long it rests: it takes a fifth of one CPU at most. */
const restFactor = 4;

/**
 * Compresses a rotated log to `<path>.gz` (0644) and removes it. Rejects, and leaves the log as it is without anything beside it, when that
 * cannot be done or the signal is aborted.
 */
export async function packLog(path: string, { clock, signal, written }: PackOptions): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const source = file.createReadStream({ highWaterMark: blockBytes }); // closes it at its end, however that comes
  const target = createWriteStream(temporary, { flags: 'wx', mode: 0o644 });
  const paced = async function* (blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const block of blocks) {
      written(target.bytesWritten);
      const begun = clock.monotonic();
      yield block;
      await clock.sleep((clock.monotonic() - begun) * restFactor, signal);
    }
  };
  try {
    await pipeline(source, paced, createGzip(), target, { signal });
    await keep(temporary);
    await rename(temporary, `${path}.gz`);
  } catch (e) {
    await removeFile(temporary);
    throw e;
  }
  await removeFile(path);
}

/** On the card before the file it replaces goes; 0644 whatever the agent's umask is. */
async function keep(path: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    await file.chmod(0o644);
    await file.datasync();
  } finally {
    await file.close();
  }
}
