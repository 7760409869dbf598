/**
 * One MQTT connection through mqtt.js: one attempt, one socket. Reconnecting, queueing and subscribing again are switched off here,
 * because they are decisions of the session: mqtt.js would keep a queue of its own and repeat what nobody wants any more.
 * Owns nothing beyond the connection. Never lets an 'error' event escape, never answers a publish twice, and gives every publish back
 * to its caller when the connection goes (mqtt.js forgets them when the session is to be kept). What arrives and is too large or malformed
 * gets no further.
 * Door of mqtt.
 */

import type { IClientOptions, IPublishPacket, MqttClient } from 'mqtt';
import mqtt from 'mqtt';
import {
  type Broker,
  type BrokerConnection,
  BrokerError,
  type BrokerHandlers,
  type BrokerMessage,
  type ConnectOptions,
  type DropReason,
  maxInboundBytes,
  type PublishOptions,
  type SubscribeOptions,
} from '../world/broker.ts';
import { isTopic } from './filters.ts';
import { guardFrames, type PacketStream } from './frames.ts';

const sessionExpirySeconds = 3600;
const receiveMaximum = 20;
/** Correlation data that nobody needs to remember a question by. */
const maxCorrelationBytes = 1024;
/** Above every deadline of the session; it only matters to a caller without one. */
const connackTimeoutMs = 60_000;

export class MqttBroker implements Broker {
  connect(options: ConnectOptions, handlers: BrokerHandlers, signal?: AbortSignal): Promise<BrokerConnection> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      let client: MqttClient;
      try {
        client = mqtt.connect({ ...clientOptions(options), manualConnect: true });
        openGuarded(client, () => handlers.onDropped?.('size'));
      } catch (cause) {
        return reject(new BrokerError(`cannot connect to ${options.server}`, undefined, { cause }));
      }
      let connection: MqttConnection | undefined;
      let lastError: BrokerError | undefined;
      const stop = () => {
        client.end(true);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', stop, { once: true });
      client.on('message', (topic: string, payload: Buffer, packet: IPublishPacket) => {
        const message = inbound(topic, payload, packet);
        if (typeof message === 'string') handlers.onDropped?.(message);
        else handlers.onMessage(message);
      });
      client.on('connect', (packet) => {
        if (signal?.aborted) return;
        signal?.removeEventListener('abort', stop);
        const said = packet.properties;
        connection = new MqttConnection(
          client,
          options.protocolVersion,
          packet.sessionPresent,
          said?.maximumPacketSize,
          said?.receiveMaximum,
        );
        resolve(connection);
      });
      client.on('disconnect', (packet) => {
        lastError = new BrokerError('the broker ended the connection', packet.reasonCode);
      });
      client.on('error', (e: Error) => {
        lastError ??= toBrokerError(e);
        // a broken stream of packets is a broken connection: nothing after it can be trusted
        client.end(true);
        signal?.removeEventListener('abort', stop);
        if (connection === undefined) reject(lastError);
      });
      client.on('close', () => {
        signal?.removeEventListener('abort', stop);
        client.end(true);
        if (connection === undefined) return reject(lastError ?? new BrokerError(`${options.server} closed the connection before CONNACK`));
        if (connection.gone(lastError)) handlers.onClose(lastError);
      });
    });
  }
}

class MqttConnection implements BrokerConnection {
  readonly maximumPacketBytes?: number;
  readonly receiveMaximum?: number;
  readonly localAddress?: string;
  #waiting = new Set<(e: BrokerError) => void>();
  #closed: BrokerError | undefined;
  #whenClosed: Promise<void>;
  #tellClosed: () => void = () => {};

