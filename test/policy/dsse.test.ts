import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import {
  looksLikeEnvelope,
  manifestJson,
  manifestYaml,
  openDetached,
  openEnvelope,
  pae,
  type TrustedKey,
  withoutProof,
} from '../../src/policy/dsse.ts';
import { keyIdOf, rawKey } from '../../src/policy/rawKeys.ts';
import { newSigningKey, readSigningKey, signEnvelope } from '../../src/policy/signing.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const text = (b: Uint8Array): string => Buffer.from(b).toString();

function keyPair(over: Partial<TrustedKey> = {}): { readonly pem: string; readonly trusted: TrustedKey } {
  const { privateKeyPem, publicKeyPem, keyid } = newSigningKey();
  return { pem: privateKeyPem, trusted: { keyid, publicKey: createPublicKey(publicKeyPem), file: 'ops.pub', ...over } };
}

const alice = keyPair();
const bob = keyPair({ file: 'bob.pub' });
const payload = bytes('kind: Pod\n');

/** An envelope as JSON, with parts of it other than signEnvelope writes them. */
const envelope = (over: Readonly<Record<string, unknown>> = {}, pem = alice.pem): Uint8Array =>
  bytes(JSON.stringify({ ...JSON.parse(signEnvelope(payload, manifestYaml, pem)), ...over }));

const signaturesOf = (...pems: readonly string[]): unknown[] =>
  pems.flatMap((pem) => (JSON.parse(signEnvelope(payload, manifestYaml, pem)) as { signatures: unknown[] }).signatures);

const reasonOf = (b: Uint8Array, keys: readonly TrustedKey[] = [alice.trusted]): string => {
  const opened = openEnvelope(b, keys, 'manifest');
  return opened.ok ? 'ok' : opened.reason;
};

test('PAE is that of the specification, lengths in bytes', () => {
  assert.equal(text(pae('http://example.com/HelloWorld', bytes('hello world'))), 'DSSEv1 29 http://example.com/HelloWorld 11 hello world');
  assert.equal(text(pae('', bytes(''))), 'DSSEv1 0  0 ');
  assert.equal(text(pae('ä', bytes('ö'))), 'DSSEv1 2 ä 2 ö');
});

