/**
 * Field cases A2, A9, A10, A11, B2–B5, B10, C1–C4 and L1 where the wish is on a topic of the broker instead of in a file: the whole agent, real
 * session, real source. Whatever is said of files holds of topics.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Afar, absent, mapJson, podJson, prefix } from './afar.ts';
import { manifest } from './world.ts';

async function running(topics: Readonly<Record<string, string>>, a = new Afar()): Promise<Afar> {
  for (const [level, payload] of Object.entries(topics)) a.keep(a.topic(level), payload);
  await a.world.start();
  await a.world.advance(10);
  return a;
}
const runs = (a: Afar): string[] => a.world.runtime.running();
const deeds = (a: Afar, deed: string): number => a.world.runtime.deeds.filter((d) => d === deed).length;
const image = (a: Afar): string | undefined => a.world.runtime.find('web', 'app')?.config.userSpecifiedImage.split(':').at(-1);

test('A2: one pod in a file and on three topics: the strongest runs, the others are told as Shadowed, and take over one by one', async () => {
  const a = new Afar({ 'mqtt.groups': ['attic'] });
  const tag = (n: number) => podJson('web', { image: n });
  a.world.runtime.images.set('localhost/busybox:4', { state: 'present' });
  a.keep(a.topic('web', 'all'), tag(4));
  a.keep(a.topic('web', 'groups/attic'), tag(3));
  a.keep(a.topic('web'), tag(2));
  a.world.folder.files.set('web.yaml', manifest('web'));
  await a.world.start();
  await a.world.advance(10);
  const sources = ['file:web.yaml', 'mqtt:node', 'mqtt:group/attic', 'mqtt:all'];
  for (const [i, source] of sources.entries()) {
    assert.equal(image(a), String(i + 1));
    assert.equal(a.world.sync('web')?.desired?.source, source);
    for (const weaker of sources.slice(i + 1)) assert.match(a.said('web', weaker) ?? '', /^Shadowed /);
    if (i === 0) a.world.folder.remove('web.yaml');
    else a.keep(a.topic('web', { 1: undefined, 2: 'groups/attic', 3: 'all' }[i]), '');
    await a.world.advance(45);
  }
  assert.deepEqual(runs(a), []);
  assert.equal(a.world.sync('web'), undefined);
  assert.equal(deeds(a, 'startContainer'), 4);
});

const bomb = [
  manifest('web').trimEnd(),
  'a0: &a0 [x, x, x, x, x, x, x, x, x]',
  ...Array.from({ length: 8 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(', ')}]`),
].join('\n');
const refused: readonly (readonly [id: string, what: string, payload: string, path: RegExp, got: RegExp])[] = [
  ['A9', 'a tab in the indent', manifest('web').replace('  name', '\tname'), /^$/, /./],
  ['A9', 'a kind that there is not', manifest('web').replace('kind: Pod', 'kind: Pdo'), /kind/, /Pdo/],
  ['A9', 'no image', podJson('web', { container: { image: undefined } }), /^spec\.containers\[0\]\.image$/, /nothing/],
  ['A10', 'two documents in one payload', `${manifest('web')}---\n${manifest('other')}`, /./, /./],
  ['B2', 'a bare no as a variable', manifest('web', { containers: ['{name: app, image: x, env: [{name: L, value: no}]}'] }), /env/, /./],
  ['B3', 'a key twice', manifest('web', { containers: ['{name: app, image: x, image: y}'] }), /image/, /./],
  ['B5', 'memory in thousandths of a byte', podJson('web', { container: { resources: { limits: { memory: '300m' } } } }), /memory/, /300m/],
  ['B10', 'an alias bomb', bomb, /./, /./],
  ['B10', 'more than 60 KiB', podJson('web', { annotations: { pad: 'x'.repeat(62_000) } }), /./, /./],
];
for (const [id, what, payload, path, got] of refused) {
  test(`${id}: ${what} on a topic: refused with its place, the pod of before goes on over an agent restart, mended it is well`, async () => {
    const a = await running({ web: podJson('web'), other: podJson('other') });
    const before = a.deeds;
    a.keep(a.topic('web'), payload);
    await a.world.advance(5);
    const sync = a.world.sync('web');
    const row = sync?.sources.find((s) => s.source === 'mqtt:node');
    assert.deepEqual([sync?.phase, sync?.reason, row?.phase], ['Running', 'EditRefused', 'Refused']);
    const problem = row?.problems[0];
    assert.ok(
      problem !== undefined && path.test(problem.path) === (path.source !== '.' || problem.path !== '') && got.test(problem.got),
      JSON.stringify(row),
    );
    await a.world.restart();
    await a.world.advance(30);
    assert.equal(a.said('web')?.split(' ')[0], 'Refused');
    assert.equal(a.deeds, before);
    a.keep(a.topic('web'), podJson('web'));
    await a.world.advance(5);
    assert.deepEqual([a.said('web'), a.deeds], ['Accepted Accepted', before]);
  });
}

test('A11: published again as YAML, reordered, commented, and with a counter more: 0 restarts', async () => {
  const a = await running({ web: podJson('web') });
  const before = a.deeds;
  const yaml = manifest('web');
  const [head = '', spec = ''] = yaml.split('spec:');
  for (const payload of [
    yaml,
    `# said again\n${yaml}`,
    `spec:${spec}${head}`,
    podJson('web', { annotations: { 'podsched.dev/generation': '7' } }),
  ]) {
    a.keep(a.topic('web'), payload);
    await a.world.advance(5);
    assert.equal(a.said('web'), 'Accepted Accepted');
  }
  assert.equal(a.deeds, before);
});

test('B4: a misspelt field on a topic: the pod runs, and it is told with the nearest name', async () => {
  const a = await running({ web: podJson('web', { container: { livenesProbe: {} } }) });
  assert.deepEqual(runs(a), ['web/app']);
  const row = a.world.sync('web')?.sources.find((s) => s.source === 'mqtt:node');
  assert.deepEqual(
    row?.problems.map((p) => [p.path, p.nearest]),
    [['spec.containers[0].livenesProbe', 'livenessProbe']],
  );
});

for (const seconds of [0, 0.1, 1, 5, 40]) {
  test(`C1: its topic emptied, and ${seconds} s later retained again, TERM ignored: runs, in one container, never two at a time`, async () => {
    const a = new Afar();
    a.world.runtime.onStart(() => ({ ignoresTerm: true }));
    const text = podJson('web', { spec: { terminationGracePeriodSeconds: 30 } });
    await running({ web: text }, a);
    a.keep(a.topic('web'), '');
    await a.world.advance(seconds);
    a.keep(a.topic('web'), text);
    await a.world.advance(80);
    assert.deepEqual(runs(a), ['web/app']);
    assert.equal(a.world.runtime.sandboxes.size, 1);
    assert.equal(a.world.sync('web')?.phase, 'Running');
    assert.equal(a.world.pod('web')?.metadata.deletionTimestamp, undefined);
    assert.deepEqual(a.world.runtime.violations, []);
  });
}

test('C2: edits on the topic at 0, 5 and 10 s while the old one ignores TERM: one kill of the full grace, one start, the last revision', async () => {
  const a = new Afar();
  a.world.runtime.onStart(() => ({ ignoresTerm: deeds(a, 'startContainer') <= 1 }));
  const text = (hostname: string) => podJson('web', { spec: { terminationGracePeriodSeconds: 20, hostname } });
  await running({ web: text('h0') }, a);
  for (const n of [1, 2, 3]) {
    a.keep(a.topic('web'), text(`h${n}`));
    await a.world.advance(5);
  }
  await a.world.advance(60);
  assert.equal(deeds(a, 'startContainer'), 2);
  const stops = a.world.runtime.calls.filter((c) => c.method === 'stopContainer').map((c) => c.args[1]);
  assert.deepEqual(stops, [20]);
  assert.equal([...a.world.runtime.sandboxes.values()].find((s) => s.state === 'ready')?.config.hostname, 'h3');
  assert.deepEqual(a.world.runtime.violations, []);
});

for (const version of [4, 5] as const) {
  test(`C3: three wishes changed while the agent is away, MQTT ${version}: old gone, new running, no overlap`, async () => {
    const a = new Afar();
    if (version === 4) a.broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
    await running({ a: podJson('a'), b: podJson('b'), c: podJson('c') }, a);
    a.world.kill();
    for (const name of ['a', 'b', 'c']) a.keep(a.topic(name), podJson(name, { image: 2, spec: { hostname: 'new' } }));
    await a.world.advance(version === 4 ? 10 : 4000);
    await a.world.start();
    await a.world.advance(60);
    assert.deepEqual(runs(a), ['a/app', 'b/app', 'c/app']);
    for (const name of ['a', 'b', 'c'])
      assert.equal(a.world.runtime.find(name, 'app')?.config.userSpecifiedImage, 'localhost/busybox:2', name);
    assert.deepEqual([deeds(a, 'startContainer'), a.world.runtime.violations], [6, []]);
  });
}

test('C4: deleted while the agent is away: tombstone and index end it; an empty payload beyond the session is not seen, and is told', async () => {
  const a = new Afar();
  const [kept, left] = [podJson('kept'), podJson('left')];
  for (const [name, text] of Object.entries({ kept, left })) a.keep(a.topic(name), text);
  for (const name of ['stone', 'emptied']) a.keep(a.topic(name, 'all'), podJson(name));
  a.index(1, { kept, left });
  await running({}, a);
  assert.equal(runs(a).length, 4);
  a.world.kill();
  a.broker.sessions.clear();
  a.keep(a.topic('stone', 'all'), absent('Pod', 'stone'));
  a.keep(a.topic('emptied', 'all'), '');
  a.index(2, { kept });
  await a.world.start();
  await a.world.advance(60);
  assert.deepEqual(runs(a), ['emptied/app', 'kept/app']);
  assert.deepEqual([a.world.sync('emptied')?.phase, a.said('emptied', 'mqtt:all')], ['SourceGone', 'Accepted SourceGone']);
  assert.deepEqual([a.world.pod('stone'), a.world.pod('left')], [undefined, undefined]);
  // a tombstone says it for sure
  a.keep(a.topic('emptied', 'all'), absent('Pod', 'emptied'));
  await a.world.advance(45);
  assert.deepEqual(runs(a), ['kept/app']);
  const told = Object.keys(a.world.topics()).filter((t) => /^(pods|sync)\//.test(t));
  assert.deepEqual(told.sort(), ['pods/default/kept', 'sync/default/kept']);
});

test('C4: while nobody ran, the node left the group: what only the group had goes at the next start', async () => {
  const a = new Afar({ 'mqtt.groups': ['attic'] });
  a.keep(a.topic('web', 'groups/attic'), podJson('web'));
  await running({ own: podJson('own') }, a);
  assert.deepEqual(runs(a), ['own/app', 'web/app']);
  a.world.kill();
  a.orders.settings = {};
  await a.world.start();
  await a.world.advance(45);
  assert.deepEqual(runs(a), ['own/app']);
});

const envFrom = { envFrom: [{ configMapRef: { name: 'site' } }] };
for (const order of ['pod first', 'map first'] as const) {
  test(`L1: a pod and its ConfigMap by topics, ${order}: starts once both are there, in one go`, async () => {
    const a = await running({});
    const say: readonly (readonly [string, string])[] = [
      ['web', podJson('web', { container: envFrom })],
      ['configmap:site', mapJson('site', { PLACE: 'attic' })],
    ];
    for (const [level, payload] of order === 'pod first' ? say : [...say].reverse()) {
      a.keep(a.topic(level), payload);
      await a.world.advance(60);
    }
    await a.world.advance(60);
    assert.deepEqual(a.world.runtime.find('web', 'app')?.config.envs, [{ key: 'PLACE', value: 'attic' }]);
    assert.equal(deeds(a, 'startContainer'), 1);
    assert.equal(a.sync('configmap:site')?.phase, 'Accepted');
  });
}

test('L1: a ConfigMap of a topic changes and goes: a running pod is not touched, the next start waits, with its reason; Secrets are never told', async () => {
  const a = await running({
    'configmap:site': mapJson('site', { PLACE: 'attic' }),
    'secret:db': JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'db' }, stringData: { PASSWORD: 'correct horse' } }),
    web: podJson('web', {
      container: { ...envFrom, env: [{ name: 'PW', valueFrom: { secretKeyRef: { name: 'db', key: 'PASSWORD' } } }] },
    }),
  });
  assert.deepEqual(runs(a), ['web/app']);
  const before = a.deeds;
  a.keep(a.topic('configmap:site'), mapJson('site', { PLACE: 'cellar' }));
  await a.world.advance(30);
  a.keep(a.topic('configmap:site'), absent('ConfigMap', 'site'));
  await a.world.advance(30);
  assert.equal(a.deeds, before);
  const app = a.world.runtime.find('web', 'app');
  assert.ok(app);
  a.world.runtime.exit(app.id, 1);
  await a.world.advance(30);
  assert.deepEqual([a.world.sync('web')?.reason, runs(a)], ['CreateContainerConfigError', []]);
  a.keep(a.topic('configmap:site'), mapJson('site', { PLACE: 'cellar' }));
  await a.world.advance(45); // it crashed: its back-off goes on
  assert.deepEqual(a.world.runtime.find('web', 'app')?.config.envs, [
    { key: 'PLACE', value: 'cellar' },
    { key: 'PW', value: 'correct horse' },
  ]);
  const told = a.broker.publishes.filter((p) => p.topic.startsWith(`${prefix}/nodes/`)).map((p) => p.payload);
  assert.ok(told.length > 10);
  assert.ok(!told.join().includes('correct horse') && !told.join().includes(Buffer.from('correct horse').toString('base64')));
});

test('L1: a pod of a topic sees a ConfigMap of a file only where the policy says so', async () => {
  const a = new Afar();
  a.world.folder.files.set('site.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\ndata: {PLACE: attic}\n');
  await running({ web: podJson('web', { container: envFrom }) }, a);
  assert.deepEqual([a.world.sync('web')?.reason, runs(a)], ['CreateContainerConfigError', []]);
  a.orders.settings = { 'policy.mqtt': { mayRead: ['default'] } };
  await a.world.reload();
  await a.world.advance(130);
  assert.deepEqual(runs(a), ['web/app']);
});
