/**
 * A TCP proxy on a loopback port whose connections can be cut, delayed, left half-open, and made to swallow what comes from either side. With
 * `mqtt` it takes the stream apart into MQTT packets and asks what is to become of each.
 */
import { connect, createServer, type Socket } from 'node:net';
import { MqttFrames, type MqttPacket } from './brokerFrames.ts';

/** `cut`: it does not arrive, and the connection breaks. */
export type PacketFate = 'pass' | 'drop' | 'cut';

export interface TcpProxy {
  readonly port: number;
  /** True: nothing more comes back to clients; what they send still arrives. */
  swallowAnswers: boolean;
  /** True: nothing more goes to the server; what it sends still arrives. */
  swallowRequests: boolean;
  /** True: whoever connects is sent away at once. */
  refusing: boolean;
  /** Everything takes so long on its way, in either direction. */
  delayMs: number;
  /** With `mqtt`: what becomes of each packet. Default: it passes. */
  onPacket: (packet: MqttPacket, from: 'client' | 'server') => PacketFate;
  /** What arrived from clients and from the server, in bytes. */
  readonly bytes: { fromClients: number; fromServer: number };
  /** Ends all connections at once, without a word of goodbye. */
  cut(): void;
  /** Today's connections go silent for good, and neither side is told: the server's end stays open even when the client gives up. */
  halfOpen(): void;
  connections(): number;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  silent: boolean;
}

export async function startTcpProxy(target: number, o: { readonly mqtt?: boolean } = {}): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const server = createServer((client) => {
    if (proxy.refusing) {
      client.on('error', () => {});
      client.destroy();
      return;
    }
    const pair: Pair = { client, upstream: connect(target, '127.0.0.1'), silent: false };
    pairs.add(pair);
    const end = () => {
      if (pair.silent) return;
      pairs.delete(pair);
      pair.client.destroy();
      pair.upstream.destroy();
    };
    for (const socket of [pair.client, pair.upstream]) {
      socket.setNoDelay(true);
      socket.on('error', end);
      socket.on('close', end);
    }
    carry(pair, 'client');
    carry(pair, 'server');
  });

  const breakOff = (pair: Pair) => {
    pair.client.resetAndDestroy();
    pair.upstream.resetAndDestroy();
  };

  /** What comes from one side goes to the other, one piece after the other. */
  function carry(pair: Pair, from: 'client' | 'server'): void {
    const [source, sink] = from === 'client' ? [pair.client, pair.upstream] : [pair.upstream, pair.client];
    const swallowed = () => pair.silent || (from === 'client' ? proxy.swallowRequests : proxy.swallowAnswers);
    const frames = o.mqtt === true ? new MqttFrames() : undefined;
    let turn = Promise.resolve();
    const send = (bytes: Uint8Array) => {
      if (proxy.delayMs === 0) {
        if (!swallowed()) sink.write(bytes);
        return;
      }
      const arrives = new Promise<void>((resolve) => setTimeout(resolve, proxy.delayMs));
      turn = turn
        .then(() => arrives)
        .then(() => {
          if (!swallowed() && !sink.destroyed) sink.write(bytes);
        });
    };
    source.on('data', (part: Buffer) => {
      proxy.bytes[from === 'client' ? 'fromClients' : 'fromServer'] += part.length;
      if (frames === undefined) return send(part);
      for (const packet of frames.take(part)) {
        switch (proxy.onPacket(packet, from)) {
          case 'pass':
            send(packet.bytes);
            break;
          case 'drop':
            break;
          case 'cut':
            return breakOff(pair);
        }
      }
    });
  }

  const proxy: TcpProxy = {
    get port() {
      const address = server.address();
      return address !== null && typeof address === 'object' ? address.port : 0;
    },
    swallowAnswers: false,
    swallowRequests: false,
    refusing: false,
    delayMs: 0,
    onPacket: () => 'pass',
    bytes: { fromClients: 0, fromServer: 0 },
    cut: () => {
      for (const pair of pairs) breakOff(pair);
    },
    halfOpen: () => {
      for (const pair of pairs) pair.silent = true;
    },
    connections: () => pairs.size,
    close: async () => {
      for (const { client, upstream } of pairs) {
        client.destroy();
        upstream.destroy();
      }
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return proxy;
}
