import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import type { Command } from '../../src/api/messages.ts';
import type { Source } from '../../src/api/objects.ts';
import type { TrustedKey } from '../../src/policy/dsse.ts';
import {
  type Arrival,
  allowsSource,
  type CommandArrival,
  isAudience,
  judgeSigned,
  judgeSignedCommand,
  type Words,
  wordsOf,
} from '../../src/policy/trust.ts';

const { publicKey } = generateKeyPairSync('ed25519');
const key = (scope: Partial<TrustedKey> = {}): TrustedKey => ({ keyid: 'k1', publicKey, file: 'ops.pub', ...scope });

const arrival = (over: Partial<Arrival> = {}): Arrival => ({
  source: 'mqtt:node',
  signers: [key()],
  required: true,
  receiver: { node: 'pi-07', groups: ['attic'] },
  ...over,
});
const manifest = (over: Partial<Words> = {}): Words => ({
  of: 'manifest',
  namespace: 'default',
  audience: 'pi-07',
  generation: 3,
  ...over,
});
const without = (words: Words, field: 'audience' | 'generation'): Words => {
  const { [field]: _, ...rest } = words;
  return rest;
};
const reason = (words: Words, over: Partial<Arrival> = {}): string => judgeSigned(words, arrival(over))?.reason ?? 'good';

test('a manifest for this node by a known key is good', () => assert.equal(reason(manifest()), 'good'));

test('unsigned is refused where signatures are asked for, and else taken', () => {
  assert.equal(reason(manifest(), { signers: [] }), 'Unsigned');
  assert.equal(reason({ of: 'manifest' }, { signers: [], required: false }), 'good');
});

const audiences: readonly (readonly [Source, string | undefined, boolean, boolean])[] = [
  // source, audience, good when signed, good when unsigned
  ['mqtt:node', 'pi-07', true, true],
  ['mqtt:node', 'pi-08', false, false],
  ['mqtt:node', '*', false, true],
  ['mqtt:node', 'group:attic', false, true],
  ['mqtt:group/attic', 'group:attic', true, true],
  ['mqtt:group/attic', 'group:cellar', false, false],
  ['mqtt:group/attic', 'pi-07', false, true],
  ['mqtt:all', '*', true, true],
  ['mqtt:all', 'pi-07', false, true],
  ['file:x.yaml', 'pi-07', true, true],
  ['file:x.yaml', 'group:attic', true, true],
  ['file:x.yaml', '*', true, true],
  ['file:x.yaml', 'group:cellar', false, false],
  ['file:x.yaml', 'pi-08', false, false],
  ['mqtt:node', undefined, false, true],
  ['file:x.yaml', undefined, false, true],
  ['mqtt:node', '', false, false],
  ['mqtt:node', 'group:', false, false],
  ['mqtt:node', 'PI_07', false, false],
];
for (const [source, audience, signed, unsigned] of audiences)
  test(`audience ${audience} on ${source}: ${signed ? 'good' : 'refused'} signed, ${unsigned ? 'good' : 'refused'} unsigned`, () => {
    const words = audience === undefined ? without(manifest(), 'audience') : manifest({ audience });
    assert.equal(reason(words, { source }), signed ? 'good' : 'WrongAudience');
    assert.equal(reason(words, { source, signers: [], required: false }), unsigned ? 'good' : 'WrongAudience');
  });

test('what is signed has a generation', () => {
  assert.equal(reason(without(manifest(), 'generation')), 'GenerationMissing');
  assert.equal(reason(without(manifest(), 'generation'), { signers: [], required: false }), 'good');
  assert.equal(reason(manifest({ generation: -1 })), 'GenerationMissing');
  assert.equal(reason(manifest({ generation: 0 })), 'good');
});

const scopes: readonly (readonly [string, Partial<TrustedKey>, Words, Source, string])[] = [
  ['its namespace', { namespaces: ['default'] }, manifest(), 'mqtt:node', 'good'],
  ['another namespace', { namespaces: ['apps'] }, manifest(), 'mqtt:node', 'KeyNotAllowed'],
  ['no namespace at all', { namespaces: [] }, manifest(), 'mqtt:node', 'KeyNotAllowed'],
  ['its source', { sources: ['mqtt:node'] }, manifest(), 'mqtt:node', 'good'],
  ['all of MQTT', { sources: ['mqtt'] }, manifest(), 'mqtt:node', 'good'],
  ['files only', { sources: ['file'] }, manifest(), 'mqtt:node', 'KeyNotAllowed'],
  ['files', { sources: ['file'] }, manifest(), 'file:x.yaml', 'good'],
  ['an index', {}, { of: 'index', audience: 'pi-07', generation: 1 }, 'mqtt:node', 'good'],
  [
    'an index by a key of some namespaces',
    { namespaces: ['default'] },
    { of: 'index', audience: 'pi-07', generation: 1 },
    'mqtt:node',
    'KeyNotAllowed',
  ],
  ['an index of another topic', {}, { of: 'index', audience: '*', generation: 1 }, 'mqtt:node', 'WrongAudience'],
  [
    'a configuration by a key of some namespaces',
    { namespaces: ['default'] },
    { of: 'config', audience: 'pi-07', generation: 1 },
    'mqtt:node',
    'KeyNotAllowed',
  ],
  ['a configuration without generation', {}, { of: 'config', audience: 'pi-07' }, 'mqtt:node', 'GenerationMissing'],
];
for (const [what, scope, words, source, expected] of scopes)
  test(`a key for ${what} is ${expected}`, () => assert.equal(reason(words, { source, signers: [key(scope)] }), expected));

