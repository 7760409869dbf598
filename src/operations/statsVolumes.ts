/**
 * How much lies in the emptyDirs of pods, for `/stats/summary`. One in memory is a file system of its own, which the kernel is asked about;
 * one on disk has to be walked through, so what was found is told again for a minute, as the kubelet does. Owns those findings. Other volumes
 * are not looked at: files of ConfigMaps and Secrets are small, and what a hostPath has is not the pod's.
 */
import type { PodUid } from '../api/objects.ts';
import type { ToldPod } from '../api/status.ts';
import type { Volume } from '../api/v1.ts';
import { emptyDirKind, podFolder, volumeFolder } from '../volumes/layout.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import type { FsSpace, VolumeUsage } from './statsSummary.ts';

export interface VolumeStatsDeps {
  readonly clock: Clock;
  readonly pods: () => readonly ToldPod[];
  /** `<stateDir>/pods` */
  readonly podsDir: string;
  readonly fsSpace: (path: string) => Promise<FsSpace | undefined>;
  /** What lies in a folder; nothing where it is not there. May reject. */
  readonly folderUsage: (folder: string) => Promise<{ readonly bytes: number; readonly inodes: number }>;
}

/** The kubelet's volumeStatsAggPeriod. */
const validMs = 60_000;

/** A volume that names no source is an emptyDir. */
const isEmptyDir = (v: Volume): boolean => v.emptyDir !== undefined || Object.keys(v).every((key) => key === 'name');

/** The emptyDirs of one pod by name; one that cannot be measured is left out. Never rejects. */
export function volumeStats(deps: VolumeStatsDeps): (uid: PodUid) => Promise<readonly VolumeUsage[]> {
  const { clock, podsDir, fsSpace, folderUsage } = deps;
  const found = new Map<string, { readonly until: Monotonic; readonly usage: Promise<VolumeUsage | undefined> }>();

  const walk = (name: string, folder: string): Promise<VolumeUsage | undefined> => {
    const now = clock.monotonic();
    const known = found.get(folder);
    if (known !== undefined && now < known.until) return known.usage;
    const usage = folderUsage(folder).then(
      ({ bytes, inodes }) => ({ name, usedBytes: bytes, inodesUsed: inodes, ephemeral: true }),
      () => undefined, // its disk is away, or another one owns it
    );
    for (const [key, { until }] of found) if (until <= now) found.delete(key);
    found.set(folder, { until: after(now, validMs), usage });
    return usage;
  };

  const inMemory = async (name: string, folder: string): Promise<VolumeUsage | undefined> => {
    const space = await fsSpace(folder);
    if (space === undefined) return undefined;
    const { capacityBytes, availableBytes, inodes, inodesFree } = space;
    return { name, usedBytes: capacityBytes - availableBytes, inodesUsed: inodes - inodesFree, ephemeral: false, space };
  };

  return async (uid) => {
    const pod = deps.pods().find((p) => p.metadata.uid === uid);
    const usages: VolumeUsage[] = [];
    // one after the other: a slow card is busy enough
    for (const volume of (pod?.spec.volumes ?? []).filter(isEmptyDir)) {
      const folder = volumeFolder(podFolder(podsDir, uid), emptyDirKind, volume.name);
      const medium = volume.emptyDir?.medium ?? '';
      const usage = medium === '' ? await walk(volume.name, folder) : await inMemory(volume.name, folder).catch(() => undefined);
      if (usage !== undefined) usages.push(usage);
    }
    return usages;
  };
}
