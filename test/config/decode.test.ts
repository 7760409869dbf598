import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemText } from '../../src/api/problems.ts';
import { type DecodedFile, decodeFile } from '../../src/config/decode.ts';
import { isManifestName } from '../../src/config/names.ts';
import { configMap, pod } from './builders.ts';

const decode = (content: string | Uint8Array, strict = false): DecodedFile => {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  return decodeFile({ name: 'x.yaml', content: { ok: true, bytes } }, { strict });
};
const first = (content: string | Uint8Array): string => {
  const [problem] = decode(content).problems;
  assert.ok(problem);
  return problemText(problem);
};

test('B10: invalid UTF-8 is refused with its line, UTF-16 by its name; BOM and CRLF are read', () => {
  const bad = Buffer.concat([Buffer.from('a: 1\nb: '), Buffer.from([0xff, 0xfe]), Buffer.from('\n')]);
  assert.equal(first(bad), 'x.yaml:2:1: expected UTF-8, got bytes that are no UTF-8');
  assert.match(first(Buffer.from('\ufeffa: 1', 'utf16le')), /UTF-16/);
  assert.equal(decode(`\ufeff${pod('web').replaceAll('\n', '\r\n')}`).objects.length, 1);
});

test('B10: an alias bomb, 50 MB and a file that could not be read are refused by name', () => {
  let bomb = 'a0: &a0 [x, x, x, x, x, x, x, x, x]\n';
  for (let i = 1; i < 9; i++) bomb += `a${i}: &a${i} [${Array.from({ length: 9 }, () => `*a${i - 1}`).join(', ')}]\n`;
  assert.match(first(bomb), /at most 1 MiB/);
  assert.match(first(new Uint8Array(50 << 20)), /at most 1048576 bytes/);
  const file = decodeFile(
    { name: 'x.yaml', content: { ok: false, reason: 'NotAFile', message: 'a FIFO, not a regular file' } },
    { strict: false },
  );
  assert.deepEqual(file.problems, [{ path: '', expected: 'a file that can be read', got: 'a FIFO, not a regular file', file: 'x.yaml' }]);
  assert.equal(file.whole, false);
});

test('what is refused names misspelt fields too, in the order of the file', () => {
  const file = decode(
    'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    imag: x\n  restartPolicy: Often\n',
  );
  assert.deepEqual(
    file.problems.map((p) => [p.line, p.path, p.nearest]),
    [
      [6, 'spec.containers[0].image', undefined],
      [7, 'spec.containers[0].imag', 'image'],
      [8, 'spec.restartPolicy', undefined],
    ],
  );
});

test('B3: a second image or env is refused with both lines, and the pod it is about is known', () => {
  const file = decode(`${pod('web')}    image: x\n`);
  assert.equal(
    problemText(file.problems[0] ?? { path: '', expected: '', got: '' }),
    'x.yaml:9:5: spec.containers[0].image: expected each key once, got twice: line 8 and line 9',
  );
  assert.deepEqual(file.refusedKeys, ['Pod/default/web']);
  assert.deepEqual(file.objects, []);
});

test('B3: a key of a merged anchor may be overridden', () => {
  const text = pod('web', { extra: '  - <<: &c {name: d, image: i}\n    name: e' });
  const [decoded] = decode(text).objects;
  assert.ok(decoded?.object.kind === 'Pod');
  assert.deepEqual(decoded.object.spec.containers[1], { name: 'e', image: 'i' });
});

test('a mistake inside a List is found in its item and its line', () => {
  const text =
    'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec:\n    containers:\n    - name: c\n      image: 5\n';
  const file = decode(text);
  assert.equal(file.problems[0]?.path, 'items[0].spec.containers[0].image');
  assert.equal(file.problems[0]?.line, 10);
  assert.equal(file.problems[0]?.column, 14);
  assert.deepEqual(file.refusedKeys, ['Pod/default/a']);
});

test('a List of another version, with something else as items, or within a List, is refused', () => {
  assert.match(first('apiVersion: v2\nkind: List\nitems: []\n'), /x\.yaml:1:13: apiVersion: expected v1/);
  assert.match(first('apiVersion: v1\nkind: List\nitems: 5\n'), /items: expected a list/);
  assert.match(first('apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List}]\n'), /items\[0\]\.kind/);
});

test('a scalar, a list or an empty map as document is refused', () => {
  for (const text of ['5\n', '[]\n', '{}\n', '--- hello\n']) assert.ok(decode(text).problems.length > 0, text);
});

test('what is good in a file with a broken document is there, and the file is not whole', () => {
  const file = decode([pod('a'), 'a: b: c\n', configMap('cfg')].join('---\n'));
  assert.deepEqual(
    file.objects.map((o) => [o.key, o.index]),
    [
      ['Pod/default/a', 0],
      ['ConfigMap/default/cfg', 2],
    ],
  );
  assert.equal(file.whole, false);
});

test('the value of a Secret is in no problem', () => {
  const file = decode('apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: geheim!}\nstringData: {q: [geheim]}\n');
  assert.ok(file.problems.length > 0);
  assert.ok(!JSON.stringify(file.problems).includes('geheim'));
});

const names: readonly (readonly [string, boolean])[] = [
  ['web.yaml', true],
  ['web.yml', true],
  ['web.json', true],
  ['a b.yaml', true],
  ['podsched.yaml', false],
  ['.web.yaml', false],
  ['.web.yaml.swp', false],
  ['web.yaml~', false],
  ['web.yaml.bak', false],
  ['web.yaml.tmp', false],
  ['web.yaml.swx', false],
  ['#web.yaml#', false],
  ['4913', false],
  ['web', false],
  ['web.YAML', false],
  ['web.yaml.sig', false],
  ['.yaml', false],
];
for (const [name, read] of names) test(`A1: ${name} is ${read ? '' : 'not '}read`, () => assert.equal(isManifestName(name), read));

const withAnnotation = (name: string, value: string): string =>
  pod('web').replace('  name: web\n', `  name: web\n  annotations: {podsched.dev/${name}: "${value}"}\n`);

test('words of delivery in a file: told where they count for topics only, and no part of the object', () => {
  const plain = decode(pod('web')).objects[0]?.revision;
  for (const [name, value, warned] of [
    ['generation', '5', true],
    ['rollout', 'r1', true],
    ['audience', '*', false],
  ] as const) {
    const file = decode(withAnnotation(name, value));
    assert.equal(file.objects[0]?.revision, plain, name);
    assert.deepEqual(
      file.objects[0]?.warnings.map((w) => w.path),
      warned ? [`metadata.annotations[podsched.dev/${name}]`] : [],
      name,
    );
  }
  const gone = decode(withAnnotation('state', 'absent'));
  assert.equal(gone.problems[0]?.path, 'metadata.annotations[podsched.dev/state]');
});

test('a file for others is refused where the node’s groups are known, and stays good elsewhere', () => {
  const bytes = new TextEncoder().encode(withAnnotation('audience', 'group:cams'));
  const of = (groups?: readonly string[]) =>
    decodeFile(
      { name: 'x.yaml', content: { ok: true, bytes } },
      { strict: false, node: { name: 'pi', labels: {} }, ...(groups && { groups }) },
    );
  assert.equal(of().objects.length, 1);
  assert.equal(of(['cams']).objects.length, 1);
  const refused = of(['attic']);
  assert.equal(refused.reason, 'WrongAudience');
  assert.equal(refused.refused[0]?.reason, 'WrongAudience');
  assert.equal(refused.problems[0]?.line, 5);
});
