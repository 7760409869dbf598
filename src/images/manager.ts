/**
 * Makes sure that a container's image is here: policy, back-off, pull. Owns the pull queue and what the last pull of each image said.
 * It never removes an image, and a local image never waits behind a pull.
 * Mirrors kubelet v1.32 images/image_manager.go (facts 6.3, 6.4), but: policy Always with a registry that does not answer uses the image that
 * is here, and a registry that asks for patience gets it from all pods together (behaviour 20).
 */
import type { DesiredPod } from '../api/desired.ts';
import type { Container, PullPolicy } from '../api/v1.ts';
import { isAbort } from '../async/abort.ts';
import type { Backoff } from '../async/backoff.ts';
import type { EnsureResult } from '../container/ensureResult.ts';
import { goDuration } from '../container/goDuration.ts';
import type { ImageInfo, ImageService } from '../container/runtime.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { isRateLimited, isUnreachable, pullReason } from './pullErrors.ts';
import { PullQueue } from './queue.ts';
import { parseReference } from './reference.ts';

export interface ImageManagerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: ImageService;
  readonly backoff: Backoff;
  readonly event: (pod: DesiredPod, container: string, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** One pull at a time, over all pods (serializeImagePulls). */
  readonly serializePulls: boolean;
}

interface LastFailure {
  readonly reason: string;
  readonly message: string;
  readonly at: Monotonic;
}

/** One request, as its steps share it. */
interface Request {
  readonly desired: DesiredPod;
  readonly container: Container;
  /** As written, with its default tag. */
  readonly image: string;
  readonly key: string;
  readonly registryKey: string;
  readonly signal: AbortSignal;
}

const no = (reason: string, message: string, waitMs?: number): EnsureResult => ({
  ok: false,
  reason,
  message,
  ...(waitMs !== undefined && { waitMs }),
});

export class ImageManager {
  #failures = new Map<string, LastFailure>();
  #queue: PullQueue;

  constructor(private readonly deps: ImageManagerDeps) {
    this.#queue = new PullQueue(deps.serializePulls ? 1 : Number.POSITIVE_INFINITY);
  }

  /** Rejects only when `signal` is aborted; everything else is an answer. */
  async ensure(desired: DesiredPod, container: Container, signal: AbortSignal): Promise<EnsureResult> {
    const parsed = parseReference(container.image);
    if (!parsed.ok) {
      const text = `Failed to apply default image tag "${container.image}": ${parsed.message}`;
      this.deps.event(desired, container.name, 'Warning', 'InspectFailed', text);
      return no('InvalidImageName', text);
    }
    const { image } = parsed;
    const request: Request = {
      desired,
      container,
      image,
      key: `${desired.uid}_${container.image}`,
      registryKey: `registry ${parsed.registry}`,
      signal,
    };
    const policy: PullPolicy = container.imagePullPolicy ?? 'IfNotPresent';
    let here: ImageInfo | undefined;
    try {
      here = await this.deps.images.imageStatus(image);
    } catch (e) {
      return this.#notInspected(request, describeError(e));
    }
    if (policy !== 'Always' && here !== undefined) return this.#present(request, here);
    if (policy === 'Never') {
      const text = `Container image "${container.image}" is not present with pull policy of Never`;
      this.deps.event(desired, container.name, 'Warning', 'ErrImageNeverPull', text);
      return no('ErrImageNeverPull', text);
    }
    return this.#backoff(request, here) ?? this.#pull(request, here);
  }

