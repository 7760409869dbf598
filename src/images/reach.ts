/**
 * Whether what is removed could be pulled again: remembers how the last pull of each registry ended. Owns that memory only; it pulls nothing by
 * itself and asks nobody, so a node on which nothing was pulled lately knows nothing of its registries.
 */
import type { ImageService, PullOptions } from '../container/runtime.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import { isOfRegistry } from './pullErrors.ts';
import { parseReference } from './reference.ts';
import { withPull } from './withPull.ts';

/** Pods that wait for an image ask again within 5 minutes: what is older than this says nothing about now. */
const holdsMs = 30 * 60_000;

export class Reach {
  /** The last pull of a registry failed for the registry's sake, and when. */
  #silent = new Map<string, Monotonic>();

  constructor(private readonly clock: Clock) {}

  /** The same service, whose pulls are remembered. */
  watching(images: ImageService): ImageService {
    return withPull(images, (image, o) => this.#pull(images, image, o));
  }

  /** A registry did not answer when it was asked last, in the last half hour. */
  unreachable(): boolean {
    const now = this.clock.monotonic();
    for (const [registry, at] of this.#silent) if (now - at > holdsMs) this.#silent.delete(registry);
    return this.#silent.size > 0;
  }

  async #pull(images: ImageService, image: string, o: PullOptions | undefined): Promise<string> {
    const parsed = parseReference(image);
    const registry = parsed.ok ? parsed.registry : '';
    try {
      const id = await images.pullImage(image, o);
      this.#silent.delete(registry);
      return id;
    } catch (e) {
      // who ended it himself learned nothing
      if (o?.signal?.aborted !== true) {
        if (isOfRegistry(describeError(e))) this.#silent.set(registry, this.clock.monotonic());
        else this.#silent.delete(registry);
      }
      throw e;
    }
  }
}
