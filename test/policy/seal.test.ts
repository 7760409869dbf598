import assert from 'node:assert/strict';
import { createDecipheriv, createHmac, createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import type { Secret } from '../../src/api/v1.ts';
import { rawKey } from '../../src/policy/rawKeys.ts';
import {
  isSealed,
  openValue,
  ownSealingKey,
  readRecipient,
  type SealingKey,
  sealSecret,
  sealValue,
  unsealSecret,
} from '../../src/policy/seal.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';

const place = { namespace: 'default', name: 'db', key: 'password' };
const value = Buffer.from('hunter2');

async function nodeKey(): Promise<SealingKey> {
  return ownSealingKey(new MemoryStore(), silentLog);
}

const secret = (over: Partial<Secret> = {}): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: 'db',
    annotations: { team: 'a', 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"password":"aHVudGVyMg=="}}' },
  },
  data: { password: value.toString('base64') },
  stringData: { user: 'root' },
  ...over,
});

test('keys and their agreement are those of RFC 7748', () => {
  const alice = createPrivateKey({
    key: Buffer.from('302e020100300506032b656e0422042077076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a', 'hex'),
    format: 'der',
    type: 'pkcs8',
  });
  assert.equal(
    Buffer.from(rawKey(createPublicKey(alice))).toString('hex'),
    '8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a',
  );
  const bob = readRecipient(Buffer.from('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f', 'hex').toString('base64'));
  assert.equal(
    diffieHellman({ privateKey: alice, publicKey: bob }).toString('hex'),
    '4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742',
  );
});

test('a box is what its description says, put together by hand', async () => {
  const node = await nodeKey();
  const box = Buffer.from(sealValue(value, place, readRecipient(node.publicKey)));
  assert.equal(box[0], 1);
  assert.equal(box.length, 1 + 32 + value.length + 16);
  const ephemeral = createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b656e032100', 'hex'), box.subarray(1, 33)]),
    format: 'der',
    type: 'spki',
  });
  const shared = diffieHellman({ privateKey: node.privateKey, publicKey: ephemeral });
  // HKDF by RFC 5869
  const prk = createHmac('sha256', Buffer.concat([box.subarray(1, 33), Buffer.from(node.publicKey, 'base64')]))
    .update(shared)
    .digest();
  const info = Buffer.from('podsched.dev/sealed/1');
  const first = createHmac('sha256', prk)
    .update(info)
    .update(Buffer.from([1]))
    .digest();
  const second = createHmac('sha256', prk)
    .update(first)
    .update(info)
    .update(Buffer.from([2]))
    .digest();
  const decipher = createDecipheriv('aes-256-gcm', first, second.subarray(0, 12), { authTagLength: 16 });
  decipher.setAAD(Buffer.concat([Buffer.from([1]), Buffer.from('default/db/password')]));
  decipher.setAuthTag(box.subarray(-16));
  assert.deepEqual(Buffer.concat([decipher.update(box.subarray(33, -16)), decipher.final()]), value);
});

test('a value opens where it was sealed for, and nowhere else', async () => {
  const [node, other] = [await nodeKey(), await nodeKey()];
  const box = sealValue(value, place, readRecipient(node.publicKey));
  assert.deepEqual(openValue(box, place, node), value);
  assert.equal(openValue(box, place, other), undefined);
  for (const over of [{ namespace: 'kube-system' }, { name: 'db2' }, { key: 'user' }])
    assert.equal(openValue(box, { ...place, ...over }, node), undefined);
});

test('a box that was touched anywhere does not open', async () => {
  const node = await nodeKey();
  const box = Buffer.from(sealValue(value, place, readRecipient(node.publicKey)));
  for (let i = 0; i < box.length; i++) {
    const touched = Buffer.from(box);
    touched[i] = (touched[i] ?? 0) ^ 0x40;
    assert.equal(openValue(touched, place, node), undefined, `byte ${i}`);
  }
  for (const length of [0, 1, 33, 48, box.length - 1])
    assert.equal(openValue(box.subarray(0, length), place, node), undefined, `${length} bytes`);
  // a point of low order would make the key known to everybody
  assert.equal(openValue(Buffer.concat([Buffer.from([1]), Buffer.alloc(32), box.subarray(33)]), place, node), undefined);
});

test('the same value is sealed to other bytes each time, and an empty one too', async () => {
  const node = await nodeKey();
  const recipient = readRecipient(node.publicKey);
  assert.notDeepEqual(sealValue(value, place, recipient), sealValue(value, place, recipient));
  assert.deepEqual(openValue(sealValue(Buffer.alloc(0), place, recipient), place, node), Buffer.alloc(0));
});

