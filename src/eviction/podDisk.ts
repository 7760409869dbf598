/**
 * What pods have written, by walking through their emptyDirs and logs and asking the runtime for their writable layers. Only what goes with the
 * pod counts: of a hostPath nothing comes back by ending it. Owns nothing.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { ContainerStats } from '../container/stats.ts';
import { labels } from '../container/words.ts';
import { describeError, type Log } from '../world/log.ts';
import type { DiskAmount, PodDiskUsage } from './words.ts';

export interface PodDiskDeps {
  readonly log: Log;
  /** Of all containers of ours; rejects while the runtime does not answer. */
  readonly containerStats: () => Promise<readonly ContainerStats[]>;
  /** What lies in a folder; nothing where it is not there. Rejects when it cannot be read, or aborted. */
  readonly folderUsage: (folder: string, signal: AbortSignal) => Promise<DiskAmount>;
  readonly emptyDirFolder: (uid: PodUid, volume: string) => string;
  readonly logFolder: (pod: DesiredPod, container: string) => string;
}

const nothing: DiskAmount = { bytes: 0, inodes: 0 };

const onDisk = ({ pod }: DesiredPod): readonly string[] =>
  (pod.spec.volumes ?? [])
    // a volume that names no source is an emptyDir
    .filter((v) => (v.emptyDir !== undefined ? (v.emptyDir.medium ?? '') === '' : Object.keys(v).every((key) => key === 'name')))
    .map((v) => v.name);

/** Of each pod. What cannot be measured is left out and named in the log. Rejects only when aborted. */
export async function podDiskUsage(
  deps: PodDiskDeps,
  pods: readonly DesiredPod[],
  signal: AbortSignal,
): Promise<ReadonlyMap<PodUid, PodDiskUsage>> {
  const stats = await deps.containerStats().catch((e) => {
    deps.log.debug({ error: describeError(e) }, 'what containers have written is not known');
    return [];
  });
  const measure = async (folder: string): Promise<DiskAmount> => {
    try {
      return await deps.folderUsage(folder, signal);
    } catch (e) {
      signal.throwIfAborted();
      deps.log.warn({ folder, error: describeError(e) }, 'a folder of a pod cannot be measured');
      return nothing;
    }
  };
  const all = new Map<PodUid, PodDiskUsage>();
  // one after the other: a slow card is busy enough
  for (const pod of pods) {
    const volumes = new Map<string, DiskAmount>();
    for (const name of onDisk(pod)) volumes.set(name, await measure(deps.emptyDirFolder(pod.uid, name)));
    const logs = new Map<string, DiskAmount>();
    const { containers, initContainers = [] } = pod.pod.spec;
    for (const { name } of [...containers, ...initContainers]) logs.set(name, await measure(deps.logFolder(pod, name)));
    const layers = new Map<string, DiskAmount>();
    for (const { name, labels: its, writableLayer } of stats) {
      if (its[labels.podUid] !== pod.uid || writableLayer === undefined) continue;
      const before = layers.get(name) ?? nothing;
      layers.set(name, { bytes: before.bytes + writableLayer.usedBytes, inodes: before.inodes + (writableLayer.inodesUsed ?? 0) });
    }
    all.set(pod.uid, { volumes, logs, layers });
  }
  return all;
}
