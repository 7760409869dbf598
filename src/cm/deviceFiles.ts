/**
 * /dev as the devices are looked for in it. Everything under it is in the kernel's memory, so it is asked without waiting; what leads out of
 * it is never touched (a link to a dead network share would hang the agent).
 */
import { lstatSync, readdirSync, readlinkSync, type Stats, statSync, watch } from 'node:fs';
import { posix } from 'node:path';

/** A character or block device, as its node says it. */
export interface Node {
  readonly kind: 'char' | 'block';
  readonly major: number;
  readonly minor: number;
  readonly gid: number;
  /** The permission bits. */
  readonly mode: number;
  /** Another one when the node was made anew, also with the same number. */
  readonly inode: number;
}

export type Entry = Node | { readonly kind: 'folder' } | { readonly kind: 'link'; readonly target: string } | { readonly kind: 'other' };

/** Paths begin with `/dev` here, wherever it really is. */
export interface DeviceFiles {
  /** Names in a folder; undefined: it is not there, or is none. */
  names(folder: string): readonly string[] | undefined;
  /** What stands there, links not followed; undefined: nothing. */
  look(path: string): Entry | undefined;
  /** The path as the runtime finds it. */
  hostPath(path: string): string;
  /** Says which folder a path is now; undefined: none. */
  identity(folder: string): string | undefined;
  /** Calls `changed` with the name in the folder (null: not known). Throws when it cannot. */
  watch(folder: string, changed: (name: string | null) => void, failed: (e: unknown) => void): { close(): void };
}

/** `root`: where /dev is. */
export function systemDeviceFiles(root = '/dev', watchFolder: typeof watch = watch): DeviceFiles {
  const onDisk = (path: string): string => `${root}${path.slice('/dev'.length)}`;
  return {
    names: (folder) => tried(() => readdirSync(onDisk(folder))),
    look: (path) => {
      const stats = tried(() => lstatSync(onDisk(path)));
      if (stats === undefined) return undefined;
      if (!stats.isSymbolicLink()) return entryOf(stats);
      const target = tried(() => readlinkSync(onDisk(path)));
      if (target === undefined) return undefined;
      // an absolute link inside of it, where /dev is somewhere else
      return { kind: 'link', target: target.startsWith(`${root}/`) ? `/dev${target.slice(root.length)}` : target };
    },
    hostPath: onDisk,
    identity: (folder) => {
      const stats = tried(() => statSync(onDisk(folder)));
      return stats?.isDirectory() ? `${stats.dev}:${stats.ino}` : undefined;
    },
    watch: (folder, changed, failed) => {
      const handle = watchFolder(onDisk(folder), (_, name) => changed(name));
      handle.on('error', failed);
      return handle;
    },
  };
}

/** What is not there, or may not be seen, is not there. */
function tried<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}

function entryOf(stats: Stats): Entry {
  if (stats.isDirectory()) return { kind: 'folder' };
  if (!stats.isCharacterDevice() && !stats.isBlockDevice()) return { kind: 'other' };
  const { gid, mode, ino, rdev } = stats;
  return { kind: stats.isBlockDevice() ? 'block' : 'char', ...numbersOf(rdev), gid, mode: mode & 0o777, inode: ino };
}

/** As the C library packs them: 12 low bits of the major above 8 of the minor, the rest of both above. */
export function numbersOf(rdev: number): { readonly major: number; readonly minor: number } {
  const low = rdev % 2 ** 32;
  const high = Math.floor(rdev / 2 ** 32);
  const major = ((low >>> 8) & 0xfff) + (high & ~0xfff);
  const minor = (low & 0xff) + (((low >>> 12) & 0xfff00) >>> 0) + (high & 0xfff) * 2 ** 20;
  return { major, minor };
}

/** Where a path leads to in the end, links in the middle too; undefined: nowhere, out of /dev, or in a circle. */
export function realPath(files: Pick<DeviceFiles, 'look'>, path: string): string | undefined {
  let steps = 40;
  let done = '/dev';
  let rest = path.split('/').slice(2);
  for (;;) {
    const [name, ...more] = rest;
    if (name === undefined) return done;
    const next = `${done}/${name}`;
    const entry = files.look(next);
    if (entry === undefined) return undefined;
    if (entry.kind === 'link') {
      const to = posix.resolve(done, entry.target);
      if ((to !== '/dev' && !to.startsWith('/dev/')) || --steps === 0) return undefined;
      rest = [...to.split('/').slice(2), ...more];
      done = '/dev';
      continue;
    }
    if (more.length > 0 && entry.kind !== 'folder') return undefined;
    done = next;
    rest = more;
  }
}
