/** The rollouts that stand at the broker, as far as anybody needs them here. They are not stored: what was taken once waits for nobody. */
import type { Rollout } from '../api/messages.ts';
import type { Problem } from '../api/objects.ts';
import { type Arrival, openWords } from './remoteReader.ts';
import { readRollout } from './rollouts.ts';

const mostRollouts = 200;

export class RemoteRollouts {
  #byId = new Map<string, Rollout>();

  get byId(): ReadonlyMap<string, Rollout> {
    return this.#byId;
  }

  /** What its topic says now, and what is wrong with it: then the one that was there before stands. */
  take(id: string, arrival: Arrival): readonly Problem[] {
    if (arrival.bytes === 0) {
      this.#byId.delete(id);
      return [];
    }
    const opened = openWords('mqtt:all', 'config', arrival, { policy: {} });
    if ('reason' in opened) return opened.problems;
    const read = readRollout(opened.value, id);
    if (!read.ok) return read.problems;
    this.#byId.delete(id);
    this.#byId.set(id, read.rollout);
    for (const oldest of this.#byId.keys()) {
      if (this.#byId.size <= mostRollouts) break;
      this.#byId.delete(oldest);
    }
    return [];
  }

  clear(): void {
    this.#byId.clear();
  }
}
