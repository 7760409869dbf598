import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OwnSubtree, samePayload, toldByOther } from '../../src/broker/ghosts.ts';
import { onlineTopic, rig, root, webTopic } from './rig.ts';

const bytes = (s: string) => new TextEncoder().encode(s);
const ghost = `${root}/pods/default/ghost`;
const ghostSync = `${root}/sync/default/ghost`;
const ghostFile = `${root}/sync/_files/old~2eyaml`;

test('field case I7: deleted while the broker was down and the agent restarted: only live topics remain', async () => {
  const { broker, clock, session, tellPod } = rig();
  for (const t of [ghost, ghostSync, ghostFile]) broker.say(t, '{"kind":"Pod"}', { retain: true });
  tellPod('web');
  await clock.advance(30_000);
  assert.ok(broker.retainedNow()[ghost], 'nothing is cleared before all sources are ready');
  session.setReady();
  await clock.advance(5_000);
  assert.deepEqual(Object.keys(broker.retainedNow()).sort(), [onlineTopic, webTopic].sort());
});

test('what has an owner of its own is never cleared', async () => {
  const { broker, clock, session } = rig();
  const kept = ['info', 'summary', 'duplicates/bbbbbbbbbbbb', '_marker', 'something/new'].map((t) => `${root}/${t}`);
  for (const t of kept) broker.say(t, '{}', { retain: true });
  broker.say('podsched/v1/nodes/pi-2/pods/default/web', '{}', { retain: true });
  session.setReady();
  await clock.advance(10_000);
  for (const t of [...kept, 'podsched/v1/nodes/pi-2/pods/default/web']) assert.ok(broker.retainedNow()[t], t);
});

test('topics that another machine says it told are left to it', async () => {
  const { broker, clock, session } = rig();
  broker.say(ghost, '{"machine":"bbbbbbbbbbbb"}', { retain: true });
  broker.say(ghostSync, '{"machine":"aaaaaaaaaaaa"}', { retain: true });
  session.setReady();
  await clock.advance(10_000);
  assert.ok(broker.retainedNow()[ghost]);
  assert.equal(broker.retainedNow()[ghostSync], undefined);
});

test('the subtree is read once per start, and after each CONNACK without a session, and its filter is given back', async () => {
  const { broker, clock, session } = rig();
  session.setReady();
  const reads = () => broker.subscribes.filter((s) => s.filters.includes(`${root}/#`)).length;
  await clock.advance(5_000);
  assert.equal(reads(), 1);
  broker.cut();
  await clock.advance(5_000);
  assert.equal(reads(), 1, 'the session was kept');
  broker.kill();
  broker.restart();
  await clock.advance(60_000);
  assert.equal(reads(), 2);
  assert.ok([...broker.sessions.values()].every((s) => !s.filters.has(`${root}/#`)));
});

test('a filter that a crash left in the session of the broker is taken out at start', async () => {
  const { broker, clock } = rig();
  const client = 'podsched-pi-1-aaaaaaaaaaaa';
  broker.sessions.set(client, { filters: new Map([[`${root}/#`, 1]]), queue: [], connection: undefined });
  await clock.advance(1_000);
  assert.deepEqual([...(broker.sessions.get(client)?.filters.keys() ?? [])], [onlineTopic]);
});

test('a marker that a full queue dropped is sent again after 10 s', async () => {
  const { broker, clock, session } = rig();
  broker.say(ghost, '{}', { retain: true });
  let lost = 2;
  broker.onPublish = (p) => (p.topic.endsWith('/_marker') && lost-- > 0 ? 'swallow' : 'ack');
  session.setReady();
  await clock.advance(19_000);
  assert.ok(broker.retainedNow()[ghost]);
  await clock.advance(3_000);
  assert.equal(broker.retainedNow()[ghost], undefined);
  const markers = broker.publishes.filter((p) => p.topic.endsWith('/_marker'));
  assert.ok(markers.every((p) => p.qos === 1 && !p.retain && p.expirySeconds === 60));
});

