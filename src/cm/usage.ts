/**
 * What pods and the node use now, read from the kernel when somebody asks: memory, processor time, processes. Owns nothing but where a pod's
 * cgroup was found last. A pod is measured where the runtime put its containers, on cgroup v1 too, so that
 * eviction and `top` need no cgroups of ours. Never writes, never polls.
 * Mirrors what cAdvisor counts for kubelet v1.32: the working set is what cannot be given back easily (facts 14.1).
 */
import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PodUid } from '../api/objects.ts';
import { type CgroupDriver, cgroupPath } from '../api/resources.ts';
import type { CgroupVersion } from './enforced.ts';
import { type CgroupName, nodeGroup, podGroup, qosClasses } from './names.ts';

export interface MemoryUse {
  readonly usageBytes: number;
  /** Without page cache that nobody looked at lately. */
  readonly workingSetBytes: number;
  /** Of it in tmpfs and shared memory: no kill of a process gives it back. */
  readonly shmemBytes: number;
  readonly swapBytes: number;
  /** Of processes: anonymous memory. */
  readonly rssBytes: number;
}

export interface GroupUse {
  /** Absent: the kernel does not count it here. */
  readonly memory?: MemoryUse;
  /** Processor time since the group exists, in microseconds. */
  readonly cpuUsec?: number;
  /** Processes and threads. */
  readonly pids?: number;
}

export interface NodeUse extends GroupUse {
  readonly memory: MemoryUse;
  readonly totalBytes: number;
  /** What the kernel thinks new work could get without swapping. */
  readonly availableBytes: number;
  readonly swapTotalBytes: number;
  readonly swapFreeBytes: number;
  /** As many processes as the kernel allows; absent: it does not say. */
  readonly maxPids?: number;
}

export interface UsageDeps {
  /** `/sys/fs/cgroup` */
  readonly root: string;
  /** `/proc` */
  readonly proc: string;
  readonly version: () => CgroupVersion;
  /** `cgroupRoot`, in components. */
  readonly cgroupRoot: CgroupName;
  /** Whose cgroups pods are in now; undefined, or left out: nobody knows yet. What the other left, or somebody else has there, is not measured. */
  readonly driver?: () => CgroupDriver | undefined;
}

const drivers: readonly CgroupDriver[] = ['systemd', 'cgroupfs'];

export class Usage {
  #found = new Map<PodUid, string>();

  constructor(private readonly deps: UsageDeps) {}

  /** undefined: nothing of the pod runs, or what runs is elsewhere. Never rejects. */
  async pod(uid: PodUid): Promise<GroupUse | undefined> {
    const path = this.#pathOf(uid);
    if (path === undefined) return undefined;
    return this.deps.version() === 'v2' ? unifiedUse(join(this.deps.root, path)) : this.#legacyUse(path);
  }

  /** Rejects when /proc cannot be read. */
  async node(): Promise<NodeUse> {
    const { proc } = this.deps;
    const [meminfo, stat, loadavg, maxPids] = await Promise.all([
      readFile(join(proc, 'meminfo'), 'utf8'),
      textOf(join(proc, 'stat')),
      textOf(join(proc, 'loadavg')),
      readMaxPids(proc),
    ]);
    const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(meminfo)?.[1] ?? 0) * 1024;
    const rssBytes = bytes('AnonPages');
    // what a memory cgroup would count: anonymous pages and everything cached
    const usageBytes = rssBytes + bytes('Cached') + bytes('Buffers') + bytes('SwapCached');
    const [swapTotalBytes, swapFreeBytes] = [bytes('SwapTotal'), bytes('SwapFree')];
    const cpuUsec = busyUsec(stat ?? '');
    const tasks = /\d+\/(\d+)/.exec(loadavg ?? '')?.[1];
    return {
      memory: {
        usageBytes,
        workingSetBytes: Math.max(0, usageBytes - bytes('Inactive\\(file\\)')),
        shmemBytes: bytes('Shmem'),
        swapBytes: swapTotalBytes - swapFreeBytes,
        rssBytes,
      },
      ...{ totalBytes: bytes('MemTotal'), availableBytes: bytes('MemAvailable'), swapTotalBytes, swapFreeBytes },
      ...(cpuUsec !== undefined && { cpuUsec }),
      ...(tasks !== undefined && { pids: Number(tasks) }),
      ...(maxPids !== undefined && { maxPids }),
    };
  }

  /** Working set of all pods together, at once; undefined: they have no cgroup together, or its memory is not counted. */
  podsWorkingSet(): number | undefined {
    const { root, version, cgroupRoot } = this.deps;
    if (version() !== 'v2') return undefined;
    const known = this.deps.driver?.();
    for (const driver of known === undefined ? drivers : [known]) {
      const dir = join(root, cgroupPath(driver, nodeGroup(cgroupRoot)));
      try {
        const current = Number(readFileSync(join(dir, 'memory.current'), 'utf8'));
        return Math.max(0, current - (keyed(readFileSync(join(dir, 'memory.stat'), 'utf8'), 'inactive_file') ?? 0));
      } catch {} // the other driver's, or none
    }
    return undefined;
  }

  /** Other pods than these are gone. */
  retain(known: ReadonlySet<PodUid>): void {
    for (const uid of this.#found.keys()) if (!known.has(uid)) this.#found.delete(uid);
  }

  /** Below the cgroup file system or, on v1, below each hierarchy. */
  #pathOf(uid: PodUid): string | undefined {
    const known = this.#found.get(uid);
    if (known !== undefined && this.#isThere(known)) return known;
    const { cgroupRoot } = this.deps;
    const all = drivers.flatMap((driver) => qosClasses.map((qos) => cgroupPath(driver, podGroup(cgroupRoot, qos, uid))));
    const path = all.find((p) => this.#isThere(p));
    if (path === undefined) this.#found.delete(uid);
    else this.#found.set(uid, path);
    return path;
  }

  #isThere(path: string): boolean {
    const { root, version } = this.deps;
    const places = version() === 'v2' ? [root] : [join(root, 'memory'), join(root, 'pids'), join(root, 'cpuacct')];
    return places.some((place) => existsSync(join(place, path)));
  }

  async #legacyUse(path: string): Promise<GroupUse> {
    const { root } = this.deps;
    const [memory, cpu, joined, pids] = await Promise.all([
      legacyMemory(join(root, 'memory', path)),
      numberIn(join(root, 'cpuacct', path, 'cpuacct.usage')),
      numberIn(join(root, 'cpu,cpuacct', path, 'cpuacct.usage')),
      numberIn(join(root, 'pids', path, 'pids.current')),
    ]);
    const nanoseconds = cpu ?? joined;
    return {
      ...(memory && { memory }),
      ...(nanoseconds !== undefined && { cpuUsec: Math.round(nanoseconds / 1000) }),
      ...(pids !== undefined && { pids }),
    };
  }
}

