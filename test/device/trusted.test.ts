/**
 * Whom a node believes: two agents on one broker, of which one takes only what is signed by a key that it trusts and was written for it. Keys,
 * signatures and seals are made by the commands of the bundle. And what a policy lets objects of one source have of another's.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { NodeOnline } from '../../src/api/payloads.ts';
import {
  cli,
  configMap,
  desired,
  eventHeard,
  type Fleet,
  type FleetNode,
  ownTopic,
  refused,
  runs,
  setPolicy,
  sourceOf,
  startFleet,
  syncOf,
} from './fleet.ts';
import { container, type Fields, manifest, pod } from './manifest.ts';
import { condition, told } from './told.ts';
import { agreed, footprint, gone, shownOf, toldPod } from './truth.ts';

let fleet: Fleet;
/** Takes only what is signed, from topics and from files. */
let guarded: FleetNode;
let free: FleetNode;
let work: string;

before(async () => {
  const fast = { fileCheckFrequency: '1s' };
  fleet = await startFleet('trusted', {
    guarded: {
      started: false,
      config: { ...fast, policy: { file: { allow: 'all', requireSignature: true }, mqtt: { requireSignature: true } } },
    },
    free: { config: fast },
  });
  guarded = fleet.node('guarded');
  free = fleet.node('free');
  work = join(guarded.agent.dir, 'work');
  const keysDir = join(guarded.agent.manifests, 'keys.d');
  for (const dir of [work, keysDir]) mkdirSync(dir);
  for (const name of ['ops', 'bounded', 'stranger']) await cli(guarded.agent, 'keygen', '--out', join(work, `${name}.key`));
  copyFileSync(join(work, 'ops.pub'), join(keysDir, 'ops.pub'));
  const publicKey = readFileSync(join(work, 'bounded.pub'), 'utf8');
  writeFileSync(join(keysDir, 'bounded.json'), JSON.stringify({ publicKey, namespaces: ['cams'] }), { mode: 0o600 });
  guarded.agent.start();
});
after(() => fleet?.stop());

let files = 0;
const file = (text: string): string => {
  const path = join(work, `${files++}.json`);
  writeFileSync(path, text);
  return path;
};
interface Signing {
  readonly generation: number;
  readonly key?: string;
  readonly audience?: string;
}
/** What the command makes of it. */
const envelope = async (text: string, { generation, key = 'ops', audience = 'guarded' }: Signing): Promise<string> =>
  (
    await cli(
      guarded.agent,
      ...['sign', '--envelope', '-f', file(text), '--key', join(work, `${key}.key`)],
      ...['--audience', audience, '--generation', String(generation)],
    )
  ).trim();
const sha = (payload: string): string => createHash('sha256').update(payload).digest('hex').slice(0, 16);
const indexText = (names: Readonly<Record<string, string>>, more: Fields = {}): string =>
  JSON.stringify({
    ...{ apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex', part: 0, ...more },
    entries: Object.entries(names).map(([name, payload]) => ({ kind: 'Pod', ns: 'default', name, sha256: sha(payload) })),
  });
const configText = (more: Fields): string => JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'NodeConfig', ...more });
const tombstone = (name: string): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, annotations: { 'podsched.dev/state': 'absent' } } });
/** Uses the ConfigMap of this name. */
const withConf = (name: string, map: string, metadata: Fields = {}): string =>
  manifest(
    pod(
      name,
      {
        volumes: [{ name: 'conf', configMap: { name: map } }],
        containers: [container('main', undefined, { volumeMounts: [{ name: 'conf', mountPath: '/conf' }] })],
      },
      metadata,
    ),
  );
const own = (name: string): string => ownTopic(guarded, name);
/** What is wrong at a topic that is no object's is told as of a file; undefined: nothing any more. */
const wrongAt = (topic: string, words: string | undefined): Promise<unknown> =>
  fleet.watcher.until(guarded.agent.topic(`sync/_files/${escaped(topic)}`), (v) =>
    words === undefined ? v === undefined : JSON.stringify(told(v).problems)?.includes(words) === true,
  );
