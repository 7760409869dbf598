/** Where a fleet's broker is and who asks there: options of the command, else the agent's own keys in the environment, else defaults. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { wrongLabel } from '../api/names.ts';
import { problemText } from '../api/problems.ts';
import { envName, loadOptions } from '../options.ts';
import { codeOf } from '../world/errno.ts';
import { CommandError, exitCodes } from './exitCodes.ts';

export interface RemoteOptions {
  /** Servers by comma, tried in order. */
  readonly server?: string;
  readonly username?: string;
  readonly passwordFile?: string;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly prefix?: string;
  readonly insecure?: true;
  /** The level below `P/reply` at which answers are read. */
  readonly requester?: string;
}

export interface RemoteSettings {
  readonly servers: readonly string[];
  readonly prefix: string;
  readonly requester: string;
  readonly username?: string;
  readonly password?: Uint8Array;
  readonly tls: { readonly ca?: Uint8Array; readonly cert?: Uint8Array; readonly key?: Uint8Array };
}

/** The agent's key behind each option: judged by the same rules, and read from the same names in the environment. */
const keys = {
  server: 'mqtt.servers',
  username: 'mqtt.username',
  passwordFile: 'mqtt.passwordFile',
  caFile: 'mqtt.tls.caFile',
  certFile: 'mqtt.tls.certFile',
  keyFile: 'mqtt.tls.keyFile',
  prefix: 'mqtt.prefix',
  insecure: 'mqtt.insecure',
} as const;
const files: ReadonlySet<string> = new Set([keys.passwordFile, keys.caFile, keys.certFile, keys.keyFile]);

const dashed = (option: string): string => `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Rejects with `usage` for what is wrong or missing: all of it at once, in the words of the options. */
export async function remoteSettings(o: RemoteOptions, env: Readonly<Record<string, string | undefined>>): Promise<RemoteSettings> {
  const flags: Record<string, string> = {};
  const fromEnv: Record<string, string | undefined> = {};
  for (const [option, key] of Object.entries(keys)) {
    const value = o[option as keyof typeof keys];
    if (value !== undefined) flags[key] = files.has(key) ? resolve(String(value)) : String(value);
    fromEnv[envName(key)] = env[envName(key)];
  }
  const { config, problems } = loadOptions({ flags, env: fromEnv });
  if (config === undefined) {
    const named = Object.entries(keys);
    const lines = problems.map((p) =>
      named.reduce(
        (text, [option, key]) => text.replace(new RegExp(`(--)?${key.replaceAll('.', '\\.')}`, 'g'), dashed(option)),
        problemText(p),
      ),
    );
    throw new CommandError(exitCodes.usage, lines.join('; '));
  }
  const servers = config['mqtt.servers'];
  if (servers.length === 0)
    throw new CommandError(exitCodes.usage, `which broker? --server mqtts://HOST, or ${envName(keys.server)} in the environment`);
  if (servers.includes('embedded')) throw new CommandError(exitCodes.usage, '--server: embedded is for the agent; an address is meant');
  const username = config['mqtt.username'];
  const [password, ca, cert, key] = await Promise.all(
    [keys.passwordFile, keys.caFile, keys.certFile, keys.keyFile].map((path) => contents(config[path])),
  );
  return {
    servers,
    prefix: config['mqtt.prefix'],
    requester: requesterOf(o.requester, username, cert),
    ...(username !== '' && { username }),
    ...(password && { password: trimmed(password) }),
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

async function contents(path: string): Promise<Uint8Array | undefined> {
  if (path === '') return undefined;
  try {
    return await readFile(path);
  } catch (e) {
    throw new CommandError(exitCodes.usage, `${path} cannot be read: ${codeOf(e)}`, { cause: e });
  }
}

/** A password file ends with a newline that is no part of the password. */
const trimmed = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 10 || bytes[end - 1] === 13)) end--;
  return bytes.subarray(0, end);
};

/** What the ACL lets this user read: the level of its own name, by password or by certificate; with neither any level will do. */
function requesterOf(asked: string | undefined, username: string, cert: Uint8Array | undefined): string {
  if (asked !== undefined) {
    const wrong = wrongLabel(asked);
    if (wrong !== undefined) throw new CommandError(exitCodes.usage, `--requester: expected ${wrong}, got ${JSON.stringify(asked)}`);
    return asked;
  }
  const own = [username, cert === undefined ? '' : commonName(cert)].find((name) => name !== '' && wrongLabel(name) === undefined);
  return own ?? `cli-${randomBytes(6).toString('hex')}`;
}

function commonName(cert: Uint8Array): string {
  try {
    return /^CN=(.*)$/m.exec(new X509Certificate(cert).subject)?.[1] ?? '';
  } catch {
    return ''; // no certificate: connecting says so
  }
}
