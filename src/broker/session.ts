/**
 * The node's session with its broker, over any number of connections: what is to be told survives them, and nothing of it is lost or told
 * twice for no reason. With no broker in reach the agent runs as always; `conditions()` says what is wrong.
 * Owns the retained map, the ring of events and the state that outlives a connection; connections are `Link`s, which server and when is the
 * `Connector`'s, what is on the wire the `Sender`'s. Never decides what a pod's status is, and never restarts anything.
 * Mirrors "Session" of the MQTT contract.
 */
import { type NodeTopics, nodeTopics } from '../api/topics.ts';
import { isAbort } from '../async/abort.ts';
import { BrokerError, type DropReason, maxInboundBytes } from '../world/broker.ts';
import { Connector, type ConnectorDeps } from './connector.ts';
import type { Inbox, ReplyOptions } from './inbox.ts';
import { Link } from './link.ts';
import { Reads } from './reads.ts';
import { RetainedTopics, type TellOptions } from './retained.ts';
import { MessageRing } from './ring.ts';
import { type MessageReport, Sender } from './sender.ts';
import type { LinkEnd, SessionIdentity, SessionState } from './words.ts';

export interface BrokerSessionDeps extends Omit<ConnectorDeps, 'nodeName'> {
  readonly identity: SessionIdentity;
  /** `podsched/v1`. */
  readonly prefix: string;
  readonly heartbeatSeconds: () => number;
  readonly agentVersion: string;
  readonly clockSynced: () => boolean;
  /** max(last + 1, CLOCK_MONOTONIC in µs). */
  readonly seq: () => number;
  /** Who is told of what arrives on followed and fetched topics. */
  readonly inbox?: Inbox;
  /** A message that was dropped, cut out or refused: for an event and the log. */
  readonly report: (r: MessageReport) => void;
  /** Something arrived that nobody is given, in words: for an event. */
  readonly notTaken?: (message: string) => void;
  /** Events kept while the broker is away; default 200. */
  readonly ringCapacity?: number;
  /** At each heartbeat, after `online` was said: for `summary`. */
  readonly onHeartbeat?: () => void;
  /** 2 s after each connect: whatever else should be said once more (`info` is, by itself). */
  readonly onSettled?: () => void;
  /** The lost boot counter is another than was thought: payloads made so far carry the wrong one, and none was told yet. */
  readonly onBootAdopted?: () => void;
}

const forgetMs = 30_000;
const forgetLookMs = 100;

/** Something that is not as it should be, for the node's conditions. */
export interface SessionCondition {
  readonly type: 'BrokerUnreachable' | 'BrokerRefusesWrites' | 'BrokerRefusesReads' | 'DuplicateNode';
  readonly reason: string;
  readonly message: string;
}

export class BrokerSession {
  readonly topics: NodeTopics;
  #retained: RetainedTopics;
  #ring: MessageRing;
  #sender: Sender;
  #connector: Connector;
  #state: SessionState;
  #link: Link | undefined;
  #connected = false;
  #lastSession = 0;
  /** The node's topics are being cleared for good. */
  #forgetting = false;
  #stop = new AbortController();
  #droppedTold = 0;
  #reads = new Reads();
  #inbound: Record<DropReason, number> = { size: 0, topic: 0, properties: 0 };
  #droppedBy = new Map<DropReason, number>();

  constructor(private readonly deps: BrokerSessionDeps) {
    const { clock, identity, log, prefix, random, ringCapacity = 200 } = deps;
    const report = (r: MessageReport) => {
      log.warn(r, 'a message is not told');
      deps.report(r);
    };
    this.topics = nodeTopics(prefix, identity.nodeName);
    this.#retained = new RetainedTopics(random);
    this.#ring = new MessageRing(ringCapacity);
    this.#sender = new Sender({ clock, retained: this.#retained, ring: this.#ring, report, wakeAt: (at) => this.#link?.wakeSender(at) });
    this.#connector = new Connector({ ...deps, nodeName: identity.nodeName });
    this.#state = { mode: 'normal', ready: false, ghostsDue: true, suspectUntil: 0, other: undefined, unread: false, first: true };
  }

