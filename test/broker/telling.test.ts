import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onlineTopic, rig, root, webTopic } from './rig.ts';

const events = `${root}/events/default`;
const pod = (name: string) => `${root}/pods/default/${name}`;

test('what was told before the broker came is told when it comes, one last value per topic', async () => {
  const { broker, clock, tellPod, times } = rig();
  broker.down = true;
  for (let i = 0; i < 100; i++) tellPod('web', `{"i":${i}}`);
  await clock.advance(10_000);
  broker.down = false;
  await clock.advance(120_000);
  assert.equal(times(webTopic), 1);
  assert.equal(broker.retainedNow()[webTopic], '{"i":99}');
});

test('an equal value is not told again', async () => {
  const { clock, tellPod, times } = rig();
  await clock.advance(10);
  tellPod('web', '{"a":1}');
  await clock.advance(10);
  tellPod('web', '{"a":1}');
  await clock.advance(10);
  assert.equal(times(webTopic), 1);
});

test('a status counts as told when PUBACK came: cut in between, it is told again', async () => {
  const { broker, clock, session, tellPod, times } = rig();
  await clock.advance(10);
  broker.onPublish = (p) => (p.topic === webTopic ? 'cut' : 'ack');
  tellPod('web');
  await clock.advance(10);
  assert.equal(session.counters().dirtyTopics, 1);
  broker.onPublish = () => 'ack';
  await clock.advance(5_000);
  assert.equal(times(webTopic), 2);
  assert.equal(session.counters().dirtyTopics, 0);
});

test('while a value waits for its PUBACK a newer one waits too, and only the newest is told', async () => {
  const { broker, clock, tellPod } = rig();
  await clock.advance(10);
  broker.onPublish = (p) => (p.topic === webTopic ? 'hold' : 'ack');
  for (const i of [1, 2, 3]) tellPod('web', `{"i":${i}}`);
  await clock.advance(10);
  for (const i of [4, 5]) tellPod('web', `{"i":${i}}`);
  broker.onPublish = () => 'ack';
  broker.release();
  await clock.advance(10);
  assert.deepEqual(
    broker.publishes.filter((p) => p.topic === webTopic).map((p) => p.payload),
    ['{"i":1}', '{"i":5}'],
  );
});

test('at most 20 messages wait for their PUBACK', async () => {
  const { broker, clock, session, tellPod, times } = rig();
  await clock.advance(5_000);
  broker.onPublish = () => 'hold';
  for (let i = 0; i < 60; i++) tellPod(`p${i}`);
  for (let i = 0; i < 60; i++) session.send(events, `{"i":${i}}`, { qos: 1, expirySeconds: 3600 });
  await clock.advance(5_000);
  assert.equal(broker.publishes.length - times(onlineTopic), 20);
  for (let i = 0; i < 10; i++) {
    broker.release();
    await clock.advance(10);
  }
  assert.equal(broker.publishes.length - times(onlineTopic), 120);
});

test('a cleared topic is told empty, once, and forgotten', async () => {
  const { broker, clock, session, tellPod, times } = rig();
  tellPod('web');
  await clock.advance(2_500);
  session.tell(webTopic, undefined, { qos: 1 });
  await clock.advance(10);
  assert.equal(broker.retainedNow()[webTopic], undefined);
  assert.equal(times(webTopic), 2);
  assert.equal(session.counters().retainedTopics, 0);
  broker.kill();
  broker.restart();
  await clock.advance(10_000);
  assert.equal(times(webTopic), 2);
});

test('field case I2: a broker that forgot everything is told everything again within 2 s of CONNACK, paced', async () => {
  const { broker, clock, tellPod, online } = rig();
  for (let i = 0; i < 20; i++) tellPod(`p${i}`);
  await clock.advance(5_000);
  broker.kill();
  await clock.advance(60_000);
  broker.restart();
  const before = broker.connects.length;
  while (broker.connects.length === before) await clock.advance(500);
  const connackAt = broker.connects.at(-1)?.at ?? 0;
  broker.publishes.splice(0);
  await clock.advance(4_000);
  assert.equal(Object.keys(broker.retainedNow(`${root}/pods/`)).length, 20);
  assert.equal(online()?.state, 'online');
  const pods = broker.publishes.filter((p) => p.topic.startsWith(`${root}/pods/`));
  assert.ok(pods.every((p) => p.at - connackAt <= 2_600));
  assert.ok(new Set(pods.map((p) => p.at)).size > 10, 'not all at once');
});

