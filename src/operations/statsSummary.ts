// pure
/**
 * `/stats/summary` in the kubelet's shape (stats/v1alpha1), from readings. A part without a reading is left out, never 0. Of a pod whose
 * cgroup cannot be read, its containers together are told. `ephemeral-storage` is what the pod has written: layers, logs, volumes on disk.
 * `probes` is ours.
 */
import type { GroupUse, NodeUse } from '../cm/usage.ts';
import type { ContainerStats } from '../container/stats.ts';
import type { ProbeCost } from '../prober/cost.ts';
import type { WallTime } from '../world/clock.ts';
import { toRfc3339 } from '../world/rfc3339.ts';

export interface CpuStats {
  readonly time: string;
  readonly usageNanoCores?: number;
  readonly usageCoreNanoSeconds?: number;
}

export interface MemoryStats {
  readonly time: string;
  readonly availableBytes?: number;
  readonly usageBytes?: number;
  readonly workingSetBytes?: number;
  readonly rssBytes?: number;
  readonly pageFaults?: number;
  readonly majorPageFaults?: number;
}

export interface SwapStats {
  readonly time: string;
  readonly swapAvailableBytes?: number;
  readonly swapUsageBytes?: number;
}

export interface FsStats {
  readonly time: string;
  readonly availableBytes?: number;
  readonly capacityBytes?: number;
  readonly usedBytes?: number;
  readonly inodesFree?: number;
  readonly inodes?: number;
  readonly inodesUsed?: number;
}

export interface SummaryContainer {
  readonly name: string;
  readonly startTime?: string;
  readonly cpu?: CpuStats;
  readonly memory?: MemoryStats;
  readonly swap?: SwapStats;
  readonly rootfs?: FsStats;
  readonly logs?: FsStats;
  /** What asking them takes; absent: none has been asked. */
  readonly probes?: readonly ProbeCost[];
}

export interface SummaryPod {
  readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly startTime?: string;
  readonly containers: readonly SummaryContainer[];
  readonly cpu?: CpuStats;
  readonly memory?: MemoryStats;
  readonly swap?: SwapStats;
  readonly volume?: readonly (FsStats & { readonly name: string })[];
  readonly 'ephemeral-storage'?: FsStats;
  readonly process_stats?: { readonly process_count: number };
}

export interface SummaryNode {
  readonly nodeName: string;
  readonly startTime?: string;
  readonly cpu?: CpuStats;
  readonly memory?: MemoryStats;
  readonly swap?: SwapStats;
  readonly fs?: FsStats;
  readonly runtime?: { readonly imageFs: FsStats };
  readonly rlimit?: { readonly time: string; readonly maxpid: number; readonly curproc: number };
}

export interface Summary {
  readonly node: SummaryNode;
  readonly pods: readonly SummaryPod[];
}

/** Of a whole file system. A kind that does not count its inodes says 0. */
export interface FsSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** Of files together. */
export interface FilesUsage {
  readonly usedBytes: number;
  readonly inodesUsed?: number;
}

export interface VolumeUsage extends FilesUsage {
  readonly name: string;
  /** On the node's own disk: part of what the pod has written. */
  readonly ephemeral: boolean;
  readonly space?: FsSpace;
}

export interface ContainerUse {
  readonly stats: ContainerStats;
  readonly nanoCores?: number;
  readonly startTime?: string;
  readonly logs?: FilesUsage;
  readonly probes?: readonly ProbeCost[];
}

export interface PodUse {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly startTime?: string;
  readonly containers: readonly ContainerUse[];
  readonly cgroup?: { readonly use: GroupUse; readonly nanoCores?: number };
  readonly volumes: readonly VolumeUsage[];
}

export interface SummaryFacts {
  readonly nodeName: string;
  /** Of the last look. */
  readonly at: WallTime;
  readonly node: { readonly use: NodeUse; readonly nanoCores?: number; readonly bootedAt?: WallTime };
  /** What pods write to. */
  readonly nodeFs?: FsSpace;
  readonly imageFs?: FilesUsage & { readonly space?: FsSpace };
  readonly pods: readonly PodUse[];
}

/** `only`: what the kubelet leaves when it is asked for CPU and memory alone. */
export function summary(facts: SummaryFacts, only: 'all' | 'cpuAndMemory'): Summary {
  const whole = only === 'all';
  return { node: nodeStats(facts, whole), pods: facts.pods.map((pod) => podStats(pod, facts, whole)) };
}

function nodeStats({ nodeName, at, node: { use, nanoCores, bootedAt }, nodeFs, imageFs }: SummaryFacts, whole: boolean): SummaryNode {
  const time = toRfc3339(at);
  const { cpuUsec, memory, totalBytes, swapTotalBytes, swapFreeBytes, pids, maxPids } = use;
  return {
    nodeName,
    ...(bootedAt !== undefined && { startTime: toRfc3339(bootedAt) }),
    ...(cpuUsec !== undefined && { cpu: cpuStats(time, cpuUsec * 1000, nanoCores) }),
    memory: {
      time,
      availableBytes: Math.max(0, totalBytes - memory.workingSetBytes),
      usageBytes: memory.usageBytes,
      workingSetBytes: memory.workingSetBytes,
      rssBytes: memory.rssBytes,
    },
    ...(swapTotalBytes > 0 && { swap: { time, swapAvailableBytes: swapFreeBytes, swapUsageBytes: swapTotalBytes - swapFreeBytes } }),
    ...(whole && nodeFs && { fs: fsStats(time, nodeFs, usedOf(nodeFs)) }),
    ...(whole && imageFs && { runtime: { imageFs: fsStats(time, imageFs.space, imageFs) } }),
    ...(whole && pids !== undefined && maxPids !== undefined && { rlimit: { time, maxpid: maxPids, curproc: pids } }),
  };
}

