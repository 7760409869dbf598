/**
 * What pods and the node use, for `top` and `/stats/summary`. Owns two pairs of looks (statsWindow.ts) and nothing else. Everything is read
 * when somebody asks and never by itself: an idle agent reads nothing. Containers come from the runtime, pods from their cgroups where those
 * can be read, the node from the kernel. Only the runtime's silence ends an answer; any other figure that cannot be had is left out.
 */
import type { PodUid } from '../api/objects.ts';
import type { ToldPod } from '../api/status.ts';
import type { GroupUse, NodeUse } from '../cm/usage.ts';
import type { ImageFilesystem } from '../container/runtime.ts';
import type { ContainerStats } from '../container/stats.ts';
import { type ContainerId, labels } from '../container/words.ts';
import type { ProbeCost } from '../prober/cost.ts';
import type { Clock, WallTime } from '../world/clock.ts';
import { type CpuCounter, nanoCores } from './statsRates.ts';
import {
  type ContainerUse,
  type FilesUsage,
  type FsSpace,
  type PodUse,
  type Summary,
  type SummaryFacts,
  summary,
  type VolumeUsage,
} from './statsSummary.ts';
import { StatsWindow, type TwoLooks } from './statsWindow.ts';
import { type NodeUsage, nodeUsage, type PodUsage, podUsage } from './top.ts';

export interface StatsView {
  /** Rejects when the runtime does not answer. */
  summary(only: 'all' | 'cpuAndMemory'): Promise<Summary>;
  /** Of each pod of which something runs, by namespace and name. Rejects when the runtime does not answer. */
  topPods(): Promise<readonly PodUsage[]>;
  /** Asks no runtime. */
  topNode(): Promise<NodeUsage>;
}

export interface StatsDeps {
  readonly clock: Clock;
  readonly nodeName: string;
  /** Whole, sorted. */
  readonly pods: () => readonly ToldPod[];
  readonly containerStats: () => Promise<readonly ContainerStats[]>;
  /** Of a pod's cgroup; undefined: there is none, or it cannot be read. */
  readonly podUsage: (uid: PodUid) => Promise<GroupUse | undefined>;
  readonly nodeUsage: () => Promise<NodeUse>;
  readonly uptimeSeconds: () => number;
  readonly allocatable: () => { readonly cpuMilli: number; readonly memoryBytes: number };
  /** A folder on the disk that pods write to. */
  readonly nodeFolder: string;
  /** undefined: it cannot be asked. */
  readonly fsSpace: (path: string) => Promise<FsSpace | undefined>;
  readonly imageFilesystems: () => Promise<readonly ImageFilesystem[]>;
  /** The logs of one container, all attempts and rotated ones. */
  readonly logUsage: (
    pod: { readonly namespace: string; readonly name: string; readonly uid: string },
    container: string,
  ) => Promise<FilesUsage | undefined>;
  /** What the probes of one container cost the node. Left out: they are not told. */
  readonly probeCosts?: (id: ContainerId) => readonly ProbeCost[];
  /** Left out: volumes are not told. */
  readonly volumes?: (uid: PodUid) => Promise<readonly VolumeUsage[]>;
  /** Of the processor, in degrees Celsius. */
  readonly temperature?: () => Promise<number | undefined>;
}

/** A group's figures, and its processor time with the moment at which it was read. */
interface GroupReading<U extends GroupUse> {
  readonly use: U;
  readonly cpu: CpuCounter | undefined;
}

/** What one look at the pods reads. */
interface PodsReading {
  readonly containers: readonly ContainerStats[];
  readonly cgroups: ReadonlyMap<string, GroupReading<GroupUse>>;
}

/** The three questions over shared pairs of looks: `top` and `/stats/summary` at the same time measure once. */
export function statsView(deps: StatsDeps): StatsView {
  const { clock } = deps;
  const nodes = new StatsWindow({ clock, read: async () => stamped(clock, await deps.nodeUsage()), covers: () => true });
  const pods = new StatsWindow<PodsReading>({ clock, read: () => readPods(deps), covers: coversPods });

  const node = async (): Promise<Pick<SummaryFacts, 'nodeName' | 'at' | 'node'> & { readonly windowMs: number }> => {
    const { before, now } = await nodes.look();
    const windowMs = now.at - before.at;
    const rate = nanoCores(before.value.cpu, now.value.cpu, windowMs);
    const at = clock.now();
    const bootedAt = (at - deps.uptimeSeconds() * 1000) as WallTime;
    return {
      nodeName: deps.nodeName,
      at,
      node: { use: now.value.use, bootedAt, ...(rate !== undefined && { nanoCores: rate }) },
      windowMs,
    };
  };

  return {
    summary: async (only) => {
      const files = only === 'all';
      const [ofNode, looks, nodeFs, imageFs] = await Promise.all([
        node(),
        pods.look(),
        files ? quietly(deps.fsSpace(deps.nodeFolder)) : undefined,
        files ? quietly(readImageFs(deps)) : undefined,
      ]);
      const used = podUses(deps.pods(), looks).map((use) => withProbes(deps, use));
      const all = files ? await Promise.all(used.map((use) => withFiles(deps, use))) : used;
      return summary({ ...ofNode, ...(nodeFs && { nodeFs }), ...(imageFs && { imageFs }), pods: all }, only);
    },
    topPods: async () => {
      const looks = await pods.look();
      const told = deps.pods();
      const at = clock.now();
      return podUses(told, looks).flatMap((use) => {
        const pod = told.find((p) => p.metadata.uid === use.uid);
        return pod === undefined ? [] : [podUsage(pod, use, at, looks.now.at - looks.before.at)];
      });
    },
    topNode: async () => {
      const [ofNode, nodeFs, temperature] = await Promise.all([
        node(),
        quietly(deps.fsSpace(deps.nodeFolder)),
        quietly(deps.temperature?.() ?? Promise.resolve(undefined)),
      ]);
      return nodeUsage({
        ...ofNode,
        allocatable: deps.allocatable(),
        ...(nodeFs && { nodeFs }),
        ...(temperature !== undefined && { temperatureCelsius: temperature }),
      });
    },
  };
}

