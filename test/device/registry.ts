/**
 * Who has a test bed on this machine: one small file per bed under /run. It lets the last bed put back what beds share (the empty
 * kubepods trees, port-mapping chains, the forwarding switch), and lets a later start clear away a bed whose owner was killed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { run, sleep, startTicks } from './process.ts';

const folder = '/run/podsched-test-beds';
const lockFolder = `${folder}.lock`;
const machineFile = join(folder, 'machine.json');

export interface BedRecord {
  readonly name: string;
  readonly dir: string;
  readonly ownerPid: number;
  readonly ownerStart: number;
  readonly bridge: string;
  /** The CNI network's name; it stands in the comments of CNI's firewall rules. */
  readonly network: string;
  readonly subnet: string;
}

/** How the machine was before the first bed came. */
export interface MachineBefore {
  readonly ipForward: string;
  readonly kubepods: readonly string[];
  readonly chains: readonly string[];
  readonly folders: readonly string[];
}

/** The folders that the runtime and CNI make outside of a bed's own folder. */
export const sharedFolders = [
  '/var/lib/cni/results',
  '/var/lib/cni',
  '/run/containerd/s',
  '/run/containerd/runc',
  '/run/containerd',
] as const;

/** Every kubepods tree there is, whatever the cgroup version: deepest first. */
export function kubepodsTrees(): string[] {
  const roots = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((name) => join('/sys/fs/cgroup', name))];
  return roots
    .flatMap((root) => ['kubepods/burstable', 'kubepods/besteffort', 'kubepods'].map((t) => join(root, t)))
    .filter((p) => existsSync(p));
}

/** CNI's own chains in the nat table (port mapping makes three that nobody removes). */
export async function cniChains(): Promise<string[]> {
  const { stdout } = await run('iptables', ['-w', '10', '-t', 'nat', '-S']);
  return stdout.split('\n').flatMap((line) => /^-N (CNI-\S+)$/.exec(line)?.[1] ?? []);
}

export const ipForwardFile = '/proc/sys/net/ipv4/ip_forward';

/** One at a time over all processes. A lock whose holder died is taken after 60 s. */
export async function locked<T>(step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      mkdirSync(lockFolder);
      break;
    } catch {
      const age = Date.now() - (statSync(lockFolder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > 60_000) rmSync(lockFolder, { recursive: true, force: true });
      await sleep(20);
    }
  }
  try {
    return await step();
  } finally {
    rmSync(lockFolder, { recursive: true, force: true });
  }
}

/** Writes a bed down (call it locked); the first one also writes down how the machine was. */
export async function enter(record: BedRecord): Promise<void> {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(machineFile)) {
    const before: MachineBefore = {
      ipForward: readFileSync(ipForwardFile, 'utf8').trim(),
      kubepods: kubepodsTrees(),
      chains: await cniChains(),
      folders: sharedFolders.filter((f) => existsSync(f)),
    };
    writeFileSync(machineFile, JSON.stringify(before));
  }
  write(record);
}

/** Whole or not at all: others read without the lock. */
function write(record: BedRecord): void {
  const file = join(folder, `${record.name}.json`);
  writeFileSync(`${file}.new`, JSON.stringify(record));
  renameSync(`${file}.new`, file);
}

/** Beds come and go while one looks: what went between the list and the reading is gone. */
export function records(): BedRecord[] {
  try {
    return readdirSync(folder)
      .filter((f) => f.endsWith('.json') && f !== basename(machineFile))
      .flatMap((f) => {
        const text = textOf(join(folder, f));
        return text === undefined ? [] : [JSON.parse(text) as BedRecord];
      });
  } catch (e) {
    if (isGone(e)) return [];
    throw e;
  }
}

const isGone = (e: unknown): boolean => (e as NodeJS.ErrnoException).code === 'ENOENT';

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (e) {
    if (isGone(e)) return undefined;
    throw e;
  }
}

/** True while the process that made the bed lives. */
const ownerLives = (record: BedRecord): boolean => startTicks(record.ownerPid) === record.ownerStart;

/** Beds whose owner was killed, this process's own from now on: of two that look at once only one clears a bed away. */
export const adopt = (): Promise<BedRecord[]> =>
  locked(async () => {
    const stale = records().filter((r) => !ownerLives(r));
    return stale.map((record) => {
      const mine = { ...record, ownerPid: process.pid, ownerStart: startTicks(process.pid) ?? 0 };
      write(mine);
      return mine;
    });
  });

/** Strikes a bed out (call it locked). The last one gets back how the machine was before the first. */
export function leave(name: string): MachineBefore | undefined {
  rmSync(join(folder, `${name}.json`), { force: true });
  if (records().length > 0 || !existsSync(machineFile)) return undefined;
  const before = JSON.parse(readFileSync(machineFile, 'utf8')) as MachineBefore;
  rmSync(folder, { recursive: true, force: true });
  return before;
}
