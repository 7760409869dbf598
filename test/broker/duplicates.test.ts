import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeOnline, parseOnline } from '../../src/broker/online.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeIdentity, onlineTopic, rig, root, webTopic } from './rig.ts';

const own = 'aaaaaaaaaaaa';
const other = 'bbbbbbbbbbbb';
const aside = `${root}/duplicates/${own}`;
const otherOnline = (heartbeatSeconds = 60) => JSON.stringify({ state: 'online', machine: other, heartbeatSeconds, session: 5 });

/** A copy of the card: its identity file names the other board. */
function copied(): FakeIdentity {
  const identity = new FakeIdentity(own);
  identity.fileMachine = other;
  return identity;
}

test('a card copied to a second board: it listens first, under its own topic and will, and tells nothing', async () => {
  const { broker, clock, session, tellPod } = rig({ fakeIdentity: copied() });
  tellPod('web');
  session.setReady();
  broker.say(`${root}/pods/default/theirs`, '{}', { retain: true });
  broker.say(onlineTopic, otherOnline(), { retain: true });
  await clock.advance(60_000);
  assert.equal(broker.connects[0]?.options.will.topic, aside);
  assert.equal(broker.connects[0]?.options.cleanStart, true);
  assert.deepEqual(broker.publishes, []);
  assert.deepEqual(
    session.conditions().map((c) => c.reason),
    ['Listening'],
  );
});

test('the other board is heard live: duplicate, told under duplicates only, for as long as it is heard', async () => {
  const { broker, clock, session, tellPod, identity } = rig({ fakeIdentity: copied() });
  broker.say(onlineTopic, otherOnline(), { retain: true });
  tellPod('web');
  await clock.advance(50_000);
  for (let i = 0; i < 10; i++) {
    broker.say(onlineTopic, otherOnline(), { retain: true });
    await clock.advance(60_000);
  }
  assert.deepEqual([...new Set(broker.publishes.map((p) => p.topic))], [aside]);
  assert.equal(JSON.parse(broker.retainedNow()[aside] ?? '{}').state, 'duplicate');
  assert.ok(broker.publishes.length >= 10, 'at each heartbeat');
  assert.deepEqual(
    session.conditions().map((c) => [c.type, c.reason]),
    [['DuplicateNode', 'NameTaken']],
  );
  assert.equal(identity.fileMachine, other);
  broker.cut();
  await clock.advance(200_000);
  assert.equal(JSON.parse(broker.retainedNow()[aside] ?? '{}').state, 'duplicate');
  await Promise.all([session.stop(), clock.advance(5_000)]);
  assert.equal(JSON.parse(broker.retainedNow()[aside] ?? '{}').state, 'offline');
});

test('a duplicate that does not hear the other for ten heartbeats takes the name, and gives it back when the other is alive after all', async () => {
  const { broker, clock, identity, online, session } = rig({ fakeIdentity: copied() });
  broker.say(onlineTopic, otherOnline(), { retain: true });
  await clock.advance(50_000);
  broker.say(onlineTopic, otherOnline(), { retain: true });
  await clock.advance(590_000);
  assert.deepEqual([identity.fileMachine, session.conditions()[0]?.reason], [other, 'NameTaken']);
  await clock.advance(20_000);
  assert.deepEqual([identity.fileMachine, online()?.machine, online()?.state], [own, own, 'online']);
  assert.equal(broker.retainedNow()[aside], undefined);
  broker.say(onlineTopic, otherOnline(), { retain: true });
  await clock.advance(10_000);
  assert.equal(identity.fileMachine, other);
  assert.equal(JSON.parse(broker.retainedNow()[aside] ?? '{}').state, 'duplicate');
});

test('nothing live for twice the retained heartbeat: the board was replaced, and this one takes the name', async () => {
  const { broker, clock, identity, online, session, tellPod } = rig({ fakeIdentity: copied(), heartbeatSeconds: () => 900 });
  broker.say(onlineTopic, otherOnline(60), { retain: true });
  tellPod('web');
  await clock.advance(119_000);
  assert.equal(identity.fileMachine, other);
  await clock.advance(10_000);
  assert.equal(identity.fileMachine, own);
  assert.equal(online()?.machine, own);
  assert.equal(online()?.state, 'online');
  assert.ok(broker.retainedNow()[webTopic]);
  assert.equal(broker.connects.at(-1)?.options.will.topic, onlineTopic);
  assert.deepEqual(session.conditions(), []);
  assert.equal(broker.retainedNow()[aside], undefined);
});

test('listening begins anew with each connection: time without the broker is not silence', async () => {
  const { broker, clock, identity } = rig({ fakeIdentity: copied() });
  await clock.advance(100_000);
  broker.cut();
  await clock.advance(100_000);
  assert.equal(identity.fileMachine, other);
  await clock.advance(30_000);
  assert.equal(identity.fileMachine, own);
});

