/**
 * Files that are bind-mounted into running containers: they keep their inode, so they are rewritten in place and never replaced. A reader
 * may come between two steps, so the new text is there before the rest of a longer old one is cut off; the file is never empty.
 */
import { constants } from 'node:fs';
import { chmod, type FileHandle, open } from 'node:fs/promises';
import { isMissing } from '../world/errno.ts';
import { pathOf } from './descriptor.ts';

/** Nothing that was read as text should grow the agent. */
const largestBytes = 1 << 20;

/** Makes the file when it is not there, and writes only what differs. Whether it wrote. */
export async function writeInPlace(path: string, text: string, mode: number): Promise<boolean> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, mode);
  try {
    // whatever the agent's umask is; an earlier agent may have been killed between the two
    if (((await file.stat()).mode & 0o7777) !== mode) await chmod(pathOf(file), mode);
    return await update(file, text);
  } finally {
    await file.close();
  }
}

/** Writes only what differs in a file that is there; one that is not there is left so: undefined. */
export async function rewrite(path: string, text: string): Promise<boolean | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch (e) {
    if (isMissing(e)) return undefined;
    throw e;
  }
  try {
    return await update(file, text);
  } finally {
    await file.close();
  }
}

async function update(file: FileHandle, text: string): Promise<boolean> {
  const wanted = Buffer.from(text);
  const { size } = await file.stat();
  if (size === wanted.length && size <= largestBytes) {
    const now = Buffer.alloc(size);
    await file.read(now, 0, size, 0);
    if (now.equals(wanted)) return false;
  }
  let written = 0;
  while (written < wanted.length) written += (await file.write(wanted, written, wanted.length - written, written)).bytesWritten;
  if (size > wanted.length) await file.truncate(wanted.length);
  return true;
}