  constructor(
    private readonly client: MqttClient,
    readonly protocolVersion: 4 | 5,
    readonly sessionPresent: boolean,
    brokerPacketBytes: number | undefined,
    brokerReceiveMaximum: number | undefined,
  ) {
    if (brokerPacketBytes !== undefined) this.maximumPacketBytes = brokerPacketBytes;
    if (brokerReceiveMaximum !== undefined) this.receiveMaximum = brokerReceiveMaximum;
    const { localAddress } = client.stream as { readonly localAddress?: unknown };
    // an IPv4 address of an IPv6 socket is an IPv4 address
    if (typeof localAddress === 'string') this.localAddress = localAddress.replace(/^::ffff:/, '');
    this.#whenClosed = new Promise((resolve) => {
      this.#tellClosed = resolve;
    });
  }

  publish(topic: string, payload: string | Uint8Array, options: PublishOptions): Promise<void> {
    const properties = this.protocolVersion === 5 ? publishProperties(options) : undefined;
    const bytes = typeof payload === 'string' ? payload : asBuffer(payload);
    return this.#ask((done) =>
      this.client.publish(topic, bytes, { qos: options.qos, retain: options.retain, ...(properties && { properties }) }, done),
    );
  }

  subscribe(filters: readonly string[], qos: 0 | 1, { asPublished = false }: SubscribeOptions = {}): Promise<void> {
    const rap = this.protocolVersion === 5 && asPublished;
    return this.#ask((done) => this.client.subscribe([...filters], { qos, ...(rap && { rap }) }, done));
  }

  unsubscribe(filters: readonly string[]): Promise<void> {
    return this.#ask((done) => this.client.unsubscribe([...filters], done));
  }

  async end(how: 'disconnect' | 'drop'): Promise<void> {
    if (how === 'drop' || this.#closed !== undefined) {
      this.client.end(true);
    } else {
      // mqtt.js says DISCONNECT only when nothing waits any more; what waits is given back to its callers
      for (const id of Object.keys(this.client.outgoing)) this.client.removeOutgoingMessage(Number(id));
      this.client.end(false);
    }
    await this.#whenClosed;
  }

  /** The connection is gone: everybody who waits is told. False when that was known already. */
  gone(error: BrokerError | undefined): boolean {
    if (this.#closed !== undefined) return false;
    this.#closed = error ?? new BrokerError('the connection is closed');
    for (const reject of this.#waiting) reject(new BrokerError('the connection closed before the answer'));
    this.#waiting.clear();
    this.#tellClosed();
    return true;
  }

  #ask(act: (done: (e?: Error | null) => void) => void): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(new BrokerError('the connection is closed'));
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      act((e) => {
        this.#waiting.delete(reject);
        if (e) reject(toBrokerError(e));
        else resolve();
      });
    });
  }
}

/** What arrived, or why nobody is given it. Its properties are whatever the sender wrote: mqtt.js makes a list of one that is there twice. */
function inbound(topic: string, payload: Buffer, packet: IPublishPacket): BrokerMessage | DropReason {
  if (payload.length > maxInboundBytes) return 'size';
  // bytes that are no UTF-8 have become U+FFFD on the way
  if (!isTopic(topic)) return 'topic';
  const responseTopic: unknown = packet.properties?.responseTopic;
  const correlationData: unknown = packet.properties?.correlationData;
  if (responseTopic !== undefined && (typeof responseTopic !== 'string' || !isTopic(responseTopic))) return 'properties';
  if (correlationData !== undefined && !Buffer.isBuffer(correlationData)) return 'properties';
  if (correlationData !== undefined && correlationData.length > maxCorrelationBytes) return 'size';
  const expiresInSeconds: unknown = packet.properties?.messageExpiryInterval;
  return {
    topic,
    payload,
    retain: packet.retain,
    qos: packet.qos,
    ...(responseTopic !== undefined && { responseTopic }),
    ...(correlationData !== undefined && { correlationData }),
    ...(typeof expiresInSeconds === 'number' && { expiresInSeconds }),
  };
}

