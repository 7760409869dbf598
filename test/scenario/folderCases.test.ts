/** Field cases A1–A3, A9–A11 and B2–B5, B10 on the whole agent: what people do to manifest files, what runs then, and what is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const container = (tag: number) => `{name: app, image: "localhost/busybox:${tag}"}`;
const text = (tag: number) => manifest('web', { containers: [container(tag)] });
const imageOf = (w: World) => w.runtime.find('web', 'app')?.config.userSpecifiedImage.split(':')[1];
const starts = (w: World) => w.runtime.deeds.filter((d) => d === 'startContainer').length;

async function running(files: Readonly<Record<string, string>> = { 'web.yaml': text(1) }): Promise<World> {
  const world = new World();
  for (const [name, content] of Object.entries(files)) world.folder.files.set(name, content);
  await world.start();
  await world.advance(5);
  return world;
}

test('A1: an editor that writes in place, twenty times unchanged: one container, 0 restarts; then one value: one replacement', async () => {
  const world = await running();
  const id = world.runtime.find('web', 'app')?.id;
  for (let i = 0; i < 20; i++) {
    for (const half of ['', text(1).slice(0, 60), text(1)]) {
      world.folder.write('web.yaml', half);
      await world.advance(0.05 * (i % 4));
    }
  }
  await world.advance(30);
  assert.equal(world.runtime.find('web', 'app')?.id, id);
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.restartCount, 0);
  world.folder.write('web.yaml', '');
  await world.advance(0.5);
  world.folder.write('web.yaml', text(2));
  await world.advance(10);
  assert.equal(starts(world), 2);
  assert.equal(world.runtime.deeds.filter((d) => d === 'stopContainer').length, 1);
  assert.equal(world.file('web.yaml'), undefined);
});

test('A2: a second file with the pod: the running one goes on, both are named in what is told, and it takes over once', async () => {
  const world = await running({ 'a.yaml': text(1) });
  world.folder.write('a.yaml', text(2));
  await world.advance(10);
  world.folder.write('zz.yaml', text(3));
  await world.advance(10);
  assert.equal(imageOf(world), '2');
  const shadowed = world.sync('web')?.sources.find((s) => s.source === 'file:zz.yaml');
  assert.equal(shadowed?.phase, 'Shadowed');
  assert.match(shadowed?.message ?? '', /a\.yaml/);
  assert.match(world.file('zz.yaml')?.problems[0]?.got ?? '', /a\.yaml/);
  await world.restart();
  await world.advance(30);
  assert.equal(imageOf(world), '2', 'over an agent restart too');
  const before = starts(world);
  world.folder.remove('a.yaml');
  await world.advance(10);
  assert.equal(imageOf(world), '3');
  assert.equal(starts(world), before + 1);
  assert.equal(world.file('zz.yaml'), undefined);
  assert.equal(world.sync('web')?.sources.length, 1);
});

test('A3: a file that is written 10 bytes every 200 ms: nothing is killed, nothing starts twice, the last content runs', async () => {
  const world = await running();
  for (let length = 0; length < text(2).length + 10; length += 10) {
    world.folder.write('web.yaml', text(2).slice(0, length));
    await world.advance(0.2);
  }
  await world.advance(10);
  assert.equal(imageOf(world), '2');
  assert.equal(starts(world), 2);
  assert.equal(world.runtime.deeds.filter((d) => d === 'runSandbox').length, 1);
  assert.deepEqual(world.runtime.violations, []);
});

/** What is written, and a word of what must be told of it, at which line. */
const wrong: readonly (readonly [case_: string, what: string, content: string, told: RegExp, line: number])[] = [
  ['A3', 'an empty file', '', /empty/, 0],
  ['A9', 'a tab in the indent', text(1).replace('  name: web', '\tname: web'), /tab/i, 4],
  ['A9', 'kind Pdo', text(1).replace('kind: Pod', 'kind: Pdo'), /Pdo/, 2],
  ['A9', 'no image', text(1).replace(/, image: "[^"]*"/, ''), /image/, 7],
  ['A10', 'a DaemonSet', text(1).replace('kind: Pod', 'kind: DaemonSet'), /DaemonSet/, 2],
  [
    'B2',
    'a bare no as the value of a variable',
    manifest('web', { containers: ['{name: app, image: i, env: [{name: L, value: no}]}'] }),
    /quote it/,
    7,
  ],
  ['B2', 'a bare number as a label', text(1).replace('  name: web', '  name: web\n  labels: {v: 1.10}'), /quote it/, 5],
  ['B2', 'bare words as arguments', manifest('web', { containers: ['{name: app, image: i, args: [on, 1_000]}'] }), /quote it/, 7],
  ['B3', 'two images in one container', manifest('web', { containers: ['{name: app, image: i, image: j}'] }), /image/, 7],
  [
    'B5',
    'a memory limit of 300m',
    manifest('web', { containers: ['{name: app, image: i, resources: {limits: {memory: 300m}}}'] }),
    /300Mi/,
    7,
  ],
  [
    'B5',
    'a memory limit of 1Ki',
    manifest('web', { containers: ['{name: app, image: i, resources: {limits: {memory: 1Ki}}}'] }),
    /1Mi|4Mi/,
    7,
  ],
  ['B10', 'an alias bomb', bomb(), /alias/i, 1],
];

function bomb(): string {
  const levels = Array.from(
    { length: 9 },
    (_, i) =>
      `l${i + 1}: &l${i + 1} [${Array(9)
        .fill(i === 0 ? 'x' : `*l${i}`)
        .join(', ')}]`,
  );
  return `${levels.join('\n')}\n${text(1)}`;
}

for (const [id, what, content, told, line] of wrong) {
  test(`${id}: ${what}: the pod goes on, the file's topic says what and where, over an agent restart too, and is cleared when mended or removed`, async () => {
    const world = await running();
    const container = world.runtime.find('web', 'app')?.id;
    world.folder.write('web.yaml', content);
    for (const again of [false, true]) {
      if (again) await world.restart();
      await world.advance(30);
      const problems = world.file('web.yaml')?.problems ?? [];
      assert.ok(
        problems.some((p) => told.test(JSON.stringify(p))),
        JSON.stringify(problems),
      );
      assert.ok((problems[0]?.line ?? 0) >= line, `line ${problems[0]?.line}`);
      assert.equal(world.sync('web')?.sources[0]?.phase, 'Refused');
      assert.equal(world.runtime.find('web', 'app')?.id, container);
      assert.equal(world.pod('web')?.status.phase, 'Running');
    }
    assert.equal(world.events.filter((e) => e.type === 'Warning').length, 1, 'one event in one agent life');
    world.folder.write('web.yaml', text(1));
    await world.advance(5);
    assert.equal(world.file('web.yaml'), undefined);
    assert.equal(world.sync('web')?.sources[0]?.phase, 'Accepted');
    world.folder.write('new.yaml', content.replace('name: web', 'name: new'));
    await world.advance(5);
    assert.ok(world.file('new.yaml'));
    assert.equal(world.pod('new'), undefined, 'a file that never was good runs nothing');
    world.folder.remove('new.yaml');
    await world.advance(5);
    assert.equal(world.file('new.yaml'), undefined);
    assert.deepEqual(Object.keys(world.topics()).sort(), ['pods/default/web', 'sync/default/web']);
    assert.equal(starts(world), 1);
  });
}

test('A10: Pod, empty document, broken Pod, ConfigMap, Pod in one file: the good ones run, the broken one is told with its line', async () => {
  const broken = manifest('b').replace('image', 'imgae');
  const cm = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {k: v}\n';
  const world = await running({ 'all.yaml': [manifest('a'), '', broken, cm, manifest('c')].join('---\n') });
  assert.deepEqual(world.runtime.running(), ['a/app', 'c/app']);
  assert.equal(world.sync('b')?.phase, 'Refused');
  assert.ok(JSON.parse(world.topics()['sync/default/configmap:cfg'] ?? '{}').phase === 'Accepted');
  const at =
    [manifest('a'), '', broken]
      .join('---\n')
      .split('\n')
      .findIndex((l) => l.includes('imgae')) + 1;
  assert.equal(world.file('all.yaml')?.problems[0]?.line, at);
});

test('A11: touched, commented, reordered, quoted otherwise, as JSON under the same name: 0 restarts, and no status told anew', async () => {
  const world = await running();
  const deeds = world.runtime.deeds.length;
  const was = world.topics();
  const object = {
    spec: { containers: [{ image: 'localhost/busybox:1', name: 'app' }] },
    metadata: { name: 'web' },
    kind: 'Pod',
    apiVersion: 'v1',
  };
  for (const same of [
    text(1),
    `# hello\n${text(1)}`,
    text(1).replaceAll('"', "'"),
    JSON.stringify(object),
    JSON.stringify(object, null, 2),
  ]) {
    world.folder.write('web.yaml', same);
    await world.advance(90);
    assert.deepEqual(world.topics(), was);
  }
  assert.equal(world.runtime.deeds.length, deeds);
});

test('B3: a key of a merged anchor may be overridden', async () => {
  const merged = manifest('web', {
    containers: ['&base {name: app, image: "localhost/busybox:1"}', '{<<: *base, name: b, image: "localhost/busybox:2"}'],
  });
  const world = await running({ 'web.yaml': merged });
  assert.deepEqual(world.runtime.running(), ['web/app', 'web/b']);
});

for (const [what, edit, nearest] of [
  ['restartPolicy below metadata', (t: string) => t.replace('  name: web', '  name: web\n  restartPolicy: Never'), /restartPolicy/],
  ['resource', (t: string) => t.replace(', image', ', resource: {}, image'), /resources/],
  ['livenesProbe', (t: string) => t.replace(', image', ', livenesProbe: {}, image'), /livenessProbe/],
  ['image_pull_policy', (t: string) => t.replace(', image', ', image_pull_policy: Never, image'), /imagePullPolicy/],
] as const) {
  test(`B4: ${what}: the pod runs, and what has no effect is told with the nearest name and its line`, async () => {
    const world = await running({ 'web.yaml': edit(text(1)) });
    assert.deepEqual(world.runtime.running(), ['web/app']);
    const source = world.sync('web')?.sources[0];
    assert.equal(source?.phase, 'Accepted');
    assert.equal(source?.reason, 'FieldsWithoutEffect');
    assert.match(JSON.stringify(source?.problems), nearest);
    assert.ok((source?.problems[0]?.line ?? 0) >= 5);
  });
}

for (const [memory, bytes] of [
  ['0.5Gi', 2 ** 29],
  ['129e6', 129_000_000],
  ['128974848000m', 128_974_848],
] as const) {
  test(`B5: a memory limit of ${memory} is ${bytes} bytes for the runtime`, async () => {
    const world = await running({
      'web.yaml': manifest('web', { containers: [`{name: app, image: "localhost/busybox:1", resources: {limits: {memory: ${memory}}}}`] }),
    });
    assert.equal(world.runtime.find('web', 'app')?.config.resources.memoryLimitBytes, bytes);
  });
}

test('B10: two thousand files, one of them broken: all the others run, and the broken one is told', async () => {
  const files = Object.fromEntries(
    Array.from({ length: 2000 }, (_, i) => [`m${i}.yaml`, `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m${i}}\n`]),
  );
  const world = await running({ ...files, 'bad.yaml': 'kind: [', 'web.yaml': text(1) });
  await world.advance(20);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.ok(world.file('bad.yaml'));
  assert.equal(Object.keys(world.topics()).filter((t) => t.startsWith('sync/default/configmap:')).length, 2000);
});
