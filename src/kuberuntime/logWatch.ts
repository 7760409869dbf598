/** What log rotation takes from the world: news of a file, and the local time in a file's name. */
import { watch } from 'node:fs';
import type { WallTime } from '../world/clock.ts';

/** Calls `onChange` when the file is written or moved; returns how to end it, or undefined where the file cannot be watched. */
export type WatchFile = (path: string, onChange: () => void) => (() => void) | undefined;

export const watchFile: WatchFile = (path, onChange) => {
  try {
    const watcher = watch(path, { persistent: false }, onChange);
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return undefined; // gone, or the kernel has no watches left
  }
};

const digits = (n: number, width: number): string => String(n).padStart(width, '0');

/** `YYYYMMDD-HHMMSS` in local time: the suffix of rotated logs, which people read. */
export function localStamp(wall: WallTime): string {
  const t = new Date(wall);
  const day = `${digits(t.getFullYear(), 4)}${digits(t.getMonth() + 1, 2)}${digits(t.getDate(), 2)}`;
  return `${day}-${digits(t.getHours(), 2)}${digits(t.getMinutes(), 2)}${digits(t.getSeconds(), 2)}`;
}
