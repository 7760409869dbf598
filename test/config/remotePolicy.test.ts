/** Policy, signatures and seals as the sources see them: each a function that may say something else at the next question. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import type { PolicyPort } from '../../src/config/remoteWords.ts';
import { configMap, FakeFolder, pod } from './builders.ts';
import { allTopic, indexText, mapText, nodeTopic, online, podText, tombstone, web } from './remoteBuilders.ts';

const at = nodeTopic('default/web');
const v1 = podText('web');
const hostNetwork = podText('web', { spec: { hostNetwork: true } });

const isHost = (o: unknown): boolean => JSON.stringify(o).includes('"hostNetwork":true');
const noHost: PolicyPort = {
  judge: (object) => (isHost(object) ? [{ path: 'spec.hostNetwork', expected: 'absent: policy.mqtt.hostNetwork', got: 'set' }] : []),
};
/** `signed:KEY:PAYLOAD` is an envelope of this test. */
const envelopes: PolicyPort = {
  requiresSignature: () => true,
  open: (bytes) => {
    const text = new TextDecoder().decode(bytes);
    const [, key, payload] = /^signed:(\w+):(.*)$/s.exec(text) ?? [];
    if (key === undefined) return { ok: false, reason: 'Unsigned', message: 'no envelope' };
    if (key === 'bad') return { ok: false, reason: 'SignatureInvalid', message: 'it was changed' };
    return { ok: true, bytes: new TextEncoder().encode(payload), signed: key };
  },
  trust: ({ signed, audience, generation }) => {
    if (signed === 'gone') return { reason: 'KeyUnknown', message: 'no such key' };
    if (audience !== 'pi') return { reason: 'WrongAudience', message: 'it must be pi' };
    return generation === undefined ? { reason: 'GenerationMissing', message: 'none' } : undefined;
  },
};
const signed = (payload: string, key = 'k1'): string => `signed:${key}:${payload}`;

test('what policy denies of a topic is refused with its place; the last good goes on; allowed, it comes without being published again', async () => {
  const r = await online({ [at]: v1 }, { policy: noHost });
  r.take();
  await r.publish(at, hostNetwork);
  assert.equal(r.row(web, 'mqtt:node'), 'Refused PolicyDenied');
  const row = r.config.view().objects.find((o) => o.key === web)?.sources[0];
  assert.deepEqual(
    row?.problems.map((p) => p.path),
    ['spec.hostNetwork'],
  );
  assert.deepEqual(r.take(), []);
  r.policy = {};
  await r.config.policyChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['REMOVE web', 'ADD web']);
  assert.equal(r.row(web, 'mqtt:node'), 'Accepted Accepted');
});

test('a policy that becomes stricter ends what it denies, of topics and of files, at once and at a start', async () => {
  for (const restart of [false, true]) {
    const folder = new FakeFolder().set({ 'db.yaml': pod('db', { extra: '  hostNetwork: true' }), 'ok.yaml': pod('ok') });
    const r = await online({ [at]: hostNetwork }, { folder });
    r.take();
    r.policy = noHost;
    if (restart) {
      const again = await r.restart();
      assert.deepEqual(again.take(), ['ADD ok'], 'what the runtime has of the others is nobody’s');
      await again.connect();
      assert.equal(again.told(web), 'Refused PolicyDenied');
      assert.equal(again.told('Pod/default/db'), 'Refused PolicyDenied');
      assert.deepEqual(again.take(), []);
    } else {
      await r.config.policyChanged();
      await r.settle();
      assert.deepEqual(r.take().sort(), ['REMOVE db', 'REMOVE web']);
      assert.equal(r.told(web), 'Refused PolicyDenied');
      assert.equal(r.told('Pod/default/db'), 'Refused PolicyDenied');
      r.policy = {};
      await r.config.policyChanged();
      await r.settle();
      assert.deepEqual(r.take().sort(), ['ADD db', 'ADD web']);
    }
  }
});

test('a last good that policy does not allow any more does not go on behind a broken file', async () => {
  const r = await online({}, { folder: new FakeFolder().set({ 'web.yaml': pod('web', { extra: '  hostNetwork: true' }) }) });
  r.take();
  r.folder.set({ 'web.yaml': 'kind: [' });
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  r.policy = noHost;
  await r.config.policyChanged();
  assert.deepEqual(r.take(), ['REMOVE web']);
});

