/**
 * Reading retained messages: one reading at a time, because several at once fill the queue that a broker keeps for a client (mosquitto drops
 * what exceeds it), and each to its end, as far as it can be known. Owns the turns of one connection.
 */
import type { BrokerMessage } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import type { Marker } from './marker.ts';

const quietMs = 500;
const quietTries = 20;

export class Snapshots {
  #last: Promise<unknown> = Promise.resolve();
  #retainedSeen = 0;

  constructor(
    private readonly clock: Clock,
    readonly marker: Marker,
  ) {}

  /** A message that arrived, whatever it is. */
  see(m: BrokerMessage): void {
    if (m.retain) this.#retainedSeen++;
  }

  /** Runs `work` when all readings asked for before have ended, well or not. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work);
    this.#last = mine;
    return mine;
  }

  /** aedes lets the marker pass its retained messages by: the snapshot has ended when none came for a moment. */
  async quiet(): Promise<void> {
    for (let i = 0; i < quietTries; i++) {
      const before = this.#retainedSeen;
      await this.clock.sleep(quietMs);
      if (this.#retainedSeen === before) return;
    }
  }
}
