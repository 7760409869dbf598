/** At most so many at once, a short row that waits, and no more: who comes then is turned away. Owns the row. */
export class Gate {
  #running = 0;
  #waiting: (() => Promise<void>)[] = [];

  constructor(
    private readonly atOnce: number,
    private readonly inRow: number,
  ) {}

  /** Who comes now is turned away. */
  get full(): boolean {
    return this.#running >= this.atOnce && this.#waiting.length >= this.inRow;
  }

  /** Not while it is full. The work must not reject. */
  enter(work: () => Promise<void>): 'begun' | 'waits' {
    if (this.#running >= this.atOnce) {
      this.#waiting.push(work);
      return 'waits';
    }
    void this.#run(work);
    return 'begun';
  }

  /** A slot is taken over by whoever waits longest. */
  async #run(work: () => Promise<void>): Promise<void> {
    this.#running++;
    for (let next: (() => Promise<void>) | undefined = work; next !== undefined; next = this.#waiting.shift()) await next();
    this.#running--;
  }
}
