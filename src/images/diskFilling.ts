// pure
/** `ImageDiskFilling`: said ten points before images go, with what would go, while there is time to do something about it. */
import { bytesOverLow, type DiskUse, type GcRun, imagesToRemove, type KnownImage, type Thresholds, usedPercent } from './gcPlan.ts';
import { sizeText } from './sizeText.ts';

export interface DiskCondition {
  readonly type: 'ImageDiskFilling';
  readonly status: 'True';
  readonly reason: 'ImageDiskFilling';
  readonly message: string;
}

const aheadPercent = 10;
/** It ends so far below where it began, so that a disk that hovers there does not say it again and again. */
const quietPercent = 3;
const maxNames = 5;

/** `isFilling`: it was said last time. */
export function isFilling(disk: DiskUse, { highPercent }: Thresholds, wasFilling: boolean): boolean {
  const from = Math.max(0, highPercent - aheadPercent);
  return disk.capacityBytes > 0 && usedPercent(disk) >= (wasFilling ? Math.max(0, from - quietPercent) : from);
}

/** What is to be said of a disk that is filling. `path`: where the images lie. */
export function fillingCondition(
  path: string,
  disk: DiskUse,
  thresholds: Thresholds,
  images: readonly KnownImage[],
  run: GcRun,
): DiskCondition {
  const { highPercent, lowPercent } = thresholds;
  const percent = usedPercent(disk);
  const now = `the file system of ${path} is ${percent} % full`;
  return { type: 'ImageDiskFilling', status: 'True', reason: 'ImageDiskFilling', message: `${now}; ${what()}` };

  function what(): string {
    // images that are young now will not be then
    const then = { ...run, minimumAgeMs: 0 };
    if (highPercent >= 100) {
      const all = imagesToRemove(images, Number.POSITIVE_INFINITY, then);
      if (all.images.length === 0) return 'no image can go: each is used or pinned';
      return `no image goes by itself (imageGCHighThresholdPercent is 100); podsched images prune would remove ${listed(all)}`;
    }
    const needed = Math.max(bytesOverLow(disk, thresholds), Math.ceil((disk.capacityBytes * (highPercent - lowPercent)) / 100));
    const plan = imagesToRemove(images, needed, then);
    const offline = run.offline ? '; what was used within 7 days stays while nothing can be pulled' : '';
    if (plan.images.length === 0) return `no image can go: each is used or pinned${offline}`;
    const short = plan.enough ? '' : `; that is not enough, ${sizeText(needed)} are needed`;
    return `${percent >= highPercent ? 'images go now' : `at ${highPercent} % images go`}, in this order: ${listed(plan)}${short}${offline}`;
  }
}

const listed = ({ images, bytes }: { readonly images: readonly KnownImage[]; readonly bytes: number }): string => {
  const names = images.slice(0, maxNames).map((i) => i.names[0] ?? i.id);
  const more = images.length > names.length ? ` and ${images.length - names.length} more` : '';
  return `${names.join(', ')}${more} (${sizeText(bytes)})`;
};