test('a sealed Secret is a Secret: names and keys as before, no value of it to be read', async () => {
  const node = await nodeKey();
  const sealed = sealSecret(secret(), readRecipient(node.publicKey));
  assert.ok(isSealed(sealed) && !isSealed(secret()));
  assert.deepEqual(sealed.metadata, { name: 'db', namespace: 'default', annotations: { team: 'a', 'podsched.dev/sealed': 'x25519' } });
  assert.deepEqual(Object.keys(sealed.data ?? {}).sort(), ['password', 'user']);
  assert.equal(sealed.stringData, undefined);
  const text = JSON.stringify(sealed);
  for (const hidden of ['hunter2', value.toString('base64'), 'root']) assert.ok(!text.includes(hidden), hidden);
  const opened = unsealSecret(sealed, node);
  assert.ok(opened.ok);
  assert.deepEqual(opened.secret.data, { password: value.toString('base64'), user: Buffer.from('root').toString('base64') });
  assert.ok(!isSealed(opened.secret));
  assert.throws(() => sealSecret(sealed, readRecipient(node.publicKey)), /sealed already/);
});

test('stringData wins over data, as the API server merges them', async () => {
  const node = await nodeKey();
  const sealed = sealSecret(
    secret({ data: { k: Buffer.from('old').toString('base64') }, stringData: { k: 'new' } }),
    readRecipient(node.publicKey),
  );
  const opened = unsealSecret(sealed, node);
  assert.ok(opened.ok);
  assert.deepEqual(opened.secret.data, { k: Buffer.from('new').toString('base64') });
});

test('what does not open is refused by the path of its key, and no value is told', async () => {
  const [node, other] = [await nodeKey(), await nodeKey()];
  const sealed = sealSecret(secret(), readRecipient(other.publicKey));
  const cases: readonly (readonly [string, Secret, SealingKey | undefined, string])[] = [
    ['for another node', sealed, node, 'data[password]'],
    ['without a key', sealed, undefined, 'metadata.annotations[podsched.dev/sealed]'],
    ['renamed', { ...sealed, metadata: { ...sealed.metadata, name: 'db2' } }, other, 'data[password]'],
    [
      'another scheme',
      { ...sealed, metadata: { ...sealed.metadata, annotations: { 'podsched.dev/sealed': 'rot13' } } },
      other,
      'metadata.annotations[podsched.dev/sealed]',
    ],
    ['plain text beside it', { ...sealed, stringData: { more: 'hunter2' } }, other, 'stringData'],
    ['a value that was not sealed', { ...sealed, data: { ...sealed.data, more: value.toString('base64') } }, other, 'data[more]'],
  ];
  for (const [what, object, key, path] of cases) {
    const opened = unsealSecret(object, key);
    assert.ok(!opened.ok, what);
    assert.equal(opened.reason, 'CannotUnseal');
    assert.equal(opened.problem.path, path, what);
    assert.ok(!JSON.stringify(opened).includes('hunter2') && !JSON.stringify(opened).includes(value.toString('base64')), what);
  }
});

test('a Secret that is not sealed stays as it is', () => {
  const plain = secret();
  assert.deepEqual(unsealSecret(plain, undefined), { ok: true, secret: plain });
});

test('the sealing key is made once and is the same after a restart', async () => {
  const store = new MemoryStore();
  const first = await ownSealingKey(store, silentLog);
  const stored = [...store.entries];
  const again = await ownSealingKey(store, silentLog);
  assert.equal(again.publicKey, first.publicKey);
  assert.deepEqual([...store.entries], stored);
  assert.deepEqual(openValue(sealValue(value, place, readRecipient(first.publicKey)), place, again), value);
});

test('a stored key that cannot be read is told, and a new one made', async () => {
  const store = new MemoryStore();
  await ownSealingKey(store, silentLog);
  const [name] = store.entries.keys();
  store.entries.set(name ?? '', '{half');
  const errors: string[] = [];
  const key = await ownSealingKey(store, { ...silentLog, error: (_, sentence) => errors.push(sentence) });
  assert.equal(errors.length, 1);
  assert.equal((await ownSealingKey(store, silentLog)).publicKey, key.publicKey);
  store.entries.set(name ?? '', '{"privateKey":"AAAA"}');
  assert.notEqual((await ownSealingKey(store, silentLog)).publicKey, key.publicKey);
});

test('a store that does not take it: no key, and nobody is told one', async () => {
  await assert.rejects(
    ownSealingKey({ get: async () => undefined, put: async () => Promise.reject(new Error('EROFS')) }, silentLog),
    /EROFS/,
  );
});

test('what is no sealing key is refused', () => {
  const ed = rawKey(generateKeyPairSync('ed25519').publicKey);
  for (const text of ['', 'AAAA', Buffer.alloc(33).toString('base64'), Buffer.alloc(32).toString('hex')])
    assert.throws(() => readRecipient(text), /32 bytes in base64/);
  // 32 bytes are 32 bytes: which curve they are of, nobody can tell
  assert.ok(readRecipient(Buffer.from(ed).toString('base64')));
});
