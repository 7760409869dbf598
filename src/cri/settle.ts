/**
 * An event is told when the runtime's own lists show what it is about. containerd publishes the end of a task some 20 to 50 ms before its
 * CRI service takes note of it (seen on 1.6.20; the start likewise): who looks at once sees the container still running, and no second
 * event comes. So a start or exit waits here until an inspection shows it, two seconds at most; then it is told in any case. On a machine
 * that is worked to its limit containerd takes longer: it is looked at further, more and more rarely, and told once more when it shows.
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
const longestWaitMs = 5_000;
/** After this long it is told whether it shows or not. */
const patienceMs = 2_000;
/** After this long nobody looks any more: the next list of everything tells. */
const latestMs = 60_000;

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
    this.#settled(e).then(told, told);
  }

  /** Ends when it shows, or when nobody looks any more. Where it cannot be inspected, who looks will see why: it is told without waiting. */
  async #settled(e: RuntimeEvent): Promise<void> {
    const { clock, emit, signal } = this.deps;
    let told = false;
    for (let wait = firstWaitMs, waited = 0; waited < latestMs && !signal.aborted; wait = Math.min(wait * growth, longestWaitMs)) {
      const shows = await this.#shows(e).catch(() => undefined);
      if (shows === true || signal.aborted) return;
      if (!told && (shows === undefined || waited >= patienceMs)) {
        told = true;
        emit(e);
      }
      await clock.sleep(wait, signal);
      waited += wait;
    }
  }

  async #shows({ containerId, topic }: RuntimeEvent): Promise<boolean> {
    const now = await this.deps.shown(containerId);
    return topic === 'exit' ? now === 'ended' || now === 'missing' : now === 'running' || now === 'ended';
  }
}
