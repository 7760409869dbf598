/**
 * A broker inside the agent, for a Pi that has no other: aedes, MQTT 3.1.1 over TCP. Loaded only when asked for (it costs 5 MB).
 * Owns its listening socket and nothing of the agent. It keeps everything in memory: after an agent restart the session finds an
 * empty broker and publishes everything again, as with any broker that forgot.
 * Door of aedes.
 */
import type { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, isIP, type Socket } from 'node:net';
import { isLoopback } from '../api/configurationChecks.ts';
import type { Log } from '../world/log.ts';
import { parsePasswords, passwordFits } from './passwords.ts';

export interface EmbeddedOptions {
  /** `address:port`; port 0: any free one. */
  readonly listen: string;
  /** mosquitto's form; read again for each client. Absent or empty: open, and on loopback only. */
  readonly passwordFile?: string;
}

export interface EmbeddedBroker {
  /** For the session: `mqtt://127.0.0.1:1883`. */
  readonly url: string;
  close(): Promise<void>;
}

const badUserOrPassword = 4;

/** Starts the broker. Throws when the address is taken or malformed, when the password file cannot be read, or when it would be open to the network. */
export async function startEmbedded(options: EmbeddedOptions, log: Log): Promise<EmbeddedBroker> {
  const { host, port } = parseListen(options.listen);
  const passwordFile = options.passwordFile === '' ? undefined : options.passwordFile;
  if (passwordFile === undefined && !isLoopback(host)) {
    throw new Error(`the embedded broker does not listen on ${options.listen} without a passwordFile: only loopback may be open`);
  }
  if (passwordFile !== undefined) await readFile(passwordFile);

  const { Aedes } = await import('aedes');
  const aedes = await Aedes.createBroker({
    authenticate: (client, username, password, done) => {
      if (passwordFile === undefined) return done(null, true);
      admit(passwordFile, username, password).then(
        (fits) => {
          if (!fits) log.warn({ user: username, clientId: client.id }, 'embedded broker: wrong user or password');
          if (fits) done(null, true);
          else done(Object.assign(new Error('wrong user or password'), { returnCode: badUserOrPassword }), false);
        },
        (error) => {
          log.error({ error, passwordFile }, 'embedded broker: the password file cannot be read');
          done(Object.assign(new Error('no passwords'), { returnCode: badUserOrPassword }), false);
        },
      );
    },
  });
  // aedes reports a client's protocol errors here; unheard they would end the process
  aedes.on('clientError', (client, error) => log.debug({ clientId: client.id, error }, 'embedded broker: client error'));
  aedes.on('connectionError', (_client, error) => log.debug({ error }, 'embedded broker: connection error'));

  const events: EventEmitter = aedes; // its types leave 'error' out
  events.on('error', (error: unknown) => log.error({ error }, 'embedded broker failed'));

  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    aedes.handle(socket);
  });
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  } catch (cause) {
    await new Promise<void>((resolve) => aedes.close(() => resolve()));
    throw new Error(`the embedded broker cannot listen on ${options.listen}`, { cause });
  }
  server.on('error', (error) => log.error({ error }, 'embedded broker: listening failed'));
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `mqtt://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await new Promise<void>((resolve) => aedes.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function admit(passwordFile: string, username: string | undefined, password: Buffer | undefined): Promise<boolean> {
  if (username === undefined || password === undefined) return false;
  const stored = parsePasswords(await readFile(passwordFile, 'utf8')).get(username);
  return stored !== undefined && (await passwordFits(stored, password));
}

function parseListen(listen: string): { host: string; port: number } {
  const parts = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(listen);
  const port = Number(parts?.[3]);
  if (parts === null || port > 65535) throw new Error(`${listen} is no address:port`);
  return { host: parts[1] ?? (parts[2] === '' ? '0.0.0.0' : (parts[2] ?? '')), port };
}
