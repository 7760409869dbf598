/**
 * Fifteen hundred retained desired objects on a mosquitto with its default queue, which drops some of them each time: the real bundle, with the
 * V8 flags of an installation and without a runtime, judges all of them, asks for those by name, and stays small.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type DesiredScope, desiredTopic, indexTopic } from '../../src/api/topics.ts';
import { until } from '../until.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Client, startClient } from './brokerNode.ts';
import { withParts } from './brokerParts.ts';
import { startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';

const prefix = 'podsched/v1';
const nodeName = 'many';
const most = 25 * 1024 * 1024;

interface Wanted {
  readonly scope: DesiredScope;
  readonly kind: 'ConfigMap' | 'Secret' | 'Pod';
  readonly name: string;
}

const some = (count: number, wanted: Omit<Wanted, 'name'>, name: string): Wanted[] =>
  Array.from({ length: count }, (_, i) => ({ ...wanted, name: `${name}-${i}` }));

const [node, group]: readonly DesiredScope[] = [{ node: nodeName }, { group: 'attic' }];
assert.ok(node !== undefined && group !== undefined);
/** 200 of the node, 1,100 of its group, 200 of all. */
const objects: readonly Wanted[] = [
  ...some(150, { scope: node, kind: 'ConfigMap' }, 'own'),
  ...some(20, { scope: node, kind: 'Secret' }, 'secret'),
  // refused by the policy that MQTT has without one of its own
  ...some(30, { scope: node, kind: 'Pod' }, 'privileged'),
  ...some(1_100, { scope: group, kind: 'ConfigMap' }, 'group'),
  ...some(200, { scope: 'all', kind: 'ConfigMap' }, 'all'),
];

function payloadOf({ kind, name }: Wanted): string {
  const head = { apiVersion: 'v1', kind, metadata: { name, labels: { app: name }, annotations: { 'podsched.dev/generation': '1' } } };
  switch (kind) {
    case 'ConfigMap':
      return JSON.stringify({ ...head, data: { 'app.conf': `name = ${name}\n`.repeat(15) } });
    case 'Secret':
      return JSON.stringify({ ...head, data: { password: Buffer.from(name.repeat(8)).toString('base64') } });
    case 'Pod':
      return JSON.stringify({
        ...head,
        spec: { containers: [{ name: 'app', image: 'localhost/busybox:1', securityContext: { privileged: true } }] },
      });
  }
}

async function publishAll(client: Client): Promise<void> {
  const said = objects.map((o) => ({
    o,
    payload: payloadOf(o),
    topic: desiredTopic(prefix, o.scope, { kind: o.kind, namespace: 'default', name: o.name }),
  }));
  for (const scope of [node, group, 'all'] as const) {
    if (scope === undefined) continue;
    const entries = said.flatMap(({ o: { kind, name, scope: own }, payload }) =>
      own === scope
        ? [{ kind, ns: 'default', name, generation: 1, sha256: createHash('sha256').update(payload).digest('hex').slice(0, 16) }]
        : [],
    );
    const parts = Math.ceil(entries.length / 1_000);
    for (let part = 0; part < parts; part++) {
      const index = {
        apiVersion: 'podsched.dev/v1',
        kind: 'DesiredIndex',
        generation: 1,
        parts,
        entries: entries.slice(part * 1_000, (part + 1) * 1_000),
      };
      await client.publish(indexTopic(prefix, scope, part), index, { retain: true });
    }
  }
  for (let i = 0; i < said.length; i += 100)
    await Promise.all(said.slice(i, i + 100).map(({ topic, payload }) => client.publish(topic, payload, { retain: true })));
}

const rssBytes = (pid: number): number => 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

/** What it has when it has nothing to do: the least of some looks. */
async function quietRss(agent: Agent): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 6; i++) {
    await sleep(500);
    least = Math.min(least, rssBytes(agent.pid));
  }
  return least;
}

test('fifteen hundred retained objects, eleven hundred under one filter: all are judged, the dropped ones asked for by name, in less than 25 MB', () =>
  withParts(async (keep) => {
    const broker = keep(await startMosquitto({ config: 'log_type subscribe\nlog_type error\nlog_type warning' }));
    const agent = await startAgent(
      { endpoint: 'unix:///nonexistent/containerd.sock' },
      { nodeName, servers: [broker.url], config: { mqtt: { groups: ['attic'] } } },
    );
    keep({ stop: () => agent.remove() });
    // at QoS 0 nothing is queued, so a reader is given everything
    const reader = keep(await startClient(broker.url));
    await reader.mqtt.subscribeAsync(`${prefix}/nodes/${nodeName}/#`, { qos: 0 });
    const online = () => (reader.last(agent.topic('online')) as { state?: string } | undefined)?.state;
    await until('online', () => online() === 'online');
    await until('followed', () => broker.log().includes(`${prefix}/desired/all/#`));
    const before = await quietRss(agent);
    await agent.stop();
    await until('offline', () => online() === 'offline');

    const operator = keep(await startClient(broker.url));
    await publishAll(operator);
    agent.start();
    const told = (o: Wanted): string => agent.topic(`sync/default/${o.kind === 'Pod' ? '' : `${o.kind.toLowerCase()}:`}${o.name}`);
    const last = () => new Map(reader.heard.map((h) => [h.topic, h.text]));
    let waiting: string[] = [];
    await until('all are judged', async () => {
      await sleep(200);
      const now = last();
      waiting = objects.flatMap((o) => {
        const text = now.get(told(o)) ?? '';
        const phase = text === '' ? undefined : (JSON.parse(text) as { phase: string }).phase;
        return phase === (o.kind === 'Pod' ? 'Refused' : 'Accepted') ? [] : [`${told(o)}: ${text.slice(0, 200)}`];
      });
      return waiting.length === 0;
    }).catch((e) => {
      throw new Error(`${waiting.length} are not: ${waiting.slice(0, 3).join('\n')}\n${agent.log().slice(-2000)}`, { cause: e });
    });
    const asked = broker
      .log()
      .split('\n')
      .filter((line) => line.includes(`${prefix}/desired/groups/attic/default/`)).length;
    assert.ok(asked > 0, 'this broker drops some of what is more than its queue takes');
    const after = await quietRss(agent);
    const mb = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);
    console.log(`  1,500 objects: ${mb(before)} MB before, ${mb(after)} MB with them; ${asked} of the group asked for by name`);
    assert.ok(after - before < most, `${mb(after - before)} MB more`);
    assert.ok(agent.running());
  }));