/** A group of cgroup v2. Never rejects. */
async function unifiedUse(dir: string): Promise<GroupUse> {
  const [current, stat, swap, cpu, pids] = await Promise.all([
    numberIn(join(dir, 'memory.current')),
    textOf(join(dir, 'memory.stat')),
    numberIn(join(dir, 'memory.swap.current')),
    textOf(join(dir, 'cpu.stat')),
    numberIn(join(dir, 'pids.current')),
  ]);
  const cpuUsec = keyed(cpu ?? '', 'usage_usec');
  const memory = current !== undefined && {
    usageBytes: current,
    workingSetBytes: Math.max(0, current - (keyed(stat ?? '', 'inactive_file') ?? 0)),
    shmemBytes: keyed(stat ?? '', 'shmem') ?? 0,
    swapBytes: swap ?? 0,
    rssBytes: keyed(stat ?? '', 'anon') ?? 0,
  };
  return { ...(memory && { memory }), ...(cpuUsec !== undefined && { cpuUsec }), ...(pids !== undefined && { pids }) };
}

/** A group of the v1 memory hierarchy with all below it. Never rejects. */
async function legacyMemory(dir: string): Promise<MemoryUse | undefined> {
  const [usage, stat, hierarchical] = await Promise.all([
    numberIn(join(dir, 'memory.usage_in_bytes')),
    textOf(join(dir, 'memory.stat')),
    numberIn(join(dir, 'memory.use_hierarchy')),
  ]);
  if (usage === undefined) return undefined;
  // a kernel that counts each group alone: its children are asked too
  const below = hierarchical === 0 ? await foldersIn(dir) : [];
  const parts = await Promise.all(below.map((name) => legacyMemory(join(dir, name))));
  const of = (name: string): number => keyed(stat ?? '', `total_${name}`) ?? keyed(stat ?? '', name) ?? 0;
  const own: MemoryUse = {
    usageBytes: usage,
    workingSetBytes: Math.max(0, usage - of('inactive_file')),
    shmemBytes: of('shmem'),
    swapBytes: of('swap'),
    rssBytes: of('rss'),
  };
  return parts.reduce<MemoryUse>((sum, part) => (part === undefined ? sum : added(sum, part)), own);
}

const added = (a: MemoryUse, b: MemoryUse): MemoryUse => ({
  usageBytes: a.usageBytes + b.usageBytes,
  workingSetBytes: a.workingSetBytes + b.workingSetBytes,
  shmemBytes: a.shmemBytes + b.shmemBytes,
  swapBytes: a.swapBytes + b.swapBytes,
  rssBytes: a.rssBytes + b.rssBytes,
});

/** As many processes as the kernel allows at once; undefined: it does not say. `proc`: `/proc`. Mirrors kubelet pidlimit. */
export async function readMaxPids(proc: string): Promise<number | undefined> {
  const limits = await Promise.all(['threads-max', 'pid_max'].map((name) => numberIn(join(proc, 'sys/kernel', name))));
  const known = limits.filter((n) => n !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Time that all processors together were not idle, from /proc/stat, in microseconds. */
function busyUsec(stat: string): number | undefined {
  const ticks = /^cpu +(.*)$/m.exec(stat)?.[1]?.split(' ').map(Number);
  if (ticks === undefined) return undefined;
  // user nice system idle iowait irq softirq; what follows was taken by others, or is counted in user already
  const busy = ticks.slice(0, 7).reduce((sum, n, i) => (i === 3 || i === 4 ? sum : sum + n), 0);
  return busy * 10_000; // USER_HZ is 100 everywhere
}

const keyed = (text: string, key: string): number | undefined => {
  const value = new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
};

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return undefined; // the group is gone, or this kernel does not count it
  }
}

async function numberIn(path: string): Promise<number | undefined> {
  const text = (await textOf(path))?.trim();
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

async function foldersIn(path: string): Promise<string[]> {
  try {
    return (await readdir(path, { withFileTypes: true })).filter((e) => e.isDirectory()).map((e) => e.name);
  } catch {
    return []; // gone meanwhile
  }
}
