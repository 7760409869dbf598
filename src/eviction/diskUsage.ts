/**
 * How much lies in a folder, on its own file system only: what is mounted into it belongs to somebody else. Links are not followed, and of a
 * file with several names one counts. What lies there is written by pods, so a walk ends after so many entries and tells what it has found
 * until then. Owns nothing. It waits for the file system at each folder, so the loop goes on meanwhile.
 */
import type { Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isNowhere } from '../world/errno.ts';
import type { DiskAmount } from './words.ts';

const mostEntries = 100_000;
const mostDepth = 64;
const atOnce = 32;
const blockBytes = 512;

/** A file system may forget a name between two looks. */
const look = (path: string): Promise<Stats | undefined> =>
  lstat(path).catch((e) => {
    if (isNowhere(e)) return undefined;
    throw e;
  });

/** What is not there has nothing. Rejects when a folder cannot be read, or aborted. */
export async function folderUsage(root: string, signal?: AbortSignal, entries = mostEntries): Promise<DiskAmount> {
  const first = await look(root);
  if (first === undefined || !first.isDirectory()) return { bytes: 0, inodes: 0 };
  let bytes = first.blocks * blockBytes;
  let inodes = 1;
  const several = new Set<number>();
  let folders: { readonly path: string; readonly depth: number }[] = [{ path: root, depth: 0 }];
  while (folders.length > 0 && inodes < entries) {
    const next: typeof folders = [];
    for (const { path, depth } of folders) {
      signal?.throwIfAborted();
      const names = await readdir(path).catch((e) => {
        if (isNowhere(e)) return [];
        throw e;
      });
      for (let i = 0; i < names.length && inodes < entries; i += atOnce) {
        const found = await Promise.all(names.slice(i, i + atOnce).map(async (name) => ({ name, stat: await look(join(path, name)) })));
        for (const { name, stat } of found) {
          if (stat === undefined || stat.dev !== first.dev) continue;
          if (stat.nlink > 1 && !stat.isDirectory()) {
            if (several.has(stat.ino)) continue;
            several.add(stat.ino);
          }
          bytes += stat.blocks * blockBytes;
          inodes++;
          if (stat.isDirectory() && depth < mostDepth) next.push({ path: join(path, name), depth: depth + 1 });
        }
      }
      if (inodes >= entries) break;
    }
    folders = next;
  }
  return { bytes, inodes };
}
