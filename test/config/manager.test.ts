import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import { systemClock } from '../../src/world/clock.ts';
import { settle } from '../fakes/fakeClock.ts';
import { configMap, pod, rig, started, uidOf } from './builders.ts';

const web = 'Pod/default/web' as KeyText;
const imageOf = (r: Awaited<ReturnType<typeof started>>, key: KeyText = web): string | undefined => {
  const o = r.config.object(key);
  return o?.kind === 'Pod' ? o.spec.containers[0]?.image : undefined;
};
const source = (r: Awaited<ReturnType<typeof started>>, name: string, key: KeyText = web) =>
  r.config
    .view()
    .objects.find((o) => o.key === key)
    ?.sources.find((s) => s.source === name);
const file = (r: Awaited<ReturnType<typeof started>>, name: string) => r.config.view().files.find((f) => f.file === name);

test('a manifest comes, is edited, goes: ADD, UPDATE, REMOVE of one instance', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  assert.deepEqual(r.take(), [`ADD web ${uid}`]);
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }) });
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`UPDATE web ${uid}`]);
  r.folder.set({});
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`REMOVE web ${uid}`]);
  assert.equal(r.config.object(web), undefined);
  assert.deepEqual(r.config.view().objects, []);
});

test('a desired pod carries UID, source, revision and first-seen time; defaults are filled in', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const desired = r.updates[0]?.pods[0];
  assert.equal(desired?.source, 'file:web.yaml');
  assert.equal(desired?.firstSeen, '2026-01-01T00:00:00Z');
  assert.equal(desired?.pod.spec.restartPolicy, 'Always');
  assert.equal(desired?.pod.spec.nodeName, 'pi');
  assert.match(desired?.revision ?? '', /^[0-9a-f]{12}$/);
});

test('state to disk before deed: the entry is stored when the update goes out, and holds all that a restart needs', async () => {
  const r = rig();
  r.folder.set({ 'web.yaml': pod('web') });
  await r.config.load();
  let emittedAtWrite = 0;
  r.store.onWrite = () => {
    emittedAtWrite += r.updates.length;
  };
  await r.config.readFolder();
  assert.equal(emittedAtWrite, 0);
  assert.equal(r.updates.length, 1);
  const entry = (await r.store.get('objects/Pod/default/web')) as Record<string, unknown>;
  const { candidates, ...head } = entry;
  assert.deepEqual(head, { key: web, uid: uidOf(r, web), since: '2026-01-01T00:00:00Z', winner: 'file:web.yaml' });
  const [candidate] = candidates as Record<string, unknown>[];
  assert.deepEqual(Object.keys(candidate ?? {}).sort(), ['firstSeen', 'object', 'revision', 'source']);
});

test('A11: touching, comments, key order, quotes and JSON under the same name change nothing and write nothing', async () => {
  const r = await started({ 'web.yaml': pod('web', { env: '1' }) });
  r.take();
  const writes = r.store.writes.length;
  const same = {
    spec: { containers: [{ env: [{ value: '1', name: 'X' }], image: 'busybox:1', name: 'c' }] },
    metadata: { name: 'web' },
    kind: 'Pod',
    apiVersion: 'v1',
  };
  for (const text of [
    `# a comment\n${pod('web', { env: '1' })}`,
    pod('web', { env: '1' }).replace('busybox:1', "'busybox:1'"),
    JSON.stringify(same),
  ]) {
    r.folder.set({ 'web.yaml': text });
    await r.config.readFolder();
  }
  assert.deepEqual(r.take(), []);
  assert.equal(r.store.writes.length, writes);
});

test('an unchanged folder costs nothing: no write, no update, nothing told', async () => {
  const r = await started({ 'web.yaml': pod('web'), 'cfg.yaml': configMap('cfg') });
  const before = [r.store.writes.length, r.updates.length, r.changed.length, r.events.length];
  for (let i = 0; i < 5; i++) await r.config.readFolder();
  assert.deepEqual([r.store.writes.length, r.updates.length, r.changed.length, r.events.length], before);
});

test('a renamed file with equal content restarts nothing: same UID, RECONCILE with the new source', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  r.take();
  r.folder.set({ 'other.json': pod('web') });
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`RECONCILE web ${uid}`]);
  assert.equal(r.updates.at(-1)?.pods[0]?.source, 'file:other.json');
});

