/** The MQTT source with the real policy, keys and seals behind its questions. */
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import type { Secret } from '../../src/api/v1.ts';
import type { PolicyPort } from '../../src/config/remoteWords.ts';
import { manifestJson, payloadTypes, type TrustedKey } from '../../src/policy/dsse.ts';
import { Gatekeeper } from '../../src/policy/gatekeeper.ts';
import { readPolicy } from '../../src/policy/policy.ts';
import { ownSealingKey, readRecipient, sealSecret } from '../../src/policy/seal.ts';
import { newSigningKey, signEnvelope } from '../../src/policy/signing.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeFolder } from './builders.ts';
import { allTopic, configText, groupTopic, indexText, mapText, nodeTopic, online, podText, tombstone, web } from './remoteBuilders.ts';

const at = nodeTopic('default/web');
const pair = newSigningKey();
const trusted: TrustedKey = { keyid: pair.keyid, publicKey: createPublicKey(pair.publicKeyPem), file: 'ops.pem' };
const sign = (text: string, type: string = manifestJson, key = pair.privateKeyPem): string =>
  signEnvelope(new TextEncoder().encode(text), type, key);
const [indexType = ''] = payloadTypes.index;
const [configType = ''] = payloadTypes.config;

/** The wiring asks a gate for each question anew. */
const gate = (o: { mqtt?: object; file?: object; keys?: readonly TrustedKey[] } = {}): PolicyPort => {
  const policies = { mqtt: readPolicy(o.mqtt ?? { requireSignature: true }, 'mqtt'), file: readPolicy(o.file ?? { allow: 'all' }, 'file') };
  return new Gatekeeper({
    policy: (of) => policies[of],
    keys: () => o.keys ?? [trusted],
    receiver: () => ({ node: 'pi', groups: ['cams'] }),
    sealingKey: () => undefined,
  });
};
const port = (g: PolicyPort): PolicyPort => ({
  judge: (object, by) => g.judge?.(object, by) ?? [],
  open: (bytes, o) => g.open?.(bytes, o) ?? { ok: true, bytes },
  openFile: (bytes, o) => g.openFile?.(bytes, o) ?? { ok: true, bytes },
  requiresSignature: (source) => g.requiresSignature?.(source) === true,
  trust: (said) => g.trust?.(said),
  unseal: (secret) => g.unseal?.(secret) ?? { ok: true, secret },
});

// what is published where → what is told of the pod
const other = newSigningKey();
const cases: readonly (readonly [claim: string, topic: string, payload: string, told: string])[] = [
  ['signed for this node', at, sign(podText('web', { generation: 1, audience: 'pi' })), 'Accepted Accepted'],
  [
    'signed for a group it is in',
    groupTopic('cams', 'default/web'),
    sign(podText('web', { generation: 1, audience: 'group:cams' })),
    'Accepted Accepted',
  ],
  ['signed for all', allTopic('default/web'), sign(podText('web', { generation: 1, audience: '*' })), 'Accepted Accepted'],
  ['signed for all, laid on the node’s topic', at, sign(podText('web', { generation: 1, audience: '*' })), 'Refused WrongAudience'],
  ['signed for another node', at, sign(podText('web', { generation: 1, audience: 'pi2' })), 'Refused WrongAudience'],
  ['signed for nobody', at, sign(podText('web', { generation: 1 })), 'Refused WrongAudience'],
  ['signed without a generation', at, sign(podText('web', { audience: 'pi' })), 'Refused GenerationMissing'],
  [
    'signed by a stranger',
    at,
    sign(podText('web', { generation: 1, audience: 'pi' }), manifestJson, other.privateKeyPem),
    'Refused KeyUnknown',
  ],
  ['signed for another use', at, sign(podText('web', { generation: 1, audience: 'pi' }), configType), 'Refused WrongPayloadType'],
  ['not signed', at, podText('web', { generation: 1, audience: 'pi' }), 'Refused Unsigned'],
  [
    'signed, and more than policy allows',
    at,
    sign(podText('web', { generation: 1, audience: 'pi', spec: { hostNetwork: true } })),
    'Refused PolicyDenied',
  ],
];
for (const [claim, topic, payload, told] of cases) {
  test(`with real keys and policy: ${claim}`, async () => {
    const r = await online({}, { policy: port(gate()), groups: ['cams'] });
    await r.publish(topic, payload);
    assert.equal(r.told(web), told);
    const again = await r.restart();
    assert.deepEqual(again.take(), told.startsWith('Accepted') ? ['ADD web'] : [], 'judged again from the card');
    await again.connect();
    assert.equal(again.told(web), told);
  });
}

test('a payload that was changed after it was signed is refused, and the good one goes on', async () => {
  const good = sign(podText('web', { generation: 1, audience: 'pi' }));
  const r = await online({ [at]: good }, { policy: port(gate()) });
  const envelope = JSON.parse(good);
  const bytes = Buffer.from(envelope.payload, 'base64').toString().replace('busybox:1', 'evil:1');
  await r.publish(at, JSON.stringify({ ...envelope, payload: Buffer.from(bytes).toString('base64') }));
  assert.equal(r.row(web, 'mqtt:node'), 'Refused SignatureInvalid');
  assert.deepEqual(r.take(), ['ADD web']);
});