function podStats(
  { name, namespace, uid, startTime, containers, cgroup, volumes }: PodUse,
  facts: SummaryFacts,
  whole: boolean,
): SummaryPod {
  const time = toRfc3339(facts.at);
  const all = containers.map((c) => containerStats(c, facts, whole));
  const cpu =
    cgroup?.use.cpuUsec === undefined
      ? together(
          time,
          all.map((c) => c.cpu),
          ['usageNanoCores', 'usageCoreNanoSeconds'],
        )
      : cpuStats(time, cgroup.use.cpuUsec * 1000, cgroup.nanoCores);
  const counted = cgroup?.use.memory;
  const memory =
    counted === undefined
      ? together(
          time,
          all.map((c) => c.memory),
          ['usageBytes', 'workingSetBytes', 'rssBytes'],
        )
      : { time, usageBytes: counted.usageBytes, workingSetBytes: counted.workingSetBytes, rssBytes: counted.rssBytes };
  const swap =
    counted === undefined
      ? together(
          time,
          all.map((c) => c.swap),
          ['swapUsageBytes'],
        )
      : { time, swapUsageBytes: counted.swapBytes };
  const written = [...containers.flatMap(({ stats, logs }) => [stats.writableLayer, logs]), ...volumes.filter((v) => v.ephemeral)].filter(
    (use) => use !== undefined,
  );
  return {
    podRef: { name, namespace, uid },
    ...(startTime !== undefined && { startTime }),
    containers: all,
    ...(cpu && { cpu }),
    ...(memory && { memory }),
    ...(swap && { swap }),
    ...(whole && volumes.length > 0 && { volume: volumes.map((v) => ({ ...fsStats(time, v.space ?? facts.nodeFs, v), name: v.name })) }),
    ...(whole && { 'ephemeral-storage': fsStats(time, facts.nodeFs, sum(written)) }),
    ...(cgroup?.use.pids !== undefined && { process_stats: { process_count: cgroup.use.pids } }),
  };
}

function containerStats(
  { stats, nanoCores, startTime, logs, probes = [] }: ContainerUse,
  facts: SummaryFacts,
  whole: boolean,
): SummaryContainer {
  const { name, cpu, memory, swap, writableLayer } = stats;
  const time = (atMs: number): string => toRfc3339(atMs as WallTime);
  return {
    name,
    ...(startTime !== undefined && { startTime }),
    ...(cpu && { cpu: cpuStats(time(cpu.atMs), cpu.usageNs, nanoCores) }),
    ...(memory && { memory: withTime(memory, time) }),
    ...(swap && {
      swap: { time: time(swap.atMs), swapUsageBytes: swap.usageBytes, ...given({ swapAvailableBytes: swap.availableBytes }) },
    }),
    ...(whole && writableLayer && { rootfs: fsStats(time(writableLayer.atMs), facts.imageFs?.space, writableLayer) }),
    ...(whole && logs && { logs: fsStats(toRfc3339(facts.at), facts.nodeFs, logs) }),
    ...(probes.length > 0 && { probes }),
  };
}

const withTime = ({ atMs, ...figures }: NonNullable<ContainerStats['memory']>, time: (atMs: number) => string): MemoryStats => ({
  time: time(atMs),
  ...figures,
});

const cpuStats = (time: string, usageNs: number, nanoCores: number | undefined): CpuStats => ({
  time,
  ...given({ usageNanoCores: nanoCores }),
  usageCoreNanoSeconds: usageNs,
});

/** What is used of a file system is what is not free, as df has it. */
const usedOf = ({ capacityBytes, availableBytes, inodes, inodesFree }: FsSpace): FilesUsage => ({
  usedBytes: Math.max(0, capacityBytes - availableBytes),
  ...(inodes > 0 && { inodesUsed: Math.max(0, inodes - inodesFree) }),
});

const fsStats = (time: string, space: FsSpace | undefined, { usedBytes, inodesUsed }: FilesUsage): FsStats => ({
  time,
  ...(space && { availableBytes: space.availableBytes, capacityBytes: space.capacityBytes }),
  usedBytes,
  ...(space && space.inodes > 0 && { inodesFree: space.inodesFree, inodes: space.inodes }),
  ...given({ inodesUsed }),
});

const sum = (uses: readonly FilesUsage[]): FilesUsage => ({
  usedBytes: uses.reduce((all, u) => all + u.usedBytes, 0),
  inodesUsed: uses.reduce((all, u) => all + (u.inodesUsed ?? 0), 0),
});

/** The sums of figures that at least one part has; undefined: no part has any. */
function together<K extends string>(
  time: string,
  parts: readonly (Partial<Readonly<Record<K, number>>> | undefined)[],
  names: readonly K[],
): ({ readonly time: string } & Partial<Readonly<Record<K, number>>>) | undefined {
  const sums = names.flatMap((name) => {
    const values = parts.map((p) => p?.[name]).filter((v): v is NonNullable<typeof v> => v !== undefined);
    return values.length === 0 ? [] : [[name, values.reduce((a: number, b) => a + b, 0)] as const];
  });
  return sums.length === 0 ? undefined : { time, ...(Object.fromEntries(sums) as Partial<Record<K, number>>) };
}

/** Without what is not known. */
const given = <K extends string>(figures: Readonly<Record<K, number | undefined>>): Partial<Readonly<Record<K, number>>> =>
  Object.fromEntries(Object.entries(figures).filter(([, v]) => v !== undefined)) as Partial<Record<K, number>>;
