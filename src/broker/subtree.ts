/**
 * Reading what the broker retains under this node's name: ghosts are cleared, what is missing or differs is told again. Owns one reading at a
 * time; what the reading shows is judged in `ghosts.ts`, and what follows from it goes through the retained map like everything else.
 */
import type { NodeTopics } from '../api/topics.ts';
import { type BrokerConnection, BrokerError, type BrokerMessage } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import { OwnSubtree } from './ghosts.ts';
import type { RetainedTopics } from './retained.ts';
import type { Sender } from './sender.ts';
import type { Snapshots } from './snapshots.ts';
import type { SessionIdentity, SessionState } from './words.ts';

export interface SubtreeReaderDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly topics: NodeTopics;
  readonly identity: SessionIdentity;
  readonly state: SessionState;
  readonly retained: RetainedTopics;
  readonly sender: Sender;
  readonly snapshots: Snapshots;
  /** Awaits a SUBACK; a refusal is told, and asked about again. */
  readonly granted: (filter: string, subscription: Promise<void>) => Promise<boolean>;
}

/** A minute without the marker: nothing is cleared, and nothing else is kept waiting for it. */
const markerTries = 6;

export class SubtreeReader {
  #seen: OwnSubtree | undefined;
  #reading = false;
  #stopped = false;

  constructor(private readonly deps: SubtreeReaderDeps) {}

  get reading(): boolean {
    return this.#reading;
  }

  /** The connection is gone: a reading on its way comes to nothing. */
  stop(): void {
    this.#stopped = true;
  }

  /** A message that arrived, whatever it is. */
  see(m: BrokerMessage): void {
    this.#seen?.see(m.topic, m.payload, m.retain);
  }

  /** Reads up to the marker and acts, unless a duplicate came to be suspected meanwhile. Rejects when the connection goes. */
  async read(connection: BrokerConnection): Promise<void> {
    this.#reading = true;
    try {
      await this.deps.snapshots.turn(() => this.#read(connection));
    } finally {
      this.#reading = false;
    }
  }

  async #read(connection: BrokerConnection): Promise<void> {
    const { clock, granted, identity, log, retained, sender, snapshots, state, topics } = this.deps;
    const root = topics.subtree.slice(0, -'/#'.length);
    const seen = new OwnSubtree(root, (t) => retained.payload(t), new Set([identity.machine, ...identity.formerMachines()]));
    this.#seen = seen;
    try {
      // when the ACL forbids it, ghosts stay until it allows, and everything else goes on
      if (!(await granted(topics.subtree, connection.subscribe([topics.subtree], 1)))) return;
      const ended = await snapshots.marker.wait(markerTries);
      if (!ended) log.warn({ topic: topics.marker }, 'the marker does not come back: retained topics of removed pods may remain');
      else await snapshots.quiet();
      if (this.#stopped) return;
      if (ended && state.mode === 'normal' && clock.monotonic() >= state.suspectUntil) {
        state.ghostsDue = false;
        const plan = seen.plan(retained.toldTopics());
        if (plan.clear.length > 0) log.info({ topics: plan.clear }, 'retained topics that nobody tells any more are cleared');
        for (const topic of plan.clear) retained.set(topic, undefined, { qos: 1 });
        for (const topic of plan.publish) retained.touch(topic);
        sender.kick();
      }
      await connection.unsubscribe([topics.subtree]);
    } finally {
      this.#seen = undefined;
    }
  }
}

/** The code with which the broker refuses the subscription; undefined: granted. The connection going is thrown on. */
export async function refusedCode(subscription: Promise<void>): Promise<number | undefined> {
  try {
    await subscription;
    return undefined;
  } catch (e) {
    if (e instanceof BrokerError && e.code !== undefined) return e.code;
    throw e;
  }
}