test('signed tombstones, indexes and _config count, unsigned ones do not', async () => {
  const r = await online({ [at]: sign(podText('web', { generation: 3, audience: 'pi' })) }, { policy: port(gate()) });
  r.take();
  await r.publish(nodeTopic('_config'), configText({ generation: 1, heartbeatSeconds: 30 }));
  assert.equal(r.remote.config(), undefined);
  await r.publish(nodeTopic('_config'), sign(configText({ generation: 1, heartbeatSeconds: 30, audience: 'pi' }), configType));
  assert.equal(r.remote.config()?.heartbeatSeconds, 30);
  await r.publish(nodeTopic('_index'), indexText(1, []));
  await r.publish(nodeTopic('_index'), sign(JSON.stringify({ ...JSON.parse(indexText(1, [])), audience: 'pi' }), indexType));
  assert.deepEqual(r.take(), [], 'it does not say which part it is');
  await r.publish(nodeTopic('_index'), sign(JSON.stringify({ ...JSON.parse(indexText(1, [])), audience: '*', part: 0 }), indexType));
  assert.deepEqual(r.take(), [], 'it is for all nodes');
  await r.publish(at, tombstone('Pod', 'web', { generation: 4, audience: 'pi' }));
  assert.deepEqual(r.take(), []);
  await r.publish(nodeTopic('_index'), sign(JSON.stringify({ ...JSON.parse(indexText(1, [])), audience: 'pi', part: 0 }), indexType));
  assert.deepEqual(r.take(), ['REMOVE web']);
  await r.publish(at, sign(podText('web', { generation: 5, audience: 'pi' })));
  await r.publish(at, sign(tombstone('Pod', 'web', { generation: 6, audience: 'pi' })));
  assert.deepEqual(r.take(), ['ADD web', 'REMOVE web']);
});

test('a signed file lives through a restart and a change of policy, and ends with its key', async () => {
  const text = podText('web', { generation: 1, audience: 'group:cams' });
  const folder = new FakeFolder().set({ 'web.json': text });
  folder.signatures.set('web.json', signEnvelope(new TextEncoder().encode(text), manifestJson, pair.privateKeyPem, { detached: true }));
  const file = { allow: 'all', requireSignature: true };
  const r = await online({}, { folder, policy: port(gate({ file })), groups: ['cams'] });
  assert.deepEqual(r.take(), ['ADD web']);
  await r.config.policyChanged();
  assert.deepEqual(r.take(), []);
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web']);
  again.policy = port(gate({ file, keys: [] }));
  await again.config.policyChanged();
  assert.deepEqual(again.take(), ['REMOVE web']);
  assert.equal(again.told(web), undefined, 'of a file that nobody may open it is not known what it holds');
  assert.match(JSON.stringify(again.config.view().files), /key/);
  assert.equal(again.events.at(-1)?.reason, 'KeyUnknown');
});

test('without keys and without the wish for signatures, envelopes are taken for what they hold', async () => {
  const r = await online({ [at]: sign(podText('web', { generation: 1, audience: 'pi' })) }, { policy: port(gate({ mqtt: {}, keys: [] })) });
  assert.equal(r.told(web), 'Accepted Accepted');
});

test('a Secret sealed for this node is opened for its pods, one that is sealed for another is told', async () => {
  const key = await ownSealingKey(new MemoryStore(), silentLog);
  const strange = await ownSealingKey(new MemoryStore(), silentLog);
  const plain: Secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls', namespace: 'default' }, data: { key: 'b3Blbg==' } };
  const sealed = (k: typeof key): string => JSON.stringify(sealSecret(plain, readRecipient(k.publicKey)));
  const policies = readPolicy({}, 'mqtt');
  const real = new Gatekeeper({
    policy: () => policies,
    keys: () => [],
    receiver: () => ({ node: 'pi', groups: [] }),
    sealingKey: () => key,
  });
  const r = await online(
    { [nodeTopic('default/secret:tls')]: sealed(key), [nodeTopic('default/configmap:x')]: mapText('x') },
    { policy: port(real) },
  );
  const tls = 'Secret/default/tls' as KeyText;
  const seen = r.config.objectFor(tls, 'mqtt:node');
  assert.equal(seen?.kind === 'Secret' ? seen.data?.key : undefined, 'b3Blbg==');
  assert.ok(!JSON.stringify([...r.store.entries]).includes('b3Blbg'));
  await r.publish(nodeTopic('default/secret:tls'), sealed(strange));
  assert.equal(r.told(tls), 'Waiting CannotUnseal');
  assert.equal(r.config.objectFor(tls, 'mqtt:node'), undefined);
});
