/**
 * Deleting what a pod left. Pods write what they like into their volumes: links to anywhere, names that are no text, folders in folders
 * without end, other file systems mounted inside. So: no link is followed, no mount is entered (asked of the kernel at each folder, so that
 * a bind mount of the same disk is seen as well), and few descriptors are open at a time.
 */
import { type FileHandle, opendir, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { codeOf, isMissing } from '../world/errno.ts';
import { mountIdOf, nameIn, openFolder, openPlace, pathOf } from './descriptor.ts';

/** Deeper than this, a folder is moved up and its turn comes later. */
const deepest = 40;

interface Removal {
  readonly top: FileHandle;
  readonly mount: string;
  moved: number;
}

/**
 * Removes a name in an open folder with everything below it. What the kernel does not let go (a file made immutable) keeps nothing else from
 * going, and is the rejection at the end; everything else rejects at once. What is gone is gone.
 */
export async function removeTree(parent: FileHandle, name: string | Buffer): Promise<void> {
  const path = nameIn(parent, name);
  const top = await openFolder(path).catch(notFolder);
  if (top === undefined) return removeFile(path);
  try {
    const removal: Removal = { top, mount: await mountIdOf(top), moved: 0 };
    if (removal.mount !== (await mountIdOf(parent))) throw new Error(`something is mounted at ${String(name)}`);
    for (let before = -1; before !== removal.moved; ) {
      before = removal.moved;
      await clear(removal, top, 0);
    }
  } finally {
    await top.close();
  }
  await removeEmpty(parent, name);
}

/** Removes a folder that must be empty, or a file; what is not there is removed. Never what has something mounted on it. */
export async function removeEmpty(parent: FileHandle, name: string | Buffer): Promise<void> {
  const path = nameIn(parent, name);
  try {
    await rmdir(path);
  } catch (e) {
    if (isMissing(e)) return;
    if (codeOf(e) !== 'ENOTDIR') throw e;
    await removeFile(path);
  }
}

/** A folder in an open folder; undefined when it is not there or is something else. */
export const folderIn = (parent: FileHandle, name: string): Promise<FileHandle | undefined> =>
  openFolder(nameIn(parent, name)).catch(notFolder);

/** The names in an open folder, those that are no text left out. */
export const namesIn = (folder: FileHandle): Promise<string[]> => readdir(pathOf(folder));

async function clear(removal: Removal, folder: FileHandle, depth: number): Promise<void> {
  if ((await mountIdOf(folder)) !== removal.mount) throw new Error('something is still mounted inside');
  const entries = await opendir(pathOf(folder), { encoding: 'buffer' as BufferEncoding });
  let kept: unknown;
  for await (const entry of entries) {
    try {
      await clearOne(removal, nameIn(folder, entry.name as string | Buffer), entry.isDirectory(), depth);
    } catch (e) {
      if (codeOf(e) !== 'EPERM') throw e;
      kept ??= e;
    }
  }
  if (kept !== undefined) throw kept;
}

async function clearOne(removal: Removal, path: string | Buffer, isFolder: boolean, depth: number): Promise<void> {
  const inner = isFolder ? await openFolder(path).catch(notFolder) : undefined;
  if (inner === undefined) return removeFile(path);
  try {
    if (depth >= deepest) return await moveUp(removal, path);
    await clear(removal, inner, depth + 1);
  } finally {
    await inner.close();
  }
  // new entries may have come to it by moveUp only at the top, so it is empty now
  await rmdir(path);
}

/** To the top of what is removed, under a name that is free there. */
async function moveUp(removal: Removal, path: string | Buffer): Promise<void> {
  for (;;) {
    const name = nameIn(removal.top, `.podsched-removed-${removal.moved++}`);
    const taken = await openPlace(name);
    await taken?.close();
    if (taken !== undefined) continue;
    return rename(path, name);
  }
}

async function removeFile(path: string | Buffer): Promise<void> {
  try {
    await unlink(path);
  } catch (e) {
    if (!isMissing(e)) throw e; // already gone is what we wanted
  }
}

/** A link or a file: what is no folder. */
function notFolder(e: unknown): undefined {
  const code = codeOf(e);
  if (code === 'ENOTDIR' || code === 'ELOOP') return undefined;
  throw e;
}
