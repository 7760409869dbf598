// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
/** `apply`, `delete` and `diff` on the topics of a fleet. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { DesiredIndex } from '../../src/api/messages.ts';
import { desiredMarkerTopic, parseTopic } from '../../src/api/topics.ts';
import { applyRemote, type PublishOptions } from '../../src/cli/apply.ts';
import { type DeleteOptions, deleteRemote } from '../../src/cli/delete.ts';
import { changedEntries, contentText, indexParts, nextGeneration } from '../../src/cli/desiredPlan.ts';
import { diffRemote } from '../../src/cli/diff.ts';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { readIndex, wholeIndex } from '../../src/config/desiredIndex.ts';
import { placeOf } from '../../src/config/desiredTopics.ts';
import { type Bed, fleetBed, root, sha16 } from './fleetBed.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-desired-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const scope = { group: 'attic' } as const;
const base = `${root}/desired/groups/attic`;
let files = 0;
const file = (text: string): string => {
  const path = join(dir, `${++files}.yaml`);
  writeFileSync(path, text);
  return path;
};
const pod = (name: string, image = 'app:1', annotations = ''): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n${annotations}spec:\n  containers:\n  - name: app\n    image: ${image}\n`;
const generation = (n: number): string => `  annotations:\n    podsched.dev/generation: "${n}"\n`;
const stdin = async () => new Uint8Array();

const apply = (bed: Bed, text: string, o: PublishOptions = {}, to: Parameters<typeof applyRemote>[1] = scope) =>
  bed.run(applyRemote({ filename: [file(text)], ...o }, to, { remote: bed.remote, stdin }, bed.print));
const remove = (bed: Bed, names: readonly string[], o: Partial<DeleteOptions & PublishOptions> = {}) =>
  bed.run(deleteRemote(names, { namespace: 'default', ...o }, scope, { remote: bed.remote, stdin }, bed.print));

const index = (bed: Bed): DesiredIndex => JSON.parse(bed.retained()[`${base}/_index`] ?? 'null') as DesiredIndex;
const object = (bed: Bed, name: string): { metadata: { annotations?: Record<string, string> } } =>
  JSON.parse(bed.retained()[`${base}/default/${name}`] ?? 'null');
const ends = (code: number, text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof CommandError, String(e));
  assert.match(e.message, text);
  assert.equal(e.code, code);
  return true;
};

test('an object is retained on its topic, and then listed in the index with the hash of its payload', async () => {
  const bed = await fleetBed();
  assert.equal(await apply(bed, pod('web')), exitCodes.done);
  const payload = bed.retained()[`${base}/default/web`] ?? '';
  assert.equal(JSON.parse(payload).spec.containers[0].image, 'app:1');
  const { generation: counted, entries } = index(bed);
  assert.equal(counted, 1);
  assert.deepEqual(entries, [{ kind: 'Pod', ns: 'default', name: 'web', sha256: sha16(payload) }]);
  assert.equal(bed.said(), 'pod/web created (group attic)\n');
  const order = bed.broker.publishes.filter((p) => p.retain).map((p) => p.topic);
  assert.deepEqual(order, [`${base}/default/web`, `${base}/_index`]);
});

test('the same again changes nothing and publishes nothing', async () => {
  const bed = await fleetBed();
  await apply(bed, pod('web'));
  const before = bed.broker.publishes.filter((p) => p.retain).length;
  await apply(bed, `# another comment\n${pod('web')}`);
  assert.equal(bed.broker.publishes.filter((p) => p.retain).length, before);
  assert.match(bed.said(), /pod\/web unchanged/);
});

test('a generation is raised where the retained object has one, and only there', async () => {
  const bed = await fleetBed();
  await apply(bed, pod('web'));
  await apply(bed, pod('web', 'app:2'));
  assert.equal(object(bed, 'web').metadata.annotations, undefined);
  await apply(bed, pod('web', 'app:3'), { generation: 7 });
  assert.equal(object(bed, 'web').metadata.annotations?.['podsched.dev/generation'], '7');
  await apply(bed, pod('web', 'app:4'));
  assert.equal(object(bed, 'web').metadata.annotations?.['podsched.dev/generation'], '8');
  assert.equal(index(bed).entries[0]?.generation, 8);
  await apply(bed, pod('web', 'app:5', generation(20)));
  assert.equal(object(bed, 'web').metadata.annotations?.['podsched.dev/generation'], '20');
  await apply(bed, pod('web', 'app:6', generation(20)));
  assert.equal(object(bed, 'web').metadata.annotations?.['podsched.dev/generation'], '21', 'the same one is no conflict');
  assert.equal(index(bed).generation, 6);
});

test('what others have listed stays, and the index rises', async () => {
  const bed = await fleetBed();
  const entries = [{ kind: 'ConfigMap', ns: 'kitchen', name: 'app', sha256: '0123456789abcdef', generation: 4 }];
  bed.broker.say(`${base}/_index`, JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex', generation: 41, entries }), {
    retain: true,
  });
  await apply(bed, pod('web'));
  assert.equal(index(bed).generation, 42);
  assert.deepEqual(
    index(bed).entries.map((e) => e.name),
    ['app', 'web'],
  );
  assert.deepEqual(index(bed).entries[0], entries[0]);
});

test('where nobody kept an index, the first one lists all that is retained: it must delete nothing', async () => {
  const bed = await fleetBed();
  bed.broker.say(`${base}/default/old`, pod('old'), { retain: true });
  bed.broker.say(`${base}/kitchen/secret:tls`, '{"kind":"Secret"}', { retain: true });
  await apply(bed, pod('web'));
  assert.deepEqual(
    index(bed).entries.map((e) => `${e.kind}/${e.ns}/${e.name}`),
    ['Pod/default/old', 'Pod/default/web', 'Secret/kitchen/tls'],
  );
  assert.equal(index(bed).entries[0]?.sha256, sha16(pod('old')));
});

test('a user who may not read there changes no index', async () => {
  const bed = await fleetBed();
  bed.broker.say(`${base}/_index`, '{"kind":"DesiredIndex"}', { retain: true });
  const before = bed.retained();
  const blind = await bed.another();
  // as mosquitto does it: granted, and then nothing comes
  blind.listen = async () => async () => {};
  const work = applyRemote({ filename: [file(pod('web'))] }, scope, { remote: blind, stdin }, bed.print);
  await assert.rejects(bed.run(work), ends(exitCodes.failed, /may not read/));
  assert.deepEqual(bed.retained(), before);
});

test('an index that cannot be read whole is left alone; --no-index publishes the object beside it', async () => {
  const bed = await fleetBed();
  const half = JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex', generation: 3, parts: 2, entries: [] });
  for (const broken of ['not JSON', '{"kind":"Other"}', half]) {
    bed.broker.say(`${base}/_index`, broken, { retain: true });
    await assert.rejects(apply(bed, pod('web')), ends(exitCodes.failed, /cannot be read whole/));
    assert.equal(bed.retained()[`${base}/_index`], broken);
    assert.equal(bed.retained()[`${base}/default/web`], undefined);
  }
  await apply(bed, pod('web'), { noIndex: true });
  assert.equal(object(bed, 'web').metadata.annotations, undefined);
  assert.equal(bed.retained()[`${base}/_index`], half);
});

test('two who apply at once: both objects are in the index at the end', async () => {
  const bed = await fleetBed();
  const other = await bed.another({ requester: 'ops-2' });
  const one = applyRemote({ filename: [file(pod('one'))] }, scope, { remote: bed.remote, stdin }, bed.print);
  const two = applyRemote({ filename: [file(pod('two'))] }, scope, { remote: other, stdin }, bed.print);
  await bed.run(Promise.all([one, two]));
  assert.deepEqual(
    index(bed).entries.map((e) => e.name),
    ['one', 'two'],
  );
});

test('another one writes the index between our reading and our writing: it is read again', async () => {
  const bed = await fleetBed();
  let done = false;
  bed.broker.onPublish = (p) => {
    if (p.topic !== `${base}/default/web` || done) return 'ack';
    done = true;
    const entries = [{ kind: 'Pod', ns: 'default', name: 'between', sha256: '0123456789abcdef' }];
    bed.broker.say(`${base}/_index`, JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex', generation: 9, entries }), {
      retain: true,
    });
    return 'ack';
  };
  await apply(bed, pod('web'));
  assert.deepEqual(
    index(bed).entries.map((e) => e.name),
    ['between', 'web'],
  );
  assert.equal(index(bed).generation, 10);
});

test('delete: the index leaves the name out first, then the message goes; the others stay', async () => {
  const bed = await fleetBed();
  await apply(bed, `${pod('web')}---\n${pod('cam')}`);
  bed.said();
  const before = bed.broker.publishes.length;
  assert.equal(await remove(bed, ['web']), exitCodes.done);
  assert.equal(bed.said(), 'pod "web" deleted (group attic)\n');
  assert.deepEqual(
    index(bed).entries.map((e) => e.name),
    ['cam'],
  );
  assert.equal(bed.retained()[`${base}/default/web`], undefined);
  const order = bed.broker.publishes.slice(before).filter((p) => p.retain);
  assert.deepEqual(
    order.map((p) => [p.topic, p.payload === '']),
    [
      [`${base}/_index`, false],
      [`${base}/default/web`, true],
    ],
  );
  await assert.rejects(remove(bed, ['web']), ends(exitCodes.notFound, /is not desired of group attic/));
});

test('delete --tombstone leaves one, with the next generation', async () => {
  const bed = await fleetBed();
  await apply(bed, pod('web'), { generation: 3 });
  await remove(bed, ['web'], { tombstone: true });
  assert.deepEqual(JSON.parse(bed.retained()[`${base}/default/web`] ?? ''), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', annotations: { 'podsched.dev/generation': '4', 'podsched.dev/state': 'absent' } },
  });
  assert.deepEqual(index(bed).entries, []);
  await apply(bed, pod('web'));
  assert.deepEqual(object(bed, 'web').metadata.annotations, { 'podsched.dev/generation': '5' });
});

test('delete -f takes what the files name, of any kind', async () => {
  const bed = await fleetBed();
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: b}\n---\n${pod('web')}`;
  await apply(bed, text);
  await remove(bed, [], { filename: [file(text)] });
  assert.deepEqual(Object.keys(bed.retained()), [`${base}/_index`]);
});

test('signed: object and index are envelopes, audience and generation are in them', async () => {
  const bed = await fleetBed();
  const sign = (payload: string, kind: string): string =>
    JSON.stringify({ payloadType: kind, payload: Buffer.from(payload).toString('base64'), signatures: [{ sig: 'x' }] });
  const inner = (topic: string) => JSON.parse(Buffer.from(JSON.parse(bed.retained()[topic] ?? '').payload, 'base64').toString());
  await apply(bed, pod('web'), { sign });
  assert.deepEqual(inner(`${base}/default/web`).metadata.annotations, {
    'podsched.dev/generation': '1',
    'podsched.dev/audience': 'group:attic',
  });
  const { audience, part, entries } = inner(`${base}/_index`) as DesiredIndex;
  assert.deepEqual({ audience, part }, { audience: 'group:attic', part: 0 });
  assert.equal(entries[0]?.sha256, sha16(bed.retained()[`${base}/default/web`] ?? ''));
  await apply(bed, pod('web', 'app:2'), { sign, audience: 'group:cellar' });
  assert.equal(inner(`${base}/default/web`).metadata.annotations['podsched.dev/generation'], '2');
  await remove(bed, ['web'], { sign });
  await apply(bed, pod('web', 'app:3'), { sign });
  const counted = Number(inner(`${base}/default/web`).metadata.annotations['podsched.dev/generation']);
  assert.ok(counted > 2, `a node remembers generation 2, and gets ${counted}`);
});

test('what is wrong publishes nothing, and every mistake is named', async () => {
  const bed = await fleetBed();
  await assert.rejects(
    apply(bed, `${pod('web')}---\n${pod('cam').replace('image:', 'imagge:')}`),
    ends(exitCodes.failed, /nothing was changed/),
  );
  assert.match(bed.err.join(''), /imagge/);
  const large = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: ${'x'.repeat(70_000)}}\n`;
  await assert.rejects(apply(bed, `${large}---\n${pod('web')}`), ends(exitCodes.failed, /configmap\/app has \d+ bytes .* split it/));
  assert.deepEqual(bed.retained(), {});
});

test("what stands for a node's own values is left to the node", async () => {
  const bed = await fleetBed();
  await apply(bed, pod('web').replace('image: app:1', 'image: app:1\n    env: [{name: WHO, value: "${NODE.name}"}]'));
  assert.match(bed.retained()[`${base}/default/web`] ?? '', /\$\{NODE\.name\}/);
});

test('diff shows what apply would change, ends with 1, and hides values of Secrets', async () => {
  const bed = await fleetBed();
  const diff = (text: string) => bed.run(diffRemote({ filename: [file(text)] }, scope, { remote: bed.remote, stdin }, bed.print));
  const secret = (value: string) => `apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData: {password: ${value}}\n`;
  await apply(bed, `${pod('web')}---\n${secret('hunter2')}`, { generation: 4 });
  bed.said();
  assert.equal(await diff(`${pod('web')}---\n${secret('hunter2')}`), exitCodes.done);
  assert.equal(bed.said(), '');
  assert.equal(await diff(`${pod('web', 'app:2')}---\n${secret('hunter3')}`), exitCodes.failed);
  const shown = bed.said();
  assert.match(shown, /^-.*image: app:1$/m);
  assert.match(shown, /^\+.*image: app:2$/m);
  assert.match(shown, /^\+ {2}password: "?\*\*\* \([0-9a-f]{6}\)"?$/m);
  assert.ok(!shown.includes('hunter'));
});

test('one node and all nodes have topics of their own; a node that nobody has seen is told', async () => {
  const bed = await fleetBed();
  await apply(bed, pod('web'), {}, { node: 'pi-07' });
  await apply(bed, pod('web'), {}, 'all');
  assert.ok(bed.retained()[`${root}/desired/nodes/pi-07/default/web`]);
  assert.ok(bed.retained()[`${root}/desired/all/_index`]);
  assert.match(bed.err.join(''), /no node "pi-07" is known/);
});

test('the marker by which the end of reading is known is nothing to a node', () => {
  const node = { prefix: root, nodeName: 'pi-07', groups: ['attic'] };
  for (const to of [{ node: 'pi-07' }, scope, 'all'] as const) {
    const topic = desiredMarkerTopic(root, to);
    assert.deepEqual(parseTopic(root, topic), { of: 'desiredMarker', scope: to });
    assert.deepEqual(placeOf(node, topic), { of: 'foreign' });
  }
});

test('the generation of a payload: table', () => {
  const table: readonly [Parameters<typeof nextGeneration>[0], number | undefined][] = [
    [{ asked: undefined, written: undefined, before: undefined, first: undefined }, undefined],
    [{ asked: undefined, written: undefined, before: undefined, first: 6 }, 6],
    [{ asked: undefined, written: undefined, before: 4, first: 6 }, 5],
    [{ asked: undefined, written: 9, before: 4, first: undefined }, 9],
    [{ asked: undefined, written: 3, before: 4, first: undefined }, 5],
    [{ asked: undefined, written: 3, before: undefined, first: 6 }, 3],
    [{ asked: 2, written: 9, before: 4, first: 6 }, 2],
  ];
  for (const [facts, is] of table) assert.equal(nextGeneration(facts), is, JSON.stringify(facts));
});

test('an index of many has parts of at most 1,000 entries and of the size of a message, and is read back whole', () => {
  const entries = Array.from({ length: 2500 }, (_, i) => ({
    key: { kind: 'Pod' as const, namespace: 'default', name: `pod-${i}` },
    sha256: '0123456789abcdef',
    generation: i,
  }));
  for (const audience of [undefined, 'group:attic']) {
    const parts = indexParts(entries, 5, audience);
    const read = new Map(
      parts.map((part, i) => {
        assert.ok(part.entries.length <= 1000);
        assert.ok(JSON.stringify(part).length <= (audience === undefined ? 60 : 44) * 1024);
        const is = readIndex(JSON.parse(JSON.stringify(part)));
        return [i, is.ok ? is.part : assert.fail(JSON.stringify(is.problems))] as const;
      }),
    );
    assert.equal(wholeIndex(read)?.entries.length, 2500);
    assert.equal(wholeIndex(read)?.generation, 5);
  }
  assert.deepEqual(
    indexParts([], 1).map((p) => p.parts),
    [undefined],
  );
});

test('a change of the index names what it changes and nothing else', () => {
  const entry = (name: string, sha256 = 'a') => ({ key: { kind: 'Pod' as const, namespace: 'default', name }, sha256 });
  const before = [entry('a'), entry('b'), entry('c')];
  const after = changedEntries(before, { set: [entry('b', 'z'), entry('d')], remove: [entry('c').key, entry('x').key] });
  assert.deepEqual(
    after.map((e) => `${e.key.name}${e.sha256}`),
    ['aa', 'bz', 'da'],
  );
});

test('the same object in another order, or delivered otherwise, is the same', () => {
  const a = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'x', annotations: { 'podsched.dev/generation': '1', own: 'y' } },
    spec: { a: 1, b: [1, 2] },
  };
  const b = { kind: 'Pod', spec: { b: [1, 2], a: 1 }, apiVersion: 'v1', metadata: { annotations: { own: 'y' }, name: 'x' } };
  assert.equal(contentText(a), contentText(b));
  assert.notEqual(contentText(a), contentText({ ...b, spec: { a: 1, b: [2, 1] } }));
});
