/**
 * Removes images when their disk fills: from the high threshold on, until the low one. Owns when the next look is due, how often in a row it
 * failed, and the condition ImageDiskFilling. The order and what is spared are gcPlan's; who pins is pins'.
 *
 * It never removes what a container is made of, what is pinned, or anything while the wanted pods are not known or the runtime was not listed;
 * each is looked at again right before it goes, for a pod may have come. It has no timer: housekeeping comes by and asks whether it is due, so a
 * quiet node is not woken for it. A person's `prune` is another matter than the threshold: it removes what is not needed at any use of the disk,
 * also where the threshold is 100, and holds to the same pins.
 * Mirrors kubelet v1.32 images/image_gc_manager.go (facts 13.4), but: the disk is measured after each removal, so that no more goes than must.
 */
import { type ImageService, RuntimeError } from '../container/runtime.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { type DiskCondition, fillingCondition, isFilling } from './diskFilling.ts';
import { bytesOverLow, bytesToFree, type DiskUse, type GcRun, removalOrder, type Thresholds, usedPercent, whySpared } from './gcPlan.ts';
import { Inventory, type InventoryDeps, type InventoryImage } from './inventory.ts';
import { sizeText } from './sizeText.ts';

export interface ImageGcSettings extends Thresholds {
  readonly minimumAgeMs: number;
}

export interface ImageGcDeps extends InventoryDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: Pick<ImageService, 'listImages' | 'removeImage' | 'imageFilesystems'>;
  /** Of the file system that a path lies on. */
  readonly diskUse: (path: string) => Promise<DiskUse>;
  /** Sources were read and the runtime was listed: what is not known now is nobody's. */
  readonly settled: () => boolean;
  /** Nothing can be pulled now. */
  readonly offline: () => boolean | Promise<boolean>;
  /** They may change while running. */
  readonly settings: () => ImageGcSettings;
  /** About the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly conditionChanged: () => void;
}

export interface PrunedImage {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: number;
}

export interface PruneResult {
  /** In order. */
  readonly removed: readonly PrunedImage[];
  readonly failed: readonly (PrunedImage & { readonly message: string })[];
  /** As the disk says; where nothing was removed, or it does not say, the sum of the sizes. */
  readonly freedBytes: number;
  /** What goes cannot be pulled again now. */
  readonly offline: boolean;
}

interface Disk extends DiskUse {
  readonly path: string;
}

const periodMs = 5 * 60_000;

const isAway = (e: unknown): boolean => e instanceof RuntimeError && e.code === 'unavailable';

export class ImageGc {
  #inventory: Inventory;
  /** undefined: at once. */
  #dueAt: Monotonic | undefined;
  #failures = 0;
  #condition: DiskCondition | undefined;
  #keptTold = '';
  /** One work at a time: two that remove would each count what the other frees. */
  #working: Promise<unknown> = Promise.resolve();
  #collecting: Promise<void> | undefined;

  constructor(private readonly deps: ImageGcDeps) {
    this.#inventory = new Inventory(deps);
  }

  /** Whether it is time for `collect`: every 5 minutes, sooner when only images that are too young could go. */
  due(): boolean {
    return this.#dueAt === undefined || this.deps.clock.monotonic() >= this.#dueAt;
  }

