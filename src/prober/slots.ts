/**
 * How many exec probes run at once: each is a process in a container, and a small CPU must not be drowned in them. First come, first served.
 * What takes long waits rather than computes: after two seconds its place goes on to the next one, so that a command that hangs by its
 * manifest's own time-out holds up no other pod.
 */
import type { Clock } from '../world/clock.ts';

const heldMs = 2000;
/** One object for all: an abort reason of its own would cost a stack trace each time. */
const over = Object.assign(new Error('the place was given on'), { name: 'AbortError' });

export class Slots {
  #free: number;
  #waiting: (() => void)[] = [];

  constructor(
    count: number,
    private readonly clock: Clock,
  ) {
    this.#free = count;
  }

  /** Runs `work` when there is room. Waiting is no part of the work; rejects with the signal's reason when it fires meanwhile. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#enter(signal);
    const held = new AbortController();
    let holds = true;
    const leave = (): void => {
      if (!holds) return;
      holds = false;
      const next = this.#waiting.shift();
      // the place goes on to the next one
      if (next === undefined) this.#free += 1;
      else next();
    };
    this.clock.sleep(heldMs, held.signal).then(leave, () => {}); // the work has ended
    try {
      return await work();
    } finally {
      held.abort(over);
      leave();
    }
  }

  #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const turn = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting = this.#waiting.filter((w) => w !== turn);
        reject(signal.reason);
      };
      this.#waiting.push(turn);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