test('a denied edit of a file is refused, and its last good goes on', async () => {
  const r = await online({}, { policy: noHost, folder: new FakeFolder().set({ 'web.yaml': pod('web') }) });
  r.take();
  r.folder.set({ 'web.yaml': pod('web', { extra: '  hostNetwork: true' }) });
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  assert.equal(r.row(web, 'file:web.yaml'), 'Refused PolicyDenied');
  const [problem] = r.config.view().files[0]?.problems ?? [];
  assert.equal(problem?.line, 9);
});

test('what runs in place of a blocked edit ends when policy denies it, and the winner takes its place as a new instance', async () => {
  const r = await online({ [at]: hostNetwork });
  const [first] = r.updates.flatMap((u) => u.pods.map((p) => p.uid));
  r.blocked.add('web');
  await r.publish(at, v1);
  r.take();
  assert.equal(r.config.view().objects.find((o) => o.key === web)?.blockedEdit?.reason, 'OutOfcpu');
  r.policy = noHost;
  r.blocked.clear();
  await r.config.policyChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['REMOVE web', 'ADD web']);
  const last = r.updates.at(-1)?.pods[0];
  assert.notEqual(last?.uid, first);
  assert.equal(last?.pod.spec.hostNetwork, undefined);
  const again = await r.restart();
  assert.equal(again.updates[0]?.pods[0]?.uid, last?.uid);
});

test('at a start, what is denied of an entry is left out: its winner takes the place of what ran', async () => {
  const r = await online({ [at]: hostNetwork });
  r.blocked.add('web');
  await r.publish(at, v1);
  r.policy = noHost;
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web']);
  const pod = again.updates[0]?.pods[0];
  assert.equal(pod?.pod.spec.hostNetwork, undefined);
  assert.ok(!r.updates.some((u) => u.pods.some((p) => p.uid === pod?.uid)), 'under a UID of its own');
});

const good = { generation: 1, audience: 'pi' };
// payload → reason in the row; undefined: it is taken
const cases: readonly (readonly [claim: string, payload: string, reason: string | undefined])[] = [
  ['signed by a known key for this node', signed(podText('web', good)), undefined],
  ['not signed', podText('web', good), 'Unsigned'],
  ['tampered', signed(podText('web', good), 'bad'), 'SignatureInvalid'],
  ['signed by a key that went', signed(podText('web', good), 'gone'), 'KeyUnknown'],
  ['signed for another node', signed(podText('web', { ...good, audience: 'other' })), 'WrongAudience'],
  ['signed for nobody', signed(podText('web', { generation: 1 })), 'WrongAudience'],
  ['signed without a generation', signed(podText('web', { audience: 'pi' })), 'GenerationMissing'],
  ['signed, of another name', signed(podText('db', good)), 'NameMismatch'],
  ['an envelope with half an object', signed('{"kind":"Pod"'), 'Invalid'],
  ['an older one', signed(podText('web', { generation: 0, audience: 'pi', image: 'old:1' })), undefined],
];
for (const [claim, payload, reason] of cases) {
  test(`where signatures are asked for: ${claim}`, async () => {
    const r = await online({}, { policy: envelopes });
    await r.publish(at, payload);
    assert.equal(r.told(web), reason === undefined ? 'Accepted Accepted' : `Refused ${reason}`);
  });
}

test('signed: replayed, unsigned and emptied topics change nothing; signed tombstones and indexes delete', async () => {
  const r = await online({ [at]: signed(podText('web', { ...good, generation: 5 })) }, { policy: envelopes });
  assert.deepEqual(r.take(), ['ADD web']);
  await r.publish(at, signed(podText('web', { ...good, generation: 4, image: 'old:1' })));
  assert.equal(r.row(web, 'mqtt:node'), 'Refused GenerationFell');
  await r.publish(at, '');
  assert.equal(r.row(web, 'mqtt:node'), 'Refused Unsigned');
  await r.publish(at, tombstone('Pod', 'web', { ...good, generation: 6 }));
  assert.equal(r.row(web, 'mqtt:node'), 'Refused Unsigned');
  await r.publish(nodeTopic('_index'), indexText(1, []));
  assert.deepEqual(r.take(), []);
  await r.publish(nodeTopic('_index'), signed(indexText(1, []).replace('"generation"', '"part":0,"audience":"pi","generation"')));
  assert.deepEqual(r.take(), ['REMOVE web']);
  await r.publish(at, signed(podText('web', { ...good, generation: 7 })));
  assert.deepEqual(r.take(), ['ADD web']);
  await r.publish(at, signed(tombstone('Pod', 'web', { ...good, generation: 8 })));
  assert.deepEqual(r.take(), ['REMOVE web']);
});