/** A figure that cannot be had is left out. */
const quietly = <T>(asked: Promise<T>): Promise<T | undefined> => asked.catch(() => undefined);

function stamped<U extends GroupUse>(clock: Clock, use: U): GroupReading<U> {
  return { use, cpu: use.cpuUsec === undefined ? undefined : { atMs: clock.monotonic(), usageNs: use.cpuUsec * 1000 } };
}

async function readPods({ clock, containerStats, podUsage: ofPod }: StatsDeps): Promise<PodsReading> {
  const containers = (await containerStats()).filter((c) => c.cpu !== undefined || c.memory !== undefined);
  const uids = [...new Set(containers.map(uidOf))].filter((uid) => uid !== '');
  const cgroups = await Promise.all(
    uids.map(async (uid) => {
      const use = await quietly(ofPod(uid as PodUid));
      return use === undefined ? [] : [[uid, stamped(clock, use)] as const];
    }),
  );
  return { containers, cgroups: new Map(cgroups.flat()) };
}

const uidOf = (stats: ContainerStats): string => stats.labels[labels.podUid] ?? '';

function coversPods(before: PodsReading, now: PodsReading): boolean {
  const seen = new Set(before.containers.map((c) => c.id));
  return now.containers.every((c) => seen.has(c.id));
}

/** The used containers and cgroups of each told pod, by namespace and name; what is nobody's is left out. */
function podUses(told: readonly ToldPod[], { before, now }: TwoLooks<PodsReading>): PodUse[] {
  const elapsedMs = now.at - before.at;
  const earlier = new Map(before.value.containers.map((c) => [c.id, c]));
  return told.flatMap(({ metadata, status }): PodUse[] => {
    const { name, namespace = 'default', uid = '' } = metadata;
    const states = [
      ...(status.initContainerStatuses ?? []),
      ...(status.containerStatuses ?? []),
      ...(status.ephemeralContainerStatuses ?? []),
    ];
    const own = newest(now.value.containers.filter((c) => uidOf(c) === uid));
    if (uid === '' || own.length === 0) return [];
    const cgroup = now.value.cgroups.get(uid);
    const podRate = nanoCores(before.value.cgroups.get(uid)?.cpu, cgroup?.cpu, elapsedMs);
    return [
      {
        ...{ name, namespace, uid },
        ...(status.startTime !== undefined && { startTime: status.startTime }),
        containers: own.map((stats): ContainerUse => {
          const rate = nanoCores(earlier.get(stats.id)?.cpu, stats.cpu, elapsedMs);
          const startTime = states.find((s) => s.name === stats.name)?.state.running?.startedAt;
          return { stats, ...(rate !== undefined && { nanoCores: rate }), ...(startTime !== undefined && { startTime }) };
        }),
        ...(cgroup && { cgroup: { use: cgroup.use, ...(podRate !== undefined && { nanoCores: podRate }) } }),
        volumes: [],
      },
    ];
  });
}

/** One for each name, by name: while one container replaces another, the newer. */
function newest(stats: readonly ContainerStats[]): ContainerStats[] {
  const byName = new Map<string, ContainerStats>();
  for (const c of stats) if ((byName.get(c.name)?.attempt ?? -1) < c.attempt) byName.set(c.name, c);
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function readImageFs({ imageFilesystems, fsSpace }: StatsDeps): Promise<SummaryFacts['imageFs']> {
  const [first] = await imageFilesystems();
  if (first === undefined) return undefined;
  const space = await quietly(fsSpace(first.mountpoint));
  return {
    usedBytes: first.usedBytes,
    ...(first.inodesUsed !== undefined && { inodesUsed: first.inodesUsed }),
    ...(space && { space }),
  };
}

function withProbes({ probeCosts }: StatsDeps, use: PodUse): PodUse {
  return { ...use, containers: use.containers.map((c) => ({ ...c, probes: probeCosts?.(c.stats.id) ?? [] })) };
}

async function withFiles({ logUsage, volumes }: StatsDeps, use: PodUse): Promise<PodUse> {
  const [containers, ofVolumes] = await Promise.all([
    Promise.all(
      use.containers.map(async (c): Promise<ContainerUse> => {
        const logs = await quietly(logUsage(use, c.stats.name));
        return logs === undefined ? c : { ...c, logs };
      }),
    ),
    quietly(volumes?.(use.uid as PodUid) ?? Promise.resolve([])),
  ]);
  return { ...use, containers, volumes: ofVolumes ?? [] };
}
