/** The examples in docs/mqtt.md are what the agent says (write them anew with UPDATE_DOCS=1), and fit the schemas of the contract. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { FileStatusSchema, NodeOnlineSchema, SyncStatusSchema } from '../../src/api/payloads.ts';
import { nodeObject } from '../../src/node/info.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
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
  return JSON.parse(payload, (key, value: unknown) => {
    if (key === 'seq') return 1000;
    if (key === 'podsched.dev/seq') return '1000';
    return typeof value === 'string' ? value.replace(/([0-9a-f]{8})\1{7}/g, '$1…').replace(/(sha256:[0-9a-f]{8})[0-9a-f]+/g, '$1…') : value;
  });
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
  return {
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
  ] as const)
    assert.deepEqual([...Value.Errors(schema, JSON.parse(said[name] ?? ''))], [], name);
  for (const [name, payload] of Object.entries(said)) {
    assert.ok(payload.length > 100, `${name} was said`);
    assert.ok(!payload.includes('hush'), name);
  }
});
