import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokerError } from '../../src/world/broker.ts';
import { FakeIdentity, onlineTopic, rig, root, webTopic } from './rig.ts';

test('birth: online is said with the session of the CONNECT whose will says lost', async () => {
  const { broker, clock, online, session } = rig();
  await clock.advance(10);
  const will = broker.connects[0]?.options.will;
  assert.equal(will?.topic, onlineTopic);
  assert.equal(will?.delaySeconds, 30);
  const lost = JSON.parse(will?.payload ?? '');
  assert.equal(lost.state, 'lost');
  assert.equal(online()?.state, 'online');
  assert.equal(online()?.session, lost.session);
  assert.equal(online()?.boot, 3);
  assert.ok(session.connected());
  assert.deepEqual(session.conditions(), []);
});

test('the session number rises with each connection', async () => {
  const { broker, clock } = rig();
  await clock.advance(10);
  broker.cut();
  await clock.advance(2_000);
  broker.cut();
  await clock.advance(5_000);
  const numbers = broker.connects.map((c) => JSON.parse(c.options.will.payload).session);
  assert.equal(numbers.length, 3);
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b),
  );
});

test('online is said again 2 s after connect, and so is info', async () => {
  const { clock, session, times } = rig();
  session.tell(`${root}/info`, '{}', { qos: 1, expirySeconds: 30 * 86_400 });
  await clock.advance(1_000);
  assert.equal(times(onlineTopic), 1);
  assert.equal(times(`${root}/info`), 1);
  await clock.advance(1_500);
  assert.equal(times(onlineTopic), 2);
  assert.equal(times(`${root}/info`), 2);
});

test('online is said at each heartbeat, expires after three, and the hook for the summary runs with it', async () => {
  let beats = 0;
  const { broker, clock, times } = rig({ onHeartbeat: () => beats++, heartbeatSeconds: () => 10 });
  await clock.advance(2_500);
  const before = times(onlineTopic);
  await clock.advance(60_000);
  assert.equal(times(onlineTopic) - before, 6);
  assert.equal(beats, 6);
  assert.ok(broker.publishes.filter((p) => p.topic === onlineTopic).every((p) => p.expirySeconds === 30));
});

test('a clean stop says offline and disconnects: no will', async () => {
  const { broker, clock, online, running, session } = rig();
  await clock.advance(10);
  const stopped = session.stop();
  await clock.advance(10);
  await stopped;
  await running;
  assert.equal(online()?.state, 'offline');
  assert.deepEqual(broker.online, []);
  await clock.advance(60_000);
  assert.equal(online()?.state, 'offline');
  assert.equal(broker.connects.length, 1);
});

test('offline is the last word, though a moment to say online comes while it is being said', async () => {
  // before the second birth at 2 s, after it (then our own offline, heard, asks for an answer), and before a heartbeat
  for (const at of [10, 1_500, 1_995, 5_000, 58_500]) {
    const { broker, clock, online, running, session } = rig();
    await clock.advance(at);
    broker.onPublish = () => 'hold'; // heard by all, the node too, and not acknowledged: the farewell takes its 2 s
    const stopped = session.stop();
    const said = broker.publishes.length;
    await clock.advance(4_000);
    await stopped;
    await running;
    const after = broker.publishes.slice(said).filter((p) => p.topic === onlineTopic && p.payload.includes('"online"'));
    assert.deepEqual(after, [], `stopped at ${at} ms`);
    assert.equal(online()?.state, 'offline', `stopped at ${at} ms`);
  }
});

test('a stop ends within seconds though the broker acknowledges nothing', async () => {
  const { broker, clock, online, running, session } = rig();
  await clock.advance(10);
  broker.onPublish = () => 'lose';
  const stopped = session.stop();
  await clock.advance(5_000);
  await stopped;
  await running;
  assert.deepEqual(broker.online, []);
  // an offline that nobody acknowledged may not be there: then the will says it
  await clock.advance(31_000);
  assert.equal(online()?.state, 'lost');
});

test('a stop while no broker is reachable ends at once', async () => {
  const { broker, clock, running, session } = rig();
  broker.down = true;
  await clock.advance(10_000);
  await session.stop();
  await running;
});

