/**
 * PodCache: what the runtime said of each pod, and as of when. The one truth of "what runs"; written only by PLEG, read by workers.
 * It never asks the runtime itself: a reader whose news are too old waits, and `onWait` tells PLEG that somebody does.
 *
 * `getNewerThan` is what carries correctness: a worker cannot decide on news older than its own deed. Moments come from `stamp()`,
 * which never gives the same moment twice, so that "before the list" and "after the deed" are ordered even within one microsecond.
 *
 * Mirrors kubelet v1.32 container/cache.go, with one difference: a pod that has an entry is judged by that entry alone. The global
 * moment speaks only for pods that no list has shown, so one pod whose inspection hangs neither holds up the others nor looks empty.
 */
import type { PodUid } from '../api/objects.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { emptyPodStatus, type RuntimePodStatus } from './words.ts';

export interface PodCacheDeps {
  readonly clock: Clock;
  /** Somebody waits for news of this pod: look at it. */
  readonly onWait: (uid: PodUid) => void;
}

interface Entry {
  /** Last status that could be read; undefined: the pod is known to exist and nobody has read it yet. */
  readonly status: RuntimePodStatus | undefined;
  /** Why the last inspection failed; undefined when it did not. */
  readonly error: Error | undefined;
  /** When the list behind it was asked for. */
  readonly at: Monotonic;
}

interface Waiter {
  readonly newerThan: Monotonic;
  readonly resolve: (status: RuntimePodStatus) => void;
  readonly reject: (reason: unknown) => void;
}

const never = Number.NEGATIVE_INFINITY as Monotonic;
/** About a microsecond; a double keeps it exactly for centuries of uptime. */
const tickMs = 2 ** -10;

export class PodCache {
  #entries = new Map<PodUid, Entry>();
  #waiters = new Map<PodUid, Set<Waiter>>();
  #global: Monotonic = never;
  #lastStamp: Monotonic = never;

  constructor(private readonly deps: PodCacheDeps) {}

  /** Now, but later than every stamp before: orders deeds and looks. */
  stamp(): Monotonic {
    this.#lastStamp = Math.max(this.deps.clock.monotonic(), this.#lastStamp + tickMs) as Monotonic;
    return this.#lastStamp;
  }

  /** The last status that could be read; undefined when there is none or the pod is gone. */
  get(uid: PodUid): RuntimePodStatus | undefined {
    return this.#entries.get(uid)?.status;
  }

  /** What an inspection showed, or why it failed, as of the list asked for at `at`. Older news than those stored are dropped. */
  set(uid: PodUid, value: RuntimePodStatus | Error, at: Monotonic): void {
    const before = this.#entries.get(uid);
    if (before !== undefined && before.at >= at) return;
    this.#entries.set(uid, value instanceof Error ? { status: before?.status, error: value, at } : { status: value, error: undefined, at });
    this.#settle(uid);
  }

  /** A list asked for at `at` shows the pod as the stored status has it. */
  touch(uid: PodUid, at: Monotonic): void {
    const entry = this.#entries.get(uid);
    if (entry?.status === undefined || entry.error !== undefined || entry.at >= at) return;
    this.#entries.set(uid, { ...entry, at });
    this.#settle(uid);
  }

  /** The pod exists; its status is still to be read. From now on the global moment does not make it "empty". */
  expect(uid: PodUid): void {
    if (!this.#entries.has(uid)) this.#entries.set(uid, { status: undefined, error: undefined, at: never });
  }

  /** The runtime has nothing of this pod, as of `at` when given: who waits for older news gets the empty status. */
  delete(uid: PodUid, at?: Monotonic): void {
    this.#entries.delete(uid);
    if (at !== undefined) this.#release(uid, at, () => emptyPodStatus(uid, '', ''));
  }

  /** All pods were listed at `at`: those without an entry do not exist. */
  setGlobal(at: Monotonic): void {
    if (at <= this.#global) return;
    this.#global = at;
    for (const uid of [...this.#waiters.keys()]) {
      if (!this.#entries.has(uid)) this.#release(uid, at, () => emptyPodStatus(uid, '', ''));
    }
  }

  /**
   * The pod's status as of a moment after `newerThan`; waits for PLEG when there is none yet. A pod the runtime does not have gives an
   * empty status (without name). Rejects with the inspection's error, or with the signal's reason.
   */
  getNewerThan(uid: PodUid, newerThan: Monotonic, signal: AbortSignal): Promise<RuntimePodStatus> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const entry = this.#entries.get(uid);
    if (entry === undefined) {
      if (this.#global > newerThan) return Promise.resolve(emptyPodStatus(uid, '', ''));
    } else if (entry.at > newerThan) {
      if (entry.error !== undefined) return Promise.reject(entry.error);
      if (entry.status !== undefined) return Promise.resolve(entry.status);
    }
    return this.#wait(uid, newerThan, signal);
  }

  #wait(uid: PodUid, newerThan: Monotonic, signal: AbortSignal): Promise<RuntimePodStatus> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#forget(uid, waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        newerThan,
        resolve: (status) => {
          signal.removeEventListener('abort', stop);
          resolve(status);
        },
        reject: (reason) => {
          signal.removeEventListener('abort', stop);
          reject(reason);
        },
      };
      signal.addEventListener('abort', stop, { once: true });
      const waiters = this.#waiters.get(uid) ?? new Set();
      this.#waiters.set(uid, waiters.add(waiter));
      this.deps.onWait(uid);
    });
  }

  #settle(uid: PodUid): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    this.#release(uid, entry.at, () => entry.error ?? entry.status);
    // what came was listed before their deed: ask once more
    if (this.#waiters.has(uid)) this.deps.onWait(uid);
  }

  #release(uid: PodUid, at: Monotonic, answer: () => RuntimePodStatus | Error | undefined): void {
    for (const waiter of [...(this.#waiters.get(uid) ?? [])]) {
      if (at <= waiter.newerThan) continue;
      const value = answer();
      if (value === undefined) continue;
      this.#forget(uid, waiter);
      if (value instanceof Error) waiter.reject(value);
      else waiter.resolve(value);
    }
  }

  #forget(uid: PodUid, waiter: Waiter): void {
    const waiters = this.#waiters.get(uid);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(uid);
  }
}