test('a key that goes ends what it signed; signatures that are asked for later end what is unsigned', async () => {
  const r = await online(
    { [at]: signed(podText('web', good)), [nodeTopic('default/configmap:app')]: mapText('app') },
    {
      policy: {
        ...envelopes,
        requiresSignature: () => false,
        open: (b, o) => {
          const e = envelopes.open?.(b, o) ?? { ok: true, bytes: b };
          return e.ok ? e : { ok: true, bytes: b };
        },
      },
    },
  );
  assert.deepEqual(r.take(), ['ADD web']);
  r.policy = envelopes;
  await r.config.policyChanged();
  await r.settle();
  assert.equal(r.told(web), 'Accepted Accepted');
  assert.equal(r.told('ConfigMap/default/app'), 'Refused Unsigned');
  r.policy = { ...envelopes, trust: () => ({ reason: 'KeyUnknown', message: 'no such key' }) };
  await r.config.policyChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['REMOVE web']);
  assert.equal(r.told(web), 'Refused KeyUnknown');
});

test('an unsigned audience counts too; a group that is joined makes it right', async () => {
  const r = await online({ [allTopic('default/web')]: podText('web', { audience: 'group:cams' }) });
  assert.equal(r.told(web), 'Refused WrongAudience');
  r.groups = ['cams'];
  r.remote.settingsChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['ADD web']);
});

test('a file with a signature beside it is opened with it, and refused without where one is asked for', async () => {
  const asked: string[] = [];
  const policy: PolicyPort = {
    openFile: (bytes, { source, signature }) => {
      asked.push(`${source} ${signature === undefined ? 'none' : new TextDecoder().decode(signature)}`);
      return signature === undefined
        ? { ok: false, reason: 'Unsigned', message: 'there is no .sig beside it' }
        : { ok: true, bytes, signed: 'k1' };
    },
    requiresSignature: () => true,
    trust: ({ audience, generation }) => (audience === 'pi' && generation === 3 ? undefined : { reason: 'WrongAudience', message: 'x' }),
  };
  const folder = new FakeFolder().set({ 'web.yaml': podText('web', { audience: 'pi', generation: 3 }), 'db.yaml': pod('db') });
  folder.signatures.set('web.yaml', 'sig');
  const r = await online({}, { policy, folder });
  assert.deepEqual(asked, ['file:db.yaml none', 'file:web.yaml sig']);
  assert.deepEqual(r.take(), ['ADD web']);
  assert.match(JSON.stringify(r.config.view().files), /there is no .sig/);
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web'], 'judged again from the card, with the words it came with');
});

test('maxPods holds per kind of source: what is accepted stays, the next one waits for room', async () => {
  const policy: PolicyPort = { maxPods: (of) => (of === 'mqtt' ? 2 : 1) };
  const folder = new FakeFolder().set({ 'a.yaml': pod('file-a'), 'b.yaml': pod('file-b') });
  const r = await online({ [nodeTopic('default/a')]: podText('a'), [nodeTopic('default/b')]: podText('b') }, { policy, folder });
  assert.deepEqual(r.take().sort(), ['ADD a', 'ADD b', 'ADD file-a']);
  assert.equal(r.told('Pod/default/file-b'), 'Refused TooManyPods');
  await r.publish(nodeTopic('default/c'), podText('c'));
  await r.publish(nodeTopic('default/configmap:app'), mapText('app'));
  assert.equal(r.told('Pod/default/c'), 'Refused TooManyPods');
  assert.equal(r.told('ConfigMap/default/app'), 'Accepted Accepted');
  assert.deepEqual(r.take(), []);
  await r.publish(nodeTopic('default/a'), '');
  await r.settle();
  assert.deepEqual(r.take(), ['REMOVE a', 'ADD c']);
  r.folder.set({ 'b.yaml': pod('file-b') });
  await r.config.readFolder();
  assert.deepEqual(r.take(), ['REMOVE file-a', 'ADD file-b']);
  r.policy = { maxPods: () => 1 };
  await r.config.policyChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['REMOVE c'], 'the newest goes');
});

