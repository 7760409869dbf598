/**
 * Reading what the broker retains under this node's name: ghosts are cleared, what is missing or differs is told again. Owns one reading at a
 * time; what the reading shows is judged in `ghosts.ts`, and what follows from it goes through the retained map like everything else.
 */
import type { NodeTopics } from '../api/topics.ts';
import { type BrokerConnection, BrokerError, type BrokerMessage } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import { OwnSubtree } from './ghosts.ts';
import type { Marker } from './marker.ts';
import type { RetainedTopics } from './retained.ts';
import type { Sender } from './sender.ts';
import type { SessionIdentity, SessionState } from './words.ts';

export interface SubtreeReaderDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly topics: NodeTopics;
  readonly identity: SessionIdentity;
  readonly state: SessionState;
  readonly retained: RetainedTopics;
  readonly sender: Sender;
  readonly marker: Marker;
}

const quietMs = 500;
const quietTries = 20;

export class SubtreeReader {
  #seen: OwnSubtree | undefined;
  #retainedSeen = 0;
  #stopped = false;

  constructor(private readonly deps: SubtreeReaderDeps) {}

  get reading(): boolean {
    return this.#seen !== undefined;
  }

  /** The connection is gone: a reading on its way comes to nothing. */
  stop(): void {
    this.#stopped = true;
  }

  /** A message that arrived, whatever it is. */
  see(m: BrokerMessage): void {
    if (m.retain) this.#retainedSeen++;
    this.#seen?.see(m.topic, m.payload, m.retain);
  }

  /** Reads up to the marker and acts, unless a duplicate came to be suspected meanwhile. Rejects when the connection goes. */
  async read(connection: BrokerConnection): Promise<void> {
    const { clock, identity, log, marker, retained, sender, state, topics } = this.deps;
    const root = topics.subtree.slice(0, -'/#'.length);
    const seen = new OwnSubtree(root, (t) => retained.payload(t), new Set([identity.machine, ...identity.formerMachines()]));
    this.#seen = seen;
    try {
      if (!(await readable(connection.subscribe([topics.subtree], 1)))) {
        // the ACL forbids it: ghosts stay until it allows, everything else goes on
        log.warn({ filter: topics.subtree }, 'the own subtree cannot be read: retained topics of removed pods may remain');
        return;
      }
      await marker.wait(Number.POSITIVE_INFINITY);
      await this.#quiet();
      if (this.#stopped) return;
      if (state.mode === 'normal' && clock.monotonic() >= state.suspectUntil) {
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

  /** aedes lets the marker pass its retained messages by: the snapshot has ended when none came for a moment. */
  async #quiet(): Promise<void> {
    for (let i = 0; i < quietTries; i++) {
      const before = this.#retainedSeen;
      await this.deps.clock.sleep(quietMs);
      if (this.#retainedSeen === before) return;
    }
  }
}

/** False when the broker refuses the subscription; the connection going is thrown on. */
export async function readable(subscription: Promise<void>): Promise<boolean> {
  try {
    await subscription;
    return true;
  } catch (e) {
    if (e instanceof BrokerError && e.code !== undefined) return false;
    throw e;
  }
}
