// pure
/**
 * Which of many comes next, and when: a heap of moments, because with 1,500 topics looking at all of them for each message takes seconds on a
 * small board. A key set anew leaves its old entry behind until it comes up or there are too many of them.
 */
interface Item {
  readonly key: string;
  readonly at: number;
  readonly order: number;
}

export class DueQueue {
  #moments = new Map<string, Item>();
  #heap: Item[] = [];
  #order = 0;

  /** Replaces the moment of `key`. Equal moments come in the order they were set. */
  set(key: string, at: number): void {
    if (this.#moments.get(key)?.at === at) return;
    const item = { key, at, order: this.#order++ };
    this.#moments.set(key, item);
    this.#push(item);
    // an ordered list is a heap
    if (this.#heap.length > 2 * this.#moments.size + 16) this.#heap = [...this.#moments.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  delete(key: string): void {
    this.#moments.delete(key);
  }

  first(): { readonly key: string; readonly at: number } | undefined {
    for (;;) {
      const top = this.#heap[0];
      if (top === undefined || this.#moments.get(top.key) === top) return top;
      this.#pop();
    }
  }

  #push(item: Item): void {
    const heap = this.#heap;
    let i = heap.push(item) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || isBefore(parent, item)) break;
      heap[i] = parent;
      i = up;
    }
    heap[i] = item;
  }

  #pop(): void {
    const heap = this.#heap;
    const item = heap.pop();
    if (item === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let below = 2 * i + 1;
      let child = heap[below];
      const right = heap[below + 1];
      if (child !== undefined && right !== undefined && isBefore(right, child)) {
        child = right;
        below += 1;
      }
      if (child === undefined || isBefore(item, child)) break;
      heap[i] = child;
      i = below;
    }
    heap[i] = item;
  }
}

const isBefore = (a: Item, b: Item): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
