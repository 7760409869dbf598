/**
 * The wiring's ears: what the runtime says of pods (PLEG and its cache), and what the kernel says of their memory. Owns nothing of its own.
 */
import { PodCache } from './container/cache.ts';
import { ChildKills, type ChildKillsDeps } from './kubeletMemory.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { LoggedContainer } from './kuberuntime/logFolder.ts';
import { followEvents } from './pleg/follow.ts';
import { MemoryEvents } from './pleg/memoryEvents.ts';
import { Pleg, type PlegDeps } from './pleg/pleg.ts';

const inspectTimeoutMs = 30_000;
const cgroups = '/sys/fs/cgroup';

export interface PlegParts extends Pick<PlegDeps, 'mine' | 'emit'>, Pick<ChildKillsDeps, 'event'> {
  readonly firstListed: () => void;
  /** Events flow, or do not any more, or the runtime cannot be listed. */
  readonly suspect: (flows: boolean) => void;
}

export class PlegSide {
  readonly cache: PodCache;
  readonly pleg: Pleg;
  #memory: MemoryEvents;
  #childKills: ChildKills;

  constructor(
    private readonly world: KubeletWorld,
    private readonly parts: PlegParts,
  ) {
    const { clock, log, runtime, lastWords, cgroupRoot = cgroups } = world;
    const { mine, emit, event, firstListed, suspect } = parts;
    this.cache = new PodCache({ clock, onWait: (uid) => this.pleg.look(uid) });
    this.#childKills = new ChildKills({ clock, event, statusOf: (uid) => this.cache.get(uid) });
    this.#memory = new MemoryEvents({
      root: cgroupRoot,
      killed: (id, uid) => {
        this.pleg.oomKilled(id, uid);
        this.#childKills.killed(id, uid);
      },
      isNew: () => this.pleg.listed(),
    });
    this.pleg = new Pleg({
      ...{ clock, log, runtime, mine, emit, lastWords, inspectTimeoutMs, firstListed, cache: this.cache },
      listFailed: () => suspect(false),
      running: (uid, ids) => this.#memory.podRuns(uid, ids),
    });
  }

  /** Until aborted. */
  run(signal: AbortSignal): Promise<unknown> {
    const { clock, log, runtime } = this.world;
    return Promise.all([
      this.pleg.run(signal),
      followEvents({ clock, log, runtime, pleg: this.pleg, changed: this.parts.suspect }, signal),
    ]);
  }

  /** All containers of our pods that the runtime has, as it last showed them. */
  containers(): LoggedContainer[] {
    const { cache, pleg } = this;
    return pleg.pods().flatMap(({ uid }) => (cache.get(uid)?.containers ?? []).map((c) => ({ ...c, uid, running: c.state === 'running' })));
  }

  stop(): void {
    this.#memory.stop();
    this.#childKills.stop();
  }
}
