/**
 * Asking for what is retained under exact topics: mosquitto's default queue drops what exceeds 1,020 messages of one filter, the same ones each
 * time, so what an index lists and the snapshot did not bring is asked for by name. Eight in a SUBSCRIBE, a marker, UNSUBSCRIBE. Owns the batch
 * that is out; whether an answer is right is judged elsewhere.
 */
import type { BrokerConnection } from '../world/broker.ts';
import type { Log } from '../world/log.ts';
import { filtersAtOnce, isTopic } from './filters.ts';
import type { Reads } from './reads.ts';
import type { Snapshots } from './snapshots.ts';
import { refusedCode } from './subtree.ts';

/** A minute without the marker: whatever has not come by then does not come. */
const markerTries = 6;

export interface FetchingDeps {
  readonly log: Log;
  readonly reads: Reads;
  readonly snapshots: Snapshots;
}

export class Fetching {
  /** Topics of the batch that is out, and whether a message came. */
  #out = new Map<string, boolean>();

  constructor(private readonly deps: FetchingDeps) {}

  /** Was this topic asked for? */
  answers(topic: string): boolean {
    if (!this.#out.has(topic)) return false;
    this.#out.set(topic, true);
    return true;
  }

  /** Resolves when all answers that will come have come. Rejects with BrokerError when the connection ends. */
  async fetch(connection: BrokerConnection, topics: readonly string[]): Promise<void> {
    const exact = [...new Set(topics)].filter(isTopic);
    for (let i = 0; i < exact.length; i += filtersAtOnce) {
      const batch = exact.slice(i, i + filtersAtOnce);
      await this.deps.snapshots.turn(() => this.#fetchBatch(connection, batch));
    }
  }

  async #fetchBatch(connection: BrokerConnection, batch: readonly string[]): Promise<void> {
    const { log, reads, snapshots } = this.deps;
    this.#out = new Map(batch.map((topic) => [topic, false]));
    try {
      const code = await refusedCode(connection.subscribe(batch, 1));
      if (code !== undefined) log.warn({ topics: batch, code }, 'the broker refuses to let these topics be read');
      await snapshots.marker.wait(markerTries);
      // what has answered is through; only what is missing may be on its way still
      if ([...this.#out.values()].includes(false)) await snapshots.quiet();
      const ended = batch.filter((topic) => !reads.follows(topic));
      if (ended.length > 0) await connection.unsubscribe(ended);
    } finally {
      this.#out = new Map();
    }
  }
}
