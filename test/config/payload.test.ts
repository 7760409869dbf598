// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { revision } from '../../src/api/hash.ts';
import { keyText, type ObjectKey } from '../../src/api/objects.ts';
import { isMeantFor, takeDelivery } from '../../src/config/delivery.ts';
import type { ObjectPlace } from '../../src/config/desiredTopics.ts';
import { decodePayload, type Payload } from '../../src/config/payload.ts';
import { pod } from './builders.ts';
import { mapText, podText, tombstone } from './remoteBuilders.ts';

const place = (key: ObjectKey): ObjectPlace => ({ of: 'object', topic: 't', source: 'mqtt:node', key, text: keyText(key) });
const web = place({ kind: 'Pod', namespace: 'default', name: 'web' });
const decode = (payload: string | Uint8Array, at = web, strict = false): Payload => {
  const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
  return decodePayload(bytes, at, { strict, allowedUnsafeSysctls: [], node: { name: 'pi', labels: { site: 'attic' } } });
};
const objectOf = (p: Payload) => {
  assert.ok(p.ok, JSON.stringify(p));
  return p.decoded?.object;
};

test('YAML and JSON of one object come to the same revision', () => {
  const [yaml, json] = [objectOf(decode(pod('web'))), objectOf(decode(podText('web')))];
  assert.ok(yaml !== undefined && json !== undefined);
  assert.equal(revision(yaml), revision(json));
});

test('an absent namespace is the topic’s; the default one is written by nobody', () => {
  const other = place({ kind: 'Pod', namespace: 'cams', name: 'web' });
  assert.equal(objectOf(decode(podText('web'), other))?.metadata.namespace, 'cams');
  assert.equal(objectOf(decode(pod('web'), other))?.metadata.namespace, 'cams');
  assert.equal(objectOf(decode(podText('web')))?.metadata.namespace, undefined);
});

test('words of delivery are taken off: an object is the same with and without them', () => {
  const plain = decode(podText('web'));
  const said = decode(podText('web', { generation: 7, audience: 'pi', rollout: 'r1' }));
  assert.ok(plain.ok && said.ok);
  assert.equal(said.decoded?.revision, plain.decoded?.revision);
  assert.equal(said.decoded?.object.metadata.annotations, undefined);
  assert.deepEqual(said.delivery, { generation: 7, audience: 'pi', rollout: 'r1' });
});

test('other annotations stay, and a label edit is another revision', () => {
  const text = JSON.stringify({
    ...JSON.parse(podText('web')),
    metadata: { name: 'web', annotations: { 'podsched.dev/generation': '1', a: 'b' } },
  });
  assert.deepEqual(objectOf(decode(text))?.metadata.annotations, { a: 'b' });
});

test('a tombstone is only metadata', () => {
  const read = decode(tombstone('Pod', 'web', { generation: 4 }));
  assert.deepEqual(read, { ok: true, delivery: { generation: 4, absent: true }, decoded: undefined });
});

test('values of the node are put in, and it is told that they stand in it', () => {
  const read = decode(pod('web', { env: '${NODE.name}-${NODE.site}' }));
  assert.ok(read.ok);
  assert.equal(read.decoded?.substituted, true);
  const [container] = read.decoded?.object.kind === 'Pod' ? read.decoded.object.spec.containers : [];
  assert.equal(container?.env?.[0]?.value, 'pi-attic');
});