  #present(r: Request, here: ImageInfo, stale?: string): EnsureResult {
    this.#event(r, 'Normal', 'Pulled', `Container image "${r.container.image}" already present on machine`);
    return { ok: true, image: here, ...(stale !== undefined && { stale }) };
  }

  /** The answer while the image or its registry is in back-off; undefined: go on and pull. */
  #backoff(r: Request, here: ImageInfo | undefined): EnsureResult | undefined {
    const { backoff } = this.deps;
    for (const key of [r.registryKey, r.key]) {
      const last = this.#failures.get(key);
      const waitMs = last === undefined ? 0 : backoff.remainingMs(key, last.at);
      if (last === undefined || waitMs <= 0) continue;
      if (here !== undefined && isUnreachable(last.message)) return this.#present(r, here, last.message);
      const text = `Back-off pulling image "${r.container.image}"`;
      this.#event(r, 'Normal', 'BackOff', text);
      return no('ImagePullBackOff', `${text}: ${last.reason}: ${last.message}`, waitMs);
    }
    return undefined;
  }

  async #pull(r: Request, here: ImageInfo | undefined): Promise<EnsureResult> {
    const { clock, images } = this.deps;
    const asked = clock.monotonic();
    return this.#queue.run(async (waited) => {
      const began = clock.monotonic();
      if (waited) {
        // another pod's pull may have brought it, or the registry's answer, while this one waited
        const now = here ?? (await images.imageStatus(r.image).catch(() => undefined)); // the pull itself will tell what is wrong
        if (now !== undefined && r.container.imagePullPolicy !== 'Always') return this.#present(r, now);
        const waiting = this.#backoff(r, now);
        if (waiting !== undefined) return waiting;
      }
      this.#event(r, 'Normal', 'Pulling', `Pulling image "${r.container.image}"`);
      try {
        await images.pullImage(r.image, { signal: r.signal });
      } catch (e) {
        if (r.signal.aborted || isAbort(e)) throw r.signal.reason ?? e;
        return this.#failed(r, describeError(e), here);
      }
      this.#failures.delete(r.key);
      // its user decides who the process runs as: an image that cannot be inspected is not run, or `USER 1000` would become root
      let info: ImageInfo | undefined;
      try {
        info = await images.imageStatus(r.image);
      } catch (e) {
        return this.#notInspected(r, describeError(e));
      }
      if (info === undefined) return this.#notInspected(r, 'it was pulled and is not on this node');
      this.#tellPulled(r, clock.monotonic() - began, clock.monotonic() - asked, info.sizeBytes);
      return { ok: true, image: info };
    }, r.signal);
  }

  #notInspected(r: Request, why: string): EnsureResult {
    const text = `Failed to inspect image "${r.container.image}": ${why}`;
    this.#event(r, 'Warning', 'InspectFailed', text);
    return no('ImageInspectError', text);
  }

  #tellPulled(r: Request, tookMs: number, withWaitingMs: number, sizeBytes: number | undefined): void {
    const took = `in ${goDuration(tookMs)} (${goDuration(withWaitingMs)} including waiting).`;
    const size = sizeBytes === undefined ? '' : ` Image size: ${sizeBytes} bytes.`;
    this.#event(r, 'Normal', 'Pulled', `Successfully pulled image "${r.container.image}" ${took}${size}`);
  }

  #failed(r: Request, message: string, here: ImageInfo | undefined): EnsureResult {
    const { backoff, clock, log } = this.deps;
    const key = isRateLimited(message) ? r.registryKey : r.key;
    const at = clock.monotonic();
    const reason = pullReason(message);
    backoff.next(key, at);
    this.#forget();
    this.#failures.set(key, { reason, message, at });
    log.warn({ pod: r.desired.name, image: r.container.image, error: message }, 'image could not be pulled');
    this.#event(r, 'Warning', 'Failed', `Failed to pull image "${r.container.image}": ${message}`);
    if (here !== undefined && isUnreachable(message)) return this.#present(r, here, message);
    return no(reason, message, backoff.remainingMs(key, at));
  }

  /** What was said of images that nobody has asked for in a long time, or of pods that are gone. */
  #forget(): void {
    this.deps.backoff.collect();
    for (const key of this.#failures.keys()) if (this.deps.backoff.delayMs(key) === 0) this.#failures.delete(key);
  }

  #event(r: Request, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.deps.event(r.desired, r.container.name, type, reason, message);
  }
}
