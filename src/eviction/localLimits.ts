// pure
/**
 * Which limit on local storage a pod broke: the size of an emptyDir on disk, what its containers may write together, what one of them may write.
 * Mirrors kubelet v1.32 eviction_manager.go localStorageEviction (facts 14.5), in its order. An emptyDir in memory has its own limit in the
 * kernel.
 */
import { quantityValue } from '../api/quantity.ts';
import { isSidecar } from '../api/resources.ts';
import type { Container, EmptyDirVolumeSource, Pod } from '../api/v1.ts';
import { binaryText, containerLimitMessage, podLimitMessage, volumeLimitMessage } from './messages.ts';
import type { DiskAmount, PodDiskUsage } from './words.ts';

const storage = 'ephemeral-storage';

const sizeLimit = ({ emptyDir }: { readonly emptyDir?: EmptyDirVolumeSource }): number | undefined =>
  emptyDir === undefined || (emptyDir.medium ?? '') !== '' || emptyDir.sizeLimit === undefined
    ? undefined
    : quantityValue(emptyDir.sizeLimit);

const limitOf = (c: Container): number => quantityValue(c.resources?.limits?.[storage]);

/** Something of it is limited, so it is worth a walk through its files. */
export const hasLocalLimit = ({ spec }: Pick<Pod, 'spec'>): boolean =>
  (spec.volumes ?? []).some((v) => (sizeLimit(v) ?? 0) > 0) ||
  [...spec.containers, ...(spec.initContainers ?? [])].some((c) => limitOf(c) > 0);

const sum = (amounts: Iterable<DiskAmount>): number => {
  let bytes = 0;
  for (const amount of amounts) bytes += amount.bytes;
  return bytes;
};

/** The message of the first limit that is broken; undefined: it keeps to all. */
export function brokenLimit({ spec }: Pick<Pod, 'spec'>, usage: PodDiskUsage): string | undefined {
  for (const volume of spec.volumes ?? []) {
    const limit = sizeLimit(volume) ?? 0;
    const used = usage.volumes.get(volume.name)?.bytes ?? 0;
    if (limit > 0 && used > limit) return volumeLimitMessage(volume.name, binaryText(limit));
  }
  const total = podLimit({ spec });
  const all = sum(usage.volumes.values()) + sum(usage.logs.values()) + sum(usage.layers.values());
  if (total !== undefined && all > total) return podLimitMessage(binaryText(total));
  for (const container of spec.containers) {
    const limit = limitOf(container);
    const used = (usage.logs.get(container.name)?.bytes ?? 0) + (usage.layers.get(container.name)?.bytes ?? 0);
    if (limit > 0 && used > limit) return containerLimitMessage(container.name, binaryText(limit));
  }
  return undefined;
}

/** Of the pod as a whole: only where each container that runs beside the others has one. */
function podLimit({ spec }: Pick<Pod, 'spec'>): number | undefined {
  const together = [...spec.containers, ...(spec.initContainers ?? []).filter(isSidecar)];
  if (together.length === 0 || together.some((c) => limitOf(c) === 0)) return undefined;
  const inits = (spec.initContainers ?? []).filter((c) => !isSidecar(c)).map(limitOf);
  return Math.max(
    together.reduce((bytes, c) => bytes + limitOf(c), 0),
    ...inits,
  );
}
