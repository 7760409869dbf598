/**
 * What pods use of memory and processes: by their cgroups, and by what the runtime counts of their containers, which the message of an eviction
 * names, and which is all there is where a pod's cgroup is not to be found. Owns nothing.
 */
import type { PodUid } from '../api/objects.ts';
import type { ContainerStats } from '../container/stats.ts';
import { labels } from '../container/words.ts';
import type { Clock } from '../world/clock.ts';
import type { PodUsage } from './words.ts';

/** Of a pod's cgroup; what the kernel does not count is absent. */
export interface GroupUse {
  readonly memory?: { readonly workingSetBytes: number; readonly swapBytes: number };
  readonly pids?: number;
}

export interface PodUsageDeps {
  readonly clock: Clock;
  readonly containerStats: () => Promise<readonly ContainerStats[]>;
  /** Left out where nobody reads cgroups. Never rejects. */
  readonly groupUse?: ((uid: PodUid) => Promise<GroupUse | undefined>) | undefined;
}

/** A runtime that is short of memory itself is not waited for. */
const patienceMs = 2_000;

/** Of each pod asked for. Never rejects. */
export async function podUsage(deps: PodUsageDeps, uids: readonly PodUid[]): Promise<ReadonlyMap<PodUid, PodUsage>> {
  const stats = await statsInTime(deps);
  const all = new Map<PodUid, PodUsage>();
  for (const uid of uids) {
    const group = await deps.groupUse?.(uid);
    const containers = new Map<string, number>();
    for (const { name, labels: its, memory, swap } of stats) {
      if (its[labels.podUid] !== uid || memory === undefined) continue;
      containers.set(name, memory.workingSetBytes + (swap?.usageBytes ?? 0));
    }
    // what was swapped out comes back with its pod as well
    const grouped = group?.memory && group.memory.workingSetBytes + group.memory.swapBytes;
    const memoryBytes = grouped ?? (containers.size > 0 ? [...containers.values()].reduce((a, b) => a + b, 0) : undefined);
    all.set(uid, {
      ...(memoryBytes !== undefined && { memoryBytes }),
      ...(group?.pids !== undefined && { processes: group.pids }),
      containerMemoryBytes: containers,
    });
  }
  return all;
}

async function statsInTime({ clock, containerStats }: PodUsageDeps): Promise<readonly ContainerStats[]> {
  const over = new AbortController();
  const nothing = (): readonly ContainerStats[] => [];
  const patience = clock.sleep(patienceMs, over.signal).then(nothing, nothing);
  const stats = await Promise.race([containerStats().catch(nothing), patience]);
  over.abort();
  return stats;
}