test('more than 50 topics are spread over 10 s, and news does not wait for its turn', async () => {
  const { broker, clock, tellPod } = rig();
  for (let i = 0; i < 200; i++) tellPod(`p${i}`);
  await clock.advance(5_000);
  const half = Object.keys(broker.retainedNow(`${root}/pods/`)).length;
  assert.ok(half > 80 && half < 120, `${half} after 5 s`);
  tellPod('p199', '{"news":true}');
  await clock.advance(10);
  assert.equal(broker.retainedNow()[pod('p199')], '{"news":true}');
  await clock.advance(5_100);
  assert.equal(Object.keys(broker.retainedNow(`${root}/pods/`)).length, 200);
});

test('on CONNACK with a session only what changed is told', async () => {
  const { broker, clock, tellPod, times } = rig();
  tellPod('web');
  tellPod('db');
  await clock.advance(5_000);
  broker.cut();
  tellPod('db', '{"new":1}');
  await clock.advance(5_000);
  assert.equal(times(webTopic), 1);
  assert.equal(times(pod('db')), 2);
});

test('an unchanged topic is told again at half its expiry, splayed, so that it never expires', async () => {
  const { broker, clock, session, times } = rig({ heartbeatSeconds: () => 900 });
  session.tell(webTopic, '{}', { qos: 1, expirySeconds: 1_000 });
  await clock.advance(300_000);
  assert.equal(times(webTopic), 1);
  for (let i = 0; i < 20; i++) {
    await clock.advance(200_000);
    assert.ok(broker.retainedNow()[webTopic], `gone after ${i}`);
  }
  assert.ok(times(webTopic) <= 11);
});

test('field case I8: twelve hours without a broker: at most topics + ring messages afterwards, and the lost are counted', async () => {
  const { broker, clock, session, tellPod } = rig({ ringCapacity: 50 });
  await clock.advance(5_000);
  broker.kill();
  for (let minute = 0; minute < 720; minute++) {
    for (let p = 0; p < 5; p++) tellPod(`crash${p}`, `{"restarts":${minute}}`);
    session.send(events, `{"minute":${minute}}`, { qos: 1, expirySeconds: 86_400 });
    await clock.advance(60_000);
  }
  assert.deepEqual(session.counters(), {
    retainedTopics: 5,
    dirtyTopics: 5,
    eventsWaiting: 50,
    eventsDropped: 670,
    inboundDropped: { size: 0, topic: 0, properties: 0 },
  });
  broker.restart();
  broker.publishes.splice(0);
  await clock.advance(180_000);
  assert.equal(broker.publishes.filter((p) => p.topic.startsWith(`${root}/pods`)).length, 5);
  assert.deepEqual(
    broker.publishes.filter((p) => p.topic === events).map((p) => JSON.parse(p.payload).minute),
    Array.from({ length: 50 }, (_, i) => 670 + i),
  );
});

test('an event older than its expiry is not sent, and a younger one only for what is left', async () => {
  const { broker, clock, session } = rig();
  await clock.advance(10);
  broker.kill();
  session.send(events, '"old"', { qos: 1, expirySeconds: 3600 });
  await clock.advance(3_000_000);
  session.send(events, '"young"', { qos: 1, expirySeconds: 3600 });
  await clock.advance(1_200_000);
  broker.restart();
  await clock.advance(180_000);
  const sent = broker.publishes.filter((p) => p.topic === events);
  assert.deepEqual(
    sent.map((p) => p.payload),
    ['"young"'],
  );
  assert.ok((sent[0]?.expirySeconds ?? 0) < 2_500);
});

test('an event in flight when the connection breaks is sent again, in its place', async () => {
  const { broker, clock, session } = rig();
  await clock.advance(10);
  broker.onPublish = (p) => (p.topic === events ? 'lose' : 'ack');
  for (const i of [1, 2, 3]) session.send(events, `${i}`, { qos: 1 });
  await clock.advance(10);
  broker.cut();
  session.send(events, '4', { qos: 1 });
  broker.onPublish = () => 'ack';
  broker.publishes.splice(0);
  await clock.advance(5_000);
  assert.deepEqual(
    broker.publishes
      .filter((p) => p.topic === events)
      .map((p) => p.payload)
      .sort(),
    ['1', '2', '3', '4'],
  );
});

