import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import type { ApiObject } from '../../src/api/objects.ts';
import type { PolicyPort } from '../../src/config/remoteWords.ts';
import { manifestYaml, type TrustedKey } from '../../src/policy/dsse.ts';
import { Gatekeeper } from '../../src/policy/gatekeeper.ts';
import { readPolicy } from '../../src/policy/policy.ts';
import { ownSealingKey, readRecipient, sealSecret } from '../../src/policy/seal.ts';
import { newSigningKey, signEnvelope } from '../../src/policy/signing.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';

const alice = newSigningKey();
const stranger = newSigningKey();
const trusted: TrustedKey = { keyid: alice.keyid, publicKey: createPublicKey(alice.publicKeyPem), file: 'ops.pub' };
const payload = Buffer.from('kind: Pod\n');
const source = 'mqtt:node' as const;

interface Setting {
  mqtt: unknown;
  file: unknown;
  keys: readonly TrustedKey[];
}

function gate(over: Partial<Setting> = {}): { readonly gate: Gatekeeper; readonly setting: Setting } {
  const setting: Setting = { mqtt: {}, file: { allow: 'all' }, keys: [trusted], ...over };
  return {
    setting,
    gate: new Gatekeeper({
      policy: (of) => readPolicy(setting[of], of),
      keys: () => setting.keys,
      receiver: () => ({ node: 'pi-07', groups: ['attic'] }),
      sealingKey: () => undefined,
    }),
  };
}

const signed = (by = alice, type = manifestYaml): Uint8Array => Buffer.from(signEnvelope(payload, type, by.privateKeyPem));
const reasonOf = (of: { readonly ok: boolean; readonly reason?: string; readonly signed?: string }): string =>
  of.ok ? (of.signed ?? 'unsigned') : (of.reason ?? '');

test('it is what the sources ask for', () => {
  const port: PolicyPort = gate().gate;
  assert.ok(port);
});

// what comes, whether a signature is asked for, whether the node has keys, and what becomes of it
const opening: readonly (readonly [string, Uint8Array, boolean, boolean, string])[] = [
  ['a plain manifest', payload, false, true, 'unsigned'],
  ['a plain manifest', payload, true, true, 'Unsigned'],
  ['a signed one', signed(), false, true, alice.keyid],
  ['a signed one', signed(), true, true, alice.keyid],
  ['one of a stranger', signed(stranger), false, true, 'KeyUnknown'],
  ['one of a stranger', signed(stranger), true, true, 'KeyUnknown'],
  ['one of a stranger', signed(stranger), true, false, 'KeyUnknown'],
  // a node that was set up for no signatures runs what a fleet signs
  ['one of a stranger', signed(stranger), false, false, 'unsigned'],
  [
    'a tampered one',
    Buffer.from(signed().toString().replace(payload.toString('base64'), Buffer.from('kind: Job\n').toString('base64'))),
    false,
    true,
    'SignatureInvalid',
  ],
  ['a signed command', signed(alice, 'application/vnd.podsched.command+json'), false, true, 'WrongPayloadType'],
  ['a signed command', signed(alice, 'application/vnd.podsched.command+json'), false, false, 'WrongPayloadType'],
  ['what only has the names in it', Buffer.from('{"payloadType": 1, "payload": 2, "signatures": 3}'), false, true, 'unsigned'],
  ['what only has the names in it', Buffer.from('{"payloadType": 1, "payload": 2, "signatures": 3}'), true, true, 'Unsigned'],
];
for (const [what, bytes, required, keys, expected] of opening)
  test(`${what}, signatures ${required ? '' : 'not '}asked for, ${keys ? 'with' : 'without'} keys: ${expected === alice.keyid ? 'signed' : expected}`, () => {
    const { gate: g } = gate({ mqtt: { requireSignature: required }, ...(!keys && { keys: [] }) });
    const opened = g.open(bytes, { source, of: 'manifest' });
    assert.equal(reasonOf(opened), expected);
    if (opened.ok && what !== 'what only has the names in it') assert.deepEqual(Buffer.from(opened.bytes), payload);
  });

test('a file is opened with what lies beside it', () => {
  const beside = Buffer.from(signEnvelope(payload, manifestYaml, alice.privateKeyPem, { detached: true }));
  const ask = (signature: Uint8Array | undefined, over: Partial<Setting> = {}): string =>
    reasonOf(gate(over).gate.openFile(payload, { source: 'file:x.yaml', signature }));
  assert.equal(ask(undefined), 'unsigned');
  assert.equal(ask(undefined, { file: { requireSignature: true } }), 'Unsigned');
  assert.equal(ask(beside), alice.keyid);
  assert.equal(ask(beside, { keys: [] }), 'unsigned');
  assert.equal(ask(beside, { keys: [], file: { requireSignature: true } }), 'KeyUnknown');
  assert.equal(ask(Buffer.from('garbage')), 'SignatureInvalid');
  assert.equal(ask(Buffer.from('garbage'), { keys: [] }), 'unsigned');
});

const pod = (spec: Readonly<Record<string, unknown>> = {}): ApiObject =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'a', image: 'a' }], ...spec },
  }) as unknown as ApiObject;