test('a label edit is RECONCILE; a new volume is a new instance, the old one first', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const first = uidOf(r, web);
  r.take();
  r.folder.set({ 'web.yaml': pod('web', { label: 'a' }) });
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`RECONCILE web ${first}`]);
  r.folder.set({ 'web.yaml': pod('web', { label: 'a', extra: '  hostname: h' }) });
  await r.config.readFolder();
  const second = uidOf(r, web);
  assert.notEqual(second, first);
  assert.deepEqual(r.take(), [`REMOVE web ${first}`, `ADD web ${second}`]);
});

test('a container edit of a finished pod is a new instance: the state of the instance is asked', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const first = uidOf(r, web);
  r.states.set(first, { finished: true });
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }) });
  await r.config.readFolder();
  assert.notEqual(uidOf(r, web), first);
});

test('removed and added again is another instance', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const first = uidOf(r, web);
  r.folder.set({});
  await r.config.readFolder();
  r.folder.set({ 'web.yaml': pod('web') });
  await r.config.readFolder();
  assert.notEqual(uidOf(r, web), first);
  assert.deepEqual(r.take(), [`ADD web ${first}`, `REMOVE web ${first}`, `ADD web ${uidOf(r, web)}`]);
});

test('the pods of one read go out in the order REMOVE, ADD, UPDATE, RECONCILE', async () => {
  const r = await started({ 'a.yaml': pod('a'), 'b.yaml': pod('b'), 'c.yaml': pod('c'), 'd.yaml': pod('d') });
  r.take();
  r.folder.set({
    'a.yaml': pod('a', { label: 'x' }),
    'b.yaml': pod('b', { image: 'busybox:2' }),
    'd.yaml': pod('d', { extra: '  hostNetwork: true' }),
    'e.yaml': pod('e'),
  });
  await r.config.readFolder();
  assert.deepEqual(
    r.take().map((line) => line.replace(/ u\d+$/, '')),
    ['REMOVE c', 'REMOVE d', 'ADD d', 'ADD e', 'UPDATE b', 'RECONCILE a'],
  );
});

test('A2: the same pod in two files: the one that runs goes on, the other is named, and takes over once when the first goes', async () => {
  const r = await started({ 'a.yaml': pod('web', { image: 'i:1' }) });
  r.folder.set({ 'a.yaml': pod('web', { image: 'i:2' }), 'a.yaml.bak': pod('web', { image: 'i:1' }) });
  r.folder.files.delete('a.yaml.bak'); // the reader does not give it
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:2');
  const uid = uidOf(r, web);
  r.take();
  r.folder.files.set('zz.yaml', pod('web', { image: 'i:3' }));
  r.folder.files.set('0.yaml', pod('web', { image: 'i:0' }));
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:2');
  assert.deepEqual(r.take(), []);
  assert.equal(source(r, 'file:zz.yaml')?.phase, 'Shadowed');
  assert.match(source(r, 'file:zz.yaml')?.message ?? '', /a\.yaml/);
  assert.match(file(r, 'zz.yaml')?.problems[0]?.got ?? '', /Pod\/default\/web, which a\.yaml has too/);
  assert.ok(r.events.some((e) => e.reason === 'Shadowed' && /zz\.yaml.*a\.yaml/.test(e.message)));
  r.folder.files.delete('0.yaml');
  r.folder.files.delete('a.yaml');
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:3');
  assert.deepEqual(r.take(), [`UPDATE web ${uid}`]);
  assert.deepEqual(file(r, 'zz.yaml')?.problems, []);
});

test('A2: which of two files runs is kept over restarts; at a cold start it is the first by name', async () => {
  const r = await started({ 'm.yaml': pod('web', { image: 'i:m' }) });
  r.folder.files.set('a.yaml', pod('web', { image: 'i:a' }));
  await r.config.readFolder();
  const again = await r.restart();
  await again.config.readFolder();
  assert.equal(imageOf(again), 'i:m');
  const cold = await started({ 'm.yaml': pod('web', { image: 'i:m' }), 'a.yaml': pod('web', { image: 'i:a' }) });
  assert.equal(imageOf(cold), 'i:a');
});

