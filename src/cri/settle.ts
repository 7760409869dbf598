/**
 * An event is told when the runtime's own lists show what it is about. containerd publishes the end of a task some 20 to 50 ms before its
 * CRI service takes note of it (seen on 1.6.20; the start likewise): who looks at once sees the container still running, and no second
 * event comes. So a start or exit waits here until an inspection shows it, two seconds at most; then it is told in any case.
 */
import { setMaxListeners } from 'node:events';
import type { RuntimeEvent } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';

/** What an inspection shows of a container or sandbox; a sandbox that is ready is `running`. */
export type Shown = 'created' | 'running' | 'ended' | 'missing';

export interface SettleDeps {
  readonly clock: Clock;
  readonly shown: (id: string) => Promise<Shown>;
  readonly emit: (e: RuntimeEvent) => void;
  readonly signal: AbortSignal;
}

const firstWaitMs = 4;
const growth = 1.6;
const longestMs = 2_000;

export class Settle {
  #waiting = new Set<string>();

  constructor(private readonly deps: SettleDeps) {
    // many containers start at once, and each of their waits hears of the end
    setMaxListeners(0, deps.signal);
  }

  /** How many events wait to be told. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Takes an event over; the same one again while it waits adds nothing. */
  tell(e: RuntimeEvent): void {
    const { topic, containerId } = e;
    if (topic !== 'start' && topic !== 'exit') {
      this.deps.emit(e);
      return;
    }
    const key = `${topic} ${containerId}`;
    if (this.#waiting.has(key)) return;
    this.#waiting.add(key);
    const told = () => {
      this.#waiting.delete(key);
      if (!this.deps.signal.aborted) this.deps.emit(e);
    };
    // where it cannot be inspected, who looks will see why
    this.#settled(containerId, topic).then(told, told);
  }

  async #settled(id: string, topic: 'start' | 'exit'): Promise<void> {
    const { clock, shown, signal } = this.deps;
    for (let wait = firstWaitMs, left = longestMs; left > 0 && !signal.aborted; left -= wait, wait *= growth) {
      const now = await shown(id);
      if (topic === 'exit' ? now === 'ended' || now === 'missing' : now === 'running' || now === 'ended') return;
      await clock.sleep(wait, signal);
    }
  }
}
