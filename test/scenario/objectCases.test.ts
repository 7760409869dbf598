// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
/** Field cases L1 and L2: ConfigMaps and Secrets beside the pods, and manifests that name their node, on the whole agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const map = (name: string, place: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {PLACE: ${place}}\n`;
const secretText = (name: string, value: string) =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\nstringData: {PASSWORD: ${JSON.stringify(value)}}\n`;
const user = (from: string) =>
  manifest('web', { containers: [`{name: app, image: "localhost/busybox:1", ${from}}`, '{name: b, image: "localhost/busybox:1"}'] });
const fromMap = user('envFrom: [{configMapRef: {name: site}}]');
const envOf = (w: World, container = 'app') => w.runtime.find('web', container)?.config.envs;
const deeds = (w: World, deed: string) => w.runtime.deeds.filter((d) => d === deed).length;

async function running(files: Readonly<Record<string, string>>): Promise<World> {
  const world = new World();
  for (const [name, content] of Object.entries(files)) world.folder.files.set(name, content);
  await world.start();
  await world.advance(5);
  return world;
}

test('a pod and its ConfigMap in one reading start as one; a change of the map restarts nothing', async () => {
  const world = await running({ 'a.yaml': fromMap, 'z.yaml': map('site', 'attic') });
  assert.deepEqual(envOf(world), [{ key: 'PLACE', value: 'attic' }]);
  assert.equal(world.events.filter((e) => e.reason === 'Failed').length, 0);
  world.folder.write('z.yaml', map('site', 'cellar'));
  await world.advance(30);
  assert.deepEqual([deeds(world, 'startContainer'), deeds(world, 'stopContainer')], [2, 0]);
});

test('a pod waits for its ConfigMap beside what runs of it, says so, and starts within a second of its coming', async () => {
  const world = await running({ 'web.yaml': fromMap });
  assert.equal(world.sync('web')?.reason, 'CreateContainerConfigError');
  assert.equal(world.sync('web')?.message, 'container app: configmap "site" not found');
  const state = world.pod('web')?.status.containerStatuses?.find((c) => c.name === 'app')?.state;
  assert.deepEqual(state, { waiting: { reason: 'CreateContainerConfigError', message: 'configmap "site" not found' } });
  await world.advance(3600);
  assert.equal(deeds(world, 'startContainer'), 1);
  world.folder.write('site.yaml', map('site', 'attic'));
  await world.advance(1);
  assert.deepEqual(envOf(world), [{ key: 'PLACE', value: 'attic' }]);
  await world.advance(5);
  assert.equal(world.sync('web')?.reason, 'Ready');
});

test('a ConfigMap that is refused does not come; corrected, it does', async () => {
  const world = await running({ 'web.yaml': fromMap, 'site.yaml': map('site', '5') });
  assert.equal(world.sync('web')?.reason, 'CreateContainerConfigError');
  world.folder.write('site.yaml', map('site', '"5"'));
  await world.advance(1);
  assert.deepEqual(envOf(world), [{ key: 'PLACE', value: '5' }]);
});

test('a cold boot starts what needs a ConfigMap from the checkpoint alone', async () => {
  const world = await running({ 'web.yaml': fromMap, 'site.yaml': map('site', 'attic') });
  world.folder.missing = true;
  await world.reboot();
  await world.advance(10);
  assert.deepEqual(envOf(world), [{ key: 'PLACE', value: 'attic' }]);
  assert.equal(world.sync('web')?.reason, 'Ready');
});

test('a Secret’s value is in the container and in nothing that is told or kept of the pod, however its start fails', async () => {
  const value = 'correct horse battery staple';
  const world = new World();
  world.runtime.onStart((name) => (name === 'app' ? { startError: `exec: "${value}": not found` } : {}));
  const from =
    '{name: app, image: "localhost/busybox:1", command: ["$(PW)"], env: [{name: PW, valueFrom: {secretKeyRef: {name: db, key: PASSWORD}}}]}';
  world.folder.files.set('web.yaml', manifest('web', { containers: [from] }));
  world.folder.files.set('db.yaml', secretText('db', value));
  await world.start();
  await world.advance(120);
  assert.deepEqual(world.runtime.find('web', 'app')?.config.command, [value]);
  assert.equal(world.events.filter((e) => e.reason === 'SecretInEnv').length, 1);
  assert.ok(world.events.some((e) => e.reason === 'Failed' && e.message.includes('exec: "…"')));
  const kept = [...world.runStore.entries].map(([key, v]) => `${key} ${typeof v === 'string' ? v : JSON.stringify(v)}`);
  const said = JSON.stringify([world.topics(), world.events, world.kubelet.events.list(), kept]);
  assert.ok(said.includes('exec: \\"…'));
  assert.ok(
    !said.includes('correct horse'),
    said.slice(Math.max(0, said.indexOf('correct horse') - 300), said.indexOf('correct horse') + 60),
  );
});

test('a Secret’s value that a failing probe prints is in nothing that is told or kept', async () => {
  const value = 'correct horse battery staple';
  const world = new World();
  world.runtime.onStart(() => ({ exec: () => ({ exitCode: 1, stdout: `cannot log in with ${value}\n` }) }));
  const from =
    '{name: app, image: "localhost/busybox:1", env: [{name: PW, valueFrom: {secretKeyRef: {name: db, key: PASSWORD}}}], readinessProbe: {exec: {command: [check]}, periodSeconds: 1}}';
  world.folder.files.set('web.yaml', manifest('web', { containers: [from] }));
  world.folder.files.set('db.yaml', secretText('db', value));
  await world.start();
  await world.advance(30);
  assert.ok(world.events.some((e) => e.reason === 'Unhealthy' && e.message.includes('cannot log in with …')));
  const said = JSON.stringify([world.topics(), world.events, world.kubelet.events.list(), [...world.runStore.entries]]);
  assert.ok(!said.includes('correct horse'));
});

test('a value that a Secret no longer has is hidden too: the container still has it, and says it at its end', async () => {
  const value = 'correct horse battery staple';
  const from = '{name: app, image: "localhost/busybox:1", env: [{name: PW, valueFrom: {secretKeyRef: {name: db, key: PASSWORD}}}]}';
  for (const change of ['another', 'none'] as const) {
    const world = new World();
    world.runtime.onStart(() => ({ exitAfterMs: 60_000, exitCode: 1 }));
    world.lastWords.set('app', `cannot log in with ${value}`);
    world.folder.files.set('web.yaml', manifest('web', { containers: [from] }));
    world.folder.files.set('db.yaml', secretText('db', value));
    await world.start();
    await world.advance(5);
    await world.restart();
    await world.advance(20);
    if (change === 'another') world.folder.write('db.yaml', secretText('db', 'a new value'));
    else world.folder.files.delete('db.yaml');
    if (change === 'none') await world.kubelet.config.readFolder();
    await world.advance(100);
    const said = JSON.stringify([world.topics(), world.events, [...world.runStore.entries]]);
    assert.ok(said.includes('cannot log in with …'), change);
    assert.ok(!said.includes('correct horse'), change);
  }
});

test('a manifest that names its node runs as written out; another label is an edit in place', async () => {
  const world = new World();
  world.nodeLabels = { site: 'attic' };
  world.folder.files.set(
    'web.yaml',
    manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", env: [{name: A, value: "${NODE.site} ${NODE.name}"}]}'] }),
  );
  await world.start();
  await world.advance(5);
  assert.deepEqual(envOf(world), [{ key: 'A', value: 'attic pi' }]);
  const { uid } = world.pod('web')?.metadata ?? {};
  world.nodeLabels = { site: 'cellar' };
  await Promise.all([world.kubelet.config.readFolder(), world.advance(40)]);
  assert.deepEqual(envOf(world), [{ key: 'A', value: 'cellar pi' }]);
  assert.equal(world.pod('web')?.metadata.uid, uid);
  world.nodeLabels = {};
  await Promise.all([world.kubelet.config.readFolder(), world.advance(40)]);
  assert.deepEqual([deeds(world, 'startContainer'), world.sync('web')?.reason], [2, 'EditRefused']);
  assert.match(world.sync('web')?.message ?? '', /a label of the node/);
});
