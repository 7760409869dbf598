/**
 * A broker in memory, behind the Broker port: retained store with expiry, sessions with queues, wills with delay, taking over, CONNACK codes,
 * and control over what a test cares about: PUBACKs (`onPublish`), being down, being emptied, cutting connections. State + calls + faults.
 * Everything is delivered by promises alone, so that it works in virtual time.
 */

import { isAbort } from '../../src/async/abort.ts';
import {
  type Broker,
  type BrokerConnection,
  BrokerError,
  type BrokerHandlers,
  type BrokerMessage,
  type ConnectOptions,
  maxInboundBytes,
  type PublishOptions,
  type SubscribeOptions,
} from '../../src/world/broker.ts';
import type { Clock } from '../../src/world/clock.ts';

export interface FakePublish {
  readonly clientId: string;
  readonly topic: string;
  readonly payload: string;
  readonly qos: 0 | 1;
  readonly retain: boolean;
  readonly expirySeconds?: number;
  readonly responseTopic?: string;
  /** As text. */
  readonly correlationData?: string;
  /** Clock's monotonic ms. */
  readonly at: number;
}

/** `hold`: stored, PUBACK at `release()`; `cut`: stored, then the connection breaks before PUBACK; `lose`: not stored, PUBACK never; `swallow`: acknowledged and not stored, as 3.1.1 brokers answer what the ACL forbids; a number: PUBACK with that code, not stored. */
export type PublishFate = 'ack' | 'hold' | 'lose' | 'swallow' | 'cut' | { readonly closeWith: number | undefined } | number;

/** What travels with a message in MQTT 5. */
type Properties = Pick<BrokerMessage, 'responseTopic' | 'correlationData'>;

interface Retained extends Properties {
  readonly payload: string;
  readonly bytes: Uint8Array;
  readonly expiresAt: number;
}

interface Session {
  readonly filters: Map<string, 0 | 1>;
  /** Retain as published. */
  readonly asPublished?: Set<string>;
  readonly queue: ({ readonly topic: string; readonly payload: Uint8Array } & Properties)[];
  connection: FakeConnection | undefined;
}

export class FakeBroker implements Broker {
  readonly retained = new Map<string, Retained>();
  readonly sessions = new Map<string, Session>();
  /** Every CONNECT that reached the broker, refused ones too. */
  readonly connects: { readonly at: number; readonly options: ConnectOptions }[] = [];
  readonly publishes: FakePublish[] = [];
  readonly subscribes: { readonly clientId: string; readonly filters: readonly string[] }[] = [];
  readonly unsubscribes: { readonly clientId: string; readonly filters: readonly string[] }[] = [];
  /** Connection refused for everybody. */
  down = false;
  /** CONNACK code by options; undefined: taken. */
  connackCode: (o: ConnectOptions) => number | undefined = () => undefined;
  /** Taken, then closed at once. */
  dropAfterConnack = false;
  onPublish: (p: FakePublish) => PublishFate = () => 'ack';
  /** SUBACK code for a filter; undefined: granted. */
  onSubscribe: (clientId: string, filter: string) => number | undefined = () => undefined;
  /** What a SUBSCRIBE ends the connection for, as AWS IoT does. */
  hangsUpOn: (filter: string) => boolean = () => false;
  /** How many retained messages of one filter reach a subscriber: mosquitto's queue drops the rest. */
  queueLimit = Number.POSITIVE_INFINITY;
  maximumPacketBytes: number | undefined;
  #held: (() => void)[] = [];
  #wills = new Map<string, AbortController>();

  constructor(private readonly clock: Clock) {}

  async connect(options: ConnectOptions, handlers: BrokerHandlers, signal?: AbortSignal): Promise<BrokerConnection> {
    await Promise.resolve();
    signal?.throwIfAborted();
    if (this.down) throw new BrokerError('connect ECONNREFUSED');
    this.connects.push({ at: this.clock.monotonic(), options });
    const code = this.connackCode(options);
    if (code !== undefined) throw new BrokerError(`connection refused: ${code}`, code);
    const before = this.sessions.get(options.clientId);
    before?.connection?.break(options.protocolVersion === 5 ? 0x8e : undefined, true);
    // connecting again within the delay takes the will back
    this.#wills.get(options.clientId)?.abort();
    const clean = options.protocolVersion === 4 || options.cleanStart;
    const kept = clean ? undefined : before;
    const session: Session = kept ?? { filters: new Map(), asPublished: new Set(), queue: [], connection: undefined };
    this.sessions.set(options.clientId, session);
    const connection = new FakeConnection(this.clock, this, options, handlers, kept !== undefined, this.maximumPacketBytes);
    session.connection = connection;
    for (const m of session.queue.splice(0)) connection.deliver({ ...m, retain: false, qos: 1 });
    if (this.dropAfterConnack) queueMicrotask(() => connection.break(undefined, true));
    return connection;
  }