function publishProperties({ correlationData, expirySeconds, responseTopic }: PublishOptions): IPublishPacket['properties'] {
  if (expirySeconds === undefined && responseTopic === undefined && correlationData === undefined) return undefined;
  return {
    ...(expirySeconds !== undefined && { messageExpiryInterval: expirySeconds }),
    ...(responseTopic !== undefined && { responseTopic }),
    ...(correlationData !== undefined && { correlationData: asBuffer(correlationData) }),
  };
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Opens the socket, whatever its kind, with a guard between it and the parser, which would keep a packet of 256 MB in memory. */
function openGuarded(client: MqttClient, onDropped: () => void): void {
  // the only place where all its kinds of stream pass, and private in its types
  const builder = client as unknown as { streamBuilder: (of: MqttClient) => PacketStream };
  const open = builder.streamBuilder;
  builder.streamBuilder = (of) => guardFrames(open(of), maxInboundBytes, onDropped);
  client.connect();
}

function clientOptions(o: ConnectOptions): IClientOptions {
  const url = new URL(o.server);
  const protocol = url.protocol.slice(0, -1);
  if (protocol !== 'mqtt' && protocol !== 'mqtts' && protocol !== 'ws' && protocol !== 'wss') {
    throw new Error(`unknown protocol ${protocol}: expected mqtt, mqtts, ws or wss`);
  }
  const v5 = o.protocolVersion === 5;
  const secure = protocol === 'mqtts' || protocol === 'wss';
  const tls: Record<string, unknown> = secure ? { rejectUnauthorized: true, minVersion: 'TLSv1.2' } : {};
  if (secure && o.tls?.ca) tls.ca = Buffer.from(o.tls.ca);
  if (secure && o.tls?.cert) tls.cert = Buffer.from(o.tls.cert);
  if (secure && o.tls?.key) tls.key = Buffer.from(o.tls.key);
  return {
    ...tls,
    protocol,
    // the brackets of an IPv6 address belong to the URL; a socket wants it bare, a WebSocket URL does not
    host: protocol.startsWith('ws') ? url.hostname : url.hostname.replace(/^\[|\]$/g, ''),
    ...(url.port !== '' && { port: Number(url.port) }),
    ...(protocol.startsWith('ws') && { path: `${url.pathname}${url.search}` }),
    protocolVersion: o.protocolVersion,
    clientId: o.clientId,
    clean: v5 ? o.cleanStart : true,
    keepalive: o.keepaliveSeconds,
    connectTimeout: connackTimeoutMs,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    // a table of all 65536 packet ids, 7 MB for some microseconds
    writeCache: false,
    ...(o.username !== undefined && { username: o.username }),
    ...(o.password !== undefined && { password: Buffer.from(o.password) }),
    will: {
      topic: o.will.topic,
      payload: Buffer.from(o.will.payload),
      qos: o.will.qos,
      retain: o.will.retain,
      ...(v5 && { properties: { willDelayInterval: o.will.delaySeconds, messageExpiryInterval: o.will.expirySeconds } }),
    },
    ...(v5 && {
      properties: {
        sessionExpiryInterval: o.cleanStart ? 0 : sessionExpirySeconds,
        // no maximumPacketSize, for it is kept here: mosquitto 2.0 counts a message it holds back for it as in flight for ever, and after 20 of
        // them sends this session nothing any more
        receiveMaximum,
      },
    }),
  };
}

function toBrokerError(e: Error): BrokerError {
  if (e instanceof BrokerError) return e;
  // sockets put a word there (ECONNREFUSED), MQTT a number
  const code = 'code' in e && typeof e.code === 'number' ? e.code : refusedSubscription(e);
  return new BrokerError(e.message === '' ? 'the connection failed' : e.message, code, { cause: e });
}

/** mqtt.js hands over a refused SUBSCRIBE as the whole SUBACK. */
function refusedSubscription(e: Error): number | undefined {
  if (!('packet' in e) || typeof e.packet !== 'object' || e.packet === null || !('granted' in e.packet) || !Array.isArray(e.packet.granted))
    return undefined;
  return e.packet.granted.find((code: unknown) => typeof code === 'number' && code >= 0x80);
}