const escaped = (name: string): string => name.replace(/[^a-z0-9-]/g, (c) => `~${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
const onFree = (name: string): string => ownTopic(free, name);

describe('two nodes and their keys', { concurrency: true }, () => {
  test('what is unsigned, tampered with, of a stranger, for another node or beyond its key is refused with its reason, in sync and as an event', async () => {
    const text = (name: string): string => manifest(pod(name));
    const good = JSON.parse(await envelope(text('tampered'), { generation: 1 })) as { payload: string };
    const other = Buffer.from(good.payload, 'base64').toString().replace('busybox:1', 'busybox:2');
    const wrong: Readonly<Record<string, readonly [reason: string, payload: string]>> = {
      unsigned: ['Unsigned', text('unsigned')],
      tampered: ['SignatureInvalid', JSON.stringify({ ...good, payload: Buffer.from(other).toString('base64') })],
      unknown: ['KeyUnknown', await envelope(text('unknown'), { generation: 1, key: 'stranger' })],
      elsewhere: ['WrongAudience', await envelope(text('elsewhere'), { generation: 1, audience: 'free' })],
      everybody: ['WrongAudience', await envelope(text('everybody'), { generation: 1, audience: '*' })],
      beyond: ['KeyNotAllowed', await envelope(text('beyond'), { generation: 1, key: 'bounded' })],
    };
    for (const [name, [, payload]] of Object.entries(wrong)) await fleet.keep(own(name), payload);
    for (const [name, [reason]] of Object.entries(wrong)) {
      await refused(guarded, name, reason);
      await eventHeard(guarded, name, reason);
      assert.equal(toldPod(guarded, name), undefined);
    }
    // the same key where it may
    const cams = manifest(pod('within', {}, { namespace: 'cams' }));
    await fleet.keep(desired('nodes/guarded/cams/within'), await envelope(cams, { generation: 1, key: 'bounded' }));
    await fleet.watcher.until(guarded.agent.topic('pods/cams/within'), (v) => told(v).status?.phase === 'Running');
    // and the other node asks for no signature; an envelope is only a wrapping to it
    await fleet.keep(onFree('unsigned'), text('unsigned'));
    await fleet.keep(onFree('elsewhere'), wrong.elsewhere?.[1] ?? '');
    for (const name of ['unsigned', 'elsewhere']) await agreed(free, name, runs);
  });

  test('rightly signed, a Pod and its ConfigMap run; what is older, the same number again, and an empty payload change nothing', async () => {
    const good = await envelope(withConf('good', 'conf'), { generation: 2 });
    await fleet.keep(own('good'), good);
    await fleet.keep(own('configmap:conf'), await envelope(configMap('conf', { a: 'b' }), { generation: 1 }));
    const first = await agreed(guarded, 'good', runs);
    assert.equal(sourceOf(first.sync, 'mqtt:node')?.generation, 2);
    for (const [generation, reason] of [
      [1, 'GenerationFell'],
      [2, 'GenerationConflict'],
    ] as const) {
      await fleet.keep(own('good'), await envelope(manifest(pod('good')), { generation }));
      await refused(guarded, 'good', reason);
      await eventHeard(guarded, 'good', reason);
    }
    await fleet.keep(own('good'), '');
    await refused(guarded, 'good', 'Unsigned');
    await fleet.keep(own('good'), good);
    await syncOf(guarded, 'good', 'is well again', (s) => s.phase === 'Running' && sourceOf(s, 'mqtt:node')?.phase === 'Accepted');
    assert.deepEqual(footprint((await agreed(guarded, 'good', runs)).shown), footprint(first.shown));
    await fleet.keep(own('good'), await envelope(tombstone('good'), { generation: 3 }));
    await gone(guarded, 'good');
  });

  test('an index and `_config` count when they are signed, and otherwise do nothing', async () => {
    const listed = await envelope(manifest(pod('listed')), { generation: 1, audience: 'group:signed' });
    const stays = await envelope(manifest(pod('stays')), { generation: 1, audience: 'group:signed' });
    await fleet.keep(desired('groups/signed/default/listed'), listed);
    await fleet.keep(desired('groups/signed/default/stays'), stays);
    const labels = (): unknown => told(fleet.watcher.values.get(guarded.agent.topic('info'))).metadata?.labels;
    const configTopic = desired('nodes/guarded/_config');
    await fleet.keep(configTopic, configText({ groups: ['signed'], labels: { by: 'nobody' } }));
    await wrongAt(configTopic, 'not signed');
    assert.equal((labels() as Record<string, string>).by, undefined);
    assert.equal(toldPod(guarded, 'listed'), undefined);
    const groups = { groups: ['signed'], labels: { by: 'ops' } };
    await fleet.keep(configTopic, await envelope(configText(groups), { generation: 1 }));
    await fleet.watcher.until(guarded.agent.topic('info'), (v) => told(v).metadata?.labels?.by === 'ops');
    for (const name of ['listed', 'stays']) await agreed(guarded, name, runs);

    const topic = desired('groups/signed/_index');
    await fleet.keep(topic, indexText({ stays }, { generation: 5 }));
    await wrongAt(topic, 'not signed');
    const all = { listed, stays };
    await fleet.keep(topic, await envelope(indexText(all), { generation: 2, audience: 'group:elsewhere' }));
    await wrongAt(topic, 'group:elsewhere');
    await fleet.keep(topic, await envelope(indexText(all), { generation: 1, audience: 'group:signed' }));
    await wrongAt(topic, undefined);
    for (const name of ['listed', 'stays']) assert.ok(toldPod(guarded, name), name);
    await fleet.keep(topic, await envelope(indexText({ stays }), { generation: 2, audience: 'group:signed' }));
    await gone(guarded, 'listed');
    assert.ok(toldPod(guarded, 'stays'));
  });

  test('a file needs its .sig beside it', async () => {
    const annotations = { 'podsched.dev/audience': '*', 'podsched.dev/generation': '1' };
    const text = manifest(pod('filed', {}, { annotations }));
    guarded.agent.drop('filed.json', text);
    // nobody looks into it: what is told is told of the file
    await fleet.watcher.until(
      guarded.agent.topic('sync/_files/filed~2ejson'),
      (v) => JSON.stringify(told(v).problems)?.includes('.sig') === true,
    );
    await fleet.watcher.untilAll('an event of it', () =>
      fleet.watcher.heard.some(
        (h) =>
          h.topic.startsWith(guarded.agent.topic('events/')) &&
          /"reason":"Unsigned".*filed\.json|filed\.json.*"reason":"Unsigned"/.test(h.text),
      ),
    );
    assert.equal(toldPod(guarded, 'filed'), undefined);
    await cli(guarded.agent, 'sign', '-f', join(guarded.agent.manifests, 'filed.json'), '--key', join(work, 'ops.key'));
    const first = await agreed(guarded, 'filed', runs);
    // other bytes than were signed: what was accepted goes on
    guarded.agent.drop('filed.json', `${text}\n`);
    await refused(guarded, 'filed', 'SignatureInvalid', 'file:filed.json');
    assert.deepEqual(footprint(await shownOf(guarded, 'filed')), footprint(first.shown));
  });

  test('a Secret sealed to one node: its pod has the value on tmpfs and in its environment, it stands nowhere else, and nobody else opens it', async () => {
    const value = `plain-${randomBytes(12).toString('hex')}`;
    const info = await fleet.watcher.until(free.agent.topic('info'), (v) => told(v).metadata?.annotations !== undefined);
    const secret = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'door' }, stringData: { code: value } });
    const sealed = await cli(free.agent, 'seal', '-f', file(secret), '--info', file(JSON.stringify(info)));
    const text = manifest(
      pod('door', {
        volumes: [{ name: 'door', secret: { secretName: 'door' } }],
        containers: [
          container('main', undefined, {
            env: [{ name: 'CODE', valueFrom: { secretKeyRef: { name: 'door', key: 'code' } } }],
            volumeMounts: [{ name: 'door', mountPath: '/door' }],
          }),
        ],
      }),
    );
    await fleet.keep(onFree('secret:door'), sealed);
    await fleet.keep(onFree('door'), text);
    const { shown } = await agreed(free, 'door', runs);
    const seen = await fleet.bed.cri.exec(
      shown.containers[0]?.id ?? '',
      ...['sh', '-c', 'echo "$CODE $(cat /door/code) $(grep " /door " /proc/mounts | cut -d" " -f3)"'],
    );
    assert.equal(seen.stdout.trim(), `${value} ${value} tmpfs`, seen.stderr);

    // signed as well, the other node takes it, and cannot open it
    const yaml = join(work, 'sealed.yaml');
    writeFileSync(yaml, sealed);
    const forOther = ['--audience', 'guarded', '--generation', '1'];
    const signed = await cli(guarded.agent, 'sign', '--envelope', '-f', yaml, '--key', join(work, 'ops.key'), ...forOther);
    await fleet.keep(own('secret:door'), signed.trim());
    await fleet.keep(own('door'), await envelope(text, { generation: 1 }));
    const closed = (s: { readonly reason: string }): boolean => s.reason === 'CannotUnseal';
    await syncOf(guarded, 'secret:door', 'cannot be opened', closed);
    await syncOf(guarded, 'door', 'says why it waits', closed);
    assert.notEqual(told(toldPod(guarded, 'door')).status?.phase, 'Running');

    const isKept = (path: string): boolean => readFileSync(path).includes('podsched.dev/sealed');
    assert.ok(onDisk(free.agent.stateDir).some(isKept), 'kept as it came');
    const spellings = [value, Buffer.from(value).toString('base64')];
    const holds = (bytes: string | Buffer): boolean => spellings.some((spelling) => bytes.includes(spelling));
    for (const { topic, text: heard } of fleet.watcher.heard) assert.ok(!holds(heard), topic);
    for (const { agent } of [free, guarded]) {
      assert.ok(!holds(agent.log()), `${agent.nodeName}: its log`);
      for (const path of ['/pods', '/sync', '/events', '/node']) assert.ok(!holds((await agent.get(path)).body), path);
      for (const dir of [agent.stateDir, agent.podLogsDir, agent.runDir])
        for (const found of onDisk(dir)) assert.ok(!holds(readFileSync(found)), found);
    }
  });
});

/** Files below a folder, those on other file systems left out: what is on tmpfs is in memory. */
function onDisk(dir: string, device = statSync(dir).dev): string[] {
  return readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    const stats = lstatSync(path);
    if (stats.dev !== device) return [];
    if (stats.isDirectory()) return onDisk(path, device);
    return stats.isFile() ? [path] : [];
  });
}

describe('one node and its policies', () => {
  test('mayRead: a pod of a topic uses an object of a file only where the policy says so', async () => {
    free.agent.drop('shared.yaml', configMap('shared', { a: 'b' }));
    await fleet.keep(onFree('reader'), withConf('reader', 'shared'));
    await syncOf(free, 'reader', 'does not see it', (s) => s.phase === 'Waiting' && s.message.includes('shared'));
    await setPolicy(free.agent, { file: { allow: 'all' }, mqtt: { mayRead: ['default'] } });
    await agreed(free, 'reader', runs);
  });

  test('locked: the topic wins over the file for as long as the policy says so', async () => {
    free.agent.drop('both.yaml', manifest(pod('both')));
    await agreed(free, 'both', (p, s) => runs(p) && s.desired?.source === 'file:both.yaml');
    await fleet.keep(
      onFree('both'),
      manifest(pod('both', { containers: [container('main', undefined, { env: [{ name: 'A', value: 'b' }] })] })),
    );
    await syncOf(free, 'both', 'is shadowed by the file', (s) => sourceOf(s, 'mqtt:node')?.phase === 'Shadowed');
    await setPolicy(free.agent, { file: { allow: 'all' }, mqtt: { locked: true } });
    const locked = await agreed(free, 'both', (p, s) => runs(p) && s.desired?.source === 'mqtt:node' && s.phase === 'Running');
    assert.equal(sourceOf(locked.sync, 'file:both.yaml')?.phase, 'Shadowed');
    await setPolicy(free.agent, { file: { allow: 'all' }, mqtt: {} });
    await agreed(free, 'both', (p, s) => runs(p) && s.desired?.source === 'file:both.yaml' && s.phase === 'Running');
  });

  test('maxPods: one too many says so, and is taken in when another one goes', async () => {
    const names = ['unsigned', 'elsewhere', 'reader', 'both', 'door'];
    for (const name of names) await fleet.keep(onFree(name), '');
    for (const name of names.filter((n) => n !== 'both')) await gone(free, name);
    await setPolicy(free.agent, { file: { allow: 'all' }, mqtt: { maxPods: 1 } });
    await fleet.keep(onFree('first'), manifest(pod('first')));
    const first = await agreed(free, 'first', runs);
    await fleet.keep(onFree('second'), manifest(pod('second')));
    await refused(free, 'second', 'TooManyPods');
    await eventHeard(free, 'second', 'TooManyPods');
    assert.deepEqual(footprint((await agreed(free, 'first', runs)).shown), footprint(first.shown));
    assert.ok(toldPod(free, 'both'), 'pods of files are not counted');
    await fleet.keep(onFree('first'), '');
    await agreed(free, 'second', runs);
    const online = fleet.watcher.values.get(free.agent.topic('online')) as NodeOnline;
    assert.equal(online.state, 'online');
    assert.equal(condition(fleet.watcher.values.get(free.agent.topic('info')), 'Ready')?.status, 'True');
    assert.deepEqual(fleet.witness.offences, []);
  });
});
