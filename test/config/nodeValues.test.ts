// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerHash, podHashes } from '../../src/api/hash.ts';
import type { NodeValues } from '../../src/api/nodeValues.ts';
import type { KeyText } from '../../src/api/objects.ts';
import { problemText } from '../../src/api/problems.ts';
import { usersOf } from '../../src/api/references.ts';
import type { ConfigMap, Pod, Secret } from '../../src/api/v1.ts';
import { type DecodedFile, decodeFile } from '../../src/config/decode.ts';
import { type Entry, visibleTo } from '../../src/config/merge.ts';
import { configMap, FakeFolder, pod, rig, started, uidOf } from './builders.ts';

const node: NodeValues = { name: 'pi-07', arch: 'arm64', serial: '10000000a1b2c3d4', labels: { site: 'attic' } };
const decode = (text: string, of: NodeValues | undefined = node): DecodedFile =>
  decodeFile({ name: 'x.yaml', content: { ok: true, bytes: new TextEncoder().encode(text) } }, { strict: false, ...(of && { node: of }) });
const problems = (text: string): string[] => decode(text).problems.map((p) => problemText(p));
const onePod = (text: string, of = node): Pod => {
  const file = decode(text, of);
  assert.deepEqual(file.problems, []);
  const object = file.objects[0]?.object;
  assert.equal(object?.kind, 'Pod');
  return object as Pod;
};

test('one manifest serves the fleet: names, images, labels, arguments and data are what the node is', () => {
  const text = [
    'apiVersion: v1',
    'kind: Pod',
    'metadata:',
    '  name: web-${NODE.name}',
    '  labels: {site: "${NODE.site}"}',
    'spec:',
    '  containers:',
    '  - name: c',
    '    image: registry.lan/app:1-${NODE.arch}',
    '    args: ["--id=${NODE.serial}", "$${NODE.name}", "$(A)"]',
    '    env:',
    '    - {name: A, value: "${NODE.name}/x"}',
    '---',
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata: {name: site}',
    'data: {place: "${NODE.site}"}',
    '---',
    'apiVersion: v1',
    'kind: Secret',
    'metadata: {name: key}',
    'stringData: {id: "${NODE.serial}"}',
    '',
  ].join('\n');
  const file = decode(text);
  assert.deepEqual([file.problems, file.whole], [[], true]);
  assert.deepEqual(
    file.objects.map((o) => o.key),
    ['Pod/default/web-pi-07', 'ConfigMap/default/site', 'Secret/default/key'],
  );
  const [web, site, key] = file.objects.map((o) => o.object) as [Pod, ConfigMap, Secret];
  assert.deepEqual(web.metadata.labels, { site: 'attic' });
  assert.equal(web.spec.containers[0]?.image, 'registry.lan/app:1-arm64');
  assert.deepEqual(web.spec.containers[0]?.args, ['--id=10000000a1b2c3d4', '${NODE.name}', '$(A)']);
  assert.equal(web.spec.containers[0]?.env?.[0]?.value, 'pi-07/x');
  assert.deepEqual([site.data, key.stringData], [{ place: 'attic' }, { id: '10000000a1b2c3d4' }]);
});

test('hashes and revision are those of the same object written out', () => {
  const template = pod('web', { image: 'x:${NODE.arch}', env: '${NODE.name}' });
  const written = pod('web', { image: 'x:arm64', env: 'pi-07' });
  const plain = onePod(written);
  assert.deepEqual(podHashes(onePod(template)), podHashes(plain));
  assert.equal(decode(template).objects[0]?.revision, decode(written).objects[0]?.revision);
  const other = onePod(template, { ...node, arch: 'arm' });
  assert.notEqual(
    containerHash(other.spec.containers[0] as Pod['spec']['containers'][0]),
    containerHash(plain.spec.containers[0] as Pod['spec']['containers'][0]),
  );
});

test('values are data: one that looks like YAML, a number or a list stays one string', () => {
  const odd: NodeValues = { ...node, labels: { a: 'x"\n  privileged: true', n: '5', t: 'true', l: '[1]' } };
  const env = ['${NODE.a}', '${NODE.n}', '${NODE.t}', '${NODE.l}'].map((v, i) => `{name: E${i}, value: "${v}"}`).join(', ');
  const text = pod('web', { extra: `    env: [${env}]` });
  const { spec } = onePod(text, odd);
  assert.deepEqual(
    spec.containers[0]?.env?.map((e) => e.value),
    ['x"\n  privileged: true', '5', 'true', '[1]'],
  );
  const port = pod('web', { extra: '    ports: [{containerPort: "${NODE.n}"}]' });
  assert.match(problemText(decode(port, odd).problems[0] ?? { path: '', expected: '', got: '' }), /containerPort: expected .*, got "5"/);
});

