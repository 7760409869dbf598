/**
 * Logs that nobody writes any more: rotated parts, and what attempts before the last one said. They go first when the disk is full (G9). The
 * last log of each container stays, also of one that has ended: it says why. Owns nothing; how large logs may become is not decided here.
 */
import { lstat, readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isNowhere } from '../world/errno.ts';

const logShape = /^(\d{1,10})\.log(\..+)?$/;

/** Names in a container's log folder that may go. `newest`: the file name of its newest log. What is being packed has its own end. */
export function deadLogNames(names: readonly string[], newest: string): readonly string[] {
  const newestAttempt = Number(logShape.exec(newest)?.[1] ?? Number.NaN);
  return names.filter((name) => {
    const [, attempt, rest] = logShape.exec(name) ?? [];
    if (attempt === undefined || name === newest || rest?.endsWith('.tmp') === true) return false;
    return Number(attempt) <= newestAttempt;
  });
}

/** `logPaths`: of all containers the runtime has, as it tells them. What cannot be removed is left. Bytes that went. */
export async function removeDeadLogs(logPaths: readonly string[]): Promise<number> {
  const newest = new Map<string, string>();
  for (const path of logPaths.filter((p) => logShape.test(basename(p)))) {
    const [dir, name] = [dirname(path), basename(path)];
    const before = newest.get(dir);
    if (before === undefined || Number.parseInt(name, 10) > Number.parseInt(before, 10)) newest.set(dir, name);
  }
  let bytes = 0;
  for (const [dir, name] of newest) {
    const names = await readdir(dir).catch((e) => {
      if (isNowhere(e)) return [];
      throw e;
    });
    for (const dead of deadLogNames(names, name)) {
      const path = join(dir, dead);
      const stat = await lstat(path).catch(() => undefined); // gone meanwhile
      if (stat === undefined || !stat.isFile()) continue;
      await rm(path, { force: true });
      bytes += stat.size;
    }
  }
  return bytes;
}
