/**
 * Upgrading or downgrading podsched restarts no container: a hash written by another release is compared by that release's scheme, or taken
 * for equal when the scheme is not known, and from then on by what was desired when it was adopted (behaviour, "Identity, exactly").
 * Owns the adopted hashes, by sandbox and container id. It never changes what is written on a container: that cannot be changed.
 */
import type { DesiredPod } from '../api/desired.ts';
import { hashScheme } from '../api/hash.ts';
import { annotations, type RuntimePodStatus } from '../container/words.ts';
import { isStoreCorrupt, type Store } from '../world/store.ts';
import type { PodRef } from './names.ts';

const prefix = 'adopted/';

export interface AdoptionDeps {
  readonly store: Store;
  /** The scheme of the hashes that are written now: `1`. */
  readonly scheme: string;
  /**
   * What `desired` hashes to in an older scheme: a container's hash, or the pod's without a container name.
   * undefined: that scheme is not known.
   */
  readonly hashIn: (scheme: string, desired: DesiredPod, container: string | undefined) => string | undefined;
  readonly event: (pod: PodRef, container: string | undefined, type: 'Normal', reason: 'Adopted', message: string) => void;
}

/** '' for a text that is no hash of ours. */
const schemeOf = (hash: string): string => hashScheme(hash) ?? '';

export class Adoption {
  #adopted = new Map<string, string>();

  constructor(private readonly deps: AdoptionDeps) {}

  /** Reads what was adopted before. An unreadable entry is adopted anew. */
  async load(): Promise<void> {
    for (const key of await this.deps.store.list(prefix)) {
      try {
        const hash = await this.deps.store.get(key);
        if (typeof hash === 'string') this.#adopted.set(key.slice(prefix.length), hash);
      } catch (e) {
        if (!isStoreCorrupt(e)) throw e;
      }
    }
  }

  /** Adopts a pod's records of other schemes, before anything is decided about them. Costs nothing when there are none. */
  async review(desired: DesiredPod, status: RuntimePodStatus): Promise<void> {
    for (const s of status.sandboxes) {
      await this.#review(desired, undefined, s.id, s.annotations[annotations.podHash] ?? '', desired.podHash);
    }
    for (const c of status.containers) {
      const wanted = desired.containerHashes[c.name];
      if (wanted !== undefined) await this.#review(desired, c.name, c.id, c.annotations[annotations.ourContainerHash] ?? '', wanted);
    }
  }

  /** Whether the record `id`, made with `recorded`, is of the wanted definition. */
  sameHash(recorded: string, wanted: string, id: string): boolean {
    return (this.#adoptedAs(id) ?? recorded) === wanted;
  }

  /** Forgets what no longer exists in the runtime. */
  async retain(ids: ReadonlySet<string>): Promise<void> {
    for (const id of [...this.#adopted.keys()].filter((i) => !ids.has(i))) {
      this.#adopted.delete(id);
      await this.deps.store.remove(prefix + id);
    }
  }

  /** What an other release adopted in its scheme says nothing here. */
  #adoptedAs(id: string): string | undefined {
    const hash = this.#adopted.get(id);
    return hash !== undefined && schemeOf(hash) === this.deps.scheme ? hash : undefined;
  }

  async #review(desired: DesiredPod, container: string | undefined, id: string, recorded: string, wanted: string): Promise<void> {
    const scheme = schemeOf(recorded);
    if (scheme === this.deps.scheme || this.#adoptedAs(id) !== undefined) return;
    const older = this.deps.hashIn(scheme, desired, container);
    if (older !== undefined && older !== recorded) return; // known, and really another definition
    await this.deps.store.put(prefix + id, wanted);
    this.#adopted.set(id, wanted);
    if (older !== undefined) return;
    const what = container === undefined ? 'The sandbox' : `Container ${container}`;
    this.deps.event(desired, container, 'Normal', 'Adopted', `${what} of another release was adopted as it is`);
  }
}