  /** What `mosquitto_sub --retained-only` would show. */
  retainedNow(prefix = ''): Record<string, string> {
    const now = this.clock.monotonic();
    return Object.fromEntries(
      [...this.retained].filter(([t, r]) => t.startsWith(prefix) && r.expiresAt > now).map(([t, r]) => [t, r.payload]),
    );
  }

  /** A client that is not under test says something. */
  say(topic: string, payload: string, o: { readonly retain?: boolean; readonly expirySeconds?: number } & Properties = {}): void {
    this.route(topic, payload, {
      ...o,
      qos: 1,
      retain: o.retain ?? false,
    });
  }

  /** PUBACKs that were held. */
  release(): void {
    for (const ack of this.#held.splice(0)) ack();
  }

  /** The network breaks for one client, or for all: the broker publishes the wills. */
  cut(clientId?: string, code?: number): void {
    for (const [id, s] of this.sessions) if (clientId === undefined || id === clientId) s.connection?.break(code, true);
  }

  /** The broker dies (no wills) and is down until `restart`. */
  kill(): void {
    this.down = true;
    for (const s of this.sessions.values()) s.connection?.break(undefined, false);
    for (const w of this.#wills.values()) w.abort();
  }

  restart(o: { readonly keepRetained?: boolean; readonly keepSessions?: boolean } = {}): void {
    if (!o.keepRetained) this.retained.clear();
    if (!o.keepSessions) this.sessions.clear();
    this.down = false;
  }

  get online(): string[] {
    return [...this.sessions].filter(([, s]) => s.connection !== undefined).map(([id]) => id);
  }

  /** Stores and hands on, as a broker does. */
  route(topic: string, payload: string | Uint8Array, o: PublishOptions): void {
    const properties = propertiesOf(o);
    const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
    if (o.retain && bytes.length === 0) this.retained.delete(topic);
    else if (o.retain)
      this.retained.set(topic, {
        payload: textOf(payload),
        bytes,
        ...properties,
        expiresAt: this.clock.monotonic() + (o.expirySeconds ?? Number.POSITIVE_INFINITY) * 1000,
      });
    for (const s of this.sessions.values()) {
      const qos = Math.max(-1, ...[...s.filters].filter(([f]) => topicMatches(f, topic)).map(([, q]) => q));
      if (qos < 0) continue;
      if (s.connection !== undefined)
        s.connection.deliver({
          topic,
          payload: bytes,
          retain: o.retain && [...(s.asPublished ?? [])].some((f) => topicMatches(f, topic)),
          qos: qos === 1 && o.qos === 1 ? 1 : 0,
          ...properties,
        });
      else if (qos === 1 && o.qos === 1) s.queue.push({ topic, payload: bytes, ...properties });
    }
  }

  /** @internal of FakeConnection */
  received(c: FakeConnection, topic: string, payload: string | Uint8Array, o: PublishOptions): PublishFate {
    const { correlationData, ...rest } = o;
    const p: FakePublish = {
      clientId: c.options.clientId,
      topic,
      payload: textOf(payload),
      ...rest,
      ...(correlationData !== undefined && { correlationData: new TextDecoder().decode(correlationData) }),
      at: this.clock.monotonic(),
    };
    this.publishes.push(p);
    const fate = this.onPublish(p);
    if (fate === 'ack' || fate === 'hold' || fate === 'cut') this.route(topic, payload, o);
    return fate;
  }

  hold(ack: () => void): void {
    this.#held.push(ack);
  }

  /** @internal of FakeConnection */
  gone(c: FakeConnection, will: boolean): void {
    const { clientId, protocolVersion } = c.options;
    const session = this.sessions.get(clientId);
    if (session?.connection !== c) return;
    session.connection = undefined;
    if (protocolVersion === 4 || c.options.cleanStart) this.sessions.delete(clientId);
    if (!will) return;
    const { delaySeconds, expirySeconds, payload, topic } = c.options.will;
    const publish = () => this.route(topic, payload, { qos: 1, retain: true, ...(protocolVersion === 5 && { expirySeconds }) });
    if (protocolVersion === 4 || delaySeconds === 0) {
      publish();
      return;
    }
    const timer = new AbortController();
    this.#wills.set(clientId, timer);
    this.clock.sleep(delaySeconds * 1000, timer.signal).then(publish, (e) => {
      if (!isAbort(e)) throw e;
    });
  }
}

class FakeConnection implements BrokerConnection {
  readonly protocolVersion: 4 | 5;
  readonly maximumPacketBytes?: number;
  readonly localAddress = '192.0.2.7';
  #open = true;
  #waiting = new Set<(e: BrokerError) => void>();
  #inbound = Promise.resolve();

  constructor(
    private readonly clock: Clock,
    private readonly broker: FakeBroker,
    readonly options: ConnectOptions,
    private readonly handlers: BrokerHandlers,
    readonly sessionPresent: boolean,
    maximumPacketBytes: number | undefined,
  ) {
    this.protocolVersion = options.protocolVersion;
    if (maximumPacketBytes !== undefined && options.protocolVersion === 5) this.maximumPacketBytes = maximumPacketBytes;
  }

  publish(topic: string, payload: string | Uint8Array, options: PublishOptions): Promise<void> {
    const { correlationData: _c, expirySeconds: _e, responseTopic: _r, ...v4 } = options;
    return this.#ask((resolve, reject) => {
      const limit = this.broker.maximumPacketBytes;
      if (limit !== undefined && payload.length + topic.length > limit)
        return this.break(this.protocolVersion === 5 ? 0x95 : undefined, true);
      const fate = this.broker.received(this, topic, payload, this.protocolVersion === 5 ? options : v4);
      if (options.qos === 0) resolve();
      if (typeof fate === 'number') return reject(new BrokerError('publish error', fate));
      if (typeof fate === 'object') return this.break(fate.closeWith, true);
      switch (fate) {
        case 'ack':
        case 'swallow':
          return resolve();
        case 'hold':
          return this.broker.hold(resolve);
        case 'lose':
          return;
        case 'cut':
          return this.break(undefined, true);
      }
    });
  }

