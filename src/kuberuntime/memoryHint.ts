/**
 * What a container that the kernel ended for want of memory is told of its volumes in memory: they count as its memory, and what lies in them
 * outlives the container, so that the next attempt begins with less room or has none. The kubelet says nothing of it. Never rejects.
 */
import { statfs } from 'node:fs/promises';
import { basename } from 'node:path';
import { type ContainerStatus, labels } from '../container/words.ts';

/** Of statfs. */
const tmpfsType = 0x01021994;
const mib = 2 ** 20;

/** Bytes that files of a file system in memory take; undefined: it is none, or cannot be asked. */
export async function bytesInMemory(path: string): Promise<number | undefined> {
  const found = await statfs(path).catch(() => undefined); // gone with its pod
  return found?.type === tmpfsType ? (found.blocks - found.bfree) * found.bsize : undefined;
}

const endedForMemory = ({ state, reason, message }: Pick<ContainerStatus, 'state' | 'reason' | 'message'>): boolean =>
  state === 'exited' && (reason === 'OOMKilled' || message.includes('OOM-killed'));

/** One line; undefined: memory was not the cause, or no volume in memory holds a mebibyte. `bytesOf`: as `bytesInMemory`. */
export async function memoryHint(status: ContainerStatus, bytesOf = bytesInMemory): Promise<string | undefined> {
  if (!endedForMemory(status)) return undefined;
  const own = `/${status.labels[labels.podUid]}/volumes/kubernetes.io~empty-dir/`;
  const folders = new Set(status.mounts.map((m) => m.hostPath).filter((path) => path.includes(own)));
  const held = await Promise.all([...folders].map(async (path) => ({ name: basename(path), bytes: (await bytesOf(path)) ?? 0 })));
  const full = held.filter(({ bytes }) => bytes >= mib);
  if (full.length === 0) return undefined;
  const list = full.map(({ name, bytes }) => `${name} ${Math.floor(bytes / mib)}Mi`).join(', ');
  return `volumes in memory count as memory of the container and keep their content over a restart: ${list} (emptyDir, medium Memory)`;
}
