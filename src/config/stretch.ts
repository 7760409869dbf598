/** Long work in stretches: in between, whoever else waits has a turn. */
import type { Clock, Monotonic } from '../world/clock.ts';

const stretchMs = 8;

export class Stretch {
  #from: Monotonic | undefined;

  constructor(private readonly clock: Clock) {}

  /** Called between two pieces of work; waits only when the stretch is long enough. */
  async breathe(): Promise<void> {
    this.#from ??= this.clock.monotonic();
    if (this.clock.monotonic() - this.#from < stretchMs) return;
    await this.clock.sleep(0);
    this.#from = this.clock.monotonic();
  }
}
