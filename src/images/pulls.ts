/**
 * The pulls that run and wait now. One image with the same credentials is pulled once, however many pods ask for it, and a pull that nobody
 * waits for any more is ended. Owns the queue and what each registry said last.
 * It knows no pod: whoever joins a pull tells its own people.
 */
import { isAbort, orAbort } from '../async/abort.ts';
import { type ContentStore, type ImageInfo, type ImageService, RuntimeError } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Credential } from './credentials.ts';
import type { Patience, PullFailure } from './patience.ts';
import type { ProgressLimits } from './progress.ts';
import { isOfRegistry, isRateLimited, isUnreachable, pullReason, retryAfterMs } from './pullErrors.ts';
import { PullWatch } from './pullWatch.ts';
import { PullQueue } from './queue.ts';

export interface PullsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: ImageService;
  /** Left out: progress is not told, and a stalled pull not ended. */
  readonly content?: Pick<ContentStore, 'ingests'>;
  readonly limits: ProgressLimits;
  /** How many at once; Infinity: all. */
  readonly atOnce: number;
  readonly patience: Patience;
}

export interface PullRequest {
  /** With its tag or digest. */
  readonly image: string;
  readonly registry: string;
  /** Each is tried until one is taken; then nobody in particular. */
  readonly credentials: readonly Credential[];
  /** Pulled even if it is here by now. */
  readonly always: boolean;
  /** A person asks: the registry's back-off does not hold it. */
  readonly now?: boolean;
}

/** Who waits for a pull. */
export interface Waiter {
  /** It is its turn. */
  readonly began: () => void;
  /** `34.5 MB of 120 MB`. */
  readonly progress: (text: string) => void;
}

export type PullOutcome =
  | { readonly ok: true; readonly image: ImageInfo; readonly tookMs: number; readonly pulled: boolean }
  /** It was pulled, and the runtime does not say what it is. */
  | { readonly ok: false; readonly of: 'inspect'; readonly message: string }
  /** Its registry is to be left alone. */
  | { readonly ok: false; readonly of: 'held' }
  | { readonly ok: false; readonly of: 'pull'; readonly failure: PullFailure };

interface Flight {
  readonly result: Promise<PullOutcome>;
  readonly waiters: Set<Waiter>;
  readonly stop: AbortController;
  /** Something of it has come, that anybody knows of. */
  readonly moving: () => boolean;
  began: boolean;
}

/** A pull that somebody has joined. */
export interface Joined {
  readonly result: Promise<PullOutcome>;
  /** `queued`: others go first; `asking`: nothing of it has come that anybody knows of; `moving`: it comes. */
  state(): 'queued' | 'asking' | 'moving';
  leave(reason: unknown): void;
}

export const registryKey = (registry: string): string => `registry ${registry}`;
const abandoned = Object.assign(new Error('nobody waits for this pull any more'), { name: 'AbortError' });
const mostStalls = 6;

export class Pulls {
  #flights = new Map<string, Flight>();
  #queue: PullQueue;
  /** Registries that failed last and are asked again by one pull; the others wait for what it hears. */
  #probes = new Map<string, Promise<void>>();
  /** How often in a row a pull of an image stood still: each time it gets twice as long, since unpacking may look like it. */
  #stalls = new Map<string, number>();

  constructor(private readonly deps: PullsDeps) {
    this.#queue = new PullQueue(deps.atOnce);
  }

  /** Takes part in the pull of this image; begins it when there is none. */
  join(request: PullRequest, waiter: Waiter): Joined {
    const { image, always, credentials, now } = request;
    const key = JSON.stringify([image, always, now === true, credentials.map((c) => c.auth)]);
    const flight = this.#flights.get(key) ?? this.#begin(key, request);
    flight.waiters.add(waiter);
    if (flight.began) waiter.began();
    return {
      result: flight.result,
      state: () => (!flight.began ? 'queued' : flight.moving() ? 'moving' : 'asking'),
      leave: (reason) => {
        if (!flight.waiters.delete(waiter) || flight.waiters.size > 0) return;
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        flight.stop.abort(isAbort(reason) ? reason : abandoned);
      },
    };
  }

  #begin(key: string, request: PullRequest): Flight {
    const stop = new AbortController();
    const watch = this.deps.content && new PullWatch({ ...this.deps, content: this.deps.content });
    const waiters = new Set<Waiter>();
    const began = (): void => {
      flight.began = true;
      for (const waiter of waiters) waiter.began();
    };
    const progress = (text: string): void => {
      for (const waiter of waiters) waiter.progress(text);
    };
    // a step later, so that who asked is among those who hear of it
    const result = Promise.resolve().then(() => this.#run(request, { began, progress }, watch, stop.signal));
    const flight: Flight = { result, waiters, stop, moving: () => watch?.begun === true, began: false };
    this.#flights.set(key, flight);
    const over = (): void => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    result.then(over, over);
    return flight;
  }

