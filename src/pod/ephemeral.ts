/**
 * Ephemeral containers: what was added to running pods by hand (`podsched debug`). Kept on the card under the pod's UID before they run, so
 * that a pod whose agent restarts keeps them, and gone with the instance. No part of any hash: what a person looks with is no edit.
 * Owns the entries `ephemeral/…` of stateDir and their copy in memory. Never starts anything.
 * The kubelet refuses them for static pods, since it has nowhere to keep them; their life is as in kubelet v1.32 otherwise.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { EphemeralContainer } from '../api/v1.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';

export interface EphemeralDeps {
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
}

const prefix = 'ephemeral/';
const none: readonly EphemeralContainer[] = [];

const areContainers = (value: unknown): value is readonly EphemeralContainer[] =>
  Array.isArray(value) &&
  value.every((c: unknown) => typeof c === 'object' && c !== null && typeof (c as { name?: unknown }).name === 'string');

export class EphemeralContainers {
  #byUid = new Map<PodUid, readonly EphemeralContainer[]>();
  /** The last deed of each pod's entry: one after the other, so that the newest stays on the card. */
  #writing = new Map<PodUid, Promise<unknown>>();

  #applied = new WeakMap<DesiredPod, DesiredPod>();

  constructor(private readonly deps: EphemeralDeps) {}

  /** Reads all entries. One that cannot be read is logged and left out: nobody waits for it, and its container goes on without a name. */
  async load(): Promise<void> {
    const { log, store } = this.deps;
    let keys: readonly string[] = [];
    try {
      keys = await store.list(prefix);
    } catch (error) {
      log.error({ error }, 'ephemeral containers cannot be listed');
    }
    for (const entry of keys) {
      try {
        const value = await store.get(entry);
        if (areContainers(value)) this.#byUid.set(entry.slice(prefix.length) as PodUid, value);
        else if (value !== undefined) log.warn({ entry }, 'an entry of ephemeral containers has an unknown shape');
      } catch (error) {
        log.warn({ entry, error }, 'an entry of ephemeral containers cannot be read');
      }
    }
  }

  /** One more, checked by the caller against `of(uid)`. On the card when it resolves; rejects when it cannot be stored, and then it is not kept. */
  async add(uid: PodUid, container: EphemeralContainer): Promise<readonly EphemeralContainer[]> {
    return this.#inTurn(uid, async () => {
      const before = this.of(uid);
      if (before.some((c) => c.name === container.name)) throw new Error(`there is an ephemeral container ${container.name} already`);
      const all = [...before, container];
      await this.deps.store.put(prefix + uid, all);
      this.#byUid.set(uid, all);
      return all;
    });
  }

  /** In the order in which they were added; the same object as long as none is added. */
  of(uid: PodUid): readonly EphemeralContainer[] {
    return this.#byUid.get(uid) ?? none;
  }

  /** The pod with what was added to it; the same object for the same pod as long as none is added. */
  applied(desired: DesiredPod): DesiredPod {
    const containers = this.of(desired.uid);
    const before = this.#applied.get(desired);
    if (before?.pod.spec.ephemeralContainers === containers) return before;
    const now = withEphemeral(desired, containers);
    if (now !== desired) this.#applied.set(desired, now);
    return now;
  }

  /** Forgets those of instances that nobody knows any more. Never rejects: what cannot be removed now is removed the next time. */
  async retain(known: (uid: PodUid) => boolean): Promise<void> {
    for (const uid of [...this.#byUid.keys()]) {
      if (known(uid)) continue;
      await this.forget(uid).catch((error) => this.deps.log.warn({ uid, error }, 'ephemeral containers cannot be forgotten'));
    }
  }

  /** The instance has ended. */
  async forget(uid: PodUid): Promise<void> {
    if (!this.#byUid.has(uid) && !this.#writing.has(uid)) return;
    await this.#inTurn(uid, async () => {
      await this.deps.store.remove(prefix + uid);
      this.#byUid.delete(uid);
    });
  }

  async #inTurn<T>(uid: PodUid, deed: () => Promise<T>): Promise<T> {
    const before = this.#writing.get(uid) ?? Promise.resolve();
    const mine = before.then(deed, deed);
    this.#writing.set(uid, mine);
    try {
      return await mine;
    } finally {
      if (this.#writing.get(uid) === mine) this.#writing.delete(uid);
    }
  }
}

/** The pod with what was added to it; the very same object when nothing has changed. Hashes stay as they are. */
export function withEphemeral(desired: DesiredPod, containers: readonly EphemeralContainer[]): DesiredPod {
  const now = desired.pod.spec.ephemeralContainers ?? none;
  if (now === containers || (now.length === 0 && containers.length === 0)) return desired;
  const { ephemeralContainers: _, ...spec } = desired.pod.spec;
  return {
    ...desired,
    pod: { ...desired.pod, spec: { ...spec, ...(containers.length > 0 && { ephemeralContainers: containers }) } },
  };
}