test('a locked source wins over a stronger one, as soon as policy says so', async () => {
  const folder = new FakeFolder().set({ 'web.yaml': pod('web', { image: 'file:1' }) });
  const r = await online({ [at]: podText('web', { image: 'topic:1' }) }, { folder });
  const image = (): string | undefined => {
    const o = r.config.object(web);
    return o?.kind === 'Pod' ? o.spec.containers[0]?.image : undefined;
  };
  assert.equal(image(), 'file:1');
  r.policy = { locked: (source) => source.startsWith('mqtt:') };
  await r.config.policyChanged();
  assert.equal(image(), 'topic:1');
  assert.equal(r.row(web, 'file:web.yaml'), 'Shadowed Shadowed');
});

test('ConfigMaps are seen by pods of their own kind of source, unless policy says otherwise', async () => {
  const app = 'ConfigMap/default/app' as KeyText;
  const r = await online(
    { [nodeTopic('default/configmap:app')]: mapText('app', { value: 'topic' }) },
    { folder: new FakeFolder().set({ 'a.yaml': configMap('app', 'file'), 'b.yaml': configMap('only', 'file') }) },
  );
  const seen = (key: string, source: 'file:x' | 'mqtt:all'): unknown => {
    const o = r.config.objectFor(key as KeyText, source);
    return o?.kind === 'ConfigMap' ? o.data?.a : undefined;
  };
  assert.equal(seen(app, 'file:x'), 'file');
  assert.equal(seen(app, 'mqtt:all'), 'topic');
  assert.equal(seen('ConfigMap/default/only', 'mqtt:all'), undefined);
  r.policy = { mayRead: (source, namespace) => source === 'mqtt:all' && namespace === 'default' };
  assert.equal(seen('ConfigMap/default/only', 'mqtt:all'), 'file');
  assert.equal(seen(app, 'mqtt:all'), 'topic');
});

test('a sealed Secret stays sealed on the card and is opened for those who use it; where it cannot be, both are told', async () => {
  const secret = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'tls', annotations: { 'podsched.dev/sealed': 'x25519' } },
    data: { key: 'c2VhbGVk' },
  });
  const user = podText('web', { spec: { volumes: [{ name: 'v', secret: { secretName: 'tls' } }] } });
  const tls = 'Secret/default/tls' as KeyText;
  let opened = 0;
  let works = true;
  const policy: PolicyPort = {
    unseal: (s) => {
      opened++;
      return works
        ? { ok: true, secret: { ...s, data: { key: 'b3Blbg==' } } }
        : { ok: false, reason: 'CannotUnseal', message: 'it is sealed for another node' };
    },
  };
  const r = await online({ [nodeTopic('default/secret:tls')]: secret, [at]: user }, { policy });
  const seen = r.config.objectFor(tls, 'mqtt:node');
  assert.equal(seen?.kind === 'Secret' ? seen.data?.key : undefined, 'b3Blbg==');
  assert.equal(r.config.objectFor(tls, 'mqtt:node'), seen, 'opened once');
  assert.equal(opened, 1);
  const kept = r.config.object(tls);
  assert.equal(kept?.kind === 'Secret' ? kept.data?.key : undefined, 'c2VhbGVk');
  assert.ok(!JSON.stringify([...r.store.entries]).includes('b3Blbg'));
  works = false;
  const again = await r.restart();
  assert.equal(again.config.objectFor(tls, 'mqtt:node'), undefined);
  assert.equal(again.config.whyUnopened(tls, 'mqtt:node')?.reason, 'CannotUnseal');
  assert.equal(again.told(tls), 'Waiting CannotUnseal');
  assert.deepEqual(again.config.view().objects.find((o) => o.key === web)?.unopened, {
    reason: 'CannotUnseal',
    message: 'Secret tls: it is sealed for another node',
  });
});
