/** What a session costs on the wire: every packet of a connection, counted by its MQTT encoding, over any broker behind the port. */
import { createRequire } from 'node:module';
import type { Broker, BrokerConnection, ConnectOptions } from '../../src/world/broker.ts';

// the encoder that mqtt.js itself uses; a package of CommonJS that is not ours to bundle
const { generate } = createRequire(import.meta.url)('mqtt-packet') as typeof import('mqtt-packet');
type Packet = Parameters<typeof generate>[0];

export interface Wire {
  readonly broker: Broker;
  /** Bytes in both directions so far, PINGs left out: how many there are depends on the keepalive alone. */
  bytes(): number;
  connects(): number;
}

const puback = 4;
/** PINGREQ and PINGRESP. */
const pingBytes = 4;

/** The most that PINGs cost in so many seconds: one in each keepalive, as if nothing else were ever sent. */
export const pingsIn = (seconds: number, keepaliveSeconds: number): number => Math.ceil(seconds / keepaliveSeconds) * pingBytes;

export function countBytes(inner: Broker): Wire {
  let bytes = 0;
  let connects = 0;
  const count = (packet: object, protocolVersion: 4 | 5): void => {
    bytes += generate(packet as Packet, { protocolVersion }).length;
  };
  return {
    bytes: () => bytes,
    connects: () => connects,
    broker: {
      connect: async (options, handlers, signal) => {
        const version = options.protocolVersion;
        count(connectPacket(options), version);
        const connection = await inner.connect(
          options,
          {
            ...handlers,
            onMessage: (m) => {
              // a broker that knows MQTT 5 says how long it is still good for
              const properties = version === 5 ? { properties: { messageExpiryInterval: 60 } } : {};
              count(
                {
                  cmd: 'publish',
                  topic: m.topic,
                  payload: Buffer.from(m.payload),
                  qos: m.qos,
                  retain: m.retain,
                  dup: false,
                  messageId: 1,
                  ...properties,
                },
                version,
              );
              if (m.qos > 0) bytes += puback;
              handlers.onMessage(m);
            },
          },
          signal,
        );
        connects++;
        count(
          {
            cmd: 'connack',
            sessionPresent: connection.sessionPresent,
            reasonCode: 0,
            returnCode: 0,
            ...(version === 5 && { properties: { topicAliasMaximum: 10 } }),
          },
          version,
        );
        return counted(connection, count, (n) => {
          bytes += n;
        });
      },
    },
  };
}

function counted(
  connection: BrokerConnection,
  count: (packet: object, version: 4 | 5) => void,
  add: (bytes: number) => void,
): BrokerConnection {
  const version = connection.protocolVersion;
  return {
    sessionPresent: connection.sessionPresent,
    protocolVersion: version,
    ...(connection.maximumPacketBytes !== undefined && { maximumPacketBytes: connection.maximumPacketBytes }),
    ...(connection.receiveMaximum !== undefined && { receiveMaximum: connection.receiveMaximum }),
    publish: async (topic, payload, o) => {
      const expiry = version === 5 && o.expirySeconds !== undefined ? { properties: { messageExpiryInterval: o.expirySeconds } } : {};
      count(
        { cmd: 'publish', topic, payload: Buffer.from(payload), qos: o.qos, retain: o.retain, dup: false, messageId: 1, ...expiry },
        version,
      );
      await connection.publish(topic, payload, o);
      if (o.qos > 0) add(puback);
    },
    subscribe: async (filters, qos) => {
      count({ cmd: 'subscribe', messageId: 1, subscriptions: filters.map((topic) => ({ topic, qos })) }, version);
      await connection.subscribe(filters, qos);
      count({ cmd: 'suback', messageId: 1, granted: filters.map(() => qos) }, version);
    },
    unsubscribe: async (filters) => {
      count({ cmd: 'unsubscribe', messageId: 1, unsubscriptions: [...filters] }, version);
      await connection.unsubscribe(filters);
      count({ cmd: 'unsuback', messageId: 1, granted: filters.map(() => 0) }, version);
    },
    end: (how) => connection.end(how),
  };
}

function connectPacket(o: ConnectOptions): object {
  const v5 = o.protocolVersion === 5;
  const { topic, payload, delaySeconds, expirySeconds } = o.will;
  return {
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: o.protocolVersion,
    clientId: o.clientId,
    clean: v5 ? o.cleanStart : true,
    keepalive: o.keepaliveSeconds,
    will: {
      ...{ topic, payload: Buffer.from(payload), qos: 1, retain: true },
      ...(v5 && { properties: { willDelayInterval: delaySeconds, messageExpiryInterval: expirySeconds } }),
    },
    ...(v5 && { properties: { sessionExpiryInterval: 3600, receiveMaximum: 20, maximumPacketSize: 262_144 } }),
    ...(o.username !== undefined && { username: o.username }),
    ...(o.password !== undefined && { password: Buffer.from(o.password) }),
  };
}
