/** A fleet of several agents on one broker and one runtime: each owns what carries its name. And what its stories say and hear over MQTT. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { type Agent, type AgentOptions, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type Lab, startWitness, type Witness } from './lab.ts';
import type { Fields } from './manifest.ts';
import { type Mosquitto, startMosquitto } from './mosquitto.ts';
import { until } from './process.ts';
import { startTcpProxy } from './tcpProxy.ts';
import { toldSync } from './truth.ts';
import { type Watcher, watchTopics } from './watcher.ts';

/** One of the nodes, as a lab of its own. */
export interface FleetNode extends Lab {
  readonly node: string;
}

export interface Fleet {
  readonly bed: Bed;
  readonly broker: Mosquitto;
  readonly watcher: Watcher;
  readonly witness: Witness;
  node(name: string): FleetNode;
  /** Publishes a retained message. */
  keep(topic: string, payload: string): Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts all of it; what was started is ended again when a part of it cannot be. */
export async function startFleet(name: string, agents: Readonly<Record<string, AgentOptions>>): Promise<Fleet> {
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    const failures: unknown[] = [];
    for (const step of undo.splice(0).reverse()) await step().catch((e) => failures.push(e));
    if (failures.length > 0) throw failures[0];
  };
  try {
    const bed = await startBed({ name });
    undo.push(() => bed.stop());
    const broker = await startMosquitto();
    undo.push(() => broker.stop());
    const witness = startWitness(bed, true);
    undo.push(() => witness.end());
    const watcher = await watchTopics(broker.url);
    undo.push(() => watcher.end());
    const nodes = new Map<string, FleetNode>();
    for (const [node, o] of Object.entries(agents)) {
      const proxy = await startTcpProxy(broker.port);
      undo.push(() => proxy.close());
      const agent = await startAgent(bed, { servers: [`mqtt://127.0.0.1:${proxy.port}`], nodeName: node, ...o });
      undo.push(() => agent.remove());
      nodes.set(node, { bed, broker, agent, watcher, witness, proxy, node, stop });
    }
    return {
      ...{ bed, broker, watcher, witness, stop },
      node: (which) => {
        const found = nodes.get(which);
        assert.ok(found, which);
        return found;
      },
      keep: (topic, payload) => watcher.client.publishAsync(topic, payload, { qos: 1, retain: true }),
    };
  } catch (e) {
    await stop().catch(() => {});
    throw e;
  }
}

export const desired = (rest: string): string => `podsched/v1/desired/${rest}`;
/** The topic of an object of one node, in `default`. */
export const ownTopic = ({ node }: FleetNode, name: string): string => desired(`nodes/${node}/default/${name}`);

export const configMap = (name: string, data: Readonly<Record<string, string>>, metadata: Fields = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data });

export const runs = (p: { readonly status: { readonly phase?: string } }): boolean => p.status.phase === 'Running';
export const sourceOf = (sync: SyncStatus, name: string) => sync.sources.find((s) => s.source === name);

/** What the node tells of an object (`configmap:app`, or the name of a pod) once `check` holds. */
export async function syncOf(lab: Lab, name: string, what: string, check: (sync: SyncStatus) => boolean): Promise<SyncStatus> {
  const now = () => toldSync(lab, name);
  await lab.watcher.untilAll(
    () => `${name}: ${what} (now: ${JSON.stringify(now())})\n${lab.agent.log().slice(-1500)}`,
    () => {
      const sync = now();
      return sync !== undefined && check(sync);
    },
  );
  const sync = now();
  assert.ok(sync);
  return sync;
}

/** Its source refuses it for this reason. */
export const refused = (lab: Lab, name: string, reason: string, source = 'mqtt:node'): Promise<SyncStatus> =>
  syncOf(lab, name, `is refused: ${reason}`, (s) => {
    const said = sourceOf(s, source);
    return said?.phase === 'Refused' && said.reason === reason;
  });

/** An event of the node about something of this name. */
export const eventHeard = (lab: Lab, name: string, reason: string): Promise<void> =>
  lab.watcher.untilAll(`event ${reason} of ${name}`, () =>
    lab.watcher.heard.some(
      (h) =>
        h.topic === lab.agent.topic('events/default') && h.text.includes(`"reason":"${reason}"`) && h.text.includes(`"name":"${name}"`),
    ),
  );

/** A command of the bundle that must end well; what it printed. */
export async function cli(agent: Agent, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await agent.cli(...args);
  assert.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** Another `policy` in the configuration, read at once. */
export async function setPolicy(agent: Agent, policy: Readonly<Record<'file' | 'mqtt', unknown>>): Promise<void> {
  const before = readFileSync(agent.configFile, 'utf8').replace(/^policy:[\s\S]*/m, '');
  writeFileSync(agent.configFile, `${before}policy: ${JSON.stringify(policy)}\n`);
  agent.signal('SIGHUP');
  await until('the policy is read', 45_000, async () => {
    const said = JSON.parse((await agent.get('/configz')).body).podschedconfig as Record<string, unknown>;
    return JSON.stringify(said['policy.mqtt']) === JSON.stringify(policy.mqtt);
  });
}