test('who may not hear takes no name', async () => {
  const { broker, clock, identity } = rig({ fakeIdentity: copied() });
  broker.onSubscribe = () => 0x87;
  await clock.advance(1_000_000);
  assert.equal(identity.fileMachine, other);
});

test('a name taken by mistake is given back when its board is heard again', async () => {
  const { broker, clock, identity, session, tellPod } = rig({ fakeIdentity: copied() });
  tellPod('web');
  await clock.advance(130_000);
  assert.equal(identity.fileMachine, own);
  broker.say(onlineTopic, otherOnline(), { retain: true });
  await clock.advance(5_000);
  assert.equal(identity.fileMachine, other);
  assert.deepEqual(
    session.conditions().map((c) => c.reason),
    ['NameTaken'],
  );
  assert.equal(JSON.parse(broker.retainedNow()[onlineTopic] ?? '{}').machine, other, 'no farewell under a name that is not ours');
});

test('the board named by its identity file goes on, says so, and clears nothing meanwhile', async () => {
  const { broker, clock, online, session } = rig();
  await clock.advance(5_000);
  broker.say(onlineTopic, otherOnline(), { retain: true });
  broker.say(`${root}/pods/default/theirs`, '{}', { retain: true });
  session.setReady();
  await clock.advance(100_000);
  assert.equal(online()?.machine, own);
  assert.deepEqual(
    session.conditions().map((c) => c.reason),
    ['AnotherMachine'],
  );
  assert.ok(broker.retainedNow()[`${root}/pods/default/theirs`]);
  await clock.advance(200_000);
  assert.deepEqual(session.conditions(), []);
});

test('two boards with one card, both running: one is online, one is the duplicate, and neither disturbs the other', async () => {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  const first = new FakeIdentity(other);
  const second = copied();
  const a = rig({ fake: broker, fakeClock: clock, fakeIdentity: first });
  await clock.advance(20_000);
  const b = rig({ fake: broker, fakeClock: clock, fakeIdentity: second });
  a.tellPod('web', '{"from":"a"}');
  b.tellPod('web', '{"from":"b"}');
  a.session.setReady();
  b.session.setReady();
  await clock.advance(600_000);
  assert.equal(a.online()?.machine, other);
  assert.equal(broker.retainedNow()[webTopic], '{"from":"a"}');
  assert.equal(JSON.parse(broker.retainedNow()[aside] ?? '{}').state, 'duplicate');
  assert.equal(broker.connects.length, 2);
});

test('what was queued while we were away is old news and makes no duplicate', async () => {
  const identity = new FakeIdentity(own);
  identity.former = [other];
  const { broker, clock, session } = rig({ fakeIdentity: identity });
  await clock.advance(5_000);
  broker.cut();
  broker.say(onlineTopic, otherOnline(), { retain: true });
  await clock.advance(5_000);
  assert.ok(session.connected());
  assert.deepEqual(session.conditions(), []);
});

test('what a NodeOnline on the own topic means', () => {
  const view = { machine: own, session: 7, normal: true, live: true };
  const cases: [Parameters<typeof judgeOnline>, string][] = [
    [[{ state: 'online', machine: own, session: 7 }, false, view], 'echo'],
    [[{ state: 'online', machine: own, session: 7 }, true, view], 'echo'],
    [[{ state: 'online', machine: own, session: 6 }, false, view], 'nothing'],
    [[{ state: 'lost', machine: own, session: 6 }, false, view], 'sayAgain'],
    [[{ state: 'lost', machine: own, session: 6 }, true, view], 'nothing'],
    [[{ state: 'offline', machine: own }, false, view], 'sayAgain'],
    [[{ state: 'lost', machine: other }, false, view], 'sayAgain'],
    [[{ state: 'lost', machine: other }, false, { ...view, normal: false }], 'nothing'],
    [[{ state: 'online', machine: other }, true, view], 'otherOnce'],
    [[{ state: 'online', machine: other }, false, view], 'otherLive'],
    [[{ state: 'online', machine: other }, false, { ...view, live: false }], 'nothing'],
    [[{ state: 'duplicate', machine: other }, false, view], 'nothing'],
  ];
  for (const [args, verdict] of cases) assert.equal(judgeOnline(...args), verdict, JSON.stringify(args));
});

test('what lies on the topic and is no NodeOnline is passed over', () => {
  for (const text of ['', 'x', '[]', 'null', '{}', '{"state":"online"}', '{"state":"up","machine":"m"}', '{"state":1,"machine":2}']) {
    assert.equal(parseOnline(new TextEncoder().encode(text)), undefined, text);
  }
  const odd = parseOnline(new TextEncoder().encode('{"state":"online","machine":"m","heartbeatSeconds":-1,"boot":1.5,"session":"7"}'));
  assert.deepEqual(odd, { state: 'online', machine: 'm' });
});