test('lost, heard while connected, is answered with online', async () => {
  const { broker, clock, online } = rig();
  await clock.advance(5_000);
  broker.say(onlineTopic, JSON.stringify({ state: 'lost', machine: 'aaaaaaaaaaaa', session: 1 }), { retain: true });
  await clock.advance(10);
  assert.equal(online()?.state, 'online');
});

test('a flood of lost is answered once a second at most', async () => {
  const { broker, clock, times } = rig();
  await clock.advance(5_000);
  const before = times(onlineTopic);
  for (let i = 0; i < 100; i++) {
    broker.say(onlineTopic, JSON.stringify({ state: 'lost', machine: 'aaaaaaaaaaaa', session: 1 }));
    await clock.advance(30);
  }
  assert.ok(times(onlineTopic) - before <= 4, `${times(onlineTopic) - before} answers`);
});

test('field case I1: the old will after the new birth does not stay', async () => {
  const { broker, clock, online } = rig();
  await clock.advance(5_000);
  const old = broker.connects[0]?.options.will.payload ?? '';
  broker.cut();
  await clock.advance(3_000);
  assert.equal(online()?.state, 'online');
  // a broker that ignores the delay, or a cluster's late one
  broker.say(onlineTopic, old, { retain: true });
  await clock.advance(2_000);
  assert.equal(online()?.state, 'online');
  assert.ok((online()?.session ?? 0) > JSON.parse(old).session);
});

test('field case I1: the agent gone, lost is told when the will delay is over', async () => {
  const { broker, clock, online } = rig();
  await clock.advance(5_000);
  broker.cut();
  broker.connackCode = () => 0x89;
  await clock.advance(29_000);
  assert.equal(online()?.state, 'online');
  await clock.advance(2_000);
  assert.equal(online()?.state, 'lost');
});

test('field case I1: broker and agent gone, only the broker back: the retained online expires after three heartbeats', async () => {
  const { broker, clock, online } = rig();
  await clock.advance(5_000);
  broker.kill();
  broker.connackCode = () => 0x89;
  broker.restart({ keepRetained: true });
  assert.equal(online()?.state, 'online');
  await clock.advance(3 * 60_000);
  assert.equal(online(), undefined);
});

test('our own online not read back in 10 s is the condition BrokerRefusesWrites, until it comes back', async () => {
  const { broker, clock, session } = rig();
  broker.onPublish = (p) => (p.topic === onlineTopic ? 'swallow' : 'ack');
  await clock.advance(9_000);
  assert.deepEqual(session.conditions(), []);
  await clock.advance(2_000);
  assert.deepEqual(
    session.conditions().map((c) => [c.type, c.reason]),
    [['BrokerRefusesWrites', 'OnlineNotReadBack']],
  );
  broker.onPublish = () => 'ack';
  await clock.advance(60_000);
  assert.deepEqual(session.conditions(), []);
});

test('a broker that refuses a topic is asked again after 5 min, not before, and the others go on', async () => {
  const { broker, clock, reports, session, tellPod, times } = rig();
  await clock.advance(10);
  broker.onPublish = (p) => (p.topic === webTopic ? 0x87 : 'ack');
  tellPod('web');
  tellPod('db');
  await clock.advance(200_000);
  assert.equal(times(webTopic), 1);
  assert.equal(session.conditions()[0]?.type, 'BrokerRefusesWrites');
  assert.equal(reports.length, 1);
  assert.ok(broker.retainedNow()[`${root}/pods/default/db`]);
  broker.onPublish = () => 'ack';
  await clock.advance(110_000);
  assert.ok(broker.retainedNow()[webTopic]);
  assert.deepEqual(session.conditions(), []);
});

test('a broker that speaks 3.1.1 only is asked once for MQTT 5, and that is remembered', async () => {
  const { broker, clock, session } = rig();
  broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
  await clock.advance(10);
  assert.ok(session.connected());
  broker.cut();
  await clock.advance(5_000);
  assert.deepEqual(
    broker.connects.map((c) => c.options.protocolVersion),
    [5, 4, 4],
  );
  assert.ok(session.connected());
});

test('servers are tried in order, and the version is remembered for each', async () => {
  const r = rig({ servers: ['mqtt://a', 'mqtt://b'] });
  r.broker.connackCode = (o) => (o.server === 'mqtt://a' ? 0x88 : o.protocolVersion === 5 ? 0x84 : undefined);
  await r.clock.advance(10);
  assert.deepEqual(
    r.broker.connects.map((c) => `${c.options.server} ${c.options.protocolVersion}`),
    ['mqtt://a 5', 'mqtt://b 5', 'mqtt://b 4'],
  );
  assert.ok(r.session.connected());
});