  /** The last value of a retained topic; undefined clears it. Told when PUBACK came, however long that takes. */
  tell(topic: string, payload: string | undefined, options: TellOptions): void {
    if (this.#forgetting && payload !== undefined) return;
    if (this.#retained.set(topic, payload, options)) this.#sender.kick();
  }

  /** A message that is not retained; while the broker is away the newest ones are kept. */
  send(topic: string, payload: string, options: TellOptions): void {
    this.#ring.push(topic, payload, options, this.deps.clock.monotonic());
    this.#sender.kick();
  }

  /** Connects, tells and connects again until `stop()` or abort (which is the same: the node leaves with `offline`). */
  async run(signal: AbortSignal): Promise<void> {
    const { identity, servers } = this.deps;
    if (servers.length === 0) return;
    this.#state.mode = identity.rightful() ? 'normal' : 'listening';
    const stop = () => void this.stop();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) await this.stop();
    try {
      while (!this.#stop.signal.aborted) await this.#oneConnection();
    } catch (e) {
      if (!isAbort(e)) throw e;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /**
   * The filters to be followed, the whole list, in order: subscribed on each connection, one SUBSCRIBE at a time, with a marker after each; what
   * is new is subscribed, what is gone unsubscribed. What comes goes to the inbox. Nothing is followed while the name may be another machine's.
   */
  follow(filters: readonly string[]): void {
    this.#reads.follow(filters);
    this.#link?.following.changed();
  }

  /**
   * Asks for what is retained under these very topics. Resolves when all answers that will come have come, as messages of the inbox; rejects with
   * BrokerError when the connection ends, or when there is none.
   */
  fetch(topics: readonly string[]): Promise<void> {
    return this.#link?.fetch(topics) ?? Promise.reject(new BrokerError('not connected'));
  }

  /**
   * QoS 1, not retained, ahead of statuses. Resolves at PUBACK; rejects with BrokerError when the connection ends or the broker refuses it
   * (0x95: larger than `largestMessage()`). Never sent again on another connection.
   */
  reply(topic: string, payload: string, o: ReplyOptions): Promise<void> {
    if (this.#state.mode !== 'normal') return Promise.reject(new BrokerError('the name may be the one of another machine'));
    return this.#sender.reply(topic, payload, o);
  }

  /** The number of the current connection, as its `online` says it; undefined: not connected. */
  session(): number | undefined {
    return this.#connected ? this.#link?.session : undefined;
  }

  /** How large a payload on `topic` may be now, in bytes: the contract's limit, or what this broker takes. */
  largestMessage(topic: string): number {
    return this.#sender.largestMessage(topic);
  }

  /** `heartbeatSeconds` is another now: said at once, and the next beat comes by it. */
  heartbeatChanged(): void {
    this.#link?.beat();
  }

  /** The addresses that the node has now, loopback included: a connection from another one is given up at once, not when its keepalive fails. */
  addressesAre(addresses: readonly string[]): void {
    this.#link?.moved(addresses).catch((error) => this.deps.log.debug({ error }, 'the connection was gone already'));
  }

  /** `offline`, DISCONNECT, and no further connection. Resolves within seconds whatever the broker does. */
  async stop(): Promise<void> {
    const link = this.#link;
    this.#stop.abort();
    await link?.leave();
  }

  /** The last value of a topic once more, unchanged as it is. */
  again(topic: string): void {
    this.#retained.touch(topic);
    this.#sender.kick();
  }

  /**
   * Clears all that stands under this node's name, its `online` last, and leaves the broker until the agent starts anew. Rejects when the broker
   * does not take it in half a minute, or is not there: what stands then stays.
   */
  async forget(): Promise<void> {
    const { clock } = this.deps;
    this.#forgetting = true;
    this.#retained.clear();
    this.#sender.kick();
    for (let waited = 0; this.#retained.dirtyCount > 0; waited += forgetLookMs) {
      if (waited >= forgetMs) throw new BrokerError(`${this.#retained.dirtyCount} topics could not be cleared`);
      await clock.sleep(forgetLookMs);
    }
    const link = this.#link;
    this.#stop.abort();
    await link?.leave({ cleared: true });
  }

  connected(): boolean {
    return this.#connected;
  }

  /** All sources are ready: what is retained and unknown may be cleared. */
  setReady(): void {
    this.#state.ready = true;
    this.#link?.readGhosts();
  }

  /** Everything is told again, and the own subtree read again; what the broker refused or we gave up gets another chance. */
  resync(): void {
    this.#retained.forgive();
    this.#retained.spread(true, this.deps.clock.monotonic());
    this.#state.ghostsDue = true;
    this.#sender.kick();
    this.#link?.following.askAgain(Number.POSITIVE_INFINITY);
    this.#link?.readGhosts();
  }

  /** What is wrong now; empty when all is well. */
  conditions(): readonly SessionCondition[] {
    const found: SessionCondition[] = [];
    const { mode, other, suspectUntil, unread } = this.#state;
    const trouble = this.#connector.trouble;
    if (trouble !== undefined) found.push({ type: 'BrokerUnreachable', ...trouble });
    const refused = this.#retained.refusedTopic();
    if (unread) {
      const message = `${this.topics.online} does not come back: may this user write and read below nodes/${this.deps.identity.nodeName}?`;
      found.push({ type: 'BrokerRefusesWrites', reason: 'OnlineNotReadBack', message });
    } else if (refused !== undefined) {
      found.push({ type: 'BrokerRefusesWrites', reason: 'PublishRefused', message: `the broker refuses ${refused}` });
    }
    if (this.#link?.markerLate()) {
      const message = `${this.topics.marker} does not come back: may this user write and read below nodes/${this.deps.identity.nodeName}?`;
      found.push({ type: 'BrokerRefusesWrites', reason: 'MarkerNotReadBack', message });
    }
    const unreadable = this.#reads.trouble();
    if (unreadable !== undefined) found.push({ type: 'BrokerRefusesReads', reason: 'SubscriptionRefused', message: unreadable });
    if (mode === 'duplicate') {
      found.push({
        type: 'DuplicateNode',
        reason: 'NameTaken',
        message: `machine ${other} is online under this name; this one (${this.deps.identity.machine}) tells nothing under it`,
      });
    } else if (mode === 'listening') {
      found.push({
        type: 'DuplicateNode',
        reason: 'Listening',
        message: 'the identity file names another machine: waiting whether it is online',
      });
    } else if (other !== undefined && this.deps.clock.monotonic() < suspectUntil) {
      found.push({
        type: 'DuplicateNode',
        reason: 'AnotherMachine',
        message: `machine ${other} is, or was a moment ago, online under this name`,
      });
    }
    return found;
  }

  /** Numbers for the local API and metrics. */
  counters(): {
    readonly retainedTopics: number;
    readonly dirtyTopics: number;
    readonly eventsWaiting: number;
    readonly eventsDropped: number;
    /** Messages that arrived and were given to nobody, by why. */
    readonly inboundDropped: Readonly<Record<DropReason, number>>;
  } {
    return {
      retainedTopics: this.#retained.size,
      dirtyTopics: this.#retained.dirtyCount,
      eventsWaiting: this.#ring.length,
      eventsDropped: this.#ring.dropped,
      inboundDropped: { ...this.#inbound },
    };
  }

  /** Whose topic it was nobody knows: it was not read. Told once for each connection and reason. */
  #countDropped(reason: DropReason): void {
    this.#inbound[reason]++;
    if (this.#droppedBy.get(reason) === this.#lastSession) return;
    this.#droppedBy.set(reason, this.#lastSession);
    const why = { size: `more than ${maxInboundBytes} bytes`, topic: 'a topic that is no text', properties: 'malformed properties' }[
      reason
    ];
    this.deps.log.warn({ reason }, 'a message from the broker is not taken');
    this.deps.notTaken?.(`a message with ${why} came and was not read`);
  }

  async #oneConnection(): Promise<void> {
    const { log } = this.deps;
    let link: Link | undefined;
    const connection = await this.#connector.connect(() => {
      link = this.#newLink();
      return { will: link.will(), cleanStart: this.#state.mode !== 'normal', handlers: link.handlers };
    }, this.#stop.signal);
    if (link === undefined) return;
    this.#link = link;
    this.#connected = true;
    log.info(
      { protocolVersion: connection.protocolVersion, sessionPresent: connection.sessionPresent, session: link.session },
      'connected to the broker',
    );
    if (this.#ring.dropped > this.#droppedTold)
      log.warn({ dropped: this.#ring.dropped - this.#droppedTold }, 'events were dropped while the broker was away');
    this.#droppedTold = this.#ring.dropped;
    const ended = link.open(connection);
    // stop() came between CONNACK and here, and found no link to say farewell on
    if (this.#stop.signal.aborted) await link.leave();
    const end: LinkEnd = await ended;
    this.#link = undefined;
    this.#connected = false;
    if (!this.#stop.signal.aborted) this.#connector.ended(end.by === 'broker' ? end.error : undefined, end.by === 'broker');
  }

  #newLink(): Link {
    const { clock } = this.deps;
    // rises with each CONNECT, over agent restarts too: CLOCK_MONOTONIC does, and two within one millisecond differ
    this.#lastSession = Math.max(this.#lastSession + 1, Math.floor(clock.monotonic()));
    return new Link(
      {
        ...this.deps,
        topics: this.topics,
        state: this.#state,
        retained: this.#retained,
        sender: this.#sender,
        reads: this.#reads,
        onDropped: (reason) => this.#countDropped(reason),
        stable: () => this.#connector.stable(),
        onHeartbeat: this.deps.onHeartbeat ?? (() => {}),
        onSettled: this.deps.onSettled ?? (() => {}),
        onBootAdopted: this.deps.onBootAdopted ?? (() => {}),
      },
      this.#lastSession,
    );
  }
}
