/** ConfigMaps and Secrets that come late, change, break and go, on the whole agent: who waits for them, and who restarts for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const map = (data: string, more = '') => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\n${more}data: ${data}\n`;
const secret = (value: string) => `apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {pw: ${JSON.stringify(value)}}\n`;
const key = (from: string) => `env: [{name: A, valueFrom: {${from}}}]`;
const fromMap = key('configMapKeyRef: {name: site, key: a}');
const fromSecret = key('secretKeyRef: {name: db, key: pw}');
const asked = '{podsched.dev/restart-on-change: "true"}';

/** A pod `web` with these containers, by name; `annotations` in YAML. */
const web = (containers: Readonly<Record<string, string>>, annotations = '', lines: readonly string[] = []): string =>
  manifest('web', {
    containers: Object.entries(containers).map(([name, more]) => `{name: ${name}, image: "localhost/busybox:1", ${more}}`),
    lines,
  }).replace('  name: web\n', `  name: web\n${annotations === '' ? '' : `  annotations: ${annotations}\n`}`);

async function running(files: Readonly<Record<string, string>>): Promise<World> {
  const world = new World();
  for (const [name, content] of Object.entries(files)) world.folder.files.set(name, content);
  await world.start();
  await world.advance(5);
  return world;
}

/** Restart counts, by container. */
const counts = (w: World) => Object.fromEntries((w.pod('web')?.status.containerStatuses ?? []).map((c) => [c.name, c.restartCount]));
const valueIn = (w: World, container = 'app') => w.runtime.find('web', container)?.config.envs.find((e) => e.key === 'A')?.value;
const killings = (w: World) => w.events.filter((e) => e.reason === 'Killing').map((e) => e.message);

test('whatever a container waits for, it starts within a second of its coming, however long it has waited', async () => {
  const table: readonly (readonly [string, string, string, string, string])[] = [
    ['a Secret', fromSecret, secret('x').replace('db', 'other'), secret('x'), 'secret "db" not found'],
    ['a key of a ConfigMap', fromMap, map('{b: x}'), map('{a: x}'), "couldn't find key a in ConfigMap default/site"],
    ['a key of a Secret', fromSecret, secret('x').replace('pw', 'user'), secret('x'), "couldn't find key pw in Secret default/db"],
    ['a ConfigMap that was wrong', fromMap, map('{a: 5}'), map('{a: "x"}'), 'configmap "site" not found'],
    ['a value that is text', fromSecret, secret('x\0'), secret('x'), 'is no text, so it cannot be in an environment'],
  ];
  for (const [what, from, before, after, message] of table) {
    const world = await running({ 'web.yaml': web({ app: from }), 'o.yaml': before });
    await world.advance(400);
    assert.deepEqual([world.sync('web')?.reason, world.sync('web')?.message.includes(message)], ['CreateContainerConfigError', true], what);
    world.folder.write('o.yaml', after);
    await world.advance(1);
    assert.equal(valueIn(world), 'x', what);
  }
});

test('an optional reference waits for nothing, and its object’s coming restarts nothing that does not ask for it', async () => {
  const world = await running({ 'web.yaml': web({ app: key('configMapKeyRef: {name: site, key: a, optional: true}') }) });
  assert.deepEqual([world.sync('web')?.reason, valueIn(world)], ['Ready', undefined]);
  world.folder.write('o.yaml', map('{a: x}'));
  await world.advance(60);
  assert.deepEqual(counts(world), { app: 0 });
});

test('restart-on-change: within two seconds the containers that use the changed key run with the new value, and no other restarts', async () => {
  const containers = { app: fromMap, other: key('configMapKeyRef: {name: site, key: b}'), plain: '' };
  const world = await running({ 'web.yaml': web(containers, asked), 'o.yaml': map('{a: one, b: two}') });
  const uid = world.pod('web')?.metadata.uid;
  world.folder.write('o.yaml', map('{a: new, b: two}'));
  await world.advance(2);
  assert.equal(valueIn(world), 'new');
  await world.advance(60);
  assert.deepEqual(counts(world), { app: 1, other: 0, plain: 0 });
  assert.equal(world.pod('web')?.metadata.uid, uid);
  assert.deepEqual(killings(world), ['Container app: a ConfigMap or Secret it uses changed, will be restarted']);
  assert.equal(world.sync('web')?.reason, 'Ready');
});

test('restart-on-change sees a change that was made while the agent was away, once', async () => {
  const world = await running({ 'web.yaml': web({ app: fromSecret }, asked), 's.yaml': secret('one') });
  await world.restart();
  await world.advance(60);
  assert.deepEqual(counts(world), { app: 0 });
  world.kill();
  world.folder.files.set('s.yaml', secret('two'));
  await world.start();
  await world.advance(60);
  assert.deepEqual([counts(world), valueIn(world)], [{ app: 1 }, 'two']);
  await world.restart();
  await world.advance(60);
  assert.deepEqual(counts(world), { app: 1 });
});