test('a file renamed while another one with other content is shadowed: what ran goes on', async () => {
  const r = await started({ 'b.yaml': pod('web', { image: 'i:run' }) });
  r.folder.files.set('c.yaml', pod('web', { image: 'i:other' }));
  await r.config.readFolder();
  r.take();
  r.folder.set({ 'z.yaml': pod('web', { image: 'i:run' }), 'c.yaml': pod('web', { image: 'i:other' }) });
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:run');
  assert.deepEqual(r.take(), [`RECONCILE web ${uidOf(r, web)}`]);
});

for (const [how, text] of [
  ['empty', ''],
  ['of comments only', '# soon\n'],
  ['half-written', pod('web').slice(0, 40)],
  ['cut in the middle of a word', pod('web').slice(0, -15)],
  ['with a tab in the indent', pod('web').replace('  containers:', '\tcontainers:')],
  ['of kind Pdo', pod('web').replace('kind: Pod', 'kind: Pdo')],
  ['without image', pod('web').replace(/ {4}image.*\n/, '')],
  ['of another kind', pod('web').replace('kind: Pod', 'kind: DaemonSet')],
  ['with a duplicate key', `${pod('web')}    image: x\n`],
  ['of zeros', '\0\0\0\0'],
] as const) {
  test(`A3, A9: a file that is ${how} keeps its pod, over a restart too, is told once, and is clear again when mended`, async () => {
    const r = await started({ 'web.yaml': pod('web') });
    const uid = uidOf(r, web);
    r.take();
    r.folder.set({ 'web.yaml': text });
    await r.config.readFolder();
    await r.config.readFolder();
    assert.deepEqual(r.take(), []);
    assert.equal(imageOf(r), 'busybox:1');
    assert.equal(file(r, 'web.yaml')?.problems.length !== 0, true);
    assert.equal(file(r, 'web.yaml')?.problems[0]?.file, 'web.yaml');
    assert.equal(source(r, 'file:web.yaml')?.phase, 'Refused');
    assert.equal(r.events.filter((e) => 'file' in e.object && e.object.file === 'web.yaml').length, 1);

    const again = await r.restart();
    assert.deepEqual(again.take(), [`ADD web ${uid}`]);
    await again.config.readFolder();
    assert.deepEqual(again.take(), []);
    assert.equal(source(again, 'file:web.yaml')?.phase, 'Refused');

    again.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }) });
    await again.config.readFolder();
    assert.deepEqual(again.take(), [`UPDATE web ${uid}`]);
    assert.deepEqual(file(again, 'web.yaml')?.problems, []);
    assert.equal(source(again, 'file:web.yaml')?.phase, 'Accepted');
  });
}

test('A3: a file that cannot be read keeps its pod; only when it is absent the pod goes', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  r.take();
  r.folder.files.set('web.yaml', undefined);
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  assert.equal(source(r, 'file:web.yaml')?.reason, 'SourceUnreadable');
  r.folder.set({});
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`REMOVE web ${uid}`]);
  assert.deepEqual(r.config.view().files, []);
});

test('A10: Pod, empty document, broken Pod, ConfigMap, Pod: the good ones are taken, the broken one is told with its document', async () => {
  const broken = pod('b').replace('image', 'imgae');
  const r = await started({ 'all.yaml': [pod('a'), '', broken, configMap('cfg'), pod('c')].join('---\n') });
  assert.deepEqual(
    r.config.view().objects.map((o) => [o.key, o.sources[0]?.phase]),
    [
      ['ConfigMap/default/cfg', 'Accepted'],
      ['Pod/default/a', 'Accepted'],
      ['Pod/default/b', 'Refused'],
      ['Pod/default/c', 'Accepted'],
    ],
  );
  const problem = file(r, 'all.yaml')?.problems[0];
  assert.equal(problem?.file, 'all.yaml');
  assert.ok((problem?.line ?? 0) > 8);
});

test('A10: an object that left a file goes only if the whole file was understood', async () => {
  const r = await started({ 'all.yaml': [pod('a'), pod('b'), pod('c')].join('---\n') });
  const [b] = [uidOf(r, 'Pod/default/b')];
  r.take();
  r.folder.set({ 'all.yaml': [pod('a'), 'kind: DaemonSet\n'].join('---\n') });
  await r.config.readFolder();
  assert.deepEqual(r.take(), [], 'b and c may be what is broken');
  assert.match(file(r, 'all.yaml')?.problems[0]?.got ?? '', /DaemonSet \(document 2\)/);
  r.folder.set({ 'all.yaml': [pod('a'), pod('c')].join('---\n') });
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`REMOVE b ${b}`]);
});

