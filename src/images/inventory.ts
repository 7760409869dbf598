/**
 * The images that the runtime has, who uses each, why each stays, and since when it is known. Owns the times of first sight and last use of this
 * run: after a restart an image counts as just seen, as it does for the kubelet. Changes nothing.
 */
import type { ImageInfo, ImageService } from '../container/runtime.ts';
import { type Container, labels } from '../container/words.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { fullName } from './fullName.ts';
import type { KnownImage } from './gcPlan.ts';
import { namesOf, pinsOf } from './pins.ts';

export interface InventoryDeps {
  readonly clock: Clock;
  readonly images: Pick<ImageService, 'listImages'>;
  /** Of everybody in the runtime, also ended ones. */
  readonly containers: () => Promise<readonly Container[]>;
  /** As the runtime's configuration names it; undefined: it does not tell. A rejection: nothing is known of it, so nothing may go. */
  readonly sandboxImage: () => Promise<string | undefined>;
  /** What any known pod names, as written. Asked at each look, after the runtime has answered. */
  readonly knownImages: () => Iterable<string>;
  readonly imported: () => Iterable<string>;
  /** Names that a person pinned. Left out: none are. */
  readonly person?: () => Iterable<string>;
}

export interface InventoryImage extends KnownImage {
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  /** `namespace/pod` of each pod with a container of it, sorted. */
  readonly usedBy: readonly string[];
}

interface Ages {
  readonly firstDetected: Monotonic;
  lastUsed: Monotonic | undefined;
}

export class Inventory {
  #ages = new Map<string, Ages>();

  constructor(private readonly deps: InventoryDeps) {}

  /** All images as they are now, by name. Rejects when the runtime does not answer. */
  async look(): Promise<InventoryImage[]> {
    const { deps } = this;
    const sandboxImage = await deps.sandboxImage();
    const images = merged(await deps.images.listImages());
    // last: a container that came since the images were listed counts
    const users = usersByName(await deps.containers());
    const pins = pinsOf(images, { sandboxImage, known: deps.knownImages(), imported: deps.imported(), person: deps.person?.() });
    const now = deps.clock.monotonic();
    const ages = new Map<string, Ages>();
    const found = images.map((image) => {
      const usedBy = new Set(namesOf(image).flatMap((name) => [...(users.get(name) ?? [])]));
      const age = this.#ages.get(image.id) ?? { firstDetected: now, lastUsed: undefined };
      if (usedBy.size > 0) age.lastUsed = now;
      ages.set(image.id, age);
      const { id, tags, digests, sizeBytes = 0 } = image;
      const names = tags.length > 0 ? tags : digests;
      return { id, names, tags, digests, sizeBytes, used: usedBy.size > 0, usedBy: [...usedBy].sort(), pins: pins.get(id) ?? [], ...age };
    });
    // what is gone is forgotten: when it comes again it is new
    this.#ages = ages;
    return found.sort((a, b) => compare(a.names[0] ?? a.id, b.names[0] ?? b.id));
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** One image for each id: all its names together. */
function merged(images: readonly ImageInfo[]): ImageInfo[] {
  const byId = new Map<string, ImageInfo>();
  for (const image of images) {
    const known = byId.get(image.id);
    if (known === undefined) byId.set(image.id, image);
    else {
      const [tags, digests] = [[...new Set([...known.tags, ...image.tags])], [...new Set([...known.digests, ...image.digests])]];
      byId.set(image.id, { ...known, tags, digests, pinned: known.pinned || image.pinned });
    }
  }
  return [...byId.values()];
}

/** Who has a container of an image, by each name that the container's record has for it. */
function usersByName(containers: readonly Container[]): Map<string, Set<string>> {
  const users = new Map<string, Set<string>>();
  for (const c of containers) {
    const pod = c.labels[labels.podName];
    const user = pod === undefined ? `container ${c.id.slice(0, 12)}` : `${c.labels[labels.podNamespace] ?? 'default'}/${pod}`;
    for (const text of [c.imageRef, c.image]) {
      const name = fullName(text) ?? text;
      users.set(name, (users.get(name) ?? new Set()).add(user));
    }
  }
  return users;
}
