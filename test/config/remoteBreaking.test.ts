/** Bad luck and bad will against the MQTT source: power cuts between two writes, replays, names that bend, and payloads that cost more than they weigh. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyText, keyText } from '../../src/api/objects.ts';
import type { ObjectPlace } from '../../src/config/desiredTopics.ts';
import { Generations, mostRemembered } from '../../src/config/generations.ts';
import { decodePayload } from '../../src/config/payload.ts';
import type { PolicyPort } from '../../src/config/remoteWords.ts';
import { readRollout } from '../../src/config/rollouts.ts';
import { resolveTagged } from '../../src/config/scalar.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { CountingStore } from './builders.ts';
import { allTopic, configText, groupTopic, indexText, nodeTopic, online, podText, remoteRig, tombstone, web } from './remoteBuilders.ts';

const at = nodeTopic('default/web');
const db = 'Pod/default/db' as KeyText;

test('groups of a stored _config are followed again after a restart of the agent', async () => {
  const r = await online({ [nodeTopic('_config')]: configText({ groups: ['cams'] }), [groupTopic('cams', 'default/web')]: podText('web') });
  await r.connect();
  assert.deepEqual(r.take(), ['ADD web']);
  const again = await r.restart();
  assert.deepEqual(again.followed.at(-1), again.remote.filters());
  assert.ok(again.remote.filters().includes(groupTopic('cams', '#')));
});

test('what comes before the checkpoint was read waits for it: nothing is begun anew, and no generation is forgotten', async () => {
  const r = await online({ [at]: podText('web', { generation: 5 }), [nodeTopic('default/db')]: podText('db', { generation: 5 }) });
  await r.publish(nodeTopic('default/db'), tombstone('Pod', 'db', { generation: 6 }));
  const { uid } = r.config.view().objects.find((o) => o.key === web) ?? {};
  const again = remoteRig({ store: r.store, broker: r.broker });
  again.remote.connected();
  const bytes = (text: string) => new TextEncoder().encode(text);
  again.remote.message({ topic: at, payload: bytes(podText('web', { generation: 5 })), retain: false });
  again.remote.message({ topic: nodeTopic('default/db'), payload: bytes(podText('db', { generation: 5 })), retain: false });
  again.remote.snapshot(again.remote.filters());
  await again.settle();
  assert.deepEqual(again.take(), []);
  await again.config.load();
  await again.config.readFolder();
  await again.settle();
  assert.deepEqual(again.take(), ['ADD web']);
  assert.equal(again.config.view().objects.find((o) => o.key === web)?.uid, uid);
  assert.equal(again.row(db, 'mqtt:node'), 'Refused GenerationFell');
});

test('an index of fewer parts than before deletes what only the part that is left over lists', async () => {
  const [a, b] = [podText('web'), podText('db')];
  const r = await online({
    [at]: a,
    [nodeTopic('default/db')]: b,
    [nodeTopic('_index')]: indexText(1, [{ name: 'web', text: a }], { parts: 2 }),
    [nodeTopic('_index/1')]: indexText(1, [{ name: 'db', text: b }], { parts: 2 }),
  });
  r.take();
  await r.publish(nodeTopic('_index'), indexText(2, [{ name: 'web', text: a }]));
  assert.deepEqual(r.take(), ['REMOVE db']);
});

test('a power cut after an index was followed, and before what it leaves out is gone from the card, does not bring that back', async () => {
  const [a, b] = [podText('web'), podText('db')];
  const r = await online({ [at]: a, [nodeTopic('default/db')]: b });
  const before = new Map(r.store.entries);
  await r.publish(nodeTopic('_index'), indexText(1, [{ name: 'web', text: a }]));
  // the deletion is remembered, and the object is on the card still
  for (const [key, text] of before) if (key.startsWith('objects/')) r.store.entries.set(key, text);
  const again = await r.restart();
  await again.connect();
  assert.equal(again.config.has(db), false);
  assert.equal(again.config.has(web), true);
});

test('what an index leaves out is remembered before the index counts as followed', async () => {
  const r = await online({ [at]: podText('web') });
  const done: string[] = [];
  const put = r.store.put.bind(r.store);
  r.store.put = async (key, value) => {
    // a card takes its time
    if (key === 'mqtt/deleted') for (let i = 0; i < 20; i++) await Promise.resolve();
    await put(key, value);
    done.push(key);
  };
  await r.publish(nodeTopic('_index'), indexText(1, []));
  assert.deepEqual(done, ['mqtt/deleted', 'mqtt/indexes']);
});

test('a policy that becomes stricter holds for what could not be stored yet, too', async () => {
  const r = await online();
  r.store.full = true;
  await r.publish(at, podText('web', { image: 'evil:1' }));
  assert.equal(r.told(web), 'Waiting StoreFailed');
  r.policy = {
    judge: (object) =>
      object.kind === 'Pod' && object.spec.containers[0]?.image === 'evil:1' ? [{ path: 'spec', expected: 'another', got: 'this' }] : [],
  };
  await r.config.policyChanged();
  r.store.full = false;
  await r.config.readFolder();
  await r.settle();
  assert.deepEqual(r.take(), []);
  assert.equal(r.row(web, 'mqtt:node'), 'Refused PolicyDenied');
});

test('a policy that becomes stricter holds for what was taken and not put together yet, because its memory could not be written', async () => {
  const store = new CountingStore();
  const r = await online({ [at]: podText('web', { generation: 1 }) }, { store });
  r.take();
  let broken = true;
  const put = store.put.bind(store);
  store.put = (key, value) => (broken && key.startsWith('mqtt/') ? Promise.reject(new Error('no space')) : put(key, value));
  await r.publish(nodeTopic('default/gone'), podText('gone', { generation: 1 }));
  await r.publish(nodeTopic('default/gone'), tombstone('Pod', 'gone', { generation: 2 }));
  await r.publish(nodeTopic('default/evil'), podText('evil'));
  r.take();
  r.policy = { judge: (object) => (object.metadata.name === 'evil' ? [{ path: 'spec', expected: 'another', got: 'this' }] : []) };
  await r.config.policyChanged();
  broken = false;
  await r.config.readFolder();
  await r.settle();
  assert.ok(!r.take().includes('ADD evil'));
});

test('what was refused and stands at the broker no more is not told for ever', async () => {
  const r = await online({ [at]: '{]' });
  assert.equal(r.told(web), 'Refused Invalid');
  r.remote.disconnected();
  r.broker.set(at, '');
  await r.connect();
  assert.equal(r.told(web), undefined);
});

const signing: PolicyPort = {
  requiresSignature: () => true,
  open: (bytes) => ({ ok: true, bytes, signed: 'k1' }),
};

test('what is signed without a namespace is for the default one: nobody moves it to another topic', async () => {
  const said = { generation: 1, audience: 'pi' };
  const r = await online({}, { policy: signing });
  await r.publish(nodeTopic('prod/web'), podText('web', said));
  assert.equal(r.row('Pod/prod/web', 'mqtt:node'), 'Refused NameMismatch');
  await r.publish(nodeTopic('prod/web'), podText('web', { ...said, namespace: 'prod' }));
  assert.equal(r.row('Pod/prod/web', 'mqtt:node'), 'Accepted Accepted');
  await r.publish(nodeTopic('prod/web'), tombstone('Pod', 'web', { ...said, generation: 2 }));
  assert.equal(r.row('Pod/prod/web', 'mqtt:node'), 'Refused NameMismatch');
});

test('a tombstone with a value of the node in its name is for the object of that name only', async () => {
  const r = await online({ [at]: podText('web') });
  r.take();
  for (const kind of ['Pod', 'ConfigMap']) {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of a manifest
    await r.publish(at, tombstone(kind, '${NODE.name}'));
    assert.equal(r.row(web, 'mqtt:node'), 'Refused NameMismatch', kind);
  }
  assert.deepEqual(r.take(), []);
});

test('names that never come are asked for one list after the other, however often the index changes', async () => {
  let out = 0;
  let most = 0;
  const r = await online();
  const release: (() => void)[] = [];
  r.fetch = (topics) => {
    out += topics.length;
    most = Math.max(most, out);
    return new Promise((resolve) => {
      release.push(() => {
        out -= topics.length;
        resolve();
      });
    });
  };
  for (let g = 1; g <= 30; g++) {
    const entries = Array.from({ length: 500 }, (_, i) => ({ name: `n${g}-${i}`, text: 'x' }));
    await r.publish(nodeTopic('_index'), indexText(g, entries));
    await r.clock.advance(2500);
    await r.settle();
  }
  assert.ok(most <= 5000, `${most} topics were asked for at once`);
  assert.equal(release.length, 1);
});

test('generations are remembered though many topics without one are struck off', async () => {
  const g = new Generations(new MemoryStore());
  g.add('t/web', { by: 'tombstone', hash: 'h', generation: 7 });
  for (let i = 0; i < 2 * mostRemembered; i++) g.add(`t/${i}`, { by: 'index', hash: 'x' });
  assert.equal(g.get('t/web')?.generation, 7);
  assert.equal(g.size, mostRemembered + 1);
});

test('a rollout with more labels than anybody has is refused, so that they do not fill the memory', () => {
  const selector = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, '']));
  const head = { apiVersion: 'podsched.dev/v1', kind: 'Rollout', id: 'r', gate: 0 };
  assert.equal(readRollout({ ...head, waves: [{ percent: 100, selector }] }, 'r').ok, false);
  assert.equal(
    readRollout({ ...head, waves: Array.from({ length: 100 }, () => ({ percent: 1, selector: { site: 'attic' } })) }, 'r').ok,
    true,
  );
});

test('a scalar that is no binary is read once, not again from each blank', { timeout: 20_000 }, () => {
  assert.equal(resolveTagged('!!binary', `${' '.repeat(1 << 18)}!`), undefined);
  assert.deepEqual(resolveTagged('!!binary', ' aGk= '), { is: 'string', value: 'hi' });
});

const key = { kind: 'ConfigMap', namespace: 'default', name: 'a' } as const;
const place: ObjectPlace = { of: 'object', topic: nodeTopic('default/configmap:a'), source: 'mqtt:node', key, text: keyText(key) };
const problemsOf = (text: string) => {
  const payload = decodePayload(new TextEncoder().encode(text), place, {
    strict: false,
    allowedUnsafeSysctls: [],
    node: { name: 'pi', labels: {} },
  });
  return payload.ok ? [] : payload.problems;
};

test('thousands of values that nobody knows are not each looked for in the text', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of a manifest
  const data = Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`k${i}`, '${NODE.zz}']));
  const problems = problemsOf(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data }));
  assert.ok(problems.length > 0 && problems.length <= 110, `${problems.length}`);
});

test('a key of 50,000 letters is not repeated in what is wrong below it', () => {
  const problems = problemsOf(
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n? "${'x'.repeat(50_000)}"\n: [${'.inf, '.repeat(40)}]\n`,
  );
  assert.ok(problems.length > 0);
  assert.ok(JSON.stringify(problems).length < 20_000, `${JSON.stringify(problems).length}`);
});

test('a _config that the card has lost is no wish to leave its groups', async () => {
  const r = await online({ [nodeTopic('_config')]: configText({ groups: ['cams'] }), [groupTopic('cams', 'default/web')]: podText('web') });
  await r.connect();
  r.store.entries.set('mqtt/config', '{torn');
  const again = await r.restart();
  assert.equal(again.config.has(web), true);
  await again.connect();
  await again.connect();
  assert.equal(again.config.has(web), true);
  await again.publish(nodeTopic('_config'), configText({ groups: [] }));
  assert.equal(again.config.has(web), false);
});

test('a pod that cannot be stored holds its place under maxPods: the next one is not asked for over and over', async () => {
  const r = await online({}, { policy: { maxPods: (of) => (of === 'mqtt' ? 1 : undefined) } });
  r.store.full = true;
  await r.publish(allTopic('default/a'), podText('a'));
  await r.publish(allTopic('default/b'), podText('b'));
  const { length } = r.asked;
  for (let i = 0; i < 20; i++) await r.settle();
  assert.ok(r.asked.length - length <= 1, `asked ${r.asked.length - length} times`);
});

test('Secrets that are sealed for other nodes are tried once, not at each telling', async () => {
  let tries = 0;
  const unseal = () => {
    tries++;
    return { ok: false, reason: 'CannotUnseal', message: 'it is sealed for another node' } as const;
  };
  const r = await online({}, { groups: ['cams'], policy: { unseal } });
  const metadata = (name: string) => ({ name, annotations: { 'podsched.dev/sealed': 'x25519' } });
  for (let i = 0; i < 20; i++) {
    const secret = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: metadata(`s${i}`), data: { key: 'c2VhbGVk' } });
    await r.publish(groupTopic('cams', `default/secret:s${i}`), secret);
  }
  assert.equal(tries, 20);
  assert.equal(r.told('Secret/default/s7'), 'Waiting CannotUnseal');
  await r.config.policyChanged();
  assert.equal(tries, 40, 'once more when keys may be others');
});
