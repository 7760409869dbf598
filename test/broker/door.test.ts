/** What a hostile or broken broker may send, byte by byte, to the door of mqtt.js on a real socket. */
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { MqttBroker } from '../../src/broker/client.ts';
import { FrameGuard } from '../../src/broker/frames.ts';
import { type BrokerConnection, BrokerError, type BrokerMessage, type DropReason, maxInboundBytes } from '../../src/world/broker.ts';
import { until } from '../until.ts';

const varint = (n: number): number[] => (n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))]);
const text = (s: string | Uint8Array): Buffer => {
  const bytes = Buffer.from(s);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
};
const frame = (first: number, body: Buffer): Buffer => Buffer.concat([Buffer.from([first, ...varint(body.length)]), body]);

/** A PUBLISH at QoS 1. */
function publish(topic: string | Uint8Array, id: number, payload: Uint8Array, properties?: Buffer): Buffer {
  const props = properties === undefined ? [] : [Buffer.from(varint(properties.length)), properties];
  return frame(0x32, Buffer.concat([text(topic), Buffer.from([id >> 8, id & 255]), ...props, payload]));
}

interface Rough {
  readonly messages: BrokerMessage[];
  readonly dropped: DropReason[];
  /** Packet ids acknowledged, in order. */
  acked(): number[];
  send(...bytes: Buffer[]): void;
  readonly connection: BrokerConnection;
  closed(): boolean;
  stop(): Promise<void>;
}

