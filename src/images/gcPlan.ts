// pure
/**
 * Which images go when the disk fills, and in which order. Mirrors kubelet v1.32 images/image_gc_manager.go (facts 13.4), but: pins beside the
 * runtime's own, a high threshold of 100 removes nothing whatever happens, and a node that cannot pull keeps what it used lately.
 */
import type { Monotonic } from '../world/clock.ts';
import type { PinReason } from './pins.ts';

export interface DiskUse {
  readonly capacityBytes: number;
  /** For others than root. */
  readonly availableBytes: number;
}

export interface Thresholds {
  /** Removing begins at so much use; 100: never. */
  readonly highPercent: number;
  /** Removing ends at so much. */
  readonly lowPercent: number;
}

export interface KnownImage {
  readonly id: string;
  /** Tags, else digests; empty: it has only its id. */
  readonly names: readonly string[];
  readonly sizeBytes: number;
  /** A container is made of it, also one that has ended. */
  readonly used: boolean;
  readonly pins: readonly PinReason[];
  readonly firstDetected: Monotonic;
  /** undefined: never in this run of the agent. */
  readonly lastUsed: Monotonic | undefined;
}

export interface GcRun {
  readonly startedAt: Monotonic;
  readonly minimumAgeMs: number;
  /** Nothing can be pulled now: the registries do not answer, or the node has no network. */
  readonly offline: boolean;
}

/** Why an image stays in this run. */
export type Spared = 'used' | 'pinned' | 'young' | 'offline';

/**
 * What was used within a week stays while nothing can be pulled: a pod that was taken away for some days (a seasonal one, one that is mended)
 * finds its image when it comes back, and a week covers the usual outage of a line. What has lain unused for longer goes: a disk that runs full
 * ends more than one pod. The time is monotonic, so a boot begins it anew, and what the agent has not seen used counts from when it was first
 * seen: not to know is no ground to remove what cannot be had again.
 */
export const offlineKeepMs = 7 * 86_400_000;

/** How full the disk is, as the kubelet counts: what is reserved for root counts as used. Of no capacity: 0. */
export function usedPercent({ capacityBytes, availableBytes }: DiskUse): number {
  if (capacityBytes <= 0) return 0;
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);
}

/** Bytes to free now; 0: nothing is to be done. */
export function bytesToFree(disk: DiskUse, t: Thresholds): number {
  return t.highPercent < 100 && disk.capacityBytes > 0 && usedPercent(disk) >= t.highPercent ? bytesOverLow(disk, t) : 0;
}

/** Bytes that lie above the low threshold; 0: none. */
export function bytesOverLow({ capacityBytes, availableBytes }: DiskUse, { lowPercent }: Thresholds): number {
  return Math.max(0, Math.ceil((capacityBytes * (100 - lowPercent)) / 100 - availableBytes));
}

/** Why this image stays in this run; undefined: it may go. */
export function whySpared(image: KnownImage, run: GcRun): Spared | undefined {
  const { lastUsed, firstDetected } = image;
  if (image.used || (lastUsed !== undefined && lastUsed >= run.startedAt)) return 'used';
  if (image.pins.length > 0) return 'pinned';
  if (run.startedAt - firstDetected < run.minimumAgeMs) return 'young';
  if (run.offline && run.startedAt - (lastUsed ?? firstDetected) < offlineKeepMs) return 'offline';
  return undefined;
}

/** What may go, the one that is missed least first: used longest ago (never first of all), then seen first; equals by name. */
export function removalOrder<T extends KnownImage>(images: readonly T[], run: GcRun): T[] {
  return images.filter((image) => whySpared(image, run) === undefined).sort(compareUse);
}

const never = Number.NEGATIVE_INFINITY;
const nameOf = (image: KnownImage): string => image.names[0] ?? image.id;

function compareUse(a: KnownImage, b: KnownImage): number {
  const [usedA, usedB] = [a.lastUsed ?? never, b.lastUsed ?? never];
  if (usedA !== usedB) return usedA < usedB ? -1 : 1;
  if (a.firstDetected !== b.firstDetected) return a.firstDetected - b.firstDetected;
  return nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : 0;
}

export interface RemovalPlan<T> {
  /** In order. */
  readonly images: readonly T[];
  /** What they have by the runtime's figures, which count a layer that several share in each. */
  readonly bytes: number;
  /** That is as much as was asked for. */
  readonly enough: boolean;
}

/** The first of the order that together have `bytes`; all of it when that is not enough. */
export function imagesToRemove<T extends KnownImage>(images: readonly T[], bytes: number, run: GcRun): RemovalPlan<T> {
  const going: T[] = [];
  let sum = 0;
  for (const image of removalOrder(images, run)) {
    if (sum >= bytes) break;
    going.push(image);
    sum += image.sizeBytes;
  }
  return { images: going, bytes: sum, enough: sum >= bytes };
}
