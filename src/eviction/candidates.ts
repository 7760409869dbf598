// pure
/** Pods as the ranking sees them, and their containers as the message names them, for one resource that is short. */
import type { DesiredPod } from '../api/desired.ts';
import type { EvictionSignal } from '../api/evictionThresholds.ts';
import type { PodUid } from '../api/objects.ts';
import { isCriticalPod, podPriority } from '../api/priority.ts';
import { quantityValue } from '../api/quantity.ts';
import { effectiveRequests, podRequest, qosClass } from '../api/resources.ts';
import { binaryText, type Offender } from './messages.ts';
import type { Candidate } from './ranking.ts';
import { type DiskAmount, type PodDiskUsage, type PodUsage, resourceOf } from './words.ts';

export interface UsageNow {
  /** Memory and processes. */
  readonly usage: ReadonlyMap<PodUid, PodUsage>;
  /** Absent where the disk is not what is short. */
  readonly disk?: ReadonlyMap<PodUid, PodDiskUsage>;
  /** The first measurement of this pressure; absent: there is none. */
  readonly firstDisk?: ReadonlyMap<PodUid, PodDiskUsage>;
  /** Images and what containers write lie on a file system of their own. */
  readonly separateImageDisk: boolean;
}

type Part = keyof PodDiskUsage;

/** Which of what a pod writes lies on the file system that is short (facts 14.4). */
function partsOf(signal: EvictionSignal, separate: boolean): readonly Part[] {
  if (!separate) return ['volumes', 'logs', 'layers'];
  return signal === 'imagefs.available' || signal === 'imagefs.inodesFree' ? ['layers'] : ['volumes', 'logs'];
}

const amountIn = (disk: PodDiskUsage, parts: readonly Part[], unit: keyof DiskAmount): number => {
  let total = 0;
  for (const part of parts) for (const amount of disk[part].values()) total += amount[unit];
  return total;
};

/** What one pod uses of what is short; undefined: not known. */
function usageOf(uid: PodUid, signal: EvictionSignal, now: UsageNow, disks: UsageNow['disk']): number | undefined {
  const resource = resourceOf(signal);
  switch (resource) {
    case 'memory':
      return now.usage.get(uid)?.memoryBytes;
    case 'pids':
      return now.usage.get(uid)?.processes;
    case 'ephemeral-storage':
    case 'inodes': {
      const disk = disks?.get(uid);
      const unit = resource === 'inodes' ? 'inodes' : 'bytes';
      return disk === undefined ? undefined : amountIn(disk, partsOf(signal, now.separateImageDisk), unit);
    }
  }
}

const requested = (pod: DesiredPod, signal: EvictionSignal): number => {
  const resource = resourceOf(signal);
  return resource === 'memory' || resource === 'ephemeral-storage' ? podRequest(pod.pod, resource) : 0;
};

/** Every pod with what it uses and asked for of what `signal` is short of; in no order. */
export function candidatesFor(signal: EvictionSignal, pods: readonly DesiredPod[], now: UsageNow): readonly Candidate[] {
  return pods.map((pod) => {
    const usage = usageOf(pod.uid, signal, now, now.disk);
    const first = usageOf(pod.uid, signal, now, now.firstDisk);
    return {
      uid: pod.uid,
      critical: isCriticalPod(pod.pod),
      priority: podPriority(pod.pod),
      qos: qosClass(pod.pod),
      usage,
      request: requested(pod, signal),
      // of one that came since, all is new
      growth: usage === undefined || now.firstDisk === undefined ? 0 : Math.max(0, usage - (first ?? 0)),
    };
  });
}

/** Containers that use more than they asked for. */
export function offendersOf(signal: EvictionSignal, { uid, pod }: DesiredPod, now: UsageNow): readonly Offender[] {
  const resource = resourceOf(signal);
  if (resource !== 'memory' && resource !== 'ephemeral-storage') return [];
  const parts = partsOf(signal, now.separateImageDisk);
  const disk = now.disk?.get(uid);
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].flatMap((c) => {
    const used =
      resource === 'memory'
        ? now.usage.get(uid)?.containerMemoryBytes?.get(c.name)
        : disk && parts.reduce((bytes, part) => bytes + (part === 'volumes' ? 0 : (disk[part].get(c.name)?.bytes ?? 0)), 0);
    const request = quantityValue(effectiveRequests(c)[resource]);
    return used === undefined || used <= request ? [] : [{ container: c.name, usage: binaryText(used), request: binaryText(request) }];
  });
}
