/** Many writers, one reader: what was pushed comes out in order, and the reader sleeps while there is nothing. */
export class Mailbox<T> {
  #queue: T[] = [];
  #wake: (() => void) | undefined;

  push(item: T): void {
    this.#queue.push(item);
    this.#wake?.();
    this.#wake = undefined;
  }

  get length(): number {
    return this.#queue.length;
  }

  /** The items as they come; ends when aborted. */
  async *read(signal: AbortSignal): AsyncGenerator<T> {
    const stop = () => this.#wake?.();
    signal.addEventListener('abort', stop);
    try {
      while (!signal.aborted) {
        const batch = this.#queue;
        if (batch.length === 0) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          continue;
        }
        this.#queue = [];
        for (const item of batch) {
          if (signal.aborted) return;
          yield item;
        }
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}