  #run(request: PullRequest, told: Waiter, watch: PullWatch | undefined, signal: AbortSignal): Promise<PullOutcome> {
    return this.#queue.run(async (queued) => {
      const key = registryKey(request.registry);
      const { waited, done } = await this.#probe(key, signal);
      try {
        if ((queued || waited) && !request.always) {
          // another pull may have brought it meanwhile; if it cannot be asked, the pull itself will tell what is wrong
          const here = await this.deps.images.imageStatus(request.image).catch(() => undefined);
          if (here !== undefined) return { ok: true, image: here, tookMs: 0, pulled: false };
        }
        const held = (queued || waited) && request.now !== true && this.deps.patience.waiting(key) !== undefined;
        return held ? { ok: false, of: 'held' } : await this.#pull(request, told, watch, signal);
      } finally {
        done();
      }
    }, signal);
  }

  /** Of a registry that failed last, one pull at a time: until it is done, the others wait for what it hears. */
  async #probe(key: string, signal: AbortSignal): Promise<{ readonly waited: boolean; readonly done: () => void }> {
    let waited = false;
    for (let other = this.#probes.get(key); other !== undefined; other = this.#probes.get(key)) {
      waited = true;
      await orAbort(other, signal);
    }
    if (this.deps.patience.lastFailedAt(key) === undefined) return { waited, done: () => {} };
    let release = (): void => {};
    const probe = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#probes.set(key, probe);
    const done = (): void => {
      this.#probes.delete(key);
      release();
    };
    return { waited, done };
  }

  async #pull(request: PullRequest, told: Waiter, watch: PullWatch | undefined, signal: AbortSignal): Promise<PullOutcome> {
    const { clock, images, patience } = this.deps;
    const { image } = request;
    const began = clock.monotonic();
    told.began();
    const failure = await this.#tryAll(request, told, watch, signal);
    if (failure !== undefined) {
      const lastFailed = patience.lastFailedAt(registryKey(request.registry));
      // what began before the registry's last failure was known tells nothing new
      if (isOfRegistry(failure.message) && (lastFailed === undefined || lastFailed <= began))
        patience.step(registryKey(request.registry), failure, retryAfterMs(failure.message));
      return { ok: false, of: 'pull', failure };
    }
    this.#stalls.delete(image);
    const before = patience.waiting(registryKey(request.registry));
    patience.succeeded(registryKey(request.registry), before === undefined || !isRateLimited(before.failure.message));
    // its user decides who the process runs as: an image that cannot be inspected is not run, or `USER 1000` would become root
    try {
      const info = await images.imageStatus(image);
      if (info === undefined) return { ok: false, of: 'inspect', message: 'it was pulled and is not on this node' };
      return { ok: true, image: info, tookMs: clock.monotonic() - began, pulled: true };
    } catch (e) {
      return { ok: false, of: 'inspect', message: describeError(e) };
    }
  }

  /** Each credential in turn, then none; undefined: it is here. A registry that does not answer would not answer the next one either. */
  async #tryAll(request: PullRequest, told: Waiter, watch: PullWatch | undefined, signal: AbortSignal): Promise<PullFailure | undefined> {
    const tries: readonly (Credential | undefined)[] = [...request.credentials, undefined];
    const messages: string[] = [];
    const tried: string[] = [];
    for (const credential of tries) {
      try {
        await this.#one(request.image, credential, told, watch, signal);
        return undefined;
      } catch (e) {
        if (signal.aborted) throw signal.reason;
        const message = withoutValues(describeError(e), request.credentials);
        tried.push(credential?.from ?? 'without credentials');
        messages.push(message);
        if (isUnreachable(message)) return this.#failure(message, []);
      }
    }
    return this.#failure(messages[0] ?? '', request.credentials.length > 0 ? tried : []);
  }

  #failure(message: string, tried: readonly string[]): PullFailure {
    const note = tried.length === 0 ? {} : { note: `tried: ${tried.join(', ')}` };
    return { reason: pullReason(message), message, ...note };
  }

  async #one(
    image: string,
    credential: Credential | undefined,
    told: Waiter,
    watch: PullWatch | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { images } = this.deps;
    await watch?.begin();
    signal.throwIfAborted();
    if (watch?.begun === undefined) {
      await images.pullImage(image, { signal, ...(credential && { auth: credential.auth }) });
      return;
    }
    const over = new AbortController();
    const stall = new AbortController();
    const stalls = this.#stalls.get(image) ?? 0;
    const ending = AbortSignal.any([signal, over.signal]);
    const watched = watch.stall(2 ** stalls, told.progress, ending).then((why) => {
      if (why === undefined) return;
      this.#stalls.set(image, Math.min(stalls + 1, mostStalls));
      stall.abort(new RuntimeError('unknown', why));
    });
    try {
      await images.pullImage(image, { signal: AbortSignal.any([signal, stall.signal]), ...(credential && { auth: credential.auth }) });
    } finally {
      over.abort(abandoned);
      await watched;
    }
  }
}

/** Nobody repeats what a registry was shown, not even by way of its error. */
function withoutValues(message: string, credentials: readonly Credential[]): string {
  let text = message;
  for (const { auth } of credentials) {
    const { password, identityToken, registryToken } = auth;
    for (const value of [password, identityToken, registryToken]) {
      if (value !== undefined && value.length >= 4) text = text.replaceAll(value, '…').replaceAll(encodeURIComponent(value), '…');
    }
  }
  return text;
}