test('a List is its items; an empty List is a whole file with nothing in it', async () => {
  const item = (name: string): string =>
    `- apiVersion: v1\n  kind: Pod\n  metadata: {name: ${name}}\n  spec: {containers: [{name: c, image: i}]}\n`;
  const r = await started({ 'l.yaml': `apiVersion: v1\nkind: List\nitems:\n${item('a')}${item('b')}` });
  assert.deepEqual(
    r.take().map((l) => l.split(' ')[1]),
    ['a', 'b'],
  );
  r.folder.set({ 'l.yaml': 'apiVersion: v1\nkind: List\nitems: []\n' });
  await r.config.readFolder();
  assert.deepEqual(
    r.take().map((l) => l.split(' ').slice(0, 2).join(' ')),
    ['REMOVE a', 'REMOVE b'],
  );
});

test('one object twice in a file is refused, naming both documents; its last good goes on', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.folder.set({ 'web.yaml': [pod('web', { image: 'i:2' }), configMap('x'), pod('web', { image: 'i:3' })].join('---\n') });
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  assert.equal(imageOf(r), 'busybox:1');
  assert.match(source(r, 'file:web.yaml')?.problems[0]?.got ?? '', /documents 1 and 3/);
});

test('a missing folder is a fault, told once: nothing is deleted, nothing is ready; it recovers', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  const again = await r.restart();
  again.folder.missing = true;
  for (let i = 0; i < 3; i++) await again.config.readFolder();
  assert.deepEqual(again.take(), [`ADD web ${uid}`]);
  assert.equal(again.config.ready(), false);
  assert.deepEqual(
    again.events.map((e) => [e.reason, e.message]),
    [['SourceUnreadable', '/m does not exist']],
  );
  again.folder.missing = false;
  await again.config.readFolder();
  assert.equal(again.config.ready(), true);
  assert.equal(again.config.view().folder.fault, undefined);
  again.folder.missing = true;
  await again.config.readFolder();
  assert.equal(again.events.length, 2, 'gone again is news');
  assert.deepEqual(again.take(), []);
});

test('C4: a manifest removed while the agent was down is removed at the first read, under its UID', async () => {
  const r = await started({ 'web.yaml': pod('web'), 'b.yaml': pod('b') });
  const uid = uidOf(r, web);
  r.folder.files.delete('web.yaml');
  const again = await r.restart();
  again.take();
  await again.config.readFolder();
  assert.deepEqual(again.take(), [`REMOVE web ${uid}`]);
  assert.equal(again.asked.length, 0, 'a checkpoint that was read needs no runtime');
});

test('C4: all manifests removed while the agent was down: an empty folder is an answer', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  r.folder.set({});
  const again = await r.restart();
  await again.config.readFolder();
  assert.deepEqual(again.take(), [`ADD web ${uid}`, `REMOVE web ${uid}`]);
});

test('C3: three manifests edited while the agent was down: each judged against what was accepted, no instance twice', async () => {
  const r = await started({ 'a.yaml': pod('a'), 'b.yaml': pod('b'), 'c.yaml': pod('c') });
  const [a, b, c] = ['a', 'b', 'c'].map((n) => uidOf(r, `Pod/default/${n}`));
  r.folder.set({ 'a.yaml': pod('a', { label: 'x' }), 'b.yaml': pod('b', { env: '2' }), 'c.yaml': pod('c', { extra: '  hostPID: true' }) });
  const again = await r.restart();
  assert.deepEqual(again.take(), [`ADD a ${a}`, `ADD b ${b}`, `ADD c ${c}`]);
  await again.config.readFolder();
  assert.deepEqual(again.take(), [`REMOVE c ${c}`, `ADD c ${uidOf(again, 'Pod/default/c')}`, `UPDATE b ${b}`, `RECONCILE a ${a}`]);
});

