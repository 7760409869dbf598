/** One MQTT connection as a port: what a client library, an embedded broker and the fake all can do. */
export interface BrokerMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly retain: boolean;
  readonly qos: 0 | 1 | 2;
  /** Where the sender wants an answer (MQTT 5). */
  readonly responseTopic?: string;
  /** What the sender knows its question by (MQTT 5). */
  readonly correlationData?: Uint8Array;
  /** What is left of its life, by the broker's own clock (MQTT 5). */
  readonly expiresInSeconds?: number;
}

/** The largest payload that is given on, in bytes; what is larger is dropped and counted. */
export const maxInboundBytes = 256 * 1024;

/** Why a message never got further than the door: `size` (payload or properties), `topic` (not UTF-8, or no topic at all), `properties` (malformed). */
export type DropReason = 'size' | 'topic' | 'properties';

export interface PublishOptions {
  readonly qos: 0 | 1;
  readonly retain: boolean;
  /** Message expiry in seconds (MQTT 5; left out in 3.1.1). */
  readonly expirySeconds?: number;
  /** MQTT 5; left out in 3.1.1. */
  readonly responseTopic?: string;
  /** MQTT 5; left out in 3.1.1. */
  readonly correlationData?: Uint8Array;
}

export interface ConnectOptions {
  readonly server: string;
  readonly protocolVersion: 4 | 5;
  readonly clientId: string;
  readonly cleanStart: boolean;
  readonly keepaliveSeconds: number;
  readonly will: {
    readonly topic: string;
    readonly payload: string;
    readonly qos: 1;
    readonly retain: true;
    readonly delaySeconds: number;
    readonly expirySeconds: number;
  };
  readonly username?: string;
  readonly password?: Uint8Array;
  readonly tls?: { readonly ca?: Uint8Array; readonly cert?: Uint8Array; readonly key?: Uint8Array };
}

export interface SubscribeOptions {
  /** `retain` of what arrives says how it was published, also while we listen (MQTT 5; in 3.1.1 nobody can tell). */
  readonly asPublished?: boolean;
}

export interface BrokerConnection {
  readonly sessionPresent: boolean;
  readonly protocolVersion: 4 | 5;
  /** The largest packet the broker takes, when it says so. */
  readonly maximumPacketBytes?: number;
  /** How many QoS 1 messages the broker takes unacknowledged, when it says so. */
  readonly receiveMaximum?: number;
  /** The near end of its socket; absent: nobody knows. */
  readonly localAddress?: string;
  /** Resolves at PUBACK (QoS 1) or when written (QoS 0). Rejects with BrokerError; the message is then the caller's again. */
  publish(topic: string, payload: string | Uint8Array, options: PublishOptions): Promise<void>;
  /** One SUBSCRIBE. Rejects with BrokerError; with a code: the broker refuses one of the filters (SUBACK 0x80 and above), the others stand. */
  subscribe(filters: readonly string[], qos: 0 | 1, o?: SubscribeOptions): Promise<void>;
  unsubscribe(filters: readonly string[]): Promise<void>;
  /** DISCONNECT and close. `drop` closes the socket without a word (the will is then published). */
  end(how: 'disconnect' | 'drop'): Promise<void>;
}

export interface BrokerHandlers {
  onMessage(message: BrokerMessage): void;
  /** Something arrived that nobody is given: too large, or malformed. */
  onDropped?(reason: DropReason): void;
  /** Once, when the connection is gone for any reason; the code is the MQTT 5 reason code when there was one. */
  onClose(error: BrokerError | undefined): void;
}

/** A connection to any broker. One attempt: reconnecting is the session's business. */
export interface Broker {
  /** Rejects with BrokerError: `code` is the CONNACK code (1 in 3.1.1: protocol version refused). */
  connect(options: ConnectOptions, handlers: BrokerHandlers, signal?: AbortSignal): Promise<BrokerConnection>;
}

export class BrokerError extends Error {
  constructor(
    message: string,
    /** CONNACK, PUBACK or DISCONNECT reason code, when the broker gave one. */
    readonly code?: number,
    options?: { cause: unknown },
  ) {
    super(message, options);
  }
}
