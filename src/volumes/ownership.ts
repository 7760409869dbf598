/** fsGroup: a volume's files belong to the pod's group. Mirrors kubelet v1.32 volume/volume_linux.go SetVolumeOwnership (facts 15.3). */

import type { FileHandle } from 'node:fs/promises';
import { chmod, chown, lchown, opendir, stat } from 'node:fs/promises';
import type { PodFSGroupChangePolicy } from '../api/v1.ts';
import { codeOf } from '../world/errno.ts';
import { nameIn, openFolder, openPlace, pathOf } from './descriptor.ts';

const setgid = 0o2000;
const folderBits = 0o110 | setgid;

export interface OwnershipOptions {
  readonly fsGroup: number;
  /** Absent: Always. */
  readonly policy?: PodFSGroupChangePolicy | undefined;
  /** Bits every file gets: 0660, in volumes that nobody writes to 0440. */
  readonly fileBits: number;
}

/** Gives everything below `path`, and itself, to the group. Links are given away, not what they lead to. */
export async function giveToGroup(path: string, o: OwnershipOptions): Promise<void> {
  const root = await openFolder(path);
  if (root === undefined) throw new Error(`${path} does not exist`);
  try {
    if (o.policy === 'OnRootMismatch' && (await fits(root, o))) return;
    await walk(root, o);
  } finally {
    await root.close();
  }
}

async function fits(root: FileHandle, { fsGroup, fileBits }: OwnershipOptions): Promise<boolean> {
  const { gid, mode } = await root.stat();
  const wanted = fileBits | folderBits;
  return gid === fsGroup && (mode & wanted) === wanted;
}

/** The folder itself last: until then a crash leaves a root that does not fit. */
async function walk(folder: FileHandle, o: OwnershipOptions): Promise<void> {
  const entries = await opendir(pathOf(folder), { encoding: 'buffer' as BufferEncoding });
  for await (const entry of entries) {
    const name = nameIn(folder, entry.name as string | Buffer);
    const inner = entry.isDirectory() ? await openFolder(name).catch(notFolder) : undefined;
    if (inner === undefined) await giveOne(name, o);
    else {
      try {
        await walk(inner, o);
      } finally {
        await inner.close();
      }
    }
  }
  await give(folder, folderBits, o);
}

/** What was a folder when it was listed is a file or link by now. */
function notFolder(e: unknown): undefined {
  if (codeOf(e) === 'ENOTDIR') return undefined;
  throw e;
}

async function giveOne(name: string | Buffer, o: OwnershipOptions): Promise<void> {
  const file = await openPlace(name);
  if (file === undefined) return; // it went meanwhile
  try {
    const { uid } = await file.stat();
    if ((await file.stat()).isSymbolicLink()) await lchown(name, uid, o.fsGroup);
    else await give(file, 0, o);
  } finally {
    await file.close();
  }
}

async function give(file: FileHandle, extra: number, { fsGroup, fileBits }: OwnershipOptions): Promise<void> {
  const path = pathOf(file);
  const { uid, mode } = await stat(path);
  // first the owner: a change of it takes setuid and setgid away
  await chown(path, uid, fsGroup);
  await chmod(path, (mode & 0o7777) | fileBits | extra);
}
