/** Brokers and what they stand on, each private to a test: nats-server with JetStream, redis-server, three aedes over it; ended by pid. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Built, build, type Child, startChild } from './brokerChild.ts';
import { type Daemon, freePort, startDaemon, until } from './process.ts';

export interface Server {
  readonly port: number;
  readonly url: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** TERM when it runs, and the same again with what it had stored. */
  restart(): Promise<void>;
  log(): string;
  stop(): Promise<void>;
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

/** A program with a folder of its own that listens on a port. */
async function startServer(program: string, port: number, url: string, args: (dir: string) => readonly string[]): Promise<Server> {
  const dir = mkdtempSync(join(tmpdir(), `podsched-${program}-`));
  const logFile = join(dir, 'log');
  const argv = args(dir);
  let daemon: Daemon;
  const start = async (): Promise<Daemon> => {
    const started = startDaemon(program, argv, { logFile, cwd: dir });
    await until(`${program} on port ${port}`, 30_000, async () => {
      if (!started.running()) throw new Error(`${program} ended at once:\n${readFileSync(logFile, 'utf8')}`);
      return await answers(port);
    });
    return started;
  };
  try {
    daemon = await start();
  } catch (e) {
    rmSync(dir, { recursive: true, force: true });
    throw e;
  }
  return {
    port,
    url,
    kill: async () => {
      daemon.signal('SIGKILL');
      await daemon.exited;
    },
    restart: async () => {
      await daemon.end();
      daemon = await start();
    },
    log: () => readFileSync(logFile, 'utf8'),
    stop: async () => {
      await daemon.end();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** One nats-server whose MQTT side (3.1.1 only) keeps retained messages and sessions in JetStream. */
export async function startNats(): Promise<Server> {
  const [port, clientPort] = [await freePort(), await freePort()];
  return startServer('nats-server', port, `mqtt://127.0.0.1:${port}`, (dir) => {
    const config = join(dir, 'nats.conf');
    writeFileSync(
      config,
      [
        'server_name: site',
        `listen: "127.0.0.1:${clientPort}"`,
        `jetstream { store_dir: "${join(dir, 'store')}", max_memory_store: 16777216, max_file_store: 67108864 }`,
        `mqtt { host: "127.0.0.1", port: ${port} }`,
        '',
      ].join('\n'),
    );
    return ['-c', config];
  });
}

/** A redis-server in memory. */
export async function startRedis(): Promise<Server> {
  const port = await freePort();
  const words = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--daemonize', 'no'];
  return startServer('redis-server', port, `redis://127.0.0.1:${port}`, () => words);
}

export interface Cluster {
  /** In the order in which they were started. */
  readonly urls: readonly string[];
  /** kill -9 of the broker of this URL. */
  kill(url: string): Promise<void>;
  stop(): Promise<void>;
}

/** Three aedes brokers, a process each, that share what they keep and pass on through one Redis. */
export async function startCluster(): Promise<Cluster> {
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const redis = await startRedis();
    undo.push(() => redis.stop());
    const built: Built = await build('brokerAedesChild.ts');
    undo.push(async () => built.remove());
    const brokers = new Map<string, Child>();
    for (let i = 0; i < 3; i++) {
      const port = await freePort();
      const child = startChild(built.path('brokerAedesChild.ts'), { env: { REDIS_PORT: `${redis.port}`, PORT: `${port}` } });
      undo.push(() => child.kill());
      brokers.set(`mqtt://127.0.0.1:${port}`, child);
    }
    await Promise.all([...brokers.values()].map((child) => child.next()));
    return {
      urls: [...brokers.keys()],
      kill: async (url) => {
        await brokers.get(url)?.kill();
      },
      stop,
    };
  } catch (e) {
    await stop();
    throw e;
  }
}
