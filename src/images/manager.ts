/**
 * Makes sure that a container's image is here: policy, credentials, back-off, pull, platform. Owns what the last try of each pod's image said;
 * the pulls themselves are pulls.ts's, and who runs an old image is stale.ts's.
 * It never removes an image, and a local image never waits behind a pull for longer than ten seconds.
 * Mirrors kubelet v1.32 images/image_manager.go (facts 6.3, 6.4), but: policy Always with a registry that does not answer uses the image that
 * is here, a registry that asks for patience gets it from all pods together (behaviour 20), a pull that stands still is ended, and an image
 * for another processor is named instead of started.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Container, PullPolicy } from '../api/v1.ts';
import { isAbort, orAbort } from '../async/abort.ts';
import type { Backoff } from '../async/backoff.ts';
import type { EnsureResult, StaleImage } from '../container/ensureResult.ts';
import { goDuration } from '../container/goDuration.ts';
import type { ContentStore, ImageInfo, ImageService } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { Credential } from './credentials.ts';
import { Patience, type PullFailure } from './patience.ts';
import { type NodePlatform, platformProblem } from './platform.ts';
import { type CredentialDeps, fingerprint, nodeCredentials, podCredentials } from './podCredentials.ts';
import { hasNoPlatform, isUnreachable } from './pullErrors.ts';
import { type PullOutcome, Pulls, registryKey, type Waiter } from './pulls.ts';
import { parseReference } from './reference.ts';
import { type RefreshResult, StaleImages } from './stale.ts';

export interface ImageManagerDeps extends CredentialDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: ImageService;
  readonly backoff: Backoff;
  /** One pull at a time, over all pods (serializeImagePulls). */
  readonly serializePulls: boolean;
  /** So many at once where they are not one at a time (maxParallelImagePulls); 0 or left out: all. */
  readonly parallelPulls?: number;
  /** containerd's content service. Left out: progress is not told, and a pull that stands still not ended. */
  readonly content?: Pick<ContentStore, 'ingests'>;
  /** A pull of which nothing more comes for so long is ended; default 2 min. */
  readonly pullStallMs?: number;
  /** Left out: any image will do. */
  readonly nodePlatform?: NodePlatform;
  /** What a pod is now; undefined: it is gone. Left out: stale images are not refreshed in the background. */
  readonly desired?: (uid: PodUid) => DesiredPod | undefined;
  /** Resolves when the archives of this node were looked at once. Left out: there are none. */
  readonly preloaded?: (signal: AbortSignal) => Promise<void>;
  /** runDir. Left out: which images are stale is forgotten with the agent. */
  readonly store?: Pick<Store, 'get' | 'put'>;
  /** The pod's status has another ImageStale than before. */
  readonly staleChanged?: (uid: PodUid) => void;
}

/** A pull that a person asked for. */
export type PullNowResult =
  | { readonly ok: true; readonly image: ImageInfo }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** One request, as its steps share it. */
interface Request {
  readonly desired: DesiredPod;
  readonly container: Container;
  /** As written, with its default tag. */
  readonly image: string;
  readonly key: string;
  readonly registry: string;
  readonly signal: AbortSignal;
  readonly credentials: readonly Credential[];
  /** What is here is for another platform: `image amd64, node arm64`. */
  readonly wrong?: string;
}

const staleAfterMs = 10_000;
const wrongPlatformWaitMs = 10 * 60_000;
const leastRate = 1024;
const rateOverMs = 5 * 60_000;

const no = (reason: string, message: string, waitMs?: number): EnsureResult => ({
  ok: false,
  reason,
  message,
  ...(waitMs !== undefined && { waitMs }),
});
const keyOf = (desired: DesiredPod, container: Container): string => `${desired.uid}_${container.image}`;
/** One for each who asks: who waits is known by it. */
const nobody = (): Waiter => ({ began: () => {}, progress: () => {} });

export class ImageManager {
  #patience: Patience;
  #pulls: Pulls;
  #stale: StaleImages;