  subscribe(filters: readonly string[], qos: 0 | 1, { asPublished = false }: SubscribeOptions = {}): Promise<void> {
    return this.#ask((resolve, reject) => {
      this.broker.subscribes.push({ clientId: this.options.clientId, filters });
      let refused: number | undefined;
      for (const filter of filters) {
        if (this.broker.hangsUpOn(filter)) return this.break(undefined, true);
        const code = this.broker.onSubscribe(this.options.clientId, filter);
        refused ??= code;
        if (code !== undefined) continue;
        const session = this.broker.sessions.get(this.options.clientId);
        session?.filters.set(filter, qos);
        if (asPublished && this.protocolVersion === 5) session?.asPublished?.add(filter);
        const now = this.clock.monotonic();
        const found = [...this.broker.retained].filter(([topic, r]) => r.expiresAt > now && topicMatches(filter, topic));
        for (const [topic, r] of found.slice(0, this.broker.queueLimit)) {
          const left = Number.isFinite(r.expiresAt) && { expiresInSeconds: Math.ceil((r.expiresAt - now) / 1000) };
          this.deliver({ topic, payload: r.bytes, retain: true, qos, ...propertiesOf(r), ...left });
        }
      }
      if (refused === undefined) resolve();
      else reject(new BrokerError('subscription refused', refused));
    });
  }

  unsubscribe(filters: readonly string[]): Promise<void> {
    return this.#ask((resolve) => {
      this.broker.unsubscribes.push({ clientId: this.options.clientId, filters });
      for (const f of filters) this.broker.sessions.get(this.options.clientId)?.filters.delete(f);
      resolve();
    });
  }

  async end(how: 'disconnect' | 'drop'): Promise<void> {
    await this.#inbound;
    this.#close(undefined, how === 'drop');
  }

  deliver(m: BrokerMessage): void {
    const { correlationData: _c, expiresInSeconds: _e, responseTopic: _r, ...v4 } = m;
    this.#inbound = this.#inbound.then(() => {
      if (!this.#open) return;
      if (m.payload.length > maxInboundBytes) this.handlers.onDropped?.('size');
      else this.handlers.onMessage(this.protocolVersion === 5 ? m : v4);
    });
  }

  /** The connection ends without our wish. */
  break(code: number | undefined, will: boolean): void {
    this.#close(new BrokerError('the connection broke', code), will);
  }

  #close(error: BrokerError | undefined, will: boolean): void {
    if (!this.#open) return;
    this.#open = false;
    this.broker.gone(this, will);
    for (const reject of this.#waiting) reject(new BrokerError('the connection closed before the answer'));
    this.#waiting.clear();
    queueMicrotask(() => this.handlers.onClose(error));
  }

  /** One packet and its answer, in the order of asking. */
  #ask(act: (resolve: () => void, reject: (e: BrokerError) => void) => void): Promise<void> {
    if (!this.#open) return Promise.reject(new BrokerError('the connection is closed'));
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      const done =
        <T extends unknown[]>(f: (...a: T) => void) =>
        (...a: T) => {
          this.#waiting.delete(reject);
          f(...a);
        };
      this.#inbound = this.#inbound.then(() => {
        if (this.#open) act(done(resolve), done(reject));
      });
    });
  }
}

const textOf = (payload: string | Uint8Array): string => (typeof payload === 'string' ? payload : new TextDecoder().decode(payload));

const propertiesOf = ({ correlationData, responseTopic }: Properties): Properties => ({
  ...(responseTopic !== undefined && { responseTopic }),
  ...(correlationData !== undefined && { correlationData }),
});

export function topicMatches(filter: string, topic: string): boolean {
  const f = filter.split('/');
  const t = topic.split('/');
  for (const [i, level] of f.entries()) {
    if (level === '#') return !topic.startsWith('$');
    if (level !== '+' && level !== t[i]) return false;
    if (t[i] === undefined) return false;
  }
  return f.length === t.length;
}
