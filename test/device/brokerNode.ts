/**
 * A node's session on a real broker, in real time and without an agent around it: what it was told, what reached its inbox, when it connected.
 * Beside it operators and dashboards, as plain clients.
 */
import { createHash } from 'node:crypto';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import type { NodeOnline } from '../../src/api/payloads.ts';
import type { NodeTopics } from '../../src/api/topics.ts';
import { MqttBroker } from '../../src/broker/client.ts';
import type { MessageReport } from '../../src/broker/sender.ts';
import { BrokerSession, type BrokerSessionDeps } from '../../src/broker/session.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeIdentity } from '../broker/rig.ts';
import { until } from '../until.ts';
import { sleep } from './process.ts';

/** A message of the inbox. */
export interface Arrived {
  readonly topic: string;
  readonly text: string;
  readonly retain: boolean;
  readonly queued: boolean;
  readonly responseTopic?: string;
  readonly correlationData?: Uint8Array;
}

export interface Connect {
  readonly server: string;
  readonly at: number;
  readonly protocolVersion: 4 | 5;
  readonly sessionPresent: boolean;
}

export interface BrokerNode {
  readonly name: string;
  readonly session: BrokerSession;
  readonly topics: NodeTopics;
  readonly connects: readonly Connect[];
  readonly arrived: readonly Arrived[];
  /** Filters whose snapshot has ended, in order, over all connections. */
  readonly snapshots: readonly string[];
  readonly reports: readonly MessageReport[];
  /** Connected, and everything is told. */
  settled(): boolean;
  /** A status of a pod of `default`. */
  tellPod(name: string, payload?: object): void;
  /** `offline`, and no further connection. */
  stop(): Promise<void>;
}

export interface BrokerNodeOptions extends Partial<BrokerSessionDeps> {
  readonly name?: string;
  /** What it follows from the start. */
  readonly follow?: readonly string[];
  /** MQTT 5 is not even tried. */
  readonly version?: 4;
}

export const podPayload = (name: string, more: object = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name }, ...more });

/** A session with these servers; it runs until `stop`. */
export function startNode(servers: readonly string[], o: BrokerNodeOptions = {}): BrokerNode {
  const { name = 'pi-1', follow, version, ...deps } = o;
  const machine = createHash('sha256').update(name).digest('hex').slice(0, 12);
  const identity = deps.identity ?? Object.assign(new FakeIdentity(machine), { nodeName: name });
  const connects: Connect[] = [];
  const arrived: Arrived[] = [];
  const snapshots: string[] = [];
  const reports: MessageReport[] = [];
  const door = deps.broker ?? new MqttBroker();
  let seq = 0;
  const session = new BrokerSession({
    clock: systemClock,
    log: silentLog,
    servers,
    clientId: `podsched-${name}-${identity.machine}`,
    credentials: async () => ({}),
    keepaliveSeconds: 30,
    random: Math.random,
    splayRangeMs: 100,
    identity,
    prefix: 'podsched/v1',
    heartbeatSeconds: () => 60,
    agentVersion: '1',
    clockSynced: () => true,
    seq: () => ++seq,
    report: (r) => reports.push(r),
    inbox: {
      message: (m) => arrived.push({ ...m, text: new TextDecoder().decode(m.payload) }),
      snapshot: (filters) => snapshots.push(...filters),
      connected: () => {},
      disconnected: () => {},
    },
    ...deps,
    broker: {
      connect: async (options, handlers, signal) => {
        const c = await door.connect(version === undefined ? options : { ...options, protocolVersion: version }, handlers, signal);
        const { protocolVersion, sessionPresent } = c;
        connects.push({ server: options.server, at: performance.now(), protocolVersion, sessionPresent });
        return c;
      },
    },
  });
  if (follow !== undefined) session.follow(follow);
  const running = session.run(new AbortController().signal);
  return {
    name,
    session,
    topics: session.topics,
    connects,
    arrived,
    snapshots,
    reports,
    settled: () => session.connected() && session.counters().dirtyTopics === 0 && session.counters().eventsWaiting === 0,
    tellPod: (pod, more) => session.tell(session.topics.pod('default', pod), podPayload(pod, more), { qos: 1, expirySeconds: 7 * 86_400 }),
    stop: async () => {
      await session.stop();
      await running;
    },
  };
}

/** Everything a node follows of the contract: its commands, desired state, rollouts. */
export const allFilters = (topics: NodeTopics, groups: readonly string[] = []): string[] => [
  topics.commands,
  ...topics.desiredFilters(groups),
  'podsched/v1/rollouts/+',
];

export interface Client {
  readonly mqtt: MqttClient;
  /** Everything that came, oldest first. */
  readonly heard: { readonly topic: string; readonly text: string; readonly retain: boolean }[];
  publish(topic: string, payload: string | object, o?: { readonly retain?: boolean }): Promise<void>;
  /** The last payload heard on a topic, parsed; undefined: none, or it was cleared. */
  last(topic: string): unknown;
  stop(): Promise<void>;
}

/** An operator or a dashboard; it does not come back by itself. `version` 4 is what most scripts speak. */
export async function startClient(
  url: string,
  o: { readonly version?: 4 | 5; readonly subscribe?: string } & Partial<IClientOptions> = {},
): Promise<Client> {
  const { version = 4, subscribe, ...more } = o;
  const client = await connectAsync(url, { protocolVersion: version, reconnectPeriod: 0, connectTimeout: 10_000, ...more }, false);
  const heard: { topic: string; text: string; retain: boolean }[] = [];
  client.on('message', (topic, payload, packet) => heard.push({ topic, text: payload.toString('utf8'), retain: packet.retain }));
  client.on('error', () => {}); // a broker that goes away is what some tests want
  if (subscribe !== undefined) await client.subscribeAsync(subscribe, { qos: 1 });
  return {
    mqtt: client,
    heard,
    publish: async (topic, payload, { retain = false } = {}) => {
      await client.publishAsync(topic, typeof payload === 'string' ? payload : JSON.stringify(payload), { qos: 1, retain });
    },
    last: (topic) => {
      const text = heard.filter((m) => m.topic === topic).at(-1)?.text ?? '';
      return text === '' ? undefined : JSON.parse(text);
    },
    stop: () => client.endAsync(true),
  };
}

/** Connects as soon as the broker takes connections. */
export async function startClientSoon(...args: Parameters<typeof startClient>): Promise<Client> {
  let client: Client | undefined;
  await until(`a client of ${args[0]}`, async () => {
    client = await startClient(...args).catch(() => undefined);
    return client !== undefined;
  });
  if (client === undefined) throw new Error('no client');
  return client;
}

export const stateOf = (value: unknown): NodeOnline['state'] | undefined => (value as NodeOnline | undefined)?.state;

/** What a test put into `status.value` of a pod. */
export const statusValue = (pod: unknown): unknown => (pod as { status?: { value?: unknown } } | undefined)?.status?.value;

/** Nothing more comes: the length of something is the same for so long. */
export async function quiet(length: () => number, ms = 300): Promise<void> {
  for (let before = -1; before !== length(); ) {
    before = length();
    await sleep(ms);
  }
}