// payload → reason, path, a part of what is expected or got
const bad: readonly (readonly [
  claim: string,
  payload: string | Uint8Array,
  reason: string,
  path: string,
  part: RegExp,
  at?: ObjectPlace,
])[] = [
  ['another name', podText('other'), 'NameMismatch', 'metadata.name', /Pod\/default\/web/],
  ['another namespace', podText('web', { namespace: 'cams' }), 'NameMismatch', 'metadata.namespace', /Pod\/default\/web/],
  ['another kind', mapText('web'), 'NameMismatch', 'kind', /ConfigMap\/default\/web/],
  ['the tombstone of another', tombstone('Pod', 'other'), 'NameMismatch', 'metadata.name', /Pod\/default\/other/],
  [
    'a kind that nobody knows',
    JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }),
    'Invalid',
    'kind',
    /Pod/,
  ],
  ['no object', '[]', 'Invalid', '', /./],
  ['a number', '5', 'Invalid', '', /./],
  ['only a comment', '# nothing', 'Invalid', '', /manifest/],
  ['half of JSON', '{"apiVersion": "v1", "kind": "Pod"', 'Invalid', '', /./],
  ['half of YAML', 'apiVersion: v1\nkind: Pod\n metadata:\n', 'Invalid', '', /./],
  ['two documents', `${pod('web')}---\n${pod('web')}`, 'Invalid', '', /2 documents/],
  ['a list', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [] }), 'Invalid', 'kind', /one object/],
  ['bytes that are no UTF-8', new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe]), 'Invalid', '', /UTF-8/],
  ['UTF-16', new Uint8Array([0xff, 0xfe, 0x61, 0]), 'Invalid', '', /UTF-16/],
  ['control characters', 'a: \u0000', 'Invalid', '', /0x00/],
  ['JSON deeper than anything', `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`, 'Invalid', '', /levels|more/],
  ['lists deeper than anything', '['.repeat(30_000), 'Invalid', '', /levels|more|YAML/],
  [
    'a metadata that is deep',
    `{"apiVersion":"v1","kind":"Pod","metadata":${'{"annotations":'.repeat(200)}1${'}'.repeat(200)}}`,
    'Invalid',
    '',
    /./,
  ],
  [
    'a generation that is none',
    podText('web').replace('"name":"web"', '"name":"web","annotations":{"podsched.dev/generation":"-1"}'),
    'Invalid',
    'metadata.annotations[podsched.dev/generation]',
    /whole number/,
  ],
  [
    'a generation without quotes',
    podText('web').replace('"name":"web"', '"name":"web","annotations":{"podsched.dev/generation":5}'),
    'Invalid',
    'metadata.annotations[podsched.dev/generation]',
    /quotes/,
  ],
  [
    'a state that is none',
    podText('web').replace('"name":"web"', '"name":"web","annotations":{"podsched.dev/state":"gone"}'),
    'Invalid',
    'metadata.annotations[podsched.dev/state]',
    /absent/,
  ],
  [
    'a tombstone with a body',
    podText('web').replace('"name":"web"', '"name":"web","annotations":{"podsched.dev/state":"absent"}'),
    'Invalid',
    'spec',
    /nothing beside metadata/,
  ],
  [
    'a pod without containers',
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: {} }),
    'Invalid',
    'spec.containers',
    /./,
  ],
  ['a value of the node that nobody knows', pod('web', { env: '${NODE.nothing}' }), 'Invalid', 'spec.containers[0].env[0].value', /label/],
  ['a name that becomes another', podText('${NODE.site}'), 'NameMismatch', 'metadata.name', /Pod\/default\/attic/],
];
for (const [claim, payload, reason, path, part, at] of bad) {
  test(`a payload is refused: ${claim}`, () => {
    const read = decode(payload, at);
    assert.ok(!read.ok, 'it was taken');
    assert.equal(read.reason, reason);
    const [problem] = read.problems;
    assert.match(`${problem?.expected} ${problem?.got}`, part);
    if (path !== '') assert.equal(problem?.path, path);
    assert.equal(problem?.file, undefined, 'no file stands in it');
  });
}

test('a mistake is told with its line, in JSON too', () => {
  const yaml = decode(pod('web', { extra: '  restartPolicy: Sometimes' }));
  assert.ok(!yaml.ok);
  assert.equal(yaml.problems[0]?.line, 9);
  const json = decode(JSON.stringify(JSON.parse(podText('web', { spec: { restartPolicy: 'Sometimes' } })), null, 1));
  assert.ok(!json.ok);
  assert.ok((json.problems[0]?.line ?? 0) > 5);
});

test('keys that mean something to JavaScript are keys like any other', () => {
  const text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"__proto__":{"data":{"x":"y"}},"data":{"a":"1"}}';
  const object = objectOf(decode(text, place({ kind: 'ConfigMap', namespace: 'default', name: 'web' })));
  assert.deepEqual(object?.kind === 'ConfigMap' ? object.data : undefined, { a: '1' });
  assert.equal(({} as Record<string, unknown>).data, undefined);
});

test('unknown fields are warnings, and refused when strict', () => {
  const text = podText('web', { spec: { restartPolicies: 'x' } });
  const read = decode(text);
  assert.ok(read.ok);
  assert.equal(read.decoded?.warnings[0]?.path, 'spec.restartPolicies');
  assert.ok(!decode(text, web, true).ok);
});

test('takeDelivery leaves alone what has none', () => {
  const raw = { metadata: { annotations: { a: 'b' } } };
  assert.equal(takeDelivery(raw).value, raw);
  for (const odd of [null, 5, 'x', [], {}, { metadata: 5 }, { metadata: { annotations: [] } }]) assert.equal(takeDelivery(odd).value, odd);
});

for (const [audience, fits] of [
  ['*', true],
  ['pi', true],
  ['group:cams', true],
  ['other', false],
  ['group:attic', false],
  ['cams', false],
  ['', false],
] as const) {
  test(`an audience of ${JSON.stringify(audience)} ${fits ? 'is' : 'is not'} this node`, () =>
    assert.equal(isMeantFor(audience, 'pi', ['cams']), fits));
}
