/**
 * What of the machine moves: read at each heartbeat (`readVitals`, a handful of small files), and when a person asks (`readUsage`). From
 * /proc and /sys alone; no process is started.
 */
import { access, readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Board, BoardRoots } from './board.ts';
import { fileNumber, fileText } from './files.ts';
import { readOnlyMounts } from './readOnly.ts';

export interface Vitals {
  /** Of the processor; undefined: no sensor. */
  readonly degrees: number | undefined;
  /** Mount points of the paths asked for that nobody can write to. */
  readonly readOnly: readonly string[];
  /** undefined: nobody can say without starting a process (chrony, ntpd, no time service at all). */
  readonly clockSynced: boolean | undefined;
}

/** A sensor that tells less or more than this is broken. */
const [coldest, hottest] = [-40, 150];
/** A node that has just started has not asked a time server yet: that is no news. */
const patienceSeconds = 120;

/** `paths`: must be writable. Never rejects: a sensor that does not answer is absent. */
export async function readVitals(
  { proc, run }: Pick<BoardRoots, 'proc' | 'run'>,
  { temperature }: Pick<Board, 'temperature'>,
  paths: readonly string[],
): Promise<Vitals> {
  const [milli, mountinfo, synced] = await Promise.all([
    temperature === undefined ? undefined : fileNumber(temperature),
    readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''), // without it nobody can say
    readClock(proc, run),
  ]);
  const degrees = milli === undefined ? undefined : milli / 1000;
  return {
    degrees: degrees !== undefined && degrees >= coldest && degrees <= hottest ? degrees : undefined,
    readOnly: readOnlyMounts(mountinfo, paths),
    clockSynced: synced,
  };
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** systemd-timesyncd has a folder while it runs, and a file in it from the first answer of a server on. Others leave nothing to look at. */
async function readClock(proc: string, run: string): Promise<boolean | undefined> {
  if (await isThere(join(run, 'systemd/timesync/synchronized'))) return true;
  if (!(await isThere(join(run, 'systemd/timesync')))) return undefined;
  const seconds = await readUptime(proc);
  return seconds !== undefined && seconds < patienceSeconds ? undefined : false;
}

async function readUptime(proc: string): Promise<number | undefined> {
  const first = (await fileText(join(proc, 'uptime'))).split(' ')[0] ?? '';
  return /^[0-9]+(\.[0-9]+)?$/.test(first) ? Math.floor(Number(first)) : undefined;
}

export interface Usage {
  /** Since the kernel started. */
  readonly uptimeSeconds: number | undefined;
  /** `0.42 0.30 0.25`: of 1, 5 and 15 minutes. */
  readonly load: string | undefined;
  readonly memory: { readonly totalBytes: number; readonly availableBytes: number } | undefined;
  /** undefined: there is none. */
  readonly swap: { readonly totalBytes: number; readonly usedBytes: number; readonly zram: boolean } | undefined;
  /** Of the file system asked for; undefined: it cannot be asked. */
  readonly disk: { readonly totalBytes: number; readonly availableBytes: number } | undefined;
}

/** `diskPath`: on the file system to be told of. Never rejects. */
export async function readUsage({ proc }: Pick<BoardRoots, 'proc'>, diskPath: string): Promise<Usage> {
  const [uptimeSeconds, load, meminfo, swaps, disk] = await Promise.all([
    readUptime(proc),
    fileText(join(proc, 'loadavg')),
    fileText(join(proc, 'meminfo')),
    fileText(join(proc, 'swaps')),
    statfs(diskPath).catch(() => undefined), // gone, or not mounted
  ]);
  const memory = (name: string): number | undefined => {
    const kibibytes = new RegExp(`^${name}:\\s+([0-9]{1,15}) kB$`, 'm').exec(meminfo)?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  };
  const [total, available, swapTotal = 0, swapFree = 0] = ['MemTotal', 'MemAvailable', 'SwapTotal', 'SwapFree'].map(memory);
  return {
    uptimeSeconds,
    load: /^([0-9]+\.[0-9]+ ){3}/.exec(load)?.[0].trim(),
    memory: total === undefined || available === undefined ? undefined : { totalBytes: total, availableBytes: available },
    swap:
      swapTotal === 0
        ? undefined
        : { totalBytes: swapTotal, usedBytes: Math.max(0, swapTotal - swapFree), zram: /^\/dev\/zram/m.test(swaps) },
    disk: disk && { totalBytes: disk.blocks * disk.bsize, availableBytes: disk.bavail * disk.bsize },
  };
}
