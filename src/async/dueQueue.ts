// pure
/**
 * Which of many comes next, and when: a binary heap of moments, because with 1,500 topics looking at all of them for each message takes seconds
 * on a small board. A key set anew leaves its old entry behind until it comes up or there are too many of them. Owns no timer: `Deadlines` has.
 */
interface Item<K, M> {
  readonly key: K;
  readonly at: M;
  readonly order: number;
}

export class DueQueue<K, M extends number = number> {
  /** Which entries of the heap are meant. */
  #items = new Map<K, Item<K, M>>();
  #heap: Item<K, M>[] = [];
  #order = 0;

  /** Replaces the moment of `key`. Equal moments come in the order they were set. */
  set(key: K, at: M): void {
    if (this.#items.get(key)?.at === at) return;
    const item = { key, at, order: this.#order++ };
    this.#items.set(key, item);
    this.#push(item);
    // an ordered list is a heap
    if (this.#heap.length > 2 * this.#items.size + 16) this.#heap = [...this.#items.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  /** False: there was none. */
  delete(key: K): boolean {
    return this.#items.delete(key);
  }

  at(key: K): M | undefined {
    return this.#items.get(key)?.at;
  }

  /** In no order. */
  keys(): K[] {
    return [...this.#items.keys()];
  }

  first(): { readonly key: K; readonly at: M } | undefined {
    for (;;) {
      const top = this.#heap[0];
      if (top === undefined || this.#items.get(top.key) === top) return top;
      this.#pop();
    }
  }

  #push(item: Item<K, M>): void {
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

const isBefore = (a: Item<unknown, number>, b: Item<unknown, number>): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
