/** A private mosquitto on a free loopback port, in a folder of its own; stopped by its process id. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const binary = ['/usr/sbin/mosquitto', '/usr/bin/mosquitto'].find(existsSync);

export interface Mosquitto {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** The same port and configuration again; without persistence it remembers nothing. */
  start(): Promise<void>;
  /** Retained messages below a filter: what `mosquitto_sub --retained-only` shows. */
  retained(filter: string): Promise<Record<string, string>>;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

export async function startMosquitto(
  settings: readonly string[] = ['allow_anonymous true'],
  files: Record<string, string> = {},
): Promise<Mosquitto> {
  const folder = await mkdtemp(join(tmpdir(), 'podsched-mosquitto-'));
  await chmod(folder, 0o755); // mosquitto gives up root and must still read its files
  const port = await freePort();
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o644 });
  const lines = [`listener ${port} 127.0.0.1`, 'set_tcp_nodelay true', ...settings].map((l) => l.replaceAll('@', folder));
  await writeFile(join(folder, 'mosquitto.conf'), `${lines.join('\n')}\n`, { mode: 0o644 });
  let child: ChildProcess | undefined;
  const start = async () => {
    child = spawn(binary ?? 'mosquitto', ['-c', join(folder, 'mosquitto.conf')], { stdio: 'ignore' });
    for (let i = 0; i < 300; i++) {
      if (await answers(port)) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error('mosquitto does not answer');
  };
  const end = async (signal: NodeJS.Signals = 'SIGTERM') => {
    const running = child;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill(signal);
    await ended;
  };
  await start();
  return {
    url: `mqtt://127.0.0.1:${port}`,
    port,
    folder,
    start,
    stop: async (signal) => {
      await end(signal);
      if (signal === undefined) await rm(folder, { recursive: true, force: true });
    },
    retained: async (filter) => {
      const args = ['-h', '127.0.0.1', '-p', `${port}`, '-t', filter, '--retained-only', '-W', '1', '-F', '%t %p'];
      // exit 27: the time is over, which is how it always ends
      const out = await promisify(execFile)('mosquitto_sub', args).then(
        (r) => r.stdout,
        (e: { stdout?: string }) => e.stdout ?? '',
      );
      return Object.fromEntries(
        out
          .split('\n')
          .filter(Boolean)
          .map((l) => [l.slice(0, l.indexOf(' ')), l.slice(l.indexOf(' ') + 1)]),
      );
    },
  };
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
