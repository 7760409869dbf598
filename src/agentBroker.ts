/** How the agent reaches its brokers: which they are, with one of its own among them, with what it shows itself, and the session. Owns nothing. */
import { readFile } from 'node:fs/promises';
import type { PodschedConfiguration } from './api/configuration.ts';
import { MqttBroker } from './broker/client.ts';
import { type EmbeddedBroker, startEmbedded } from './broker/embedded.ts';
import { BrokerSession, type BrokerSessionDeps } from './broker/session.ts';
import { wasSetByTimesyncd } from './gates/facts.ts';
import type { Identity } from './node/identity.ts';
import type { Log } from './world/log.ts';

export async function openServers(
  config: PodschedConfiguration,
  log: Log,
): Promise<{ servers: readonly string[]; embedded: EmbeddedBroker | undefined }> {
  if (!config['mqtt.servers'].includes('embedded')) return { servers: config['mqtt.servers'], embedded: undefined };
  const passwordFile = config['mqtt.embedded.passwordFile'];
  const embedded = await startEmbedded({ listen: config['mqtt.embedded.listen'], ...(passwordFile !== '' && { passwordFile }) }, log);
  return { servers: config['mqtt.servers'].map((s) => (s === 'embedded' ? embedded.url : s)), embedded };
}

export interface SessionParts
  extends Pick<
    BrokerSessionDeps,
    'clock' | 'log' | 'servers' | 'agentVersion' | 'seq' | 'heartbeatSeconds' | 'inbox' | 'onHeartbeat' | 'onSettled' | 'onBootAdopted'
  > {
  /** Of the start: a change of these waits for a restart. */
  readonly config: PodschedConfiguration;
  readonly identity: Identity;
  readonly event: (type: 'Warning', reason: string, message: string) => void;
}

export function buildSession(parts: SessionParts): BrokerSession {
  const { config, identity, event } = parts;
  return new BrokerSession({
    ...parts,
    broker: new MqttBroker(),
    prefix: config['mqtt.prefix'],
    clientId: config['mqtt.clientId'] || `podsched-${identity.nodeName}-${identity.machine}`,
    credentials: () => credentials(config),
    keepaliveSeconds: config['mqtt.profile'] === 'quiet' ? 600 : Math.round(config['mqtt.keepalive'] / 1000),
    random: Math.random,
    clockSynced: wasSetByTimesyncd,
    insecure: config['mqtt.insecure'],
    notTaken: (message) => event('Warning', 'MessageNotTaken', message),
    report: ({ topic, message }) => event('Warning', 'NotTold', `${topic}: ${message}`),
  });
}

/** Read anew for each attempt: a renewed certificate or password needs no restart. */
async function credentials(config: PodschedConfiguration): Promise<Awaited<ReturnType<BrokerSessionDeps['credentials']>>> {
  const file = async (path: string): Promise<Uint8Array | undefined> => (path === '' ? undefined : readFile(path));
  const [password, ca, cert, key] = await Promise.all([
    file(config['mqtt.passwordFile']),
    file(config['mqtt.tls.caFile']),
    file(config['mqtt.tls.certFile']),
    file(config['mqtt.tls.keyFile']),
  ]);
  return {
    ...(config['mqtt.username'] !== '' && { username: config['mqtt.username'] }),
    ...(password && { password: trimEnd(password) }),
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

/** A password file ends with a newline that is no part of the password. */
const trimEnd = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 10 || bytes[end - 1] === 13)) end--;
  return bytes.subarray(0, end);
};