test('what was accepted is judged again by what holds now: policy, keys and their scope', () => {
  const { gate: g, setting } = gate({ mqtt: { hostPID: true } });
  const by = { source, signed: alice.keyid };
  assert.deepEqual(g.judge(pod({ hostPID: true }), by), []);
  setting.mqtt = {};
  assert.deepEqual(
    g.judge(pod({ hostPID: true }), by).map((p) => p.path),
    ['spec.hostPID'],
  );
  setting.keys = [];
  assert.match(g.judge(pod(), by)[0]?.got ?? '', /another key/);
  setting.keys = [{ ...trusted, namespaces: ['apps'] }];
  assert.match(g.judge(pod(), by)[0]?.expected ?? '', /a key that may sign objects of the namespace default/);
  setting.mqtt = { requireSignature: true };
  assert.match(g.judge(pod(), { source })[0]?.expected ?? '', /a signature/);
});

test('another key that takes over the name of one has signed nothing of what that one had', () => {
  const named = { ...trusted, keyid: 'ops' };
  const { gate: g, setting } = gate({ mqtt: { requireSignature: true }, keys: [named] });
  const opened = g.open(signed(), { source, of: 'manifest' });
  assert.ok(opened.ok && opened.signed !== undefined);
  const by = { source, signed: opened.signed };
  assert.deepEqual(g.judge(pod(), by), []);
  // the former key was stolen, and the owner made a new one of the same name
  setting.keys = [{ ...named, publicKey: createPublicKey(stranger.publicKeyPem) }];
  assert.match(g.judge(pod(), by)[0]?.got ?? '', /another key/);
  assert.equal(g.trust({ ...by, of: 'manifest', audience: 'pi-07', generation: 1 })?.reason, 'KeyUnknown');
  setting.keys = [{ ...named, file: 'other.json' }];
  assert.deepEqual(g.judge(pod(), by), []);
});

test('the policy of files is not that of MQTT', () => {
  const { gate: g } = gate();
  assert.deepEqual(g.judge(pod({ hostPID: true }), { source: 'file:x.yaml' }), []);
  assert.equal(g.judge(pod({ hostPID: true }), { source: 'mqtt:group/attic' }).length, 1);
});

test('what was signed is trusted by audience, generation and scope', () => {
  const { gate: g, setting } = gate();
  const key = { kind: 'Pod' as const, namespace: 'default', name: 'web' };
  const said = { source, signed: alice.keyid, of: 'manifest' as const, key, audience: 'pi-07', generation: 1 };
  assert.equal(g.trust(said), undefined);
  assert.equal(g.trust({ ...said, audience: 'pi-08' })?.reason, 'WrongAudience');
  assert.equal(g.trust({ ...said, signed: stranger.keyid })?.reason, 'KeyUnknown');
  setting.keys = [{ ...trusted, namespaces: ['apps'] }];
  assert.equal(g.trust(said)?.reason, 'KeyNotAllowed');
  assert.equal(g.trust({ ...said, key: { ...key, namespace: 'apps' } }), undefined);
});

test('a command is taken unsigned or signed, and exec only signed where that is asked for', () => {
  const command = {
    apiVersion: 'podsched.dev/v1',
    kind: 'Command',
    id: 'c',
    node: 'pi-07',
    verb: 'exec',
    bootID: 'b',
    session: 1,
    target: { pod: 'web' },
  } as const;
  const bytes = Buffer.from(JSON.stringify(command));
  const envelope = Buffer.from(signEnvelope(bytes, 'application/vnd.podsched.command+json', alice.privateKeyPem));
  const { gate: g } = gate({ mqtt: { requireSignature: true, verbs: ['exec'] } });
  const plain = g.openCommand(bytes);
  assert.ok(plain.ok && plain.signed === undefined);
  assert.equal(g.judgeCommand(command, 'exec', undefined)?.reason, 'Unsigned');
  assert.equal(g.judgeCommand({ ...command, verb: 'get' }, 'get', undefined), undefined);
  const opened = g.openCommand(envelope);
  assert.ok(opened.ok && opened.signed === alice.keyid);
  assert.equal(g.judgeCommand(command, 'exec', opened.signed), undefined);
  assert.equal(g.judgeCommand({ ...command, node: 'pi-08' }, 'exec', opened.signed)?.reason, 'WrongAudience');
  assert.equal(g.judgeCommand(command, 'exec', stranger.keyid)?.reason, 'KeyUnknown');
  assert.equal(reasonOf(g.openCommand(signed())), 'WrongPayloadType');
});

test('a sealed Secret opens with the node’s key, another stays as it is', async () => {
  const key = await ownSealingKey(new MemoryStore(), silentLog);
  const g = new Gatekeeper({
    policy: (of) => readPolicy({}, of),
    keys: () => [],
    receiver: () => ({ node: 'n', groups: [] }),
    sealingKey: () => key,
  });
  const plain = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' }, data: { k: 'dg==' } } as const;
  assert.deepEqual(g.unseal(plain), { ok: true, secret: plain });
  const opened = g.unseal(sealSecret(plain, readRecipient(key.publicKey)));
  assert.ok(opened.ok);
  assert.deepEqual(opened.secret.data, plain.data);
  const without = gate().gate.unseal(sealSecret(plain, readRecipient(key.publicKey)));
  assert.ok(!without.ok && without.reason === 'CannotUnseal');
});

test('the rest is read from the policy of the kind of source', () => {
  const { gate: g } = gate({ mqtt: { maxPods: 3, locked: true, mayRead: ['shared'], requireSignature: true } });
  assert.equal(g.maxPods('mqtt'), 3);
  assert.equal(g.maxPods('file'), undefined);
  assert.ok(g.locked('mqtt:all') && !g.locked('file:x.yaml'));
  assert.ok(g.mayRead('mqtt:node', 'shared') && !g.mayRead('mqtt:node', 'default') && !g.mayRead('file:x.yaml', 'shared'));
  assert.ok(g.requiresSignature('mqtt:node') && !g.requiresSignature('file:x.yaml'));
});