test('a topic that the broker lost, or that somebody overwrote, is told again', async () => {
  const { broker, clock, session, tellPod, times } = rig();
  tellPod('web');
  tellPod('db');
  tellPod('same', '{"kind":"Pod","boot":1,"seq":7}');
  await clock.advance(5_000);
  broker.retained.delete(webTopic);
  broker.say(`${root}/pods/default/db`, '{"forged":true}', { retain: true });
  broker.say(`${root}/pods/default/same`, '{"kind":"Pod","boot":2,"seq":9}', { retain: true });
  session.setReady();
  await clock.advance(5_000);
  assert.equal(broker.retainedNow()[webTopic], '{"kind":"Pod","name":"web"}');
  assert.equal(broker.retainedNow()[`${root}/pods/default/db`], '{"kind":"Pod","name":"db"}');
  assert.equal(times(`${root}/pods/default/same`), 1);
});

test('a pod told while the subtree is read is no ghost', async () => {
  const { broker, clock, session, tellPod } = rig();
  broker.say(webTopic, '{"old":1}', { retain: true });
  broker.onPublish = (p) => (p.topic.endsWith('/_marker') ? 'swallow' : 'ack');
  session.setReady();
  await clock.advance(2_500);
  tellPod('web');
  broker.onPublish = () => 'ack';
  await clock.advance(20_000);
  assert.equal(broker.retainedNow()[webTopic], '{"kind":"Pod","name":"web"}');
});

test('a reading cut off by the end of the connection is done again on the next', async () => {
  const { broker, clock, session } = rig();
  broker.say(ghost, '{}', { retain: true });
  broker.onPublish = (p) => (p.topic.endsWith('/_marker') ? 'cut' : 'ack');
  session.setReady();
  await clock.advance(100);
  broker.onPublish = () => 'ack';
  await clock.advance(10_000);
  assert.equal(broker.retainedNow()[ghost], undefined);
});

test('nothing is cleared while another machine may be alive under the name', async () => {
  const { broker, clock, session } = rig();
  broker.say(onlineTopic, '{"state":"online","machine":"bbbbbbbbbbbb","heartbeatSeconds":60}', { retain: true });
  broker.say(ghost, '{}', { retain: true });
  session.setReady();
  await clock.advance(115_000);
  assert.ok(broker.retainedNow()[ghost]);
  await clock.advance(10_000);
  assert.equal(broker.retainedNow()[ghost], undefined, 'two heartbeats without a sign of life');
});

test('boot and seq do not make payloads differ, fields or annotations', () => {
  const cases: [string, string, boolean][] = [
    ['{"a":1,"boot":1,"seq":2}', '{"a":1,"boot":3,"seq":4}', true],
    ['{"a":1,"boot":1}', '{"a":2,"boot":1}', false],
    [
      '{"metadata":{"name":"x","annotations":{"podsched.dev/seq":"1","k":"v"}}}',
      '{"metadata":{"name":"x","annotations":{"podsched.dev/seq":"2","k":"v"}}}',
      true,
    ],
    [
      '{"metadata":{"annotations":{"podsched.dev/seq":"1","k":"v"}}}',
      '{"metadata":{"annotations":{"podsched.dev/seq":"1","k":"w"}}}',
      false,
    ],
    ['not json', 'not json', true],
    ['not json', '{}', false],
  ];
  for (const [a, b, same] of cases) assert.equal(samePayload(a, bytes(b)), same, `${a} ${b}`);
});

test('who told a payload: the field, the annotation, or nobody', () => {
  const own = new Set(['me', 'me-before']);
  const cases: [string, boolean][] = [
    ['{"machine":"me"}', false],
    ['{"machine":"me-before"}', false],
    ['{"machine":"you"}', true],
    ['{"metadata":{"annotations":{"podsched.dev/machine":"you"}}}', true],
    ['{"metadata":null}', false],
    ['[]', false],
    ['\u0000', false],
  ];
  for (const [payload, other] of cases) assert.equal(toldByOther(bytes(payload), own), other, payload);
});

test('a topic cleared while the subtree is read is missing, and a ghost cleared by others is none', () => {
  const told = new Map([[webTopic, '{}']]);
  const s = new OwnSubtree(root, (t) => told.get(t), new Set());
  s.see(webTopic, bytes('{}'), true);
  s.see(ghost, bytes('{}'), true);
  assert.deepEqual(s.plan([webTopic]), { clear: [ghost], publish: [] });
  s.see(webTopic, bytes(''), false);
  s.see(ghost, bytes(''), false);
  assert.deepEqual(s.plan([webTopic]), { clear: [], publish: [webTopic] });
});
