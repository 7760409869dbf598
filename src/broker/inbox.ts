// pure
/** What the node hears beside its own topics, and who is told of it: desired state, rollouts, commands. */

/** A message on a followed or fetched topic. Its bytes are whatever somebody sent: judged by whoever takes it. */
export interface Inbound {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly retain: boolean;
  readonly responseTopic?: string;
  readonly correlationData?: Uint8Array;
  /** Before the first marker of this connection came back: it may have been queued while the node was away. */
  readonly queued: boolean;
}

/** Called in the order of arrival. What it throws is logged, and ends nothing. */
export interface Inbox {
  message(m: Inbound): void;
  /** On this connection the snapshot of these filters has ended (its marker came back). */
  snapshot(filters: readonly string[]): void;
  /** Only as the node: not while the name may be another machine's. */
  connected(o: { readonly sessionPresent: boolean; readonly session: number }): void;
  /** Once for each `connected`. */
  disconnected(): void;
}

/** A reply to a command. */
export interface ReplyOptions {
  readonly correlationData?: Uint8Array;
  readonly expirySeconds: number;
  /** Default 1. */
  readonly qos?: 0 | 1;
}