test('an unknown name refuses the object at its line and column, with the nearest name; the rest of the file stands', () => {
  const text = `${pod('web', { image: 'x:${NODE.arhc}', env: '${NODE.Site}' })}---\n${configMap('good')}`;
  assert.deepEqual(problems(text), [
    'x.yaml:8:12: spec.containers[0].image: expected name, arch, model, serial or a label of the node, got ${NODE.arhc}; did you mean ${NODE.arch}?',
    'x.yaml:10:24: spec.containers[0].env[0].value: expected name, arch, model, serial or a label of the node, got ${NODE.Site}; did you mean ${NODE.site}?',
  ]);
  const file = decode(text);
  assert.deepEqual(
    [file.whole, file.refusedKeys, file.objects.map((o) => o.key)],
    [false, ['Pod/default/web'], ['ConfigMap/default/good']],
  );
});

test('the place is found through a List, an anchor, a merge key, keys with dots, and in JSON', () => {
  const list = `apiVersion: v1\nkind: List\nitems:\n- ${configMap('a', '${NODE.bad}').trimEnd().replaceAll('\n', '\n  ')}\n`;
  const [inList] = decode(list).problems;
  assert.deepEqual([inList?.line, inList?.path], [7, 'items[0].data[a]']);
  const anchored = [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata: {name: a}',
    'data:',
    '  a.conf: &x "${NODE.bad}"',
    '  b.conf: *x',
    '  c: "${NODE.name}"',
  ].join('\n');
  assert.deepEqual(
    decode(anchored).problems.map((p) => [p.line, p.path]),
    [
      [5, 'data[a.conf]'],
      [6, 'data[b.conf]'],
    ],
  );
  const merged = [
    'apiVersion: v1',
    'kind: Pod',
    'metadata: {name: a}',
    'spec:',
    '  initContainers:',
    '  - &base {name: i, image: "x:${NODE.arch}"}',
    '  containers:',
    '  - {<<: *base, name: c}',
  ].join('\n');
  const { spec } = onePod(merged);
  assert.deepEqual([spec.initContainers?.[0]?.image, spec.containers[0]?.image], ['x:arm64', 'x:arm64']);
  const wrong = decode(merged.replace('NODE.arch', 'NODE.bad')).problems;
  assert.deepEqual(
    wrong.map((p) => [p.line, p.path]),
    [
      [6, 'spec.initContainers[0].image'],
      [6, 'spec.containers[0].image'],
    ],
  );
  const json = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { x: '${NODE.bad}' } }, undefined, 1);
  const [inJson] = decode(json).problems;
  assert.deepEqual([inJson?.line, inJson?.path], [8, 'data[x]']);
});

test('what is refused is known by its name on this node; by a name that nobody knows, nothing is', () => {
  const broken = (name: string) => pod(name).replace('image: busybox:1', 'image: 5');
  assert.deepEqual(decode(broken('web-${NODE.name}')).refusedKeys, ['Pod/default/web-pi-07']);
  const twice = `${pod('web-${NODE.name}')}    image: x\n`;
  assert.deepEqual(decode(twice).refusedKeys, ['Pod/default/web-pi-07']);
  assert.deepEqual(decode(pod('web-${NODE.bad}')).refusedKeys, []);
});

test('a name that is wrong on this node is refused where it stands', () => {
  const [problem] = decode(pod('web-${NODE.name}'), { ...node, name: 'Pi_7' }).problems;
  assert.deepEqual([problem?.path, problem?.line, problem?.got], ['metadata.name', 4, '"web-Pi_7"']);
});

test('a file of a mebibyte with references is decoded', () => {
  const text = configMap('big', `${'x'.repeat(900_000)}\${NODE.name}`);
  const object = decode(text).objects[0]?.object as ConfigMap;
  assert.ok(object.data?.a?.endsWith('xpi-07'));
});

test('where nobody knows the node the form alone is judged, and what depends on a value is left to the node', () => {
  const text = pod('web-${NODE.name}', { image: 'x:${NODE.arch}', extra: '    resources: {limits: {memory: "${NODE.memory}Mi"}}' });
  const file = decodeFile({ name: 'x.yaml', content: { ok: true, bytes: new TextEncoder().encode(text) } }, { strict: false });
  assert.deepEqual(file.problems, []);
  const bad = text.replace('NODE.memory', 'NODE.me mory').replace('image: x', 'imag: x');
  assert.deepEqual(
    decodeFile({ name: 'x.yaml', content: { ok: true, bytes: new TextEncoder().encode(bad) } }, { strict: false }).problems.map(
      (p) => p.path,
    ),
    ['spec.containers[0].image', 'spec.containers[0].imag', 'spec.containers[0].resources.limits[memory]'],
  );
});

