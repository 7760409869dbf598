/**
 * Running containers that have lost a device. Owns, for each, what was told of it and where it may not be moved: to a member of its class that
 * was there all along. Stored in runDir, so that a new agent tells nothing twice and moves nobody.
 */
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { Given, Holder, IsThere } from './deviceChoice.ts';

export interface DeviceLossesDeps {
  readonly log: Log;
  /** runDir. */
  readonly store: Pick<Store, 'get' | 'put'>;
  /** Told once of each device that goes. */
  readonly gone: (holder: Holder, given: Given) => void;
}

interface Loss {
  readonly spares: ReadonlySet<string>;
  readonly nodes: readonly string[];
}

const storeKey = 'devices-gone';

export class DeviceLosses {
  /** By container id. */
  #losses = new Map<string, Loss>();
  /** Running containers that were looked at by this agent. */
  #seen = new Set<string>();
  #storing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: DeviceLossesDeps) {}

  /** What an earlier agent of this boot found gone. Never rejects. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store.get(storeKey);
      for (const [id, loss] of Object.entries(typeof stored === 'object' && stored !== null ? stored : {})) {
        const { spares, nodes } = (loss ?? {}) as { readonly spares?: unknown; readonly nodes?: unknown };
        if (Array.isArray(spares) && Array.isArray(nodes))
          this.#losses.set(id, { spares: new Set(spares.map(String)), nodes: nodes.map(String) });
      }
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which devices were gone cannot be read');
    }
  }

  async flush(): Promise<void> {
    await this.#storing;
  }

  has(id: string): boolean {
    return this.#losses.has(id);
  }

  /** By container id: members that it may not be moved to. */
  spares(): ReadonlyMap<string, ReadonlySet<string>> {
    return new Map([...this.#losses].map(([id, { spares }]) => [id, spares]));
  }

  any(): boolean {
    return this.#losses.size > 0;
  }

  /** `before`: the members of a class when it was last looked at. A container that was not seen before may have lost it to the newest one. */
  takeNote(holders: readonly Holder[], isThere: IsThere, before: (deviceClass: string) => ReadonlySet<string>): void {
    let changed = false;
    for (const holder of holders) {
      const id = holder.running;
      if (id === undefined) continue;
      const gone = holder.given.filter((given) => !isThere(given));
      const known = this.#losses.get(id);
      const news = gone.filter(({ node }) => known?.nodes.includes(node) !== true);
      if (gone.length === 0) changed = this.#losses.delete(id) || changed;
      else if (news.length > 0 || gone.length !== known?.nodes.length) {
        const spares = this.#seen.has(id) ? news.flatMap(({ deviceClass }) => [...before(deviceClass)]) : [];
        this.#losses.set(id, { spares: new Set([...(known?.spares ?? []), ...spares]), nodes: gone.map(({ node }) => node) });
        changed = true;
      }
      this.#seen.add(id);
      for (const given of news) this.deps.gone(holder, given);
    }
    if (changed) this.#store();
  }

  /** Forgets containers that the runtime has no more. */
  retain(ids: ReadonlySet<string>): void {
    for (const id of this.#seen) if (!ids.has(id)) this.#seen.delete(id);
    const old = [...this.#losses.keys()].filter((id) => !ids.has(id));
    for (const id of old) this.#losses.delete(id);
    if (old.length > 0) this.#store();
  }

  /** One write after the other. Losing it is never an error. */
  #store(): void {
    const { store, log } = this.deps;
    const put = (): Promise<void> =>
      store.put(storeKey, Object.fromEntries([...this.#losses].map(([id, { spares, nodes }]) => [id, { spares: [...spares], nodes }])));
    this.#storing = this.#storing.then(put).catch((e) => log.warn({ error: describeError(e) }, 'which devices are gone cannot be stored'));
  }
}