  constructor(private readonly deps: ImageManagerDeps) {
    const { clock, log, images, content, backoff, pullStallMs: stallMs = 120_000, parallelPulls = 0 } = deps;
    const atOnce = deps.serializePulls ? 1 : parallelPulls || Number.POSITIVE_INFINITY;
    const limits = { stallMs, leastRate, rateOverMs };
    this.#patience = new Patience(clock, backoff);
    this.#pulls = new Pulls({ clock, log, images, ...(content && { content }), limits, atOnce, patience: this.#patience });
    this.#stale = new StaleImages({
      clock,
      log,
      desired: deps.desired ?? (() => undefined),
      refresh: (desired, container) => this.#refresh(desired, container),
      event: deps.event,
      changed: deps.staleChanged ?? (() => {}),
      ...(deps.store && { store: deps.store }),
    });
  }

  /** What outlives the agent. Never rejects. */
  load(): Promise<void> {
    return this.#stale.load();
  }

  /** Rejects only when `signal` is aborted; everything else is an answer. */
  async ensure(desired: DesiredPod, container: Container, signal: AbortSignal): Promise<EnsureResult> {
    const result = await this.#ensure(desired, container, signal);
    if (result.ok && result.stale !== undefined) this.#stale.add(desired, container, result.image.id, result.stale);
    else this.#stale.fresh(desired.uid, container.name);
    return result;
  }

  /** As `ensure`, for what is to be started later: what is said of the images that run now stays. */
  bring(desired: DesiredPod, container: Container, signal: AbortSignal): Promise<EnsureResult> {
    return this.#ensure(desired, container, signal);
  }

  /** Containers of a pod whose image could not be refreshed when they were started. */
  stale(uid: PodUid): readonly StaleImage[] {
    return this.#stale.of(uid);
  }

  /** A person wants it now: with the node's own credentials, whatever was said before. Rejects only when `signal` is aborted. */
  async pullNow(text: string, signal: AbortSignal): Promise<PullNowResult> {
    const parsed = parseReference(text);
    if (!parsed.ok) return { ok: false, reason: 'InvalidImageName', message: parsed.message };
    const { image, registry } = parsed;
    const credentials = await nodeCredentials(this.deps, image);
    const joined = this.#pulls.join({ image, registry, credentials, always: true, now: true }, nobody());
    try {
      const outcome = await orAbort(joined.result, signal);
      if (!outcome.ok) {
        if (outcome.of === 'pull') return { ok: false, ...this.#shown(outcome.failure) };
        return {
          ok: false,
          reason: 'ImageInspectError',
          message: outcome.of === 'held' ? 'the registry asks for patience' : outcome.message,
        };
      }
      const wrong = platformProblem(outcome.image.platform, this.deps.nodePlatform);
      return wrong === undefined ? { ok: true, image: outcome.image } : { ok: false, reason: 'WrongPlatform', message: wrong };
    } finally {
      joined.leave(signal.reason);
    }
  }

  /** Nothing is tried in the background any more. */
  stop(): void {
    this.#stale.stop();
  }

  async #ensure(desired: DesiredPod, container: Container, signal: AbortSignal): Promise<EnsureResult> {
    const parsed = parseReference(container.image);
    if (!parsed.ok) {
      const text = `Failed to apply default image tag "${container.image}": ${parsed.message}`;
      this.deps.event(desired, container.name, 'Warning', 'InspectFailed', text);
      return no('InvalidImageName', text);
    }
    const { image, registry } = parsed;
    const policy: PullPolicy = container.imagePullPolicy ?? 'IfNotPresent';
    const asked = { desired, container, image, key: keyOf(desired, container), registry, signal, credentials: [] };
    let here: ImageInfo | undefined;
    try {
      here = await this.deps.images.imageStatus(image);
      if (here === undefined && this.deps.preloaded !== undefined) {
        await this.deps.preloaded(signal);
        here = await this.deps.images.imageStatus(image);
      }
    } catch (e) {
      signal.throwIfAborted();
      return this.#notInspected(asked, describeError(e));
    }
    const wrong = platformProblem(here?.platform, this.deps.nodePlatform);
    if (wrong !== undefined) here = undefined;
    if (policy !== 'Always' && here !== undefined) return this.#present(asked, here);
    if (policy === 'Never') {
      if (wrong !== undefined) return this.#wrongPlatform(asked, wrong);
      const text = `Container image "${container.image}" is not present with pull policy of Never`;
      this.#event(asked, 'Warning', 'ErrImageNeverPull', text);
      return no('ErrImageNeverPull', text);
    }
    const credentials = await podCredentials(this.deps, desired, image);
    const r: Request = { ...asked, credentials, ...(wrong !== undefined && { wrong }) };
    return this.#waiting(r, here) ?? this.#pull(r, here);
  }

  #present(r: Request, here: ImageInfo, stale?: string): EnsureResult {
    this.#event(r, 'Normal', 'Pulled', `Container image "${r.container.image}" already present on machine`);
    return { ok: true, image: here, ...(stale !== undefined && { stale }) };
  }

  /** The answer while the image or its registry is in back-off; undefined: go on and pull. */
  #waiting(r: Request, here: ImageInfo | undefined): EnsureResult | undefined {
    for (const key of [registryKey(r.registry), r.key]) {
      const waiting = this.#patience.waiting(key);
      if (waiting === undefined) continue;
      const { failure, waitMs } = waiting;
      // a registry that said no may say yes to another credential
      if (key === r.key && failure.shown !== undefined && failure.shown !== fingerprint(r.credentials)) continue;
      if (here !== undefined && isUnreachable(failure.message)) return this.#present(r, here, failure.message);
      if (r.wrong !== undefined || failure.reason === 'WrongPlatform') return no('WrongPlatform', r.wrong ?? failure.message, waitMs);
      const { reason, message } = this.#shown(failure);
      const text = `Back-off pulling image "${r.container.image}"`;
      this.#event(r, 'Normal', 'BackOff', text);
      return no('ImagePullBackOff', `${text}: ${reason}: ${message}`, waitMs);
    }
    return undefined;
  }

  async #pull(r: Request, here: ImageInfo | undefined): Promise<EnsureResult> {
    const { clock } = this.deps;
    const asked = clock.monotonic();
    const { image } = r.container;
    r.signal.throwIfAborted();
    const waiter: Waiter = {
      began: () => this.#event(r, 'Normal', 'Pulling', `Pulling image "${image}"`),
      progress: (text) => this.#event(r, 'Normal', 'PullProgress', `Pulling image "${image}": ${text}`),
    };
    const always = r.container.imagePullPolicy === 'Always' || r.wrong !== undefined;
    const request = { image: r.image, registry: r.registry, credentials: r.credentials, always };
    const joined = this.#pulls.join(request, waiter);
    try {
      const outcome = await (here === undefined ? orAbort(joined.result, r.signal) : this.#withPatience(joined, r.signal));
      if (outcome === 'queued' && here !== undefined) return this.#present(r, here, 'other images are pulled first');
      if (typeof outcome !== 'string') return this.#judge(r, outcome, here, clock.monotonic() - asked);
      // all of them: one that hangs does not hold up each of them for as long
      const failure: PullFailure = { reason: 'RegistryUnavailable', message: `no answer in ${goDuration(staleAfterMs)}` };
      if (this.#patience.waiting(registryKey(r.registry)) === undefined) this.#patience.step(registryKey(r.registry), failure);
      return this.#failed(r, failure, here);
    } catch (e) {
      if (r.signal.aborted || isAbort(e)) throw r.signal.reason ?? e;
      return this.#failed(r, { reason: 'ErrImagePull', message: describeError(e) }, here);
    } finally {
      joined.leave(r.signal.reason);
    }
  }

  /** What came of it, or where it stands when an image that is here has waited for it long enough. A pull that moves is waited for. */
  async #withPatience(joined: ReturnType<Pulls['join']>, signal: AbortSignal): Promise<PullOutcome | 'queued' | 'asking'> {
    const over = new AbortController();
    const late = this.deps.clock.sleep(staleAfterMs, over.signal).then(
      () => joined.state(),
      () => 'moving' as const, // it was over before
    );
    try {
      const first = await orAbort(Promise.race([joined.result, late]), signal);
      return first === 'moving' ? await orAbort(joined.result, signal) : first;
    } finally {
      over.abort(signal.reason);
    }
  }

  #judge(r: Request, outcome: PullOutcome, here: ImageInfo | undefined, withWaitingMs: number): EnsureResult {
    if (!outcome.ok) {
      switch (outcome.of) {
        case 'held':
          return this.#waiting(r, here) ?? no('ImagePullBackOff', `Back-off pulling image "${r.container.image}"`, 0);
        case 'inspect':
          return this.#notInspected(r, outcome.message);
        case 'pull':
          return this.#failed(r, outcome.failure, here);
      }
    }
    const wrong = platformProblem(outcome.image.platform, this.deps.nodePlatform);
    if (wrong !== undefined) return this.#wrongPlatform(r, wrong);
    this.#patience.succeeded(r.key, false);
    if (outcome.pulled) this.#tellPulled(r, outcome.tookMs, withWaitingMs, outcome.image.sizeBytes);
    else return this.#present(r, outcome.image);
    return { ok: true, image: outcome.image };
  }

  #notInspected(r: Request, why: string): EnsureResult {
    const text = `Failed to inspect image "${r.container.image}": ${why}`;
    this.#event(r, 'Warning', 'InspectFailed', text);
    return no('ImageInspectError', text);
  }

  #wrongPlatform(r: Request, wrong: string): EnsureResult {
    this.#event(r, 'Warning', 'WrongPlatform', `Image "${r.container.image}" is not for this node: ${wrong}`);
    this.#patience.step(r.key, { reason: 'WrongPlatform', message: wrong }, wrongPlatformWaitMs);
    return no('WrongPlatform', wrong, this.#patience.waiting(r.key)?.waitMs);
  }

  #tellPulled(r: Request, tookMs: number, withWaitingMs: number, sizeBytes: number | undefined): void {
    const took = `in ${goDuration(tookMs)} (${goDuration(withWaitingMs)} including waiting).`;
    const size = sizeBytes === undefined ? '' : ` Image size: ${sizeBytes} bytes.`;
    this.#event(r, 'Normal', 'Pulled', `Successfully pulled image "${r.container.image}" ${took}${size}`);
  }

  #failed(r: Request, failure: PullFailure, here: ImageInfo | undefined): EnsureResult {
    const { reason, message } = this.#shown(failure);
    this.deps.log.warn({ pod: r.desired.name, image: r.container.image, error: message }, 'image could not be pulled');
    this.#event(r, 'Warning', 'Failed', `Failed to pull image "${r.container.image}": ${message}`);
    if (r.wrong !== undefined || hasNoPlatform(failure.message))
      return this.#wrongPlatform(
        r,
        r.wrong ?? `no build of the image is for this node, ${this.deps.nodePlatform?.architecture ?? 'of whatever kind'}: ${message}`,
      );
    const saidNo = !isUnreachable(failure.message);
    this.#patience.step(r.key, { ...failure, ...(saidNo && { shown: fingerprint(r.credentials) }) });
    if (here !== undefined && !saidNo) return this.#present(r, here, failure.message);
    const waits = [registryKey(r.registry), r.key].map((key) => this.#patience.waiting(key)?.waitMs ?? 0);
    return no(reason, message, Math.max(...waits));
  }

  /** With what was tried, and what keeps the node's own credentials from being tried. */
  #shown({ reason, message, note }: PullFailure): { readonly reason: string; readonly message: string } {
    const notes = note === undefined ? [] : [note];
    if (!isUnreachable(message))
      notes.push(...(this.deps.credentials?.problems() ?? []).filter((p) => p.insecure !== true).map((p) => `${p.file} ${p.message}`));
    return { reason, message: notes.length === 0 ? message : `${message} (${notes.join('; ')})` };
  }

  /** One try in the background for a container that runs an image of before. */
  async #refresh(desired: DesiredPod, container: Container): Promise<RefreshResult> {
    const parsed = parseReference(container.image);
    if (!parsed.ok) return { ok: false, waitMs: wrongPlatformWaitMs };
    const { image, registry } = parsed;
    const key = keyOf(desired, container);
    const wait = () => Math.max(...[registryKey(registry), key].map((k) => this.#patience.waiting(k)?.waitMs ?? 0));
    if (wait() > 0) return { ok: false, waitMs: wait() };
    const credentials = await podCredentials(this.deps, desired, image);
    const joined = this.#pulls.join({ image, registry, credentials, always: true }, nobody());
    const outcome = await joined.result;
    if (outcome.ok) {
      this.#patience.succeeded(key, false);
      return { ok: true, imageId: outcome.image.id };
    }
    if (outcome.of === 'pull') this.#patience.step(key, outcome.failure);
    return { ok: false, waitMs: wait() };
  }

  #event(r: Request, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.deps.event(r.desired, r.container.name, type, reason, message);
  }
}