test('a changed label of the node is an edit of what names it, at the next reading, and of nothing else', async () => {
  const r = rig({ folder: new FakeFolder().set({ 'a.yaml': pod('a', { image: 'x:${NODE.site}' }), 'b.yaml': pod('b') }) });
  r.node = { name: 'pi', labels: { site: 'attic' } };
  await r.config.load();
  await r.config.readFolder();
  const uid = uidOf(r, 'Pod/default/a');
  r.take();
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  r.node = { name: 'pi', labels: { site: 'cellar' } };
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`UPDATE a ${uid}`]);
  assert.equal(r.updates.at(-1)?.pods[0]?.pod.spec.containers[0]?.image, 'x:cellar');
  // a label that is gone refuses the newest text; what was accepted last goes on
  r.node = { name: 'pi', labels: {} };
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  const object = r.config.view().objects.find((o) => o.key === 'Pod/default/a');
  assert.deepEqual([object?.uid, object?.sources[0]?.phase], [uid, 'Refused']);
});

test('the checkpoint holds what was put in: a cold boot runs it under the same revision', async () => {
  const r = rig({ folder: new FakeFolder().set({ 'a.yaml': pod('a', { image: 'x:${NODE.site}' }) }) });
  r.node = { name: 'pi', labels: { site: 'attic' } };
  await r.config.load();
  await r.config.readFolder();
  const again = await r.restart();
  again.node = r.node;
  assert.equal(again.updates[0]?.pods[0]?.pod.spec.containers[0]?.image, 'x:attic');
  again.take();
  await again.config.readFolder();
  assert.deepEqual(again.take(), []);
});

test('a ConfigMap that arrives later, changes and goes is told by its key, which leads to the pods that name it', async () => {
  const user = pod('web', { extra: '    envFrom: [{configMapRef: {name: site}}]' });
  const r = await started({ 'web.yaml': user, 'other.yaml': pod('other') });
  const key = 'ConfigMap/default/site' as KeyText;
  const pods = r.updates.flatMap((u) => u.pods);
  const users = () => usersOf(r.changed.splice(0).flat(), pods);
  assert.equal(r.config.objectFor(key, 'file:web.yaml'), undefined);
  users();
  r.take();
  const files = { 'web.yaml': user, 'other.yaml': pod('other') };
  r.folder.set({ ...files, 'site.yaml': configMap('site', 'attic') });
  await r.config.readFolder();
  assert.deepEqual(users(), [uidOf(r, 'Pod/default/web')]);
  assert.deepEqual((r.config.objectFor(key, 'file:web.yaml') as ConfigMap).data, { a: 'attic' });
  assert.equal(r.config.objectFor(key, 'mqtt:node'), undefined);
  r.folder.set({ ...files, 'site.yaml': configMap('site', 'cellar') });
  await r.config.readFolder();
  assert.deepEqual(users(), [uidOf(r, 'Pod/default/web')]);
  r.folder.set(files);
  await r.config.readFolder();
  assert.deepEqual(users(), [uidOf(r, 'Pod/default/web')]);
  assert.equal(r.config.objectFor(key, 'file:web.yaml'), undefined);
  // no pod was touched for it
  assert.deepEqual(r.take(), []);
});

test('a pod sees only objects that come as it does: files see the winner among files, topics the strongest topic', () => {
  const candidate = (source: Entry['winner']) => ({ source, revision: source, firstSeen: '', object: {} as ConfigMap });
  const entry = (winner: Entry['winner'], ...others: Entry['winner'][]): Entry => ({
    key: 'ConfigMap/default/a' as KeyText,
    since: '',
    winner,
    candidates: [winner, ...others].map(candidate),
  });
  const table: readonly (readonly [Entry, Entry['winner'], string | undefined])[] = [
    [entry('file:b.yaml', 'file:a.yaml', 'mqtt:all', 'mqtt:node'), 'file:pod.yaml', 'file:b.yaml'],
    [entry('file:b.yaml', 'file:a.yaml', 'mqtt:all', 'mqtt:node'), 'mqtt:group/x', 'mqtt:node'],
    [entry('file:b.yaml', 'mqtt:all', 'mqtt:group/x'), 'mqtt:all', 'mqtt:group/x'],
    [entry('mqtt:node', 'mqtt:all'), 'file:pod.yaml', undefined],
    [entry('mqtt:node', 'mqtt:all'), 'mqtt:all', 'mqtt:node'],
    [entry('file:b.yaml'), 'mqtt:node', undefined],
  ];
  for (const [e, source, expected] of table) assert.equal(visibleTo(e, source)?.source, expected, `${e.winner} ${source}`);
});