test('keys are those of RFC 8032: seed, public key and signature of its first test', () => {
  const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
  const privateKey = createPrivateKey({ key: Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex'), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(privateKey);
  assert.equal(Buffer.from(rawKey(publicKey)).toString('hex'), 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  const signature = sign(null, Buffer.alloc(0), privateKey);
  assert.equal(
    signature.toString('hex'),
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  );
  const pem = String(privateKey.export({ format: 'pem', type: 'pkcs8' }));
  assert.equal(readSigningKey(pem).keyid, keyIdOf(publicKey));
  assert.match(keyIdOf(publicKey), /^[0-9a-f]{16}$/);
});

test('what was signed comes out, with who signed it, and the signature is over PAE', () => {
  const opened = openEnvelope(envelope(), [bob.trusted, alice.trusted], 'manifest');
  assert.ok(opened.ok);
  assert.deepEqual(Buffer.from(opened.payload), payload);
  assert.equal(opened.payloadType, manifestYaml);
  assert.equal(opened.key, alice.trusted);
  const [{ sig }] = (JSON.parse(signEnvelope(payload, manifestYaml, alice.pem)) as { signatures: [{ sig: string }] }).signatures;
  assert.ok(verify(null, pae(manifestYaml, payload), alice.trusted.publicKey, Buffer.from(sig, 'base64')));
});

test('fields nobody knows are ignored, in the envelope and in a signature', () => {
  const [one] = signaturesOf(alice.pem) as [object];
  assert.equal(reasonOf(envelope({ comment: 'x', signatures: [{ ...one, cert: 'y' }] })), 'ok');
});

test('both alphabets of base64 are read, with and without its padding', () => {
  const odd = bytes('\u00ff\u00fe>>>???');
  const made = JSON.parse(signEnvelope(odd, manifestYaml, alice.pem)) as { payload: string; signatures: { sig: string }[] };
  const urlSafe = (s: string): string => s.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  const written = { ...made, payload: urlSafe(made.payload), signatures: made.signatures.map((s) => ({ ...s, sig: urlSafe(s.sig) })) };
  assert.notEqual(written.payload, made.payload);
  assert.equal(reasonOf(bytes(JSON.stringify(written))), 'ok');
});

test('one good signature of a known key suffices, and every good one is told', () => {
  const both = envelope({ signatures: signaturesOf(bob.pem, alice.pem) });
  assert.equal(reasonOf(both), 'ok');
  const opened = openEnvelope(both, [alice.trusted, bob.trusted], 'manifest');
  assert.ok(opened.ok);
  assert.deepEqual(new Set(opened.keys), new Set([alice.trusted, bob.trusted]));
  const broken = { keyid: bob.trusted.keyid, sig: Buffer.alloc(64).toString('base64') };
  assert.equal(reasonOf(envelope({ signatures: [broken, ...signaturesOf(alice.pem)] }), [alice.trusted, bob.trusted]), 'ok');
});

test('a key that keys.d has under a name of its own is found by what it signed', () => {
  const named = { ...alice.trusted, keyid: 'ops' };
  const opened = openEnvelope(envelope({}), [bob.trusted, named], 'manifest');
  assert.ok(opened.ok);
  assert.deepEqual(opened.keys, [named]);
  assert.equal(reasonOf(envelope({}), [{ ...bob.trusted, keyid: 'ops' }]), 'KeyUnknown');
});

test('a signature without keyid is tried with every key', () => {
  const [one] = signaturesOf(alice.pem) as [{ sig: string }];
  assert.equal(reasonOf(envelope({ signatures: [{ sig: one.sig }] }), [bob.trusted, alice.trusted]), 'ok');
  assert.equal(reasonOf(envelope({ signatures: [{ keyid: '', sig: one.sig }] }), [bob.trusted]), 'SignatureInvalid');
});

const tampered: readonly (readonly [string, Uint8Array, string])[] = [
  ['another payload', envelope({ payload: Buffer.from('kind: Pod\nx: 1\n').toString('base64') }), 'SignatureInvalid'],
  ['another type of payload that is taken too', envelope({ payloadType: manifestJson }), 'SignatureInvalid'],
  ['a type for another use', envelope({ payloadType: 'application/vnd.podsched.command+json' }), 'WrongPayloadType'],
  ['a type of somebody else', envelope({ payloadType: 'application/vnd.in-toto+json' }), 'WrongPayloadType'],
  ['no signature', envelope({ signatures: [] }), 'SignatureInvalid'],
  ['a signature that is none', envelope({ signatures: [{ keyid: alice.trusted.keyid, sig: '!' }, 7, null] }), 'SignatureInvalid'],
  ['a signature that is too short', envelope({ signatures: [{ keyid: alice.trusted.keyid, sig: 'AAAA' }] }), 'SignatureInvalid'],
  ['the signature of a stranger under his name', envelope({}, bob.pem), 'KeyUnknown'],
  [
    'the signature of a stranger under our name',
    envelope({ signatures: (signaturesOf(bob.pem) as object[]).map((s) => ({ ...s, keyid: alice.trusted.keyid })) }),
    'SignatureInvalid',
  ],
  ['a payload that is no base64', envelope({ payload: 'kind: Pod' }), 'SignatureInvalid'],
  ['seventeen signatures', envelope({ signatures: Array.from({ length: 17 }, () => signaturesOf(alice.pem)[0]) }), 'SignatureInvalid'],
  ['a manifest', bytes('kind: Pod\n'), 'Unsigned'],
  ['a manifest in JSON', bytes('{"kind":"Pod","metadata":{"name":"x"}}'), 'Unsigned'],
  ['nothing', bytes(''), 'Unsigned'],
  ['no signatures field', bytes('{"payload":"","payloadType":"x"}'), 'Unsigned'],
  ['signatures that are no list', envelope({ signatures: {} }), 'Unsigned'],
  ['half an envelope', envelope().subarray(0, -3), 'SignatureInvalid'],
  [
    'bytes that are no UTF-8',
    Buffer.concat([envelope().subarray(0, -1), Buffer.from([0x2c, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]),
    'SignatureInvalid',
  ],
];
for (const [what, from, reason] of tampered) test(`${what} is ${reason}`, () => assert.equal(reasonOf(from), reason));

test('deep and large envelopes are refused before they are parsed', () => {
  const deep = `{"payloadType":"${manifestYaml}","payload":"","signatures":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  assert.equal(reasonOf(bytes(deep)), 'SignatureInvalid');
  assert.equal(reasonOf(envelope({ comment: 'x'.repeat(2 << 20) })), 'SignatureInvalid');
  // brackets inside of strings are no depth
  assert.equal(reasonOf(envelope({ comment: `${'['.repeat(50)}\\"${'{'.repeat(50)}` })), 'ok');
});

test('no more than 32 signatures are verified, whatever is sent', () => {
  const keys = Array.from({ length: 40 }, () => keyPair().trusted);
  let verified = 0;
  const counted = keys.map((k) => ({
    ...k,
    get publicKey(): KeyObject {
      verified++;
      return k.publicKey;
    },
  }));
  const one = { sig: Buffer.alloc(64, 1).toString('base64') };
  const opened = openEnvelope(envelope({ signatures: Array.from({ length: 16 }, () => one) }), counted, 'manifest');
  assert.equal(opened.ok, false);
  assert.equal(verified, 32);
});

test('a key of another kind verifies nothing', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const sig = sign(null, pae(manifestYaml, payload), rsa.privateKey).subarray(0, 64).toString('base64');
  const key: TrustedKey = { keyid: 'rsa', publicKey: rsa.publicKey, file: 'rsa.pub' };
  assert.equal(reasonOf(envelope({ signatures: [{ keyid: 'rsa', sig }] }), [key]), 'SignatureInvalid');
  assert.throws(
    () => signEnvelope(payload, manifestYaml, String(rsa.privateKey.export({ format: 'pem', type: 'pkcs8' }))),
    /rsa, not ed25519/,
  );
  assert.throws(
    () => signEnvelope(payload, manifestYaml, 'MC4CAQAw-secret'),
    (e: Error) => !e.message.includes('MC4'),
  );
});

test('beside a file the payload is left out, or is that file', () => {
  const detached = bytes(signEnvelope(payload, manifestYaml, alice.pem, { detached: true }));
  assert.equal((JSON.parse(text(detached)) as { payload: string }).payload, '');
  for (const signature of [detached, envelope()]) {
    const opened = openDetached(signature, payload, [alice.trusted], 'manifest');
    assert.ok(opened.ok);
    assert.deepEqual(Buffer.from(opened.payload), payload);
    const other = openDetached(signature, bytes('kind: Pod \n'), [alice.trusted], 'manifest');
    assert.ok(!other.ok && other.reason === 'SignatureInvalid');
  }
  const none = openDetached(bytes('kind: Pod'), payload, [alice.trusted], 'manifest');
  assert.ok(!none.ok && none.reason === 'SignatureInvalid');
  // beside a file it is good, by itself it says nothing
  assert.equal(reasonOf(detached), 'SignatureInvalid');
});

test('an envelope is told from a manifest without parsing it', () => {
  assert.ok(looksLikeEnvelope(envelope()));
  assert.ok(looksLikeEnvelope(bytes(`\n  ${text(envelope())}`)));
  const manifest = { kind: 'ConfigMap', data: { 'e.json': text(envelope()) } };
  assert.ok(!looksLikeEnvelope(bytes(JSON.stringify(manifest))));
  assert.ok(!looksLikeEnvelope(bytes('kind: ConfigMap\ndata:\n  "payloadType": "payload" "signatures"')));
});

test('who knows no key can still see what is in an envelope, but not take it for another use', () => {
  const seen = withoutProof(envelope(), 'manifest');
  assert.ok(seen.ok);
  assert.deepEqual(Buffer.from(seen.payload), payload);
  const other = withoutProof(envelope(), 'command');
  assert.ok(!other.ok && other.reason === 'WrongPayloadType');
});

test('no message repeats what a stranger wrote but an id of plain letters', () => {
  const opened = openEnvelope(
    envelope({
      signatures: [
        { keyid: 'x\u001b[31m', sig: 'AA' },
        { keyid: 'SHA256:abc', sig: 'AA' },
      ],
    }),
    [bob.trusted],
    'manifest',
  );
  assert.ok(!opened.ok);
  assert.ok(opened.message.includes('SHA256:abc') && !opened.message.includes('\u001b'));
});

test('what is made to be slow to read is not', () => {
  const long = 1_400_000;
  for (const payload of [`${'='.repeat(long)}x`, 'A'.repeat(long), `${'A='.repeat(long / 2)}`])
    assert.notEqual(reasonOf(envelope({ payload })), 'ok');
  assert.notEqual(reasonOf(envelope({ signatures: [{ sig: `${'='.repeat(long)}x` }] })), 'ok');
});

test('whatever bytes come, nothing is thrown and nothing is good', () => {
  const good = Buffer.from(envelope());
  // a small generator of its own: the same bytes in each run
  let state = 7;
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  for (let i = 0; i < 3000; i++) {
    const bytes = Buffer.from(good);
    for (let n = next(4) + 1; n > 0; n--) {
      const at = next(bytes.length);
      bytes[at] = ((bytes[at] ?? 0) + 1 + next(255)) & 0xff;
    }
    const cut = bytes.subarray(0, next(3) === 0 ? next(bytes.length) : bytes.length);
    const opened = openEnvelope(cut, [alice.trusted], 'manifest');
    // what was touched may be the name of a field that nobody reads, or a bit of base64 that says nothing
    if (opened.ok) assert.deepEqual(Buffer.from(opened.payload), payload);
  }
});