test('a server that would be spoken to in plain text over a network is not spoken to, and told', async () => {
  const r = rig({ insecure: false, servers: ['mqtt://192.168.1.2', 'mqtt://127.0.0.1'] });
  await r.clock.advance(10);
  assert.deepEqual(
    r.broker.connects.map((c) => c.options.server),
    ['mqtt://127.0.0.1'],
  );
  const alone = rig({ insecure: false });
  await alone.clock.advance(100_000);
  assert.equal(alone.broker.connects.length, 0);
  assert.match(alone.session.conditions()[0]?.message ?? '', /mqtt\.insecure/);
});

test('credentials are read at each attempt', async () => {
  let n = 0;
  const r = rig({ credentials: async () => ({ username: `u${++n}` }) });
  await r.clock.advance(10);
  r.broker.cut();
  await r.clock.advance(2_000);
  assert.deepEqual(
    r.broker.connects.map((c) => c.options.username),
    ['u1', 'u2'],
  );
});

test('unreadable credentials are a condition, and the agent tries again', async () => {
  let broken = true;
  const r = rig({
    credentials: async () => {
      if (broken) throw new Error('EACCES: mqtt.password');
      return {};
    },
  });
  await r.clock.advance(3_000);
  assert.match(r.session.conditions()[0]?.message ?? '', /EACCES/);
  broken = false;
  await r.clock.advance(60_000);
  assert.ok(r.session.connected());
  assert.deepEqual(r.session.conditions(), []);
});

test('no broker: the agent says so, and connects when one is there', async () => {
  const { broker, clock, session, tellPod } = rig();
  broker.down = true;
  tellPod('web');
  await clock.advance(600_000);
  assert.deepEqual(
    session.conditions().map((c) => c.type),
    ['BrokerUnreachable'],
  );
  broker.down = false;
  await clock.advance(120_000);
  assert.ok(broker.retainedNow()[webTopic]);
});

test('an attempt that gets no answer is given up after 15 s', async () => {
  const r = rig({
    door: { connect: (_o, _h, signal) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))) },
  });
  await r.clock.advance(14_000);
  assert.deepEqual(r.session.conditions(), []);
  await r.clock.advance(2_000);
  assert.match(r.session.conditions()[0]?.message ?? '', /no answer within 15 s/);
  await r.session.stop();
  await r.running;
});

