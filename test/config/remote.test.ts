// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
/** Stories of the MQTT source over the sources, the card and restarts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import { FakeFolder, pod } from './builders.ts';
import {
  allTopic,
  configText,
  groupTopic,
  hashOf,
  indexText,
  mapText,
  nodeTopic,
  online,
  podText,
  remoteRig,
  rolloutText,
  rolloutTopicOf,
  tombstone,
  web,
} from './remoteBuilders.ts';

const at = nodeTopic('default/web');
const app = 'ConfigMap/default/app' as KeyText;
const imageOf = (r: Awaited<ReturnType<typeof online>>): string | undefined => {
  const o = r.config.object(web);
  return o?.kind === 'Pod' ? o.spec.containers[0]?.image : undefined;
};
const v1 = podText('web', { image: 'busybox:1' });
const v2 = podText('web', { image: 'busybox:2' });

test('a pod and a ConfigMap come by topics, are edited, and go by an empty payload', async () => {
  const r = await online({ [at]: v1, [nodeTopic('default/configmap:app')]: mapText('app') });
  assert.deepEqual(r.take(), ['ADD web']);
  assert.equal(r.config.object(app)?.kind, 'ConfigMap');
  await r.publish(at, v2);
  assert.deepEqual(r.take(), ['UPDATE web']);
  await r.publish(at, '');
  assert.deepEqual(r.take(), ['REMOVE web']);
  await r.publish(nodeTopic('default/configmap:app'), '');
  assert.equal(r.config.object(app), undefined);
  assert.deepEqual(r.config.view().objects, []);
});

test('what was accepted runs after a restart without a broker, under the same UID', async () => {
  const r = await online({ [at]: v1 });
  const uid = r.updates[0]?.pods[0]?.uid;
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web']);
  assert.equal(again.updates[0]?.pods[0]?.uid, uid);
  assert.equal(again.updates[0]?.pods[0]?.source, 'mqtt:node');
});

test('I12: connecting, losing and regaining the broker with everything retained restarts nothing and writes nothing', async () => {
  const r = await online({
    [at]: v1,
    [allTopic('default/configmap:app')]: mapText('app', { generation: 3 }),
    [nodeTopic('_index')]: indexText(1, [{ name: 'web', text: v1 }]),
  });
  r.take();
  const [writes, events] = [r.store.writes.length, r.events.length];
  for (let i = 0; i < 3; i++) {
    r.remote.disconnected();
    await r.connect();
  }
  const again = await r.restart();
  await again.connect();
  assert.deepEqual(r.take(), []);
  assert.deepEqual(again.take(), ['ADD web'], 'once, from the checkpoint');
  assert.equal(again.store.writes.length, writes);
  assert.equal(r.events.length, events);
});

test('missing is not deleted: a broker that lost its store changes nothing, is told as SourceGone, and Accepted when it is back', async () => {
  const r = await online({ [at]: v1, [allTopic('default/configmap:app')]: mapText('app') });
  r.take();
  const kept = new Map(r.broker.topics);
  r.broker.topics.clear();
  r.remote.disconnected();
  await r.connect();
  assert.deepEqual(r.take(), []);
  assert.equal(r.told(web), 'SourceGone SourceGone');
  assert.equal(r.told(app), 'SourceGone SourceGone');
  assert.equal(r.row(web, 'mqtt:node'), 'Accepted SourceGone');
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web']);
  assert.equal(again.told(web), 'Accepted Accepted', 'nobody has heard of the broker yet');
  await again.connect();
  assert.equal(again.told(web), 'SourceGone SourceGone');
  for (const [topic, payload] of kept) again.broker.set(topic, payload);
  again.remote.disconnected();
  await again.connect();
  assert.deepEqual(again.take(), []);
  assert.equal(again.told(web), 'Accepted Accepted');
});

test('an object that comes late, after the end of its snapshot, is back', async () => {
  const r = await online({ [at]: v1 });
  r.broker.dropped.add(at);
  r.remote.disconnected();
  await r.connect();
  assert.equal(r.told(web), 'SourceGone SourceGone');
  r.remote.message({ topic: at, payload: new TextEncoder().encode(v1), retain: true });
  await r.settle();
  assert.equal(r.told(web), 'Accepted Accepted');
});

test('an empty payload while the node was away is not seen; a tombstone and an index are', async () => {
  const [a, b, c] = ['a', 'b', 'c'].map((name) => podText(name));
  const of = (name: string): string => nodeTopic(`default/${name}`);
  const r = await online({ [of('a')]: a ?? '', [of('b')]: b ?? '', [of('c')]: c ?? '' });
  r.take();
  r.remote.disconnected();
  r.broker.set(of('a'), '');
  r.broker.set(of('b'), tombstone('Pod', 'b'));
  await r.connect();
  assert.deepEqual(r.take(), ['REMOVE b']);
  assert.equal(r.told('Pod/default/a'), 'SourceGone SourceGone');
  r.remote.disconnected();
  r.broker.set(nodeTopic('_index'), indexText(1, [{ name: 'a', text: a ?? '' }]));
  await r.connect();
  assert.deepEqual(r.take(), ['REMOVE c']);
  const again = await r.restart();
  await again.connect();
  assert.deepEqual(again.take(), ['ADD a'], 'b and c stay away, though c stands at the broker still');
  assert.equal(again.config.has('Pod/default/c' as KeyText), false);
});

test('an index that leaves a name out deletes; the payload that stands there still stays struck off, until it is listed again', async () => {
  const index = (generation: number, ...names: string[]) =>
    indexText(
      generation,
      names.map((name) => ({ name, text: podText(name) })),
    );
  const r = await online({ [at]: podText('web'), [nodeTopic('default/db')]: podText('db'), [nodeTopic('_index')]: index(1, 'web', 'db') });
  r.take();
  await r.publish(nodeTopic('_index'), index(2, 'db'));
  assert.deepEqual(r.take(), ['REMOVE web']);
  r.remote.disconnected();
  await r.connect();
  assert.deepEqual(r.take(), []);
  const again = await r.restart();
  await again.connect();
  assert.deepEqual(again.take(), ['ADD db']);
  await again.publish(nodeTopic('_index'), index(3, 'web', 'db'));
  await again.clock.advance(2000);
  await again.settle();
  assert.deepEqual(again.asked, [[at]], 'the broker has it: it is asked for by its topic');
  assert.deepEqual(again.take(), ['ADD web']);
});

test('on a new node the index counts as well, in whatever order both come', async () => {
  for (const indexFirst of [true, false]) {
    const r = remoteRig();
    r.broker.set(at, podText('web'));
    r.broker.set(nodeTopic('default/db'), podText('db'));
    const index = indexText(4, [{ name: 'db', text: podText('db') }]);
    if (indexFirst) r.broker.topics.clear();
    r.broker.set(nodeTopic('_index'), index);
    r.broker.set(at, podText('web'));
    r.broker.set(nodeTopic('default/db'), podText('db'));
    await r.config.load();
    await r.config.readFolder();
    await r.connect();
    assert.deepEqual(r.take(), ['ADD db'], `index first: ${indexFirst}`);
  }
});

test('an object that is published after its index is a new wish', async () => {
  const r = await online({ [nodeTopic('_index')]: indexText(4, []) });
  await r.publish(at, v1);
  assert.deepEqual(r.take(), ['ADD web']);
  const again = await r.restart();
  await again.connect();
  assert.deepEqual(again.take(), ['ADD web'], 'the index is the one that was followed before it came');
});

test('an older index deletes nothing, not after a restart either, and is told', async () => {
  const r = await online({ [at]: v1, [nodeTopic('_index')]: indexText(5, [{ name: 'web', text: v1 }]) });
  r.take();
  await r.publish(nodeTopic('_index'), indexText(4, []));
  assert.deepEqual(r.take(), []);
  assert.match(JSON.stringify(r.config.view().files), /generation 4 after 5/);
  const again = await r.restart();
  await again.connect();
  assert.deepEqual(again.take(), ['ADD web']);
  await again.publish(nodeTopic('_index'), indexText(5, []));
  assert.deepEqual(again.take(), [], 'the same generation again, with another payload, after a restart');
  await again.publish(nodeTopic('_index'), indexText(6, []));
  assert.deepEqual(again.take(), ['REMOVE web']);
  assert.deepEqual(again.config.view().files, []);
});

test('an index in parts deletes when all parts of one generation are here', async () => {
  const a = podText('a');
  const r = await online({ [at]: v1, [nodeTopic('default/a')]: a });
  r.take();
  await r.publish(nodeTopic('_index'), indexText(1, [], { parts: 2 }));
  assert.deepEqual(r.take(), []);
  await r.publish(nodeTopic('_index/1'), indexText(1, [{ name: 'a', text: a }], { parts: 2 }));
  assert.deepEqual(r.take(), ['REMOVE web']);
});

test('an index part that says it is another part is not taken', async () => {
  const r = await online({ [at]: v1 });
  r.take();
  const part = (n: number): string => indexText(1, []).replace('"generation"', `"part":${n},"generation"`);
  await r.publish(nodeTopic('_index'), part(1));
  assert.deepEqual(r.take(), []);
  await r.publish(nodeTopic('_index'), part(0));
  assert.deepEqual(r.take(), ['REMOVE web']);
});

test('labels that _config gives count at once in what stands in objects', async () => {
  const r = await online({ [at]: podText('web', { image: 'repo/${NODE.site}:1' }) }, { labels: { site: 'attic' }, afar: true });
  await r.publish(nodeTopic('_config'), configText({ labels: { site: 'roof' } }));
  await r.settle();
  assert.equal(imageOf(r), 'repo/roof:1');
});

test('an index that goes deletes nothing', async () => {
  const r = await online({ [at]: v1, [nodeTopic('_index')]: indexText(5, [{ name: 'web', text: v1 }]) });
  r.take();
  await r.publish(nodeTopic('_index'), '');
  assert.deepEqual(r.take(), []);
});

test('listed and not received: asked for by its exact topic, then Waiting: Missing, and well when it comes', async () => {
  const a = podText('a');
  const r = remoteRig();
  r.broker.set(at, v1);
  r.broker.set(nodeTopic('default/a'), a);
  r.broker.set(
    nodeTopic('_index'),
    indexText(1, [
      { name: 'web', text: v1 },
      { name: 'a', text: a },
      { name: 'b', text: 'x' },
    ]),
  );
  r.broker.dropped.add(nodeTopic('default/a'));
  await r.config.load();
  await r.config.readFolder();
  await r.connect();
  assert.deepEqual(r.asked, [[nodeTopic('default/a'), nodeTopic('default/b')]]);
  assert.deepEqual(r.take(), ['ADD web', 'ADD a']);
  assert.equal(r.told('Pod/default/a'), 'Accepted Accepted');
  assert.equal(r.told('Pod/default/b'), 'Waiting Missing');
  assert.equal(r.row('Pod/default/b', 'mqtt:node'), 'Waiting Missing');
  await r.publish(nodeTopic('default/b'), podText('b'));
  assert.equal(r.told('Pod/default/b'), 'Waiting Missing', 'the index lists another payload than came');
  await r.publish(
    nodeTopic('_index'),
    indexText(2, [
      { name: 'web', text: v1 },
      { name: 'a', text: a },
      { name: 'b', text: podText('b') },
    ]),
  );
  assert.equal(r.told('Pod/default/b'), 'Accepted Accepted');
  assert.equal(r.asked.length, 1, 'nothing is asked for twice in a connection');
});

test('a newer payload that is listed and did not come is Missing while the old one goes on', async () => {
  const r = await online({ [at]: v1, [nodeTopic('_index')]: indexText(1, [{ name: 'web', text: v1 }]) });
  r.take();
  await r.publish(nodeTopic('_index'), indexText(2, [{ name: 'web', text: v2 }]));
  assert.equal(r.told(web), 'Accepted Accepted');
  await r.clock.advance(2000);
  await r.settle();
  assert.equal(r.told(web), 'Waiting Missing');
  assert.deepEqual(r.take(), []);
  assert.equal(imageOf(r), 'busybox:1');
});

test('an index before its object asks for nothing: the object has two seconds to come', async () => {
  const r = await online();
  await r.publish(nodeTopic('_index'), indexText(1, [{ name: 'web', text: v1 }]));
  await r.clock.advance(1000);
  await r.publish(at, v1);
  await r.clock.advance(5000);
  await r.settle();
  assert.deepEqual(r.asked, []);
  assert.equal(r.told(web), 'Accepted Accepted');
});

test('what the snapshot dropped and the index vouches for is not gone, and is not asked for', async () => {
  const r = await online({ [at]: v1, [nodeTopic('_index')]: indexText(1, [{ name: 'web', text: v1 }]) });
  r.broker.dropped.add(at);
  r.remote.disconnected();
  await r.connect();
  assert.equal(r.told(web), 'Accepted Accepted');
  assert.deepEqual(r.asked, []);
});

test('a connection that ends while it asks says nothing; the next one asks again', async () => {
  const r = await online({ [nodeTopic('_index')]: indexText(1, [{ name: 'web', text: v1 }]) }, { fetchFails: true });
  assert.equal(r.told(web), undefined);
  r.remote.disconnected();
  await r.connect();
  assert.equal(r.asked.length, 2);
});

test('a generation must not fall, be equal with another payload, or come back lower after a deletion and a restart', async () => {
  const g = (generation: number, image: string): string => podText('web', { generation, image });
  const r = await online({ [at]: g(5, 'a:1') });
  r.take();
  await r.publish(at, g(4, 'a:2'));
  assert.equal(r.row(web, 'mqtt:node'), 'Refused GenerationFell');
  await r.publish(at, g(5, 'a:2'));
  assert.equal(r.row(web, 'mqtt:node'), 'Refused GenerationConflict');
  assert.equal(imageOf(r), 'a:1', 'the last good of the topic goes on');
  assert.equal(r.events.at(-1)?.reason, 'GenerationConflict');
  await r.publish(at, g(5, 'a:1'));
  assert.equal(r.row(web, 'mqtt:node'), 'Accepted Accepted', 'the same payload again');
  await r.publish(at, g(6, 'a:3'));
  assert.equal(imageOf(r), 'a:3');
  r.take();
  await r.publish(at, '');
  assert.deepEqual(r.take(), ['REMOVE web']);
  const again = await r.restart();
  await again.connect();
  await again.publish(at, g(5, 'a:1'));
  assert.equal(again.told(web), 'Refused GenerationFell');
  await again.publish(at, g(6, 'a:4'));
  assert.equal(again.told(web), 'Refused GenerationConflict');
  assert.deepEqual(again.take(), []);
  await again.publish(at, g(7, 'a:5'));
  assert.deepEqual(again.take(), ['ADD web']);
});

test('a generation that rises alone restarts nothing and is told', async () => {
  const r = await online({ [at]: podText('web', { generation: 1 }) });
  const view = () => r.config.view().objects.find((o) => o.key === web);
  const [revision, uid] = [view()?.winner?.revision, view()?.uid];
  r.take();
  await r.publish(at, podText('web', { generation: 2, audience: 'pi' }));
  assert.deepEqual(r.take(), []);
  assert.deepEqual(view()?.winner, { source: 'mqtt:node', revision, generation: 2 });
  assert.equal(view()?.uid, uid);
  assert.equal(view()?.sources[0]?.generation, 2);
});

test('a tombstone must not fall in its generation, and is remembered as nothing to read again', async () => {
  const r = await online({ [at]: podText('web', { generation: 5 }) });
  r.take();
  await r.publish(at, tombstone('Pod', 'web', { generation: 4 }));
  assert.deepEqual(r.take(), []);
  assert.equal(r.row(web, 'mqtt:node'), 'Refused GenerationFell');
  await r.publish(at, tombstone('Pod', 'web', { generation: 6 }));
  assert.deepEqual(r.take(), ['REMOVE web']);
  const writes = r.store.writes.length;
  const again = await r.restart();
  await again.connect();
  assert.equal(again.store.writes.length, writes);
  assert.deepEqual(again.config.view().objects, []);
});

test('precedence: file, node, groups in the order of the list, all; a change of winner is an edit', async () => {
  const r = await online(
    {
      [allTopic('default/web')]: podText('web', { image: 'all:1' }),
      [groupTopic('cams', 'default/web')]: podText('web', { image: 'cams:1' }),
      [groupTopic('attic', 'default/web')]: podText('web', { image: 'attic:1' }),
      [at]: podText('web', { image: 'node:1' }),
    },
    { groups: ['attic', 'cams'], folder: new FakeFolder().set({ 'web.yaml': pod('web', { image: 'file:1' }) }) },
  );
  r.take();
  assert.equal(imageOf(r), 'file:1');
  assert.equal(r.row(web, 'mqtt:all'), 'Shadowed Shadowed');
  r.folder.set({});
  await r.config.readFolder();
  assert.equal(imageOf(r), 'node:1');
  await r.publish(at, '');
  assert.equal(imageOf(r), 'attic:1');
  await r.publish(groupTopic('attic', 'default/web'), '');
  assert.equal(imageOf(r), 'cams:1');
  await r.publish(groupTopic('cams', 'default/web'), '');
  assert.equal(imageOf(r), 'all:1');
  assert.deepEqual(r.take(), ['UPDATE web', 'UPDATE web', 'UPDATE web', 'UPDATE web']);
});

test('the same content from a file, then from a topic, restarts nothing', async () => {
  const r = await online({ [at]: pod('web') }, { folder: new FakeFolder().set({ 'web.yaml': pod('web') }) });
  assert.deepEqual(r.take(), ['ADD web']);
  r.folder.set({});
  await r.config.readFolder();
  assert.deepEqual(r.take(), ['RECONCILE web']);
  assert.equal(r.updates.at(-1)?.pods[0]?.source, 'mqtt:node');
});

test('another order of the groups is another winner', async () => {
  const r = await online(
    {
      [groupTopic('cams', 'default/web')]: podText('web', { image: 'cams:1' }),
      [groupTopic('attic', 'default/web')]: podText('web', { image: 'attic:1' }),
    },
    { groups: ['attic', 'cams'] },
  );
  assert.equal(imageOf(r), 'attic:1');
  r.take();
  r.groups = ['cams', 'attic'];
  r.remote.settingsChanged();
  await r.settle();
  assert.equal(imageOf(r), 'cams:1');
  assert.deepEqual(r.take(), ['UPDATE web']);
});

test('an object that comes while another step is under way is not lost', async () => {
  const r = await online();
  const name = (i: number): string => nodeTopic(`default/p${i}`);
  for (let i = 0; i < 20; i++) void r.publish(name(i), podText(`p${i}`));
  void r.config.readFolder();
  for (let i = 0; i < 20; i += 2) void r.publish(name(i), '');
  await r.settle();
  await r.settle();
  const known = r.config.view().objects.map((o) => o.name);
  assert.deepEqual(known.sort(), Array.from({ length: 10 }, (_, i) => `p${2 * i + 1}`).sort());
});

test('leaving a group deletes what only it had; a broker that stays away changes nothing of that', async () => {
  const r = await online(
    { [groupTopic('cams', 'default/web')]: v1, [groupTopic('attic', 'default/configmap:app')]: mapText('app') },
    { groups: ['attic', 'cams'] },
  );
  r.take();
  r.groups = ['attic'];
  r.remote.settingsChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['REMOVE web']);
  assert.equal(r.config.object(app)?.kind, 'ConfigMap');
  assert.deepEqual(r.followed.at(-1), r.remote.filters());
  r.groups = ['attic', 'cams'];
  r.remote.settingsChanged();
  await r.settle();
  await r.connect();
  assert.deepEqual(r.take(), ['ADD web'], 'and coming back brings it again');
});

test('a group that was left while the agent was away goes at its start', async () => {
  const r = await online({ [groupTopic('cams', 'default/web')]: v1 }, { groups: ['cams'] });
  r.groups = [];
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web', 'REMOVE web']);
});

test('_config overrides groups and labels, is stored, and taken back by an empty payload', async () => {
  const r = await online({ [groupTopic('cams', 'default/web')]: v1 }, { groups: ['attic'] });
  assert.deepEqual(r.take(), []);
  await r.publish(nodeTopic('_config'), configText({ generation: 1, groups: ['cams'], labels: { site: 'x' }, heartbeatSeconds: 30 }));
  assert.deepEqual(r.followed.at(-1), r.remote.filters());
  assert.ok(r.remote.filters().includes('podsched/v1/desired/groups/cams/#'));
  assert.equal(r.configs.at(-1)?.heartbeatSeconds, 30);
  await r.connect();
  assert.deepEqual(r.take(), ['ADD web']);
  await r.publish(nodeTopic('_config'), configText({ generation: 1, groups: [] }));
  assert.deepEqual(r.take(), [], 'the same generation with another payload is not taken');
  await r.publish(nodeTopic('_config'), '{"kind": "NodeConfig"');
  assert.deepEqual(r.take(), []);
  assert.match(JSON.stringify(r.config.view().files), /_config/);
  const again = await r.restart();
  assert.deepEqual(again.remote.config()?.groups, ['cams']);
  assert.deepEqual(again.take(), ['ADD web']);
  await again.connect();
  await again.publish(nodeTopic('_config'), '');
  assert.deepEqual(again.take(), ['REMOVE web']);
  assert.equal(again.remote.config(), undefined);
  assert.equal((await again.restart()).remote.config(), undefined);
});

test('C5: a source that never answers holds nobody up; what is accepted begins, and files come', async () => {
  const r = await online({ [at]: v1 });
  r.folder.set({ 'file.yaml': pod('file') });
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD web', 'ADD file']);
  assert.ok(again.config.ready());
});

test('a lost checkpoint: nothing of topics is deleted until the snapshot has ended, and nobody is a stranger until then', async () => {
  const r = await online({ [at]: v1, [allTopic('default/db')]: podText('db') });
  r.store.entries.set('objects/Pod/default/db', '{broken');
  const again = await r.restart();
  assert.equal(again.config.checkpoint(), 'lost');
  assert.ok(!again.config.ready(), 'the broker was not heard');
  assert.ok(again.config.ready('file'), 'what only files can want is known');
  await again.connect({ whole: false });
  await again.publish(at, '');
  assert.ok(!again.take().includes('REMOVE web'));
  again.remote.snapshot(again.remote.filters());
  await again.settle();
  assert.ok(again.config.ready());
  assert.ok(again.take().includes('REMOVE web'), 'the wish was kept');
});

test('with a lost checkpoint a person may say that the rest is wanted by nobody', async () => {
  const r = await online({ [at]: v1 });
  r.store.entries.set('objects/Pod/default/db', '{broken');
  const again = await r.restart();
  assert.ok(!again.config.ready());
  await again.config.forgetLost();
  assert.ok(again.config.ready());
  assert.ok(!again.store.entries.has('objects/Pod/default/db'));
});

test('an absent checkpoint counts as read', async () => {
  const r = remoteRig();
  await r.config.load();
  await r.config.readFolder();
  assert.ok(r.config.ready());
  assert.ok(r.remote.ready());
});

test('what stands at the broker is taken in together when its snapshot ends, or after five seconds', async () => {
  const r = remoteRig();
  r.broker.set(at, v1);
  await r.config.load();
  await r.config.readFolder();
  await r.connect({ whole: false });
  assert.deepEqual(r.take(), []);
  await r.clock.advance(5000);
  await r.settle();
  assert.deepEqual(r.take(), ['ADD web']);
  await r.publish(nodeTopic('default/db'), podText('db'));
  assert.deepEqual(r.take(), ['ADD db'], 'what is published now waits for nothing');
});

test('rollout: a new revision waits for its wave, the old one of the same source goes on, a new object does not start', async () => {
  const all = allTopic('default/web');
  const r = await online({ [all]: v1 });
  r.take();
  await r.publish(all, podText('web', { image: 'busybox:2', rollout: 'r1', generation: 2 }));
  assert.equal(r.told(web), 'Waiting Rollout', 'its rollout is not here');
  await r.publish(allTopic('default/db'), podText('db', { rollout: 'r1' }));
  assert.equal(r.told('Pod/default/db'), 'Waiting Rollout');
  await r.publish(rolloutTopicOf('r1'), rolloutText('r1', 0));
  assert.deepEqual(r.take(), []);
  assert.equal(imageOf(r), 'busybox:1');
  assert.equal(r.row(web, 'mqtt:all'), 'Waiting Rollout');
  assert.equal(r.config.view().objects.find((o) => o.key === web)?.sources[0]?.generation, 2);
  await r.publish(rolloutTopicOf('r1'), rolloutText('r1', 1));
  assert.deepEqual(r.take().sort(), ['ADD db', 'UPDATE web']);
  assert.equal(r.told(web), 'Accepted Accepted');
  await r.publish(rolloutTopicOf('r1'), rolloutText('r1', 0));
  await r.publish(rolloutTopicOf('r1'), '');
  assert.equal(imageOf(r), 'busybox:2', 'a gate that falls takes nothing back');
  const again = await r.restart();
  assert.deepEqual(again.take(), ['ADD db', 'ADD web']);
  await again.connect();
  assert.deepEqual(again.take(), []);
  assert.equal(again.told(web), 'Accepted Accepted', 'what was taken once waits for nobody');
});

test('rollout: a restart while it waits, and the gate that opens while the node is away', async () => {
  const all = allTopic('default/web');
  const r = await online({ [all]: v1, [rolloutTopicOf('r1')]: rolloutText('r1', 0) });
  await r.publish(all, podText('web', { image: 'busybox:2', rollout: 'r1' }));
  const again = await r.restart();
  assert.equal(imageOf(again), 'busybox:1');
  await again.connect();
  assert.equal(again.told(web), 'Waiting Rollout');
  again.remote.disconnected();
  again.broker.set(rolloutTopicOf('r1'), rolloutText('r1', 1));
  await again.connect();
  assert.equal(imageOf(again), 'busybox:2');
});

test('rollout: a node’s own topic waits for nobody; labels decide of the wave', async () => {
  const r = await online({ [at]: podText('web', { rollout: 'none' }) });
  assert.deepEqual(r.take(), ['ADD web']);
  await r.publish(rolloutTopicOf('r2'), rolloutText('r2', 1, [{ selector: { site: 'attic' }, percent: 100 }]));
  await r.publish(allTopic('default/db'), podText('db', { rollout: 'r2' }));
  assert.equal(r.told('Pod/default/db'), 'Waiting Rollout');
  r.labels = { site: 'attic' };
  r.remote.settingsChanged();
  await r.settle();
  assert.deepEqual(r.take(), ['ADD db']);
});

test('rollout: going back to the revision that runs waits for nobody', async () => {
  const all = allTopic('default/web');
  const r = await online({ [all]: v1 });
  await r.publish(all, podText('web', { image: 'busybox:2', rollout: 'r1' }));
  await r.publish(all, podText('web', { image: 'busybox:1', rollout: 'r1' }));
  assert.equal(r.told(web), 'Accepted Accepted');
});

test('an immutable ConfigMap of a topic does not change', async () => {
  const topic = nodeTopic('default/configmap:app');
  const r = await online({ [topic]: mapText('app', { immutable: true }) });
  await r.publish(topic, mapText('app', { immutable: true, value: 'y' }));
  assert.equal(r.row(app, 'mqtt:node'), 'Refused Invalid');
  await r.publish(topic, '');
  await r.publish(topic, mapText('app', { immutable: true, value: 'y' }));
  assert.equal(r.told(app), 'Accepted Accepted', 'gone and added again it is another object');
});

test('an object with values of the node in it is another when they are, over a restart too', async () => {
  const text = podText('web', { image: 'repo/${NODE.site}:1' });
  const r = await online({ [at]: text }, { labels: { site: 'attic' } });
  assert.equal(imageOf(r), 'repo/attic:1');
  r.labels = { site: 'cellar' };
  r.remote.settingsChanged();
  await r.settle();
  assert.equal(imageOf(r), 'repo/cellar:1');
  r.labels = { site: 'roof' };
  const again = await r.restart();
  await again.connect();
  assert.equal(imageOf(again), 'repo/roof:1');
});

test('an object that could not be stored is tried again, and so is a deletion that could not be remembered', async () => {
  const r = await online({ [nodeTopic('default/db')]: podText('db', { generation: 1 }) });
  r.take();
  r.store.full = true;
  await r.publish(at, v1);
  assert.equal(r.told(web), 'Waiting StoreFailed');
  await r.publish(nodeTopic('default/db'), '');
  assert.deepEqual(r.take(), [], 'nothing goes that could come back');
  r.store.full = false;
  await r.config.readFolder();
  assert.deepEqual(r.take(), ['REMOVE db', 'ADD web']);
});

test('resync takes every filter anew', async () => {
  const r = await online({ [at]: v1 });
  r.broker.topics.clear();
  await r.config.readAgain();
  assert.deepEqual(r.followed.slice(-2), [[], r.remote.filters()]);
  await r.connect();
  assert.equal(r.told(web), 'SourceGone SourceGone');
});

test('decommission: everything of MQTT ends and is forgotten, files stay, and nothing more is taken', async () => {
  const r = await online(
    {
      [at]: podText('web', { generation: 2 }),
      [allTopic('default/both')]: podText('both', { image: 'x:1' }),
      [nodeTopic('_config')]: configText({ heartbeatSeconds: 30 }),
    },
    { folder: new FakeFolder().set({ 'f.yaml': pod('both') }) },
  );
  r.take();
  await r.config.forgetRemote();
  assert.deepEqual(r.take(), ['REMOVE web']);
  assert.deepEqual(r.remote.filters(), []);
  assert.deepEqual(r.followed.at(-1), []);
  await r.publish(at, v2);
  assert.deepEqual(r.take(), []);
  assert.deepEqual(
    [...r.store.entries.keys()].filter((k) => k.startsWith('mqtt/')),
    [],
  );
  assert.deepEqual(
    r.config.view().objects.map((o) => [o.key, o.sources.map((s) => s.source)]),
    [['Pod/default/both', ['file:f.yaml']]],
  );
  assert.equal(hashOf('').length, 16);
});
