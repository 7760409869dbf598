/** One broker of a cluster: aedes that keeps and passes on through Redis. Ports come in the environment; it says when it listens. */
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { Aedes, type AedesOptions } from 'aedes';
import { serve } from './brokerServe.ts';

// packages of CommonJS, one of them without types
const require = createRequire(import.meta.url);
const persistence = require('aedes-persistence-redis') as (o: object) => NonNullable<AedesOptions['persistence']>;
const emitter = require('mqemitter-redis') as (o: object) => NonNullable<AedesOptions['mq']>;

const redis = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT) };

async function main(): Promise<void> {
  const aedes = await Aedes.createBroker({ id: `broker-${process.env.PORT}`, mq: emitter(redis), persistence: persistence(redis) });
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    aedes.handle(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(Number(process.env.PORT), '127.0.0.1', resolve);
  });
  serve(async () => ({ clients: aedes.connectedClients }));
}

main().catch((e: unknown) => {
  console.error(e);
  process.exit(1);
});