  /** Looks at the disk and removes what must go. Asked for while it is under way, it is the same round. Never rejects. */
  collect(): Promise<void> {
    this.#collecting ??= this.#alone(() => this.#round()).finally(() => {
      this.#collecting = undefined;
    });
    return this.#collecting;
  }

  /** What stands under the node's conditions; undefined: the disk has room, or nobody has looked yet. */
  condition(): DiskCondition | undefined {
    return this.#condition;
  }

  /** All images, by name. Rejects when the runtime does not answer. */
  list(): Promise<readonly InventoryImage[]> {
    return this.#inventory.look();
  }

  /**
   * Removes every image that nobody needs, whatever the disk and the threshold say; but a threshold of 100 means that only a person removes any.
   * `dryRun`: only tells. undefined: that, or the wanted pods are not known yet, so nobody can say what is needed. Rejects when the runtime
   * does not answer.
   */
  prune(dryRun: boolean, why: 'on request' | 'for want of room' = 'on request'): Promise<PruneResult | undefined> {
    return this.#alone(() => this.#prune(dryRun, why));
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#working.then(work);
    this.#working = mine.catch(() => {}); // whoever asked is told
    return mine;
  }

  async #round(): Promise<void> {
    const { deps } = this;
    if (!deps.settled()) return;
    this.#dueAt = after(deps.clock.monotonic(), periodMs);
    try {
      await this.#collect();
      this.#failures = 0;
    } catch (e) {
      // that the runtime is away is told by itself
      if (isAway(e)) return deps.log.debug({ error: describeError(e) }, 'the images could not be looked at');
      this.#failures++;
      deps.log.warn({ error: describeError(e) }, 'image garbage collection failed');
      // the first may only mean that something is about to settle
      if (this.#failures > 1) deps.event('Warning', 'ImageGCFailed', `Images could not be collected: ${describeError(e)}`);
    }
  }

  async #collect(): Promise<void> {
    const { deps } = this;
    const settings = deps.settings();
    const run = await this.#run(settings.minimumAgeMs);
    let disk = await this.#disk();
    const filling = isFilling(disk, settings, this.#condition !== undefined);
    // where nothing goes by itself, nobody needs to know who used what when
    let images = filling || settings.highPercent < 100 ? await this.#inventory.look() : [];
    const needed = bytesToFree(disk, settings);
    let short: string | undefined;
    if (needed > 0) {
      short = await this.#free(needed, images, run, settings, usedPercent(disk));
      disk = await this.#disk();
      images = await this.#inventory.look();
    }
    const still = isFilling(disk, settings, this.#condition !== undefined);
    this.#tell(still ? fillingCondition(disk.path, disk, settings, images, run) : undefined);
    if (short === undefined) return;
    deps.event('Warning', 'FreeDiskSpaceFailed', short);
    throw new Error(short);
  }

  /** Removes in order until enough is free. The text of what is missing; undefined: enough, or more may go in a moment. */
  async #free(
    needed: number,
    images: readonly InventoryImage[],
    run: GcRun,
    settings: ImageGcSettings,
    percent: number,
  ): Promise<string | undefined> {
    let bytes = 0;
    const errors: string[] = [];
    for (const { id } of removalOrder(images, run)) {
      const outcome = await this.#remove(id, run);
      if (outcome === undefined) continue;
      if ('error' in outcome) {
        errors.push(outcome.error);
        continue;
      }
      bytes += outcome.sizeBytes;
      const name = outcome.names[0] ?? id;
      this.deps.event(
        'Normal',
        'ImageRemoved',
        `Image "${name}" (${sizeText(outcome.sizeBytes)}) was removed: its disk is ${percent} % full`,
      );
      // whichever says first that it is enough: a disk may give space back late, and what the runtime counts is not all that an image takes
      if (bytes >= needed || bytesOverLow(await this.#disk(), settings) <= 0) return undefined;
    }
    const young = images.filter((i) => whySpared(i, run) === 'young');
    if (young.length > 0 && errors.length === 0) {
      const oldAt = Math.min(...young.map((i) => after(i.firstDetected, settings.minimumAgeMs)));
      this.#dueAt = Math.min(oldAt, this.#dueAt ?? oldAt) as Monotonic;
      return undefined;
    }
    const why = errors.length === 0 ? '' : `; ${errors.join('; ')}`;
    const kept = images.some((i) => whySpared(i, run) === 'offline')
      ? ', and what was used within 7 days stays while nothing can be pulled'
      : '';
    return `${sizeText(needed)} should be freed on the disk of images (${percent} % full), and images that may go had ${sizeText(bytes)}${kept}: something else fills it${why}`;
  }

  /** undefined: it may not go any more. */
  async #remove(id: string, run: GcRun): Promise<PrunedImage | (PrunedImage & { readonly error: string }) | undefined> {
    const { deps } = this;
    // a pod may have come, a pull may have given it a name, a restart may have lost what is wanted
    const image = (await this.#inventory.look()).find((i) => i.id === id);
    if (!deps.settled() || image === undefined || whySpared(image, run) !== undefined) return undefined;
    const { names, sizeBytes } = image;
    try {
      await deps.images.removeImage(id);
    } catch (e) {
      if (isAway(e)) throw e;
      const error = `image "${names[0] ?? id}" could not be removed: ${describeError(e)}`;
      deps.log.warn({ image: names[0] ?? id, error: describeError(e) }, 'an image could not be removed');
      return { id, names, sizeBytes, error };
    }
    deps.log.info({ image: names[0] ?? id, id, bytes: sizeBytes }, 'an image was removed');
    return { id, names, sizeBytes };
  }

  async #prune(dryRun: boolean, why: 'on request' | 'for want of room'): Promise<PruneResult | undefined> {
    const { deps } = this;
    if (!deps.settled() || (why !== 'on request' && deps.settings().highPercent >= 100)) return undefined;
    // before the run begins: who is seen for the first time now is no younger than it
    const images = await this.#inventory.look();
    // a person means it: what was pulled a moment ago goes, and what could not be pulled again now
    const { offline, ...rest } = await this.#run(0);
    const run: GcRun = { ...rest, offline: offline && why !== 'on request' };
    const going = removalOrder(images, run);
    if (why !== 'on request') this.#tellKept(images.filter((i) => whySpared(i, run) === 'offline'));
    const sum = (images: readonly PrunedImage[]): number => images.reduce((bytes, i) => bytes + i.sizeBytes, 0);
    if (dryRun) {
      const removed = going.map(({ id, names, sizeBytes }) => ({ id, names, sizeBytes }));
      return { removed, failed: [], freedBytes: sum(removed), offline };
    }
    const before = await this.#disk().catch(() => undefined); // the sizes say it then
    const removed: PrunedImage[] = [];
    const failed: (PrunedImage & { readonly message: string })[] = [];
    for (const { id } of going) {
      const outcome = await this.#remove(id, run);
      if (outcome === undefined) continue;
      if ('error' in outcome) failed.push({ id, names: outcome.names, sizeBytes: outcome.sizeBytes, message: outcome.error });
      else removed.push(outcome);
    }
    const now = await this.#disk().catch(() => undefined); // as above
    const measured = before === undefined || now === undefined ? 0 : now.availableBytes - before.availableBytes;
    if (removed.length > 0) {
      deps.event('Normal', 'ImageRemoved', `${removed.length} unused images were removed ${why}: ${sizeText(sum(removed))}`);
      // the condition may be over
      this.#dueAt = undefined;
    }
    return { removed, failed, freedBytes: removed.length > 0 && measured > 0 ? measured : sum(removed), offline };
  }

  /** Once: a full disk is looked at every minute, and the log lies on it. */
  #tellKept(kept: readonly InventoryImage[]): void {
    const names = kept.map((i) => i.names[0] ?? i.id);
    const text = names.join(', ');
    if (text !== this.#keptTold && text !== '')
      this.deps.log.warn({ images: names }, 'images that nobody uses stay while nothing can be pulled');
    this.#keptTold = text;
  }

  async #run(minimumAgeMs: number): Promise<GcRun> {
    return { startedAt: this.deps.clock.monotonic(), minimumAgeMs, offline: await this.deps.offline() };
  }

  /** Rejects, and tells, when the file system of images has no size. */
  async #disk(): Promise<Disk> {
    const { deps } = this;
    const [first] = await deps.images.imageFilesystems();
    const path = first?.mountpoint ?? '';
    const disk = path === '' ? { capacityBytes: 0, availableBytes: 0 } : await deps.diskUse(path);
    if (disk.capacityBytes > 0) return { ...disk, path };
    const message = `the file system of images has no size${path === '' ? ': the runtime does not say where it is' : ` (${path})`}`;
    deps.event('Warning', 'InvalidDiskCapacity', message);
    throw new Error(message);
  }

  #tell(condition: DiskCondition | undefined): void {
    const changed = condition?.message !== this.#condition?.message;
    this.#condition = condition;
    if (changed) this.deps.conditionChanged();
  }
}