test('delays grow while a broker accepts and drops, up to 120 s, and begin anew after 30 s of stable session', async () => {
  const { broker, clock } = rig();
  broker.dropAfterConnack = true;
  await clock.advance(20 * 60_000);
  const gaps = broker.connects.slice(1).map((c, i) => Math.round(c.at - (broker.connects[i]?.at ?? 0)));
  assert.deepEqual(gaps.slice(0, 8), [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
  assert.ok(
    gaps.slice(8).every((g) => g === 60_000),
    'the cap is 120 s, and random() is one half here',
  );
  broker.dropAfterConnack = false;
  await clock.advance(120_000);
  const before = broker.connects.length;
  broker.cut();
  await clock.advance(600);
  assert.equal(broker.connects.length, before + 1);
});

test('taken over once: back with jitter; twice within 5 min: 5 min of quiet, and told', async () => {
  const { broker, clock, session } = rig();
  await clock.advance(40_000);
  broker.cut(undefined, 0x8e);
  await clock.advance(1_000);
  assert.ok(session.connected());
  await clock.advance(40_000);
  broker.cut(undefined, 0x8e);
  await clock.advance(290_000);
  assert.ok(!session.connected());
  assert.deepEqual(
    session.conditions().map((c) => c.reason),
    ['TakenOver'],
  );
  await clock.advance(15_000);
  assert.ok(session.connected());
});

for (const code of [4, 5, 0x86, 0x87]) {
  test(`CONNACK 0x${code.toString(16)}: that server is left alone for 5 min, and told`, async () => {
    const { broker, clock, session } = rig();
    broker.connackCode = () => code;
    await clock.advance(290_000);
    assert.equal(broker.connects.length, 1);
    assert.deepEqual(
      session.conditions().map((c) => [c.type, c.reason]),
      [['BrokerUnreachable', 'Refused']],
    );
    broker.connackCode = () => undefined;
    await clock.advance(40_000);
    assert.ok(session.connected());
  });
}

test('a server that refuses us does not keep the other from being used', async () => {
  const r = rig({ servers: ['mqtt://a', 'mqtt://b'] });
  r.broker.connackCode = (o) => (o.server === 'mqtt://a' ? 0x87 : undefined);
  await r.clock.advance(1_000);
  assert.ok(r.session.connected());
});

test('a subscription that is refused ends nothing', async () => {
  const { broker, clock, session, tellPod } = rig();
  broker.onSubscribe = () => 0x87;
  session.setReady();
  tellPod('web');
  await clock.advance(60_000);
  assert.equal(broker.connects.length, 1);
  assert.ok(broker.retainedNow()[webTopic]);
  assert.equal(session.conditions()[0]?.type, 'BrokerRefusesWrites');
});

test('a lost boot counter goes on after the greatest retained one before anything is told', async () => {
  const identity = new FakeIdentity();
  identity.known = undefined;
  const atAdoption: number[] = [];
  const { broker, clock, online, tellPod } = rig({
    fakeIdentity: identity,
    onBootAdopted: () => {
      atAdoption.push(broker.publishes.filter((p) => !p.topic.endsWith('/_marker')).length);
      tellPod('web', `{"boot":${identity.boot()}}`);
    },
  });
  broker.say(onlineTopic, JSON.stringify({ state: 'lost', machine: 'aaaaaaaaaaaa', boot: 41 }), { retain: true });
  tellPod('web');
  await clock.advance(100);
  assert.equal(identity.known, 42);
  assert.equal(online()?.boot, 42);
  assert.equal(JSON.parse(broker.connects.at(-1)?.options.will.payload ?? '').boot, 42);
  const first = broker.publishes.find((p) => p.topic === onlineTopic || p.topic === webTopic);
  assert.equal(JSON.parse(first?.payload ?? '').boot, 42);
  assert.deepEqual(atAdoption, [0], 'nothing was told before');
  assert.equal(broker.retainedNow()[webTopic], '{"boot":42}');
});

test('a lost boot counter, and nothing retained: 1, on the same connection', async () => {
  const identity = new FakeIdentity();
  identity.known = undefined;
  const { broker, clock, online } = rig({ fakeIdentity: identity });
  await clock.advance(100);
  assert.equal(online()?.boot, 1);
  assert.equal(broker.connects.length, 1);
});

test('a lost boot counter and a marker that never comes back hold nothing up for ever', async () => {
  const identity = new FakeIdentity();
  identity.known = undefined;
  const { broker, clock, online } = rig({ fakeIdentity: identity });
  broker.onPublish = (p) => (p.topic.endsWith('_marker') ? 'lose' : 'ack');
  await clock.advance(21_000);
  assert.equal(online()?.boot, 1);
});

test('an error of the broker that is none of MQTT does not end the session', async () => {
  let failures = 3;
  const r = rig();
  const inner = r.broker;
  const s = rig({
    fakeClock: r.clock,
    door: {
      connect: async (o, h, signal) => {
        if (failures-- > 0) throw failures === 1 ? new TypeError('odd') : new BrokerError('getaddrinfo ENOTFOUND');
        return inner.connect(o, h, signal);
      },
    },
  });
  await r.clock.advance(60_000);
  assert.ok(s.session.connected());
});

test('I2: a broker that kept the session and lost what it retained is told everything again', async () => {
  const { broker, clock, session, tellPod } = rig();
  tellPod('web');
  session.setReady();
  await clock.advance(10_000);
  assert.ok(broker.retainedNow()[webTopic]);
  for (const keepRetained of [true, false]) {
    const before = broker.publishes.filter((p) => p.topic === webTopic).length;
    broker.kill();
    broker.restart({ keepRetained, keepSessions: true });
    await clock.advance(60_000);
    assert.ok(broker.retainedNow()[webTopic], `kept: ${keepRetained}`);
    const more = broker.publishes.filter((p) => p.topic === webTopic).length - before;
    assert.equal(more, keepRetained ? 0 : 1, `kept: ${keepRetained}`);
  }
});
