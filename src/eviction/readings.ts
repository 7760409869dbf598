/**
 * What eviction reads of the node. Files of /proc are read at once, without a thread: it takes microseconds, and every look waits for it. File
 * systems are asked beside the loop, for a card may hang. Owns nothing; a folder is the fake of /proc.
 */
import { readFileSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { FilesystemReading, MemoryReading, ProcessReading } from './words.ts';

/** '' where the kernel has no such file. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const kibibytes = (text: string, name: string): number | undefined => {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text);
  return match === null ? undefined : Number(match[1]) * 1024;
};

const share = (text: string, line: 'some' | 'full'): number | undefined => {
  const match = new RegExp(`^${line} avg10=([\\d.]+)`, 'm').exec(text);
  return match === null ? undefined : Number(match[1]);
};

/** undefined: the kernel does not tell. `proc`: `/proc`. */
export function readMemory(proc: string): MemoryReading | undefined {
  const info = textOf(join(proc, 'meminfo'));
  const [totalBytes, availableBytes] = [kibibytes(info, 'MemTotal'), kibibytes(info, 'MemAvailable')];
  if (totalBytes === undefined || availableBytes === undefined) return undefined;
  const swapFreeBytes = kibibytes(info, 'SwapFree') ?? 0;
  const stall = textOf(join(proc, 'pressure/memory'));
  const [some10, full10] = [share(stall, 'some'), share(stall, 'full')];
  return {
    totalBytes,
    availableBytes,
    swapFreeBytes,
    anonBytes: kibibytes(info, 'AnonPages') ?? 0,
    // where there is no swap nobody asks where it lies
    zram: swapFreeBytes > 0 && /^\/dev\/zram/m.test(textOf(join(proc, 'swaps'))),
    ...(some10 !== undefined && full10 !== undefined && { stall: { some10, full10 } }),
  };
}

/** Processes with their threads, since each takes a number; undefined: the kernel does not tell. */
export function readProcesses(proc: string): ProcessReading | undefined {
  const limits = ['sys/kernel/pid_max', 'sys/kernel/threads-max'].map((file) => Number(textOf(join(proc, file)).trim()));
  const running = /^\S+ \S+ \S+ \d+\/(\d+) /.exec(textOf(join(proc, 'loadavg')));
  const most = Math.min(...limits.filter((n) => Number.isInteger(n) && n > 0));
  return running === null || !Number.isFinite(most) ? undefined : { most, running: Number(running[1]) };
}

/** Of the file system that `path` lies on; undefined: it cannot be asked. */
export async function readFilesystem(path: string): Promise<FilesystemReading | undefined> {
  try {
    const [{ dev }, { blocks, bavail, bsize, files, ffree }] = await Promise.all([stat(path), statfs(path)]);
    if (blocks === 0) return undefined;
    return { device: dev, capacityBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, inodesFree: ffree };
  } catch {
    return undefined; // what is not there, or does not answer, calls for nothing
  }
}
