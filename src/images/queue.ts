/** Pulls one after the other (or a few at a time): a slow card and a thin line carry one well and five badly. */
export class PullQueue {
  #running = 0;
  #waiting: (() => void)[] = [];

  /** `limit`: how many at once; Infinity: all. */
  constructor(private readonly limit: number) {}

  /**
   * Runs `work` when it is its turn, and tells it whether it had to wait. Aborted while it waits, it leaves the queue and rejects with the
   * signal's reason.
   */
  async run<T>(work: (waited: boolean) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const waits = this.#running >= this.limit;
    if (waits) await this.#turn(signal);
    else this.#running++;
    try {
      return await work(waits);
    } finally {
      // the place is handed on, so that nobody who comes now gets in between
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#waiting = this.#waiting.filter((w) => w !== enter);
        reject(signal.reason);
      };
      const enter = (): void => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      this.#waiting.push(enter);
      signal.addEventListener('abort', stop, { once: true });
    });
  }
}
