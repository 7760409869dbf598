/**
 * Files and folders by descriptor: Node has no openat(2), but `/proc/self/fd/N/name` is looked up from the folder that is open, wherever it
 * was moved to meanwhile. Every step is taken without following a link, so that nothing a container does to its files leads out of them.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { isMissing } from '../world/errno.ts';

/** open(2): a place in the tree, neither read nor written. The same on every machine that Node runs on. */
const O_PATH = 0o10000000;

/** The path of what is open. */
export const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`;

/** A name in the folder that is open. Names are bytes: a container may give any. */
export const nameIn = (folder: FileHandle, name: string | Buffer): string | Buffer =>
  typeof name === 'string' ? `${pathOf(folder)}/${name}` : Buffer.concat([Buffer.from(`${pathOf(folder)}/`), name]);

/** undefined when it is not there. */
async function openIfThere(path: string | Buffer, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags);
  } catch (e) {
    if (isMissing(e)) return undefined;
    throw e;
  }
}

/** A place, of any type; a link is not followed and is what is open then. */
export const openPlace = (path: string | Buffer): Promise<FileHandle | undefined> => openIfThere(path, O_PATH | constants.O_NOFOLLOW);

/** As openPlace, but a link is followed: for paths that the owner of the node wrote. */
export const openFollowing = (path: string): Promise<FileHandle> => open(path, O_PATH);

/** A folder to be listed. Rejects with ENOTDIR for anything else, a link to a folder too. */
export const openFolder = (path: string | Buffer): Promise<FileHandle | undefined> =>
  openIfThere(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);

/** The mount that what is open lies on: tells two mounts of one file system apart, as st_dev cannot. */
export async function mountIdOf(handle: FileHandle): Promise<string> {
  const id = /^mnt_id:\s*(\d+)/m.exec(await readFile(`/proc/self/fdinfo/${handle.fd}`, 'utf8'))?.[1];
  if (id === undefined) throw new Error('the kernel does not say on which mount a folder lies');
  return id;
}

export const isSameInode = (a: Stats, b: Stats): boolean => a.dev === b.dev && a.ino === b.ino;
