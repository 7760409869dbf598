/**
 * What one connection says of the node itself: birth, heartbeat, will and farewell, with the number of its session. It speaks in one of two
 * voices: as the node, or aside on `duplicates/<machine>` while the name may be another's. Owns nothing; when to speak is the link's business.
 */
import type { NodeOnline } from '../api/payloads.ts';
import { expirySeconds, type NodeTopics } from '../api/topics.ts';
import type { ConnectOptions } from '../world/broker.ts';
import { onlinePayload } from './online.ts';
import type { Sender } from './sender.ts';
import type { SessionIdentity, SessionState } from './words.ts';

export interface VoiceDeps {
  readonly topics: NodeTopics;
  readonly identity: SessionIdentity;
  readonly state: SessionState;
  readonly sender: Sender;
  readonly heartbeatSeconds: () => number;
  readonly agentVersion: string;
  readonly clockSynced: () => boolean;
  readonly seq: () => number;
}

const willDelaySeconds = 30;

export class Voice {
  constructor(
    private readonly deps: VoiceDeps,
    private readonly session: number,
  ) {}

  /** What the broker says for us when we cannot: made before CONNECT, with this session's number. */
  will(): ConnectOptions['will'] {
    return {
      topic: this.#topic(),
      payload: this.#payload('lost'),
      qos: 1,
      retain: true,
      delaySeconds: willDelaySeconds,
      expirySeconds: this.#lastExpiry(),
    };
  }

  /** Resolves at PUBACK. Expires after three heartbeats. */
  online(): Promise<void> {
    return this.#say('online', 3 * this.deps.heartbeatSeconds());
  }

  duplicate(): Promise<void> {
    return this.#say('duplicate', expirySeconds.duplicate);
  }

  offline(): Promise<void> {
    return this.#say('offline', this.#lastExpiry());
  }

  /** The node is no part of the fleet any more. */
  clear(): Promise<void> {
    return this.deps.sender.urgent(this.#topic(), '', { qos: 1, retain: true });
  }

  #say(state: NodeOnline['state'], expiry: number): Promise<void> {
    return this.deps.sender.urgent(this.#topic(), this.#payload(state), { qos: 1, retain: true, expirySeconds: expiry });
  }

  #lastExpiry(): number {
    return this.deps.state.mode === 'normal' ? expirySeconds.will : expirySeconds.duplicate;
  }

  #topic(): string {
    const { identity, state, topics } = this.deps;
    return state.mode === 'normal' ? topics.online : topics.duplicate(identity.machine);
  }

  #payload(state: NodeOnline['state']): string {
    const { agentVersion, clockSynced, heartbeatSeconds, identity, seq } = this.deps;
    return onlinePayload(state, {
      node: identity.nodeName,
      machine: identity.machine,
      bootID: identity.bootId,
      session: this.session,
      heartbeatSeconds: heartbeatSeconds(),
      agentVersion,
      clockSynced: clockSynced(),
      boot: identity.boot(),
      seq: seq(),
    });
  }
}
