/** How full a file system is, asked of the kernel. */
import { statfs } from 'node:fs/promises';
import type { DiskUse } from './gcPlan.ts';

/** Of the file system that `path` lies on. Rejects when it cannot be asked. */
export async function diskUse(path: string): Promise<DiskUse> {
  const { blocks, bavail, bsize } = await statfs(path);
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
}