test('a message that ends the connection twice is dropped and told; the rest of what was in flight is told', async () => {
  const { broker, clock, reports, session, tellPod } = rig();
  await clock.advance(5_000);
  broker.onPublish = (p) => (p.topic === pod('bad') ? { closeWith: undefined } : 'ack');
  for (let i = 0; i < 5; i++) tellPod(`p${i}`);
  tellPod('bad');
  for (let i = 5; i < 10; i++) tellPod(`p${i}`);
  session.send(events, '1', { qos: 1 });
  await clock.advance(60_000);
  assert.equal(broker.publishes.filter((p) => p.topic === pod('bad')).length, 2);
  assert.deepEqual(
    reports.map((r) => [r.reason, r.topic]),
    [['MessageDropped', pod('bad')]],
  );
  assert.equal(Object.keys(broker.retainedNow(`${root}/pods/`)).length, 10);
  assert.equal(broker.publishes.filter((p) => p.topic === events).length, 1);
  // another value gets its own chance
  broker.onPublish = () => 'ack';
  tellPod('bad', '{"good":1}');
  await clock.advance(100);
  assert.ok(broker.retainedNow()[pod('bad')]);
});

test('a broker that goes down twice costs no status: what was dropped as suspect is tried again, alone, after an hour', async () => {
  const { broker, clock, tellPod } = rig();
  await clock.advance(5_000);
  let bad = 2;
  broker.onPublish = (p) => (p.topic === webTopic && bad-- > 0 ? { closeWith: undefined } : 'ack');
  tellPod('web');
  await clock.advance(60_000);
  assert.equal(broker.retainedNow()[webTopic], undefined);
  await clock.advance(3_600_000);
  assert.ok(broker.retainedNow()[webTopic]);
});

test('a broker that says it shuts down blames no message', async () => {
  const { broker, clock, reports, tellPod } = rig();
  await clock.advance(5_000);
  let times = 3;
  broker.onPublish = (p) => (p.topic === webTopic && times-- > 0 ? { closeWith: 0x8b } : 'ack');
  tellPod('web');
  await clock.advance(60_000);
  assert.deepEqual(reports, []);
  assert.ok(broker.retainedNow()[webTopic]);
});

test('a payload larger than the broker takes is cut, and says so', async () => {
  const { broker, clock, tellPod } = rig();
  broker.maximumPacketBytes = 2_000;
  tellPod('web', JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, status: { message: 'x'.repeat(5_000) } }));
  await clock.advance(100);
  const told = JSON.parse(broker.retainedNow()[webTopic] ?? '{}');
  assert.equal(told.metadata.name, 'web');
  assert.ok(told.metadata.annotations['podsched.dev/truncated']);
  assert.equal(broker.connects.length, 1);
});

test('"packet too large" lowers the own cap: cut on the second try', async () => {
  const { broker, clock, reports, tellPod } = rig();
  await clock.advance(5_000);
  broker.onPublish = (p) => (p.payload.length > 3_000 ? { closeWith: 0x95 } : 'ack');
  tellPod('web', JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, status: { message: 'x'.repeat(5_000) } }));
  await clock.advance(10_000);
  assert.deepEqual(reports, []);
  assert.ok(broker.retainedNow()[webTopic]);
});

test('a payload that cannot be made small enough is dropped and told, and the others go on', async () => {
  const { broker, clock, reports, tellPod } = rig();
  broker.maximumPacketBytes = 700;
  tellPod('huge', `"${'x'.repeat(5_000)}"`);
  tellPod('web');
  await clock.advance(1_000);
  assert.deepEqual(
    reports.map((r) => r.reason),
    ['MessageTooLarge'],
  );
  assert.ok(broker.retainedNow()[webTopic]);
});

test('"quota exceeded" halves the rate each time, and nothing is lost', async () => {
  const { broker, clock, tellPod } = rig();
  await clock.advance(5_000);
  let quota = 3;
  broker.onPublish = (p) => (p.topic.startsWith(`${root}/pods/`) && quota-- > 0 ? 0x97 : 'ack');
  tellPod('a');
  await clock.advance(90);
  assert.equal(quota, 2);
  await clock.advance(60_000);
  for (let i = 0; i < 10; i++) tellPod(`p${i}`);
  broker.publishes.splice(0);
  await clock.advance(10_000);
  const at = broker.publishes.filter((p) => p.topic.startsWith(pod('p'))).map((p) => p.at);
  assert.equal(at.length, 10);
  const gaps = at.slice(1).map((t, i) => t - (at[i] ?? 0));
  assert.ok(
    gaps.every((g) => g >= 399),
    `gaps ${gaps}`,
  );
});

test('resync tells everything again and gives the refused another chance', async () => {
  const { broker, clock, session, tellPod, times } = rig();
  tellPod('web');
  broker.onPublish = (p) => (p.topic === pod('db') ? 0x87 : 'ack');
  tellPod('db');
  await clock.advance(5_000);
  broker.onPublish = () => 'ack';
  session.resync();
  await clock.advance(3_000);
  assert.equal(times(webTopic), 2);
  assert.ok(broker.retainedNow()[pod('db')]);
});
