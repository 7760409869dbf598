/** What `top` and `/stats/summary` read on a real machine, and of whom: cgroups, runtime, disks. Owns nothing. */
import { join } from 'node:path';
import type { NodeCapacity } from './api/nodeResources.ts';
import type { ToldPod } from './api/status.ts';
import type { Usage } from './cm/usage.ts';
import type { ImageService, Runtime } from './container/runtime.ts';
import { folderUsage } from './eviction/diskUsage.ts';
import type { BoardRoots } from './node/board.ts';
import { type StatsDeps, type StatsView, statsView } from './operations/stats.ts';
import { fsSpace, systemStats } from './operations/statsFiles.ts';
import { volumeStats } from './operations/statsVolumes.ts';
import type { Clock } from './world/clock.ts';

export interface StatsParts {
  readonly clock: Clock;
  readonly nodeName: string;
  readonly pods: () => readonly ToldPod[];
  readonly runtime: Pick<Runtime, 'listContainerStats'> & { readonly images: Pick<ImageService, 'imageFilesystems'> };
  readonly usage: Pick<Usage, 'pod' | 'node'>;
  readonly allocatable: () => Pick<NodeCapacity, 'cpuMilli' | 'memoryBytes'>;
  readonly probeCosts: NonNullable<StatsDeps['probeCosts']>;
  readonly stateDir: string;
  readonly podLogsDir: string;
  readonly roots: BoardRoots;
}

export function buildStats({
  clock,
  nodeName,
  pods,
  runtime,
  usage,
  allocatable,
  probeCosts,
  stateDir,
  podLogsDir,
  roots,
}: StatsParts): StatsView {
  return statsView({
    ...{ clock, nodeName, pods, allocatable, probeCosts },
    ...systemStats({ roots, podLogsDir }),
    containerStats: () => runtime.listContainerStats(),
    podUsage: (uid) => usage.pod(uid),
    nodeUsage: () => usage.node(),
    nodeFolder: stateDir,
    imageFilesystems: () => runtime.images.imageFilesystems(),
    volumes: volumeStats({ clock, pods, podsDir: join(stateDir, 'pods'), fsSpace, folderUsage: (folder) => folderUsage(folder) }),
  });
}
