/** The one door to everything over MQTT: loaded only by a command that is about another machine, and with it the client library. */
import { readFile } from 'node:fs/promises';
import { payloadTypes } from '../policy/dsse.ts';
import { readSigningKey, signEnvelope } from '../policy/signing.ts';
import { systemClock } from '../world/clock.ts';
import { codeOf } from '../world/errno.ts';
import type { AgentClient } from './client.ts';
import type { Sign } from './desiredTopics.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { RemoteBroker } from './remoteBroker.ts';
import { remoteClient } from './remoteClient.ts';
import { RemoteNode } from './remoteNode.ts';
import { type RemoteOptions, remoteSettings } from './remoteOptions.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** A connection to the fleet's broker. Whoever gets it closes it. */
export async function openRemote(o: RemoteOptions, env: Env): Promise<RemoteBroker> {
  const settings = await remoteSettings(o, env);
  const { MqttBroker } = await import('../broker/client.ts');
  return RemoteBroker.open(settings, { broker: new MqttBroker(), clock: systemClock });
}

/** Does something with the connection, and closes it whatever comes. */
export async function withRemote<T>(o: RemoteOptions, env: Env, work: (remote: RemoteBroker) => Promise<T>): Promise<T> {
  const remote = await openRemote(o, env);
  try {
    return await work(remote);
  } finally {
    await remote.close();
  }
}

/** The agent of one node over MQTT. `sign`: path of a private key that signs the commands. Whoever gets it closes it. */
export async function openNode(node: string, o: RemoteOptions & { readonly sign?: string }, env: Env): Promise<AgentClient> {
  const sign = o.sign === undefined ? undefined : await signer(o.sign);
  const remote = await openRemote(o, env);
  try {
    return remoteClient(await RemoteNode.open(remote, node, sign === undefined ? {} : { sign: (text) => sign(text, 'command') }));
  } catch (e) {
    await remote.close();
    throw e;
  }
}

/** What puts envelopes around payloads, with the key of this file. Rejects with `usage` when there is none in it. */
export async function signer(path: string): Promise<(payload: string, kind: Parameters<Sign>[1] | 'command') => string> {
  let pem: string;
  try {
    pem = await readFile(path, 'utf8');
  } catch (e) {
    throw new CommandError(exitCodes.usage, `${path} cannot be read: ${codeOf(e)}`, { cause: e });
  }
  try {
    readSigningKey(pem);
  } catch (e) {
    throw new CommandError(exitCodes.usage, `${path}: ${e instanceof Error ? e.message : String(e)}`);
  }
  // what we write is JSON, whatever it was read from
  return (payload, kind) => signEnvelope(Buffer.from(payload), payloadTypes[kind].find((type) => type.endsWith('+json')) ?? '', pem);
}