/** A "broker" that takes any CONNECT and then sends what it is told to. */
async function rough(version: 4 | 5, suback: readonly number[] = []): Promise<Rough> {
  const messages: BrokerMessage[] = [];
  const dropped: DropReason[] = [];
  const came: Buffer[] = [];
  let socket: Socket | undefined;
  let closed = false;
  const server = createServer((s) => {
    socket = s;
    s.on('error', () => {});
    s.once('data', (first) => {
      came.push(first.subarray(first.length)); // CONNECT
      s.on('data', (bytes) => {
        came.push(bytes);
        if (bytes[0] !== 0x82) return;
        s.write(frame(0x90, Buffer.concat([bytes.subarray(2, 4), Buffer.from([...(version === 5 ? [0] : []), ...suback])])));
      });
      s.write(version === 5 ? Buffer.from([0x20, 3, 0, 0, 0]) : Buffer.from([0x20, 2, 0, 0]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const connection: BrokerConnection = await new MqttBroker().connect(
    {
      server: `mqtt://127.0.0.1:${port}`,
      protocolVersion: version,
      clientId: 'x',
      cleanStart: true,
      keepaliveSeconds: 60,
      will: { topic: 'w', payload: 'w', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 60 },
    },
    {
      onMessage: (m) => messages.push(m),
      onDropped: (reason) => dropped.push(reason),
      onClose: () => {
        closed = true;
      },
    },
  );
  return {
    connection,
    messages,
    dropped,
    acked: () => {
      const bytes = Buffer.concat(came);
      const ids: number[] = [];
      for (let i = 0; i + 1 < bytes.length; i += 2 + (bytes[i + 1] ?? 0)) if (bytes[i] === 0x40) ids.push(bytes.readUInt16BE(i + 2));
      return ids;
    },
    send: (...bytes) => {
      for (const b of bytes) socket?.write(b);
    },
    closed: () => closed,
    stop: async () => {
      await connection.end('drop');
      socket?.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const props = (v: 4 | 5): Buffer | undefined => (v === 5 ? Buffer.alloc(0) : undefined);

for (const version of [4, 5] as const) {
  test(`MQTT ${version}: topics that are no UTF-8, or none at all, are dropped, counted and acknowledged, and the next message comes`, async () => {
    const r = await rough(version);
    const bad = [
      Uint8Array.of(0x61, 0xff, 0xfe),
      Uint8Array.of(0x61, 0xc3),
      Uint8Array.of(0xed, 0xa0, 0x80),
      'a\u0000b',
      'a/#',
      'a/+/b',
      'a\nb',
    ];
    bad.forEach((topic, i) => void r.send(publish(topic, i + 1, Buffer.from('x'), props(version))));
    r.send(publish('good/€', 100, Buffer.from('y'), props(version)));
    await until('the good one', () => r.messages.length > 0);
    assert.deepEqual(
      r.messages.map((m) => m.topic),
      ['good/€'],
    );
    assert.deepEqual(
      r.dropped,
      bad.map(() => 'topic'),
    );
    await until('acknowledged', () => r.acked().length === bad.length + 1);
    assert.ok(!r.closed());
    await r.stop();
  });

  test(`MQTT ${version}: a packet of 10 MB is passed over without being kept, counted and acknowledged, and the next message comes`, async () => {
    const r = await rough(version);
    const large = publish('large', 7, Buffer.alloc(10 * 1024 * 1024, 'x'), props(version));
    for (let at = 0; at < large.length; at += 50_000) r.send(large.subarray(at, at + 50_000));
    r.send(publish('large', 8, Buffer.alloc(maxInboundBytes), props(version)), publish('good', 9, Buffer.from('y'), props(version)));
    await until('the good one', () => r.messages.length > 0);
    assert.deepEqual(
      r.messages.map((m) => m.topic),
      ['good'],
    );
    assert.deepEqual(r.dropped, ['size', 'size']);
    await until('acknowledged', () => r.acked().join() === '7,8,9');
    await r.stop();
  });
}

test('properties: as they should be they come through; malformed or excessive, the message is dropped and counted', async () => {
  const r = await rough(5);
  const response = (topic: string | Uint8Array) => Buffer.concat([Buffer.from([0x08]), text(topic)]);
  const correlation = (data: Uint8Array) => Buffer.concat([Buffer.from([0x09]), text(data)]);
  const one = (...parts: Buffer[]) => publish('cmd', 1, Buffer.from('x'), Buffer.concat(parts));
  r.send(
    one(response('a'), response('b')),
    one(correlation(Uint8Array.of(1)), correlation(Uint8Array.of(2))),
    one(response('a/#')),
    one(response(Uint8Array.of(0xff))),
    one(correlation(Buffer.alloc(2_000))),
    one(response('reply/to'), correlation(Uint8Array.of(0, 255))),
  );
  await until('the good one', () => r.messages.length > 0);
  assert.equal(r.messages[0]?.responseTopic, 'reply/to');
  assert.deepEqual([...(r.messages[0]?.correlationData ?? [])], [0, 255]);
  assert.deepEqual(r.dropped, ['properties', 'properties', 'properties', 'properties', 'size']);
  await r.stop();
});

test('a SUBACK that refuses one of the filters rejects with its code, and the connection goes on', async () => {
  for (const [version, codes, code] of [
    [5, [0x87], 0x87],
    [5, [1, 0x97, 1], 0x97],
    [4, [0x80], 0x80],
    [4, [1, 0x80], 0x80],
  ] as const) {
    const r = await rough(version, codes);
    const filters = codes.map((_, i) => `f/${i}`);
    await assert.rejects(r.connection.subscribe(filters, 1), (e) => e instanceof BrokerError && e.code === code);
    r.send(publish('f/0', 1, Buffer.from('x'), props(version)));
    await until('a message', () => r.messages.length > 0);
    assert.ok(!r.closed());
    await r.stop();
  }
});

test('nonsense ends the connection and nothing else', async () => {
  for (const bytes of [
    Buffer.from([0x32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0x00, 0x00]),
    Buffer.from([0x36, 0x02, 0, 0]),
    Buffer.alloc(1_000, 0xff),
  ]) {
    const r = await rough(5);
    r.send(bytes);
    await until('closed', () => r.closed());
    assert.deepEqual(r.messages, []);
    await r.stop();
  }
});

test('the guard lets through, byte for byte, whatever is small enough, wherever the chunks end', async () => {
  const packet = fc.record({
    first: fc.constantFrom(0x30, 0x32, 0x40, 0xd0),
    topic: fc.string({ maxLength: 20 }),
    size: fc.integer({ min: 0, max: 400 }),
    id: fc.integer({ min: 1, max: 65_535 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(packet, { maxLength: 12 }), fc.infiniteStream(fc.integer({ min: 1, max: 90 })), async (packets, sizes) => {
      const most = 200;
      const over: (number | undefined)[] = [];
      const guard = new FrameGuard(most, (id) => over.push(id === undefined ? undefined : (id[0] ?? 0) * 256 + (id[1] ?? 0)));
      const out: Buffer[] = [];
      guard.on('data', (b: Buffer) => out.push(b));
      const bodies = packets.map((p) => ({
        ...p,
        body: Buffer.concat([text(p.topic), Buffer.from([p.id >> 8, p.id & 255]), Buffer.alloc(p.size, 7)]),
      }));
      const all = Buffer.concat(bodies.map((p) => frame(p.first, p.body)));
      for (let at = 0; at < all.length; ) {
        const n = sizes.next().value;
        guard.write(all.subarray(at, at + n));
        at += n;
      }
      guard.end();
      await new Promise((resolve) => guard.on('end', resolve));
      const small = bodies.filter((p) => p.body.length <= most);
      assert.deepEqual(Buffer.concat(out), Buffer.concat(small.map((p) => frame(p.first, p.body))));
      assert.deepEqual(
        over,
        bodies.filter((p) => p.body.length > most).map((p) => (p.first === 0x32 ? p.id : undefined)),
      );
    }),
    { numRuns: 200 },
  );
});
