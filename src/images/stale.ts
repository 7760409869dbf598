/**
 * Owns which pods run an image that could not be refreshed (policy Always, no answer from the registry), and tries again in the background:
 * the newer image is here for the next start, and nothing is restarted for it.
 * Never touches a container; forgets a pod that is gone or names the image no more.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Container } from '../api/v1.ts';
import { isAbort } from '../async/abort.ts';
import { Deadlines } from '../async/deadlines.ts';
import type { StaleImage } from '../container/ensureResult.ts';
import { after, type Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';

/** What a try came to: the image that is here now, or how long to leave it alone. */
export type RefreshResult = { readonly ok: true; readonly imageId: string } | { readonly ok: false; readonly waitMs: number };

export interface StaleImagesDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir: a container outlives the agent, and so does what is said of its image. Left out: it is forgotten with the agent. */
  readonly store?: Pick<Store, 'get' | 'put'>;
  /** What a pod is now; undefined: it is gone. */
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  readonly refresh: (desired: DesiredPod, container: Container) => Promise<RefreshResult>;
  readonly event: (pod: DesiredPod, container: string, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** What `of` says of this pod is another than before. */
  readonly changed: (uid: PodUid) => void;
}

interface Entry extends StaleImage {
  readonly uid: PodUid;
  readonly imageId: string;
}

const firstMs = 10_000;
const storeKey = 'stale-images';

const isEntry = (v: unknown): v is Entry =>
  typeof v === 'object' &&
  v !== null &&
  ['uid', 'container', 'image', 'imageId', 'why'].every((name) => typeof (v as Readonly<Record<string, unknown>>)[name] === 'string');

export class StaleImages {
  #entries = new Map<string, Entry>();
  #due: Deadlines<string>;
  #storing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: StaleImagesDeps) {
    this.#due = new Deadlines(deps.clock, (key) => void this.#try(key));
  }

  /** What an earlier agent of this boot knew. Never rejects. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store?.get(storeKey);
      for (const entry of Array.isArray(stored) ? stored.filter(isEntry) : []) this.#set(entry);
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which images are stale cannot be read');
    }
  }

  /** Of one pod, in the order of its containers' names. */
  of(uid: PodUid): readonly StaleImage[] {
    return [...this.#entries.values()]
      .filter((e) => e.uid === uid)
      .map(({ container, image, why }) => ({ container, image, why }))
      .sort((a, b) => (a.container < b.container ? -1 : 1));
  }

  /** This container starts with the image that is here, and why. */
  add(desired: DesiredPod, container: Container, imageId: string, why: string): void {
    const key = `${desired.uid} ${container.name}`;
    const before = this.#entries.get(key);
    this.#set({ uid: desired.uid, container: container.name, image: container.image, imageId, why });
    this.#store();
    if (before?.why === why && before.image === container.image) return;
    const text = `Image "${container.image}" could not be refreshed; the one that is here is used: ${why}`;
    if (before?.image !== container.image) this.deps.event(desired, container.name, 'Warning', 'ImageStale', text);
    this.deps.changed(desired.uid);
  }

  /** This container starts with what its registry has now, or does not start. */
  fresh(uid: PodUid, container: string): void {
    this.#forget(`${uid} ${container}`);
  }

  stop(): void {
    this.#due.stop();
    this.#entries.clear();
  }

  #set(entry: Entry): void {
    const key = `${entry.uid} ${entry.container}`;
    this.#entries.set(key, entry);
    this.#due.setEarlier(key, after(this.deps.clock.monotonic(), firstMs));
  }

  /** One write after the other. Losing it is never an error. */
  #store(): void {
    const { store, log } = this.deps;
    if (store === undefined) return;
    const entries = [...this.#entries.values()];
    this.#storing = this.#storing
      .then(() => store.put(storeKey, entries))
      .catch((e) => log.warn({ error: describeError(e) }, 'which images are stale cannot be stored'));
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#due.delete(key);
    this.#store();
    this.deps.changed(entry.uid);
  }

  async #try(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    const desired = this.deps.desired(entry.uid);
    const { initContainers = [], containers = [] } = desired?.pod.spec ?? {};
    const container = [...initContainers, ...containers].find((c) => c.name === entry.container && c.image === entry.image);
    if (desired === undefined || container === undefined) return this.#forget(key);
    try {
      const result = await this.deps.refresh(desired, container);
      if (this.#entries.get(key) !== entry) return; // it was started anew meanwhile
      if (!result.ok) return this.#due.set(key, after(this.deps.clock.monotonic(), Math.max(result.waitMs, firstMs)));
      const { image, imageId } = entry;
      const what =
        result.imageId === imageId ? 'is what its registry has' : 'has come from its registry; it is used from the next start on';
      this.deps.event(desired, entry.container, 'Normal', 'ImageRefreshed', `Image "${image}" ${what}`);
      this.#forget(key);
    } catch (e) {
      if (isAbort(e)) return;
      this.deps.log.warn({ pod: desired.name, image: entry.image, error: describeError(e) }, 'a stale image could not be refreshed');
      this.#due.set(key, after(this.deps.clock.monotonic(), firstMs));
    }
  }
}
