/** Field case B2 for ConfigMaps and Secrets, and every other mistake somebody makes in one: named with its place, and without its value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText, Problem } from '../../src/api/objects.ts';
import { problemText, withoutValue } from '../../src/api/problems.ts';
import { type DecodedFile, decodeFile } from '../../src/config/decode.ts';
import { validateFiles } from '../../src/operations/validate.ts';
import { started } from './builders.ts';

const decoded = (text: string): DecodedFile =>
  decodeFile({ name: 'o.yaml', content: { ok: true, bytes: new TextEncoder().encode(text) } }, { strict: false });
const told = (problems: readonly Problem[]): string[] => problems.map((p) => problemText(p));
const document = (kind: string, ...lines: readonly string[]): string =>
  ['apiVersion: v1', `kind: ${kind}`, 'metadata: {name: o}', ...lines, ''].join('\n');
const map = (...lines: readonly string[]): string => document('ConfigMap', ...lines);
const secret = (...lines: readonly string[]): string => document('Secret', ...lines);

test('a number, a boolean and a time in data: what YAML took for another thing is to be quoted, at its line', () => {
  const file = decoded(
    map('data:', '  port: 8080', '  debug: yes', '  country: no', '  ratio: 1.10', '  at: 12:30', '  day: 2024-01-01', '  nothing:'),
  );
  assert.deepEqual(told(file.problems), [
    'o.yaml:5:9: data[port]: expected a string, quote it, got 8080',
    'o.yaml:6:10: data[debug]: expected a string, quote it, got true',
    'o.yaml:7:12: data[country]: expected a string, quote it, got false',
    'o.yaml:8:10: data[ratio]: expected a string, quote it, got 1.1',
  ]);
  assert.deepEqual(file.refusedKeys, ['ConfigMap/default/o']);
});

test('quoted, all of them are texts as they are written', () => {
  const file = decoded(map('data: {port: "8080", debug: "yes", ratio: "1.10", at: 12:30, nothing: }'));
  const [object] = file.objects;
  assert.deepEqual(object?.object.kind === 'ConfigMap' ? object.object.data : undefined, {
    port: '8080',
    debug: 'yes',
    ratio: '1.10',
    at: '12:30',
    nothing: '',
  });
});

test('each mistake in a ConfigMap has its place', () => {
  const table: readonly (readonly [string, string])[] = [
    [
      map('data:', '  a/b: x'),
      'o.yaml:5:8: data[a/b]: expected at most 253 letters, digits, -, _ and ., not . and not beginning with .., got "a/b"',
    ],
    [
      map('data:', '  ..data: x'),
      'o.yaml:5:11: data[..data]: expected at most 253 letters, digits, -, _ and ., not . and not beginning with .., got "..data"',
    ],
    [
      map('binaryData:', '  logo: not base64'),
      'o.yaml:5:9: binaryData[logo]: expected base64 text; plain text goes under data, got "not base64"',
    ],
    [
      map('data: {a: x}', 'binaryData:', '  a: AA=='),
      'o.yaml:6:6: binaryData[a]: expected a key that data does not have, got the same key',
    ],
    [map('data: [a]'), 'o.yaml:4:1: data: expected a mapping, got a list'],
    [map('data: {a: {b: c}}'), 'o.yaml:4:8: data[a]: expected a string, got a mapping'],
    [map('immutable: "yes"'), 'o.yaml:4:12: immutable: expected true or false, without quotes, got "yes"'],
  ];
  for (const [text, expected] of table) assert.deepEqual(told(decoded(text).problems), [expected]);
});

test('a field that is written wrong finds the one that is meant', () => {
  const nearests = (text: string): (string | undefined)[] => decoded(text).objects.flatMap((o) => o.warnings.map((w) => w.nearest));
  assert.deepEqual(nearests(map('dta: {a: x}')), ['data']);
  assert.deepEqual(nearests(map('binarydata: {a: x}')), ['binaryData']);
  assert.deepEqual(nearests(map('imutable: true')), ['immutable']);
  assert.deepEqual(nearests(secret('stringdata: {a: x}')), ['stringData']);
});

test('nothing that is told of a Secret’s mistake repeats what it holds', () => {
  const value = 'canary horse';
  const json = JSON.stringify(value);
  const texts = [
    secret('data:', `  pw: ${json}`),
    secret('data:', `  pw: [${json}]`),
    secret(`data: ${json}`),
    secret('stringData:', `  - ${json}`),
    secret('stringData:', `  pw: {x: ${json}}`),
    secret('type: kubernetes.io/dockerconfigjson', 'stringData:', `  .dockerconfigjson: ${json}`),
    secret('type: kubernetes.io/dockercfg', 'stringData:', `  .dockercfg: ${JSON.stringify(`[${json}]`)}`),
    secret('type: kubernetes.io/tls', 'stringData:', `  tls.crt: ${json}`),
    ...['*', '@', '`', '"', '%', '{', '[', '&a *', '|2 ', '>'].map((sign) => secret('stringData:', `  pw: ${sign}canary`)),
    secret('stringData:', '  canary'),
    secret('stringData:', '  pw: canary: canary'),
    secret('stringData:', '  pw: one', '  canary', '  x: y'),
  ];
  for (const text of texts) {
    const { problems, objects } = decoded(text);
    assert.ok(problems.length > 0 && objects.length === 0, text);
    const said = problems.map((p) => problemText(withoutValue(p, true))).join('\n');
    assert.ok(!said.includes('canary'), `${text}\n${said}`);
    assert.ok(
      problems.every((p) => p.line !== undefined),
      said,
    );
  }
});

test('of a type of Secret it is said what it must hold', () => {
  const of = (type: string, ...lines: readonly string[]): string[] =>
    told(decoded(secret(`type: kubernetes.io/${type}`, ...lines)).problems);
  assert.deepEqual(of('tls', 'data: {tls.crt: ""}'), [
    'o.yaml:5:1: data: expected tls.key, since the type is kubernetes.io/tls, got nothing',
  ]);
  assert.deepEqual(of('basic-auth'), [
    'o.yaml:1:1: data: expected username or password, since the type is kubernetes.io/basic-auth, got nothing',
  ]);
  const docker = (text: string): string[] => of('dockerconfigjson', 'stringData:', `  .dockerconfigjson: '${text}'`);
  assert.deepEqual(docker('{"auths": {"registry": {"auth": "eDp5"}}}'), []);
  for (const text of ['{', '[]', '{"auth": {}}', '{"auths": []}', 'null'])
    assert.deepEqual(docker(text), [
      'o.yaml:6:22: stringData[.dockerconfigjson]: expected JSON with the mapping "auths", got text that is none',
    ]);
  const old = (text: string): string[] => of('dockercfg', 'stringData:', `  .dockercfg: '${text}'`);
  assert.deepEqual(old('{"registry": {"auth": "eDp5"}}'), []);
  assert.deepEqual(old('"x"'), ['o.yaml:6:15: stringData[.dockercfg]: expected JSON: a mapping of registries, got text that is none']);
  assert.deepEqual(of('ssh-auth', 'stringData: {ssh-privatekey: ""}'), []);
});

test('the told problem keeps what is no value: sizes, and that something is missing', () => {
  const said = (text: string): string[] => decoded(text).problems.map((p) => problemText(withoutValue(p, true)));
  assert.deepEqual(said(secret('type: kubernetes.io/tls', 'data: {tls.crt: ""}')), [
    'o.yaml:5:1: data: expected tls.key, since the type is kubernetes.io/tls, got nothing',
  ]);
  const large = map(`data: {a: &a "${'z'.repeat(600_000)}", b: *a}`);
  assert.deepEqual(said(large), ['o.yaml:4:1: data: expected at most 1048576 bytes in all, got 1200000 bytes']);
  assert.deepEqual(said(map('data: {port: 8080}')), [
    'o.yaml:4:14: data[port]: expected a string, quote it, got a value that is not shown',
  ]);
});

test('an object that is refused keeps its last good, and what is beside it goes on', async () => {
  const good = map('data: {a: one}');
  const other = good.replace('name: o', 'name: p');
  const r = await started({ 'o.yaml': `${good}---\n${other}` });
  r.folder.set({ 'o.yaml': `${good.replace('one', '1')}---\n${other.replace('one', 'two')}` });
  await r.config.readFolder();
  const valueIn = (name: string) => {
    const object = r.config.object(`ConfigMap/default/${name}` as KeyText);
    return object?.kind === 'ConfigMap' ? object.data?.a : undefined;
  };
  assert.deepEqual([valueIn('o'), valueIn('p')], ['one', 'two']);
  const again = await r.restart();
  await again.config.readFolder();
  const object = again.config.object('ConfigMap/default/o' as KeyText);
  assert.equal(object?.kind === 'ConfigMap' ? object.data?.a : undefined, 'one');
});

test('podsched validate shows them without an agent', () => {
  const content = { ok: true, bytes: new TextEncoder().encode(secret('data: {pw: plain text}')) } as const;
  const [file] = validateFiles([{ path: 'o.yaml', content }], {
    strict: false,
    checkConfiguration: () => ({ problems: [], warnings: [] }),
  });
  assert.deepEqual(told(file?.problems ?? []), ['o.yaml:4:12: data[pw]: expected base64 text; plain text goes under stringData, got text']);
});
