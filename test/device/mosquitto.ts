/** A private mosquitto on a loopback port; it can be killed, emptied and started again on the same port. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Daemon, freePort, startDaemon, until } from './process.ts';

export interface Mosquitto {
  readonly port: number;
  readonly url: string;
  readonly dir: string;
  readonly pid: number;
  /** SIGKILL: no will is sent, no store is written. */
  kill(): Promise<void>;
  /** TERM, and its folder stays: `restart` starts it again. */
  end(): Promise<void>;
  /** Starts it again on the same port (TERM first when it runs). `empty`: what it had stored is gone. */
  restart(o?: { readonly empty?: boolean }): Promise<void>;
  log(): string;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

export interface MosquittoOptions {
  readonly port?: number;
  /** Keeps retained messages over restarts (default: false). */
  readonly persistence?: boolean;
  /** More lines for mosquitto.conf, before the listener when they are global. */
  readonly config?: string;
  /** Lines for the listener instead of `allow_anonymous true`; `@` is the broker's folder. */
  readonly listener?: string;
  /** Files in its folder, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** How long it may take to write its store when it is asked to end: killed, it would have forgotten. */
const storeMs = 30_000;

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

/** Starts a mosquitto and waits until it takes connections. */
export async function startMosquitto(o: MosquittoOptions = {}): Promise<Mosquitto> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-mosquitto-'));
  const port = o.port ?? (await freePort());
  const store = join(dir, 'store');
  const logFile = join(dir, 'mosquitto.log');
  mkdirSync(store);
  for (const [name, text] of Object.entries(o.files ?? {})) writeFileSync(join(dir, name), text, { mode: 0o600 });
  writeFileSync(
    join(dir, 'mosquitto.conf'),
    [
      'user root', // started as root it would become `mosquitto`, who may not write here
      `persistence ${o.persistence === true}`,
      `persistence_location ${store}/`,
      'autosave_interval 1',
      'log_dest stderr',
      'set_tcp_nodelay true',
      o.config ?? '',
      `listener ${port} 127.0.0.1`,
      (o.listener ?? 'allow_anonymous true').replaceAll('@', dir),
      '',
    ].join('\n'),
  );
  const program = existsSync('/usr/sbin/mosquitto') ? '/usr/sbin/mosquitto' : 'mosquitto';
  let daemon: Daemon;
  const start = async () => {
    const started = startDaemon(program, ['-c', join(dir, 'mosquitto.conf')], { logFile });
    daemon = started;
    await until(`mosquitto on port ${port}`, 30_000, async () => {
      if (!started.running()) throw new Error(`mosquitto ended at once:\n${readFileSync(logFile, 'utf8')}`);
      return await answers(port);
    });
    return started;
  };
  daemon = await start().catch((e) => {
    rmSync(dir, { recursive: true, force: true });
    throw e;
  });
  return {
    port,
    url: `mqtt://127.0.0.1:${port}`,
    dir,
    get pid() {
      return daemon.pid;
    },
    kill: async () => {
      daemon.signal('SIGKILL');
      await daemon.exited;
    },
    end: async () => {
      await daemon.end(storeMs);
    },
    restart: async (how = {}) => {
      await daemon.end(storeMs);
      if (how.empty === true) rmSync(join(store, 'mosquitto.db'), { force: true });
      await start();
    },
    log: () => readFileSync(logFile, 'utf8'),
    stop: async () => {
      await daemon.end();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