test('a ConfigMap that breaks or goes restarts nothing; the same one again neither, another one does', async () => {
  const world = await running({ 'web.yaml': web({ app: fromMap }, asked), 'o.yaml': map('{a: one}') });
  world.folder.write('o.yaml', map('{a: 5}'));
  await world.advance(30);
  world.folder.remove('o.yaml');
  await world.advance(60);
  await world.restart();
  await world.advance(60);
  assert.deepEqual([counts(world), valueIn(world), world.sync('web')?.reason], [{ app: 0 }, 'one', 'Ready']);
  world.folder.write('o.yaml', map('{a: one}'));
  await world.advance(30);
  assert.deepEqual(counts(world), { app: 0 });
  world.folder.write('o.yaml', map('{a: two}'));
  await world.advance(30);
  assert.deepEqual([counts(world), valueIn(world)], [{ app: 1 }, 'two']);
});

test('the annotation comes and goes without a restart; from its coming on a change counts', async () => {
  const world = await running({ 'web.yaml': web({ app: fromMap }), 'o.yaml': map('{a: one}') });
  world.folder.write('o.yaml', map('{a: two}'));
  await world.advance(30);
  world.folder.write('web.yaml', web({ app: fromMap }, asked));
  await world.advance(30);
  assert.deepEqual([counts(world), valueIn(world)], [{ app: 0 }, 'one']);
  world.folder.write('o.yaml', map('{a: three}'));
  await world.advance(30);
  assert.deepEqual([counts(world), valueIn(world)], [{ app: 1 }, 'three']);
  world.folder.write('web.yaml', web({ app: fromMap }));
  await world.advance(30);
  world.folder.write('o.yaml', map('{a: four}'));
  await world.advance(30);
  world.folder.write('web.yaml', web({ app: fromMap }, asked));
  await world.advance(30);
  assert.deepEqual([counts(world), valueIn(world)], [{ app: 1 }, 'three']);
});

test('a pod that runs its containers once restarts the one that runs, and not the one that has ended', async () => {
  const world = new World();
  world.runtime.onStart((name) => (name === 'done' ? { exitAfterMs: 1000, exitCode: 0 } : {}));
  world.folder.files.set('web.yaml', web({ app: fromMap, done: fromMap }, asked, ['restartPolicy: Never']));
  world.folder.files.set('o.yaml', map('{a: one}'));
  await world.start();
  await world.advance(5);
  world.folder.write('o.yaml', map('{a: two}'));
  await world.advance(60);
  assert.deepEqual(counts(world), { app: 1, done: 0 });
  assert.deepEqual([valueIn(world, 'app'), valueIn(world, 'done')], ['two', 'one']);
  assert.equal(world.pod('web')?.status.phase, 'Running');
});

test('an immutable ConfigMap that is changed is told with its place, and nobody restarts', async () => {
  const world = await running({ 'web.yaml': web({ app: fromMap }, asked), 'o.yaml': map('{a: one}', 'immutable: true\n') });
  world.folder.write('o.yaml', map('{a: two}', 'immutable: true\n'));
  await world.advance(30);
  assert.deepEqual([counts(world), valueIn(world)], [{ app: 0 }, 'one']);
  const [problem] = world.file('o.yaml')?.problems ?? [];
  assert.deepEqual([problem?.path, problem?.line], ['data[a]', 5]);
  assert.match(problem?.expected ?? '', /the object is immutable/);
  const { phase, reason, sources = [] } = world.sync('configmap:site') ?? {};
  assert.deepEqual([phase, reason, sources[0]?.phase], ['Accepted', 'EditRefused', 'Refused']);
});

test('SecretInEnv is said once of a pod: not again after agent restarts, crashes and restarts for a change', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 120_000, exitCode: 1 }));
  world.folder.files.set('web.yaml', web({ app: fromSecret, more: fromSecret }, asked));
  world.folder.files.set('s.yaml', secret('one'));
  await world.start();
  await world.advance(5);
  await world.restart();
  await world.advance(600);
  world.folder.write('s.yaml', secret('two'));
  await world.advance(600);
  await world.reboot();
  await world.advance(600);
  assert.ok((counts(world).app ?? 0) > 2);
  assert.equal(world.events.filter((e) => e.reason === 'SecretInEnv').length, 1);
});

test('stringData wins over data, also for who uses it', async () => {
  const both = 'apiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata: {pw: b2xk}\nstringData: {pw: new}\n';
  const world = await running({ 'web.yaml': web({ app: fromSecret }, asked), 's.yaml': both });
  assert.equal(valueIn(world), 'new');
  // written another way it is the same
  world.folder.write('s.yaml', secret('new'));
  await world.advance(30);
  assert.deepEqual(counts(world), { app: 0 });
});