test('of several keys that signed it, one that may is enough', () => {
  assert.equal(reason(manifest(), { signers: [key({ namespaces: ['apps'] }), key()] }), 'good');
  // the room of two keys does not add up
  assert.equal(reason(manifest(), { signers: [key({ namespaces: ['apps'] }), key({ sources: ['file'] })] }), 'KeyNotAllowed');
});

test('a key may be for groups, for all of them or for one', () => {
  assert.ok(allowsSource({ sources: ['mqtt:group'] }, 'mqtt:group/attic'));
  assert.ok(allowsSource({ sources: ['mqtt:group/attic'] }, 'mqtt:group/attic'));
  assert.ok(!allowsSource({ sources: ['mqtt:group/attic'] }, 'mqtt:group/attic2'));
  assert.ok(!allowsSource({ sources: ['mqtt:group'] }, 'mqtt:all'));
});

test('an audience is a node, a group or all', () => {
  for (const good of ['*', 'pi-07', 'group:attic']) assert.ok(isAudience(good), good);
  for (const bad of ['', '**', 'group:*', 'group:', 'a,b', 'a b', '../x', 'x'.repeat(64)]) assert.ok(!isAudience(bad), bad);
});

const command = (over: Partial<Command> = {}): Command => ({
  apiVersion: 'podsched.dev/v1',
  kind: 'Command',
  id: 'c1',
  node: 'pi-07',
  verb: 'exec',
  bootID: 'b',
  session: 5,
  target: { namespace: 'default', pod: 'web' },
  ...over,
});
const told = (c: Command, over: Partial<CommandArrival> = {}): string =>
  judgeSignedCommand(c, { verb: 'exec', signers: [key()], required: true, node: 'pi-07', ...over })?.reason ?? 'good';

test('a signed command names node, verb, boot, session and an id', () => {
  assert.equal(told(command()), 'good');
  for (const field of ['node', 'verb', 'bootID', 'session', 'id'] as const) {
    const { [field]: _, ...rest } = command();
    assert.equal(told(rest), 'WrongAudience', field);
  }
  assert.equal(told(command({ node: 'pi-08' })), 'WrongAudience');
  // the signed word is for another verb than the topic
  assert.equal(told(command({ verb: 'get' })), 'WrongAudience');
});

test('where signatures are asked for, exec and decommission need one; looking does not', () => {
  assert.equal(told(command(), { signers: [] }), 'Unsigned');
  assert.equal(told(command(), { signers: [], verb: 'decommission' }), 'Unsigned');
  assert.equal(told(command(), { signers: [], verb: 'get' }), 'good');
  assert.equal(told(command(), { signers: [], required: false }), 'good');
});

test('a key may be for some verbs, namespaces and sources', () => {
  assert.equal(told(command(), { signers: [key({ verbs: ['logs'] })] }), 'KeyNotAllowed');
  assert.equal(told(command(), { signers: [key({ verbs: ['exec'], namespaces: ['default'] })] }), 'good');
  assert.equal(told(command(), { signers: [key({ namespaces: ['apps'] })] }), 'KeyNotAllowed');
  // what is about no pod is about the node, and every namespace of it
  assert.equal(
    told(command({ verb: 'decommission', target: {} }), { verb: 'decommission', signers: [key({ namespaces: ['default'] })] }),
    'KeyNotAllowed',
  );
  assert.equal(told(command(), { signers: [key({ sources: ['file'] })] }), 'KeyNotAllowed');
});

test('a key for some namespaces signs nothing about the node, whatever pod is named beside it', () => {
  const bounded = { signers: [key({ namespaces: ['default'] })] };
  for (const verb of ['decommission', 'images', 'resync', 'bundle', 'get'] as const) {
    assert.equal(told(command({ verb }), { verb, ...bounded }), 'KeyNotAllowed', verb);
    assert.equal(told(command({ verb }), { verb }), 'good', verb);
  }
  assert.equal(told(command({ verb: 'restart' }), { verb: 'restart', ...bounded }), 'good');
});

test('an object says it in annotations, which are text; an index and a configuration in fields', () => {
  const annotations = { 'podsched.dev/audience': 'pi-07', 'podsched.dev/generation': '3' };
  assert.deepEqual(wordsOf({ kind: 'Pod', metadata: { name: 'x', namespace: 'apps', annotations } }, 'manifest'), {
    of: 'manifest',
    namespace: 'apps',
    audience: 'pi-07',
    generation: 3,
  });
  for (const generation of [3, '3x', '-3', '', null, '1'.repeat(16)])
    assert.deepEqual(wordsOf({ metadata: { annotations: { 'podsched.dev/generation': generation } } }, 'manifest'), { of: 'manifest' });
  assert.deepEqual(wordsOf({ audience: '*', generation: 4, metadata: { annotations } }, 'index'), {
    of: 'index',
    audience: '*',
    generation: 4,
  });
  assert.deepEqual(wordsOf({ audience: 7, generation: '4', metadata: 'x' }, 'config'), { of: 'config' });
});
