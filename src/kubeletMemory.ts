/**
 * The wiring's word on processes that the kernel killed for want of memory in a container that goes on: its status has no place for that, so an
 * event tells it. A kill that ended the container is told by its status. Owns which of them wait to be told, and when one was told last.
 */
import type { PodUid } from './api/objects.ts';
import { Deadlines } from './async/deadlines.ts';
import type { ContainerId, RuntimePodStatus } from './container/words.ts';
import { after, type Clock, type Monotonic } from './world/clock.ts';

/** The end of the container that the kill brings with it is known by then. */
const settleMs = 3_000;
/** A child that is started and killed over and over is told of once in this time. */
const againMs = 60_000;

export interface ChildKillsDeps {
  readonly clock: Clock;
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  readonly event: (pod: Pick<RuntimePodStatus, 'uid' | 'namespace' | 'name'>, container: string, reason: string, message: string) => void;
}

export class ChildKills {
  #waiting = new Map<ContainerId, PodUid>();
  #told = new Map<ContainerId, Monotonic>();
  #due: Deadlines<ContainerId>;

  constructor(private readonly deps: ChildKillsDeps) {
    this.#due = new Deadlines(deps.clock, (id) => this.#judge(id));
  }

  /** The kernel killed a process of this container, whichever. */
  killed(id: ContainerId, uid: PodUid): void {
    const now = this.deps.clock.monotonic();
    for (const [old, at] of this.#told) if (now - at >= againMs) this.#told.delete(old);
    if (this.#told.has(id) || this.#waiting.has(id)) return;
    this.#waiting.set(id, uid);
    this.#due.set(id, after(now, settleMs));
  }

  stop(): void {
    this.#due.stop();
  }

  #judge(id: ContainerId): void {
    const uid = this.#waiting.get(id);
    this.#waiting.delete(id);
    const pod = uid === undefined ? undefined : this.deps.statusOf(uid);
    const container = pod?.containers.find((c) => c.id === id);
    if (pod === undefined || container?.state !== 'running') return;
    this.#told.set(id, this.deps.clock.monotonic());
    const message = `the kernel killed a process of container ${container.name} for using more memory than its limit; the container goes on`;
    this.deps.event(pod, container.name, 'ProcessOOMKilled', message);
  }
}
