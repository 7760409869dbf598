/** A TCP proxy on a loopback port whose connections can be cut, and which can be made to swallow what comes back from the other side. */
import { connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** True: nothing more comes back to clients; what they send still arrives. */
  swallowAnswers: boolean;
  /** True: nothing more goes to the server; what it sends still arrives. */
  swallowRequests: boolean;
  /** Ends all connections at once, without a word of goodbye. */
  cut(): void;
  connections(): number;
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) {
      socket.on('error', end);
      socket.on('close', end);
    }
    client.on('data', (part) => {
      if (!proxy.swallowRequests) upstream.write(part);
    });
    upstream.on('data', (part) => {
      if (!proxy.swallowAnswers) client.write(part);
    });
  });
  const proxy: TcpProxy = {
    get port() {
      const address = server.address();
      return address !== null && typeof address === 'object' ? address.port : 0;
    },
    swallowAnswers: false,
    swallowRequests: false,
    cut: () => {
      for (const [client, upstream] of pairs) {
        client.resetAndDestroy();
        upstream.resetAndDestroy();
      }
    },
    connections: () => pairs.size,
    close: async () => {
      for (const [client] of pairs) client.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return proxy;
}
