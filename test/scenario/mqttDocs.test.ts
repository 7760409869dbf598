/** The examples in docs/mqtt.md are what the agent says (write them anew with UPDATE_DOCS=1), and fit the schemas of the contract. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { payloadHash } from '../../src/api/delivery.ts';
import {
  CommandSchema,
  DesiredIndexSchema,
  NodeConfigSchema,
  NodeSummarySchema,
  ReplySchema,
  RolloutSchema,
} from '../../src/api/messages.ts';
import { FileStatusSchema, NodeOnlineSchema, SyncStatusSchema } from '../../src/api/payloads.ts';
import { indexParts } from '../../src/cli/desiredPlan.ts';
import { nodeObject } from '../../src/node/info.ts';
import { nodeSummary } from '../../src/status/summary.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { Afar, mapJson, podJson, prefix, words } from './afar.ts';
import { World } from './world.ts';

const docs = new URL('../../docs/mqtt.md', import.meta.url);
const good = `apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  containers:
  - name: app
    image: localhost/busybox:1
    env: [{name: PASSWORD, value: hush}]
    ports: [{name: http, containerPort: 8080}]
    resources: {limits: {memory: 32Mi}}
`;

/** What an example leaves out: the moment of telling, and the length of ids. */
function plain(payload: string): unknown {
  return JSON.parse(payload, function (this: object, key, value: unknown) {
    // of a chunk it is what it is
    if (key === 'seq' && 'boot' in this) return 1000;
    if (key === 'podsched.dev/seq') return '1000';
    return typeof value === 'string' ? value.replace(/([0-9a-f]{8})\1{7}/g, '$1…').replace(/(sha256:[0-9a-f]{8})[0-9a-f]+/g, '$1…') : value;
  });
}

const command = {
  apiVersion: 'podsched.dev/v1',
  kind: 'Command',
  id: '7f3a',
  target: { namespace: 'default', pod: 'web' },
  args: { tailLines: 200 },
  replyTo: `${prefix}/reply/ops-1/pi-07`,
};
const config = {
  apiVersion: 'podsched.dev/v1',
  kind: 'NodeConfig',
  generation: 4,
  groups: ['attic'],
  labels: { floor: '2' },
  heartbeatSeconds: 30,
  logLevel: 'debug',
};
const rollout = {
  apiVersion: 'podsched.dev/v1',
  kind: 'Rollout',
  id: 'web-2',
  waves: [{ selector: { canary: 'true' }, percent: 100 }, { percent: 25 }, { percent: 100 }],
  gate: 1,
  bakeSeconds: 600,
  abortAfterFailures: 2,
  state: 'running',
};
const [site, web] = [mapJson('site', { PLACE: 'attic' }), podJson('web')];
const [index] = indexParts(
  [
    { key: { kind: 'ConfigMap', namespace: 'default', name: 'site' }, sha256: payloadHash(site) },
    { key: { kind: 'Pod', namespace: 'default', name: 'web' }, sha256: payloadHash(web), generation: 12 },
  ],
  31,
);

/** What the node says to the example of a command. */
async function answered(): Promise<string> {
  const a = new Afar({}, { nodeName: 'pi-07' });
  async function* log(): AsyncGenerator<Uint8Array, void> {
    yield Buffer.from('listening on port 8080\n');
  }
  a.orders.view = { logs: async () => ({ ok: true, value: log() }) };
  a.keep(a.topic('web'), podJson('web'));
  await a.world.start();
  await a.world.advance(10);
  await a.send('logs', JSON.stringify(command));
  return a.broker.publishes.find((p) => p.topic === command.replyTo)?.payload ?? '';
}