test('removed and added again around a restart is another instance, though the runtime still has the old one', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const first = uidOf(r, web);
  r.folder.set({});
  await r.config.readFolder();
  r.folder.set({ 'web.yaml': pod('web') });
  const again = await r.restart();
  again.runtime = new Map([[web, first]]);
  await again.config.readFolder();
  assert.equal(again.config.checkpoint(), 'read');
  assert.notEqual(uidOf(again, web), first);
});

test('an absent checkpoint: pods that the runtime has keep their UID; until it was listed they wait', async () => {
  const r = rig();
  r.folder.set({ 'web.yaml': pod('web'), 'new.yaml': pod('new'), 'cfg.yaml': configMap('cfg') });
  r.runtime = 'unknown';
  await r.config.load();
  assert.equal(r.config.checkpoint(), 'absent');
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  assert.ok(r.config.object('ConfigMap/default/cfg' as KeyText), 'a ConfigMap waits for nobody');
  const view = r.config.view().objects.find((o) => o.key === web);
  assert.equal(view?.pending?.reason, 'RuntimeDown');
  assert.equal(view?.sources[0]?.phase, 'Waiting');
  assert.equal(r.config.has(web), true);
  r.runtime = new Map([[web, 'old-uid' as PodUid]]);
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`ADD new ${uidOf(r, 'Pod/default/new')}`, 'ADD web old-uid']);
  assert.equal(r.config.view().objects.find((o) => o.key === web)?.pending, undefined);
  r.asked.length = 0;
  r.folder.files.set('later.yaml', pod('later'));
  await r.config.readFolder();
  assert.deepEqual(r.asked, [], 'what comes later is new');
});

for (const [how, tear] of [
  ['garbage', '{"torn'],
  ['another shape', '{"key": 5}'],
  [
    'a pod without UID',
    '{"key":"Pod/default/web","winner":"file:web.yaml","candidates":[{"source":"file:web.yaml","revision":"a","object":{"kind":"Pod"}}]}',
  ],
  [
    'an object without spec',
    '{"key":"Pod/default/web","uid":"u","winner":"file:web.yaml","candidates":[{"source":"file:web.yaml","revision":"a","object":{"kind":"Pod"}}]}',
  ],
  ['null', 'null'],
] as const) {
  test(`G4: a state file torn to ${how}: the agent starts, other pods are untouched, this one keeps the runtime's UID`, async () => {
    const r = await started({ 'web.yaml': pod('web'), 'b.yaml': pod('b') });
    const [uid, b] = [uidOf(r, web), uidOf(r, 'Pod/default/b')];
    r.store.entries.set('objects/Pod/default/web', tear);
    const again = await r.restart();
    assert.equal(again.config.checkpoint(), 'lost');
    assert.deepEqual(again.take(), [`ADD b ${b}`]);
    again.runtime = new Map([[web, uid]]);
    await again.config.readFolder();
    assert.deepEqual(again.take(), [`ADD web ${uid}`]);
    assert.deepEqual(again.asked, [web]);
    assert.equal((await again.restart()).config.checkpoint(), 'read', 'and the entry is whole again');
  });
}

test('G4: with a lost checkpoint and a broken file the folder has not said what it wants: not ready until it is mended', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.store.entries.set('objects/Pod/default/web', '');
  r.folder.set({ 'web.yaml': '' });
  const again = await r.restart();
  await again.config.readFolder();
  assert.equal(again.config.ready(), false);
  r.folder.set({ 'web.yaml': pod('web') });
  again.runtime = new Map([[web, 'kept' as PodUid]]);
  await again.config.readFolder();
  assert.equal(again.config.ready(), true);
});

test('G4: an unreadable entry that no file names any more is removed once the folder was read', async () => {
  const r = await started({ 'web.yaml': pod('web'), 'b.yaml': pod('b') });
  r.store.entries.set('objects/Pod/default/web', '');
  r.folder.files.delete('web.yaml');
  const again = await r.restart();
  assert.equal(again.config.checkpoint(), 'lost');
  assert.ok(r.store.entries.has('objects/Pod/default/web'));
  await again.config.readFolder();
  assert.equal(r.store.entries.has('objects/Pod/default/web'), false);
});

