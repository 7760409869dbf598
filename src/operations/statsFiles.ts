/** What the figures of stats.ts are read from on a real machine: files of the kernel, file systems, log folders. A few small reads each. */
import { readdir, stat, statfs } from 'node:fs/promises';
import { uptime } from 'node:os';
import { join } from 'node:path';
import type { PodUid } from '../api/objects.ts';
import { podLogFolder } from '../kuberuntime/names.ts';
import { type Board, type BoardRoots, findBoard } from '../node/board.ts';
import { readVitals } from '../node/vitals.ts';
import type { StatsDeps } from './stats.ts';
import type { FilesUsage, FsSpace } from './statsSummary.ts';

/** The readers of this machine. The board is looked for when its temperature is first asked for. */
export function systemStats(o: {
  readonly roots: BoardRoots;
  readonly podLogsDir: string;
}): Pick<StatsDeps, 'uptimeSeconds' | 'fsSpace' | 'logUsage' | 'temperature'> {
  const { roots, podLogsDir } = o;
  let board: Promise<Board> | undefined;
  return {
    uptimeSeconds: uptime,
    fsSpace,
    temperature: async () => {
      board ??= findBoard(roots);
      return (await readVitals(roots, await board, [])).degrees;
    },
    logUsage: ({ namespace, name, uid }, container) =>
      folderUsage(join(podLogsDir, podLogFolder({ namespace, name, uid: uid as PodUid }), container)),
  };
}

/** undefined: it cannot be asked. */
export async function fsSpace(path: string): Promise<FsSpace | undefined> {
  const found = await statfs(path).catch(() => undefined); // not there, or its disk is away
  if (found === undefined) return undefined;
  const { blocks, bavail, bsize, files, ffree } = found;
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, inodesFree: ffree };
}

/** Of the files right in a folder, by what they take on the disk; undefined: there is no such folder. */
async function folderUsage(folder: string): Promise<FilesUsage | undefined> {
  const names = await readdir(folder).catch(() => undefined); // it has not logged yet
  if (names === undefined) return undefined;
  // rotated away between the look at the folder and this one: 0
  const sizes = await Promise.all(names.map((name) => stat(join(folder, name)).then(blocksOf, () => 0)));
  return { usedBytes: sizes.reduce((a, b) => a + b, 0), inodesUsed: names.length + 1 };
}

/** As du counts them, whatever the size of a file says. */
const blocksOf = ({ blocks }: { readonly blocks: number }): number => blocks * 512;