async function payloads(): Promise<Readonly<Record<string, string>>> {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  const world = new World({ clock, broker, nodeName: 'pi-07' });
  world.folder.files.set('web.yaml', good);
  await world.start();
  await world.advance(10);
  const pod = world.topics()['pods/default/web'] ?? '';
  world.folder.write('web.yaml', good.replace('image:', 'imgae:'));
  await world.advance(10);
  const topics = world.topics();
  const event = broker.publishes.find((p) => p.topic.endsWith('/events/default') && p.payload.includes('"Started"'))?.payload ?? '';
  const node = nodeObject({
    name: 'pi-07',
    labels: { site: 'attic' },
    machine: 'machine-of-pi-07',
    bootId: 'boot-1',
    agentVersion: '0.1.0',
    architecture: 'arm64',
    kernelVersion: '6.12.20+rpt-rpi-v8',
    runtimeVersion: 'containerd://1.7.24',
    addresses: ['192.0.2.7'],
    conditions: [{ type: 'WatchDegraded', status: 'True', reason: 'PollingOnly', message: 'inotify is exhausted' }],
  });
  const annotations = { 'podsched.dev/boot': '1', 'podsched.dev/seq': '1000' };
  const summary = nodeSummary({
    node: 'pi-07',
    uptimeSeconds: 86_520,
    pods: world.kubelet.status.told(),
    sync: world.kubelet.status.sync(),
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'UnderVoltage', status: 'True' },
    ],
    restartsLastHour: 1,
    use: {
      cpuPercent: 7.5,
      memoryBytes: 412_000_000,
      memoryTotalBytes: 4_000_000_000,
      temperatureCelsius: 52,
      diskWrittenBytes: 96_000_000,
    },
  });
  const reply = await answered();
  return {
    summary: JSON.stringify({ ...summary, boot: 1, seq: 1000 }),
    command: JSON.stringify(command),
    reply,
    index: JSON.stringify(index),
    config: JSON.stringify(config),
    rollout: JSON.stringify(rollout),
    online: topics.online ?? '',
    info: JSON.stringify({ ...node, metadata: { ...node.metadata, annotations } }),
    pod,
    sync: topics['sync/default/web'] ?? '',
    file: topics['sync/_files/web~2eyaml'] ?? '',
    event,
  };
}

test('the examples of docs/mqtt.md are what the agent says', async () => {
  const said = await payloads();
  const text = readFileSync(docs, 'utf8');
  let examples = 0;
  const now = text.replace(/<!-- example: (\w+) -->\n(?:```json\n[\s\S]*?```\n)?/g, (_, name: string) => {
    examples++;
    return `<!-- example: ${name} -->\n\`\`\`json\n${JSON.stringify(plain(said[name] ?? '{}'), null, 1)}\n\`\`\`\n`;
  });
  assert.equal(examples, Object.keys(said).length);
  if (process.env.UPDATE_DOCS === '1') writeFileSync(docs, now);
  else assert.equal(text, now);
});

test('they fit the schemas, and no value of a variable is in them', async () => {
  const said = await payloads();
  for (const [name, schema] of [
    ['online', NodeOnlineSchema],
    ['sync', SyncStatusSchema],
    ['file', FileStatusSchema],
    ['summary', NodeSummarySchema],
    ['command', CommandSchema],
    ['reply', ReplySchema],
    ['index', DesiredIndexSchema],
    ['config', NodeConfigSchema],
    ['rollout', RolloutSchema],
  ] as const)
    assert.deepEqual([...Value.Errors(schema, JSON.parse(said[name] ?? ''))], [], name);
  for (const [name, payload] of Object.entries(said)) {
    assert.ok(payload.length > 100, `${name} was said`);
    assert.ok(!payload.includes('hush'), name);
  }
});

test('the examples of what operators write do what is said of them: an index, _config and a rollout are taken as they are', async () => {
  const a = new Afar({}, { nodeName: 'pi-07' });
  a.keep(a.topic('configmap:site'), site);
  a.keep(a.topic('web'), podJson('web', { annotations: { 'podsched.dev/generation': '12' } }));
  a.keep(a.topic('old'), podJson('old'));
  await a.world.start();
  await a.world.advance(10);
  a.keep(`${prefix}/desired/nodes/pi-07/_index`, JSON.stringify(index));
  await a.world.advance(60);
  assert.deepEqual(a.world.runtime.running(), ['web/app'], 'what it leaves out goes');

  a.keep(`${prefix}/desired/nodes/pi-07/_config`, JSON.stringify(config));
  await a.world.advance(5);
  assert.equal(a.world.online()?.heartbeatSeconds, config.heartbeatSeconds);
  const gated = podJson('rolled', { annotations: { 'podsched.dev/rollout': rollout.id } });
  a.keep(`${prefix}/rollouts/${rollout.id}`, JSON.stringify(rollout));
  a.keep(a.topic('rolled', 'groups/attic'), gated);
  await a.world.advance(10);
  assert.equal(a.said('rolled', 'mqtt:group/attic'), 'Waiting Rollout', 'the group counts, and its turn is not now');
  a.keep(`${prefix}/rollouts/${rollout.id}`, JSON.stringify({ ...rollout, gate: rollout.waves.length }));
  await a.world.advance(10);
  assert.deepEqual(a.world.runtime.running(), ['rolled/app', 'web/app']);
});

test('the example of a command is answered ok, with its id', async () => {
  const reply = JSON.parse(await answered()) as Parameters<typeof words>[0][number];
  assert.deepEqual([words([reply]), reply.id], [['ok'], command.id]);
});