test('G4: a store that cannot be listed does not stop the agent', async () => {
  const r = rig();
  r.folder.set({ 'web.yaml': pod('web') });
  r.store.list = async () => {
    throw new Error('EIO');
  };
  await r.config.load();
  assert.equal(r.config.checkpoint(), 'lost');
  await r.config.readFolder();
  assert.equal(r.take().length, 1);
});

test('G4: a full card: what cannot be stored is not run, the old goes on, it is told, and tried again at the next read', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  r.take();
  r.store.full = true;
  r.folder.set({ 'web.yaml': pod('web', { image: 'busybox:2' }), 'new.yaml': pod('new') });
  await r.config.readFolder();
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  assert.equal(imageOf(r), 'busybox:1');
  assert.equal(source(r, 'file:web.yaml')?.phase, 'Waiting');
  assert.equal(source(r, 'file:web.yaml')?.reason, 'StoreFailed');
  assert.equal(r.events.filter((e) => e.reason === 'StoreFailed').length, 2, 'once for each object');
  r.store.full = false;
  await r.config.readFolder();
  assert.deepEqual(r.take(), [`ADD new ${uidOf(r, 'Pod/default/new')}`, `UPDATE web ${uid}`]);
  assert.equal(source(r, 'file:web.yaml')?.phase, 'Accepted');
});

test('G4: a removal that cannot be stored is not carried out yet', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.store.full = true;
  r.folder.set({});
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  r.store.full = false;
  await r.config.readFolder();
  assert.equal(r.take().length, 1);
});

test('renewInstance: the same object under a new UID, stored first; an unknown UID is nothing', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  const uid = uidOf(r, web);
  r.take();
  await r.config.renewInstance('nobody' as PodUid);
  assert.deepEqual(r.take(), []);
  await r.config.renewInstance(uid);
  const next = uidOf(r, web);
  assert.deepEqual(r.take(), [`REMOVE web ${uid}`, `ADD web ${next}`]);
  assert.equal(uidOf(await r.restart(), web), next);
});

test('ConfigMaps and Secrets are kept, changed and removed without any pod update, and are there after a restart', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: geheim}\n';
  const r = await started({ 'cfg.yaml': configMap('cfg'), 's.yaml': secret });
  assert.deepEqual(r.take(), []);
  const again = await r.restart();
  const cfg = again.config.object('ConfigMap/default/cfg' as KeyText);
  assert.deepEqual(cfg?.kind === 'ConfigMap' && cfg.data, { a: 'x' });
  again.folder.set({ 'cfg.yaml': configMap('cfg', 'y') });
  await again.config.readFolder();
  assert.deepEqual(again.changed.at(-1), ['ConfigMap/default/cfg', 'Secret/default/s']);
  assert.equal(again.config.object('Secret/default/s' as KeyText), undefined);
  assert.ok(!JSON.stringify([r.events, r.config.view()]).includes('geheim'));
});

test('what is told of a Secret’s revision cannot be tried out: another one on each node, the same after a restart, another one for another value', async () => {
  const secret = (value: string): string =>
    `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: "${value}"}\n---\n${configMap('cfg')}`;
  const told = (r: Awaited<ReturnType<typeof started>>, key: string) => {
    const { winner, sources } = r.config.view().objects.find((o) => o.key === key) ?? {};
    assert.equal(sources?.[0]?.revision, winner?.revision);
    return winner?.revision ?? '';
  };
  const [here, there] = [await started({ 's.yaml': secret('1234') }), await started({ 's.yaml': secret('1234') })];
  const key = 'Secret/default/s';
  assert.match(told(here, key), /^[0-9a-f]{12}$/);
  assert.notEqual(told(here, key), told(there, key));
  assert.notEqual(told(here, key), here.config.wanted(key as KeyText)?.revision);
  assert.equal(told(here, 'ConfigMap/default/cfg'), told(there, 'ConfigMap/default/cfg'));
  const again = await here.restart();
  assert.equal(told(again, key), told(here, key));
  again.folder.set({ 's.yaml': secret('1235') });
  await again.config.readFolder();
  assert.notEqual(told(again, key), told(here, key));
});

