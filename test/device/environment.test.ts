// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
/** Field cases L1 and L2: ConfigMaps, Secrets and the node's own names in an environment, on a real containerd: what containers print, what waits, what is told. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { V1Event } from '../../src/api/status.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { container, manifest, pod } from './manifest.ts';
import { until } from './process.ts';

let bed: Bed;
let agent: Agent;
before(async () => {
  bed = await startBed({ name: 'environment' });
  agent = await startAgent(bed, { nodeName: 'attic-pi', config: { nodeLabels: { site: 'attic' } } });
});
after(async () => {
  await agent?.remove();
  await bed?.stop();
});

const tell = ['sh', '-c', 'env | sort; echo "arg=$0"; trap "exit 0" TERM; sleep 2147483647 & wait'] as const;
const object = (kind: string, name: string, data: object): string =>
  JSON.stringify({ apiVersion: 'v1', kind, metadata: { name }, ...data });

/** What attempt `n` of container `main` wrote, with a line that begins so; fails with the agent's log. */
async function said(podName: string, n: number, line: string): Promise<string> {
  let text = '';
  await until(`${podName} to say ${line}`, 60_000, () => {
    try {
      const folder = readdirSync(agent.podLogsDir).find((f) => f.startsWith(`default_${podName}_`)) ?? '';
      text = readFileSync(join(agent.podLogsDir, folder, 'main', `${n}.log`), 'utf8').replaceAll(/^\S+ std\w+ F /gm, '');
    } catch {
      return false; // not made yet
    }
    return text.includes(line);
  }).catch((e) => {
    throw new Error(`${e}\n${text}\n${agent.log().slice(-3000)}`);
  });
  return text;
}

test('an environment comes from a ConfigMap, a Secret and the node; what is missing is waited for, and what it says shows no Secret', async () => {
  const value = 'correct horse\nbattery $(SITE) staple';
  agent.drop('db.yaml', object('Secret', 'db', { data: { PASSWORD: Buffer.from(value).toString('base64') } }));
  const env = [
    { name: 'PW', valueFrom: { secretKeyRef: { name: 'db', key: 'PASSWORD' } } },
    { name: 'SITE', value: '${NODE.site}/${NODE.name}/$${NODE.name}' },
    { name: 'WHERE', value: '$(PLACE) $(SITE)' },
    { name: 'MAYBE', valueFrom: { configMapKeyRef: { name: 'gone', key: 'x', optional: true } } },
  ];
  const envFrom = [{ prefix: 'X_', configMapRef: { name: 'gone', optional: true } }, { configMapRef: { name: 'site' } }];
  const main = container('main', [...tell, '$(WHERE) ${NODE.arch}'], { env, envFrom });
  agent.drop('teller.yaml', manifest(pod('teller', { containers: [main] })));

  let why = '';
  await until('the pod to wait for its ConfigMap', 60_000, async () => {
    why = (await agent.cli('why', 'teller')).stdout;
    return why.includes('CreateContainerConfigError');
  }).catch((e) => {
    throw new Error(`${e}\n${why}\n${agent.log().slice(-3000)}`);
  });
  assert.match(why, /configmap "site" not found/);
  assert.match(why, /What helps: Put a file of kind: ConfigMap with the name site/);

  // how long a pod takes here that waits for nothing
  const yardBegan = performance.now();
  agent.drop('yard.yaml', manifest(pod('yard', { containers: [container('main', tell)] })));
  await said('yard', 0, 'arg=');
  const usual = performance.now() - yardBegan;
  const began = performance.now();
  agent.drop('site.yaml', object('ConfigMap', 'site', { data: { PLACE: 'under the roof' } }));
  const text = await said('teller', 0, 'arg=');
  const took = performance.now() - began;
  assert.ok(took < 2 * usual + 2000, `${took} ms, and ${usual} ms where nothing is waited for: it comes by the object, not by another try`);
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const site = 'attic/attic-pi/${NODE.name}';
  const [first, second] = value.split('\n'); // `sort` takes them apart
  for (const line of [
    'PLACE=under the roof',
    `SITE=${site}`,
    `WHERE=under the roof ${site}`,
    `PW=${first}`,
    second,
    `arg=under the roof ${site} ${arch}`,
  ])
    assert.ok(`\n${text}`.includes(`\n${line}\n`), `${line} is not in\n${text}`);
  assert.ok(!text.includes('MAYBE'));

  // a label of the node, at a reload, is an edit in place
  const config = readFileSync(agent.configFile, 'utf8');
  writeFileSync(agent.configFile, config.replace('site: attic', 'site: cellar'));
  agent.signal('SIGHUP');
  assert.match(await said('teller', 1, 'arg='), /SITE=cellar\/attic-pi/);

  // a command that is not there has the Secret in its words
  const bad = container('main', ['$(PW)'], { env: env.slice(0, 1) });
  agent.drop('bad.yaml', manifest(pod('bad', { containers: [bad] })));
  const failure = async () =>
    (JSON.parse((await agent.get('/events')).body) as { items: V1Event[] }).items.find(
      (e) => e.involvedObject.name === 'bad' && e.reason === 'Failed',
    );
  await until('the bad one to fail', 60_000, async () => (await failure()) !== undefined);
  assert.match((await failure())?.message ?? '', /…/);
  const bodies = await Promise.all(['/pods', '/sync', '/events'].map((path) => agent.get(path)));
  const told = [agent.log(), ...bodies.map((r) => r.body)].join('\n');
  assert.match(told, /SecretInEnv/);
  assert.ok(!told.includes('correct horse'), told.slice(Math.max(0, told.indexOf('correct horse') - 400)).slice(0, 600));
});