test('permissions: a warning by default; strict refuses, and what was accepted goes on', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.folder.insecureFiles.set('web.yaml', 'the file has mode 0666: others may write');
  r.folder.set({ 'web.yaml': pod('web', { image: 'i:2' }) });
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:2');
  assert.equal(r.events.filter((e) => e.reason === 'InsecurePermissions').length, 1);
  assert.equal(file(r, 'web.yaml')?.warnings.length, 1);
  r.strict = true;
  r.folder.set({ 'web.yaml': pod('web', { image: 'i:3' }) });
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:2');
  assert.equal(source(r, 'file:web.yaml')?.reason, 'InsecurePermissions');
  r.folder.insecureFiles.clear();
  await r.config.readFolder();
  assert.equal(imageOf(r), 'i:3');
});

test('permissions: a folder that others may write is warned of once; strict takes nothing from it and deletes nothing', async () => {
  const r = await started({ 'web.yaml': pod('web') });
  r.take();
  r.folder.insecure = 'the folder has mode 0777: others may write';
  await r.config.readFolder();
  await r.config.readFolder();
  assert.deepEqual(
    r.events.map((e) => e.reason),
    ['InsecurePermissions'],
  );
  r.strict = true;
  r.folder.set({});
  await r.config.readFolder();
  assert.deepEqual(r.take(), []);
  assert.match(r.config.view().folder.fault ?? '', /strict/);
});

test('unknown fields are warnings with the nearest name; strict refuses them', async () => {
  const text = pod('web', { extra: '    livenesProbe: {}' });
  const r = await started({ 'web.yaml': text });
  assert.equal(source(r, 'file:web.yaml')?.warnings[0]?.nearest, 'livenessProbe');
  assert.equal(r.events.filter((e) => /livenessProbe/.test(e.message)).length, 1);
  r.strict = true;
  r.folder.set({ 'web.yaml': `${text}\n` });
  await r.config.readFolder();
  assert.equal(source(r, 'file:web.yaml')?.phase, 'Refused');
});

test('podsched.yaml is never a manifest; a configuration in another file is refused by kind', async () => {
  const configuration = 'apiVersion: podsched.dev/v1\nkind: PodschedConfiguration\n';
  const r = await started({ 'podsched.yaml': configuration, 'web.yaml': pod('web') });
  assert.deepEqual(
    r.config.view().files.map((f) => f.file),
    ['web.yaml'],
  );
  r.folder.files.set('other.yaml', configuration);
  await r.config.readFolder();
  assert.equal(file(r, 'other.yaml')?.problems[0]?.path, 'kind');
});

test('B10: 2,000 files leave the event loop free, and are not decoded again while their bytes are the same', async () => {
  const r = rig();
  for (let i = 0; i < 2000; i++) r.folder.files.set(`p${i}.yaml`, pod(`p${i}`));
  // a clock that runs: stretches are measured with it
  Object.assign(r.clock, { monotonic: systemClock.monotonic, sleep: systemClock.sleep });
  await r.config.load();
  let turns = 0;
  const tick = setInterval(() => turns++, 1);
  const used = (): number => process.cpuUsage().user / 1000;
  const began = used();
  await r.config.readFolder();
  const first = used() - began;
  const turnsOfOthers = turns;
  const from = used();
  await r.config.readFolder();
  const again = used() - from;
  clearInterval(tick);
  assert.equal(r.updates[0]?.pods.length, 2000);
  // how fast the machine is does not matter: others had their turn again and again, and a second read costs a fraction of the first
  assert.ok(turnsOfOthers >= 20, `others had ${turnsOfOthers} turns in ${first} ms of CPU`);
  assert.ok(again < first / 2, `the first read took ${first} ms, the second ${again} ms`);
});

test('run: the folder is read at once and at each tick; steps never overlap; calls in between share one step', async () => {
  const r = rig();
  r.folder.set({ 'web.yaml': pod('web') });
  await r.config.load();
  const stop = new AbortController();
  const ended = r.config.run(stop.signal);
  await settle();
  assert.equal(r.take().length, 1);
  const reads = r.folder.reads;
  for (let i = 0; i < 10; i++) r.folder.tick();
  await settle();
  assert.ok(r.folder.reads - reads <= 2, `${r.folder.reads - reads} reads`);
  r.folder.degrade('no inotify');
  assert.equal(r.config.view().folder.degraded, 'no inotify');
  assert.equal(r.events.at(-1)?.reason, 'WatchDegraded');
  stop.abort();
  await ended;
});
