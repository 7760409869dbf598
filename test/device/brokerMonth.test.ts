/**
 * Field cases I8 and I10: what the node costs on the wire in the quiet profile, counted packet by packet in virtual time (and the counting held
 * against a real socket), and what twelve hours without a broker leave behind.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expirySeconds } from '../../src/api/topics.ts';
import { MqttBroker } from '../../src/broker/client.ts';
import { rig } from '../broker/rig.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { manifest, World } from '../scenario/world.ts';
import { until } from '../until.ts';
import { countBytes, pingsIn } from './brokerBytes.ts';
import { allFilters, quiet, startNode } from './brokerNode.ts';
import { startProxy, withParts } from './brokerParts.ts';
import { startMosquitto } from './mosquitto.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const heapBytes = (): number => {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
};

/** The profile `quiet` of the contract. */
const profile = { heartbeatSeconds: 900, keepaliveSeconds: 600 };

const expiryOf = (topic: string): number => (topic.includes('/pods/') ? expirySeconds.pod : expirySeconds.sync);

test('the counting of bytes agrees with what goes through a real socket', () =>
  withParts(async (keep) => {
    const m = keep(await startMosquitto());
    const agrees = async (version: 4 | undefined): Promise<void> => {
      const proxy = await startProxy(m.port, keep);
      const wire = countBytes(new MqttBroker());
      const node = keep(startNode([proxy.url], { broker: wire.broker, name: `counted-${version ?? 5}`, ...(version && { version }) }));
      const filters = allFilters(node.topics, ['attic']);
      node.session.follow(filters);
      for (let i = 0; i < 20; i++) node.tellPod(`p${i}`, { status: { text: 'x'.repeat(i * 100) } });
      await until('told and read', () => node.settled() && filters.every((f) => node.snapshots.includes(f)));
      for (let i = 0; i < 20; i++) node.session.send(node.topics.events('default'), `{"n":${i}}`, { qos: 1, expirySeconds: 3600 });
      await until('told', () => node.settled());
      const seen = () => proxy.bytes.fromClients + proxy.bytes.fromServer;
      // PUBACKs of the last ones are on their way
      await quiet(seen, 1_000);
      const off = Math.abs(wire.bytes() - seen()) / seen();
      assert.ok(off < 0.02, `counted ${wire.bytes()}, on the socket ${seen()}`);
    };
    await Promise.all([agrees(undefined), agrees(4)]);
  }));

test('I10: ten quiet pods in the quiet profile cost less than 5 MB a month, a reconnect with everything each day among it', async () => {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  const wire = countBytes(broker);
  const world = new World({ clock });
  const { session } = rig({
    fakeClock: clock,
    fake: broker,
    door: wire.broker,
    heartbeatSeconds: () => profile.heartbeatSeconds,
    keepaliveSeconds: profile.keepaliveSeconds,
  });
  session.follow(allFilters(session.topics, ['attic', 'all-cams']));
  world.onTold.push((topic, payload) => session.tell(topic, payload, { qos: 1, expirySeconds: expiryOf(topic) }));
  // the node itself: as large as a board with all its conditions
  session.tell(session.topics.info, JSON.stringify({ kind: 'Node', status: 'x'.repeat(6_000) }), {
    qos: 1,
    expirySeconds: expirySeconds.info,
  });
  for (let i = 0; i < 10; i++) {
    const containers = ['app', 'side'].map(
      (name) =>
        `{name: ${name}, image: "localhost/busybox:1", resources: {limits: {memory: 64Mi, cpu: 500m}}, ports: [{containerPort: 80}]}`,
    );
    world.folder.files.set(`p${i}.yaml`, manifest(`p${i}`, { containers, labels: { app: `p${i}`, site: 'attic' } }));
  }
  await world.start();
  session.setReady();
  await clock.advance(600_000);
  for (const e of world.events)
    session.send(session.topics.events('default'), JSON.stringify(e), { qos: 1, expirySeconds: expirySeconds.event });
  await clock.advance(600_000);
  assert.ok(wire.connects() >= 1 && session.counters().dirtyTopics === 0);
  const wholeStart = wire.bytes();

  const events = world.events.length;
  await clock.advance(3_600_000);
  assert.equal(world.events.length, events, 'nothing happens in a quiet hour');
  const hour = wire.bytes() - wholeStart + pingsIn(3_600, profile.keepaliveSeconds);
  assert.ok(hour > 1_000, 'heartbeats are counted');

  broker.cut();
  broker.retained.clear();
  broker.sessions.clear();
  const before = wire.bytes();
  await clock.advance(120_000);
  assert.equal(Object.keys(broker.retainedNow(`${session.topics.subtree.slice(0, -2)}/pods/`)).length, 0);
  const reconnect = wire.bytes() - before;
  assert.ok(reconnect > 10_000, 'everything is told again');
  const month = hour * 24 * 30 + reconnect * 30;
  console.log(`  a quiet hour ${hour} bytes, a reconnect with everything ${reconnect}: ${(month / 1e6).toFixed(1)} MB in 30 days`);
  assert.ok(month <= 5e6, `${month} bytes a month`);
});

test('I8: twelve hours without a broker while five pods change all the time: memory is flat, and at the return it is topics and ring, no more', async () => {
  const { broker, clock, session } = rig({ random: Math.random });
  await clock.advance(5_000);
  broker.kill();
  const pods = ['a', 'b', 'c', 'd', 'e'];
  const story = async (hours: number, from: number): Promise<void> => {
    for (let step = 0; step < hours * 360; step++) {
      for (const pod of pods) {
        const restarts = from + step;
        session.tell(session.topics.pod('default', pod), JSON.stringify({ pod, restarts, message: 'x'.repeat(500) }), {
          qos: 1,
          expirySeconds: expirySeconds.pod,
        });
        session.send(session.topics.events('default'), JSON.stringify({ pod, restarts, reason: 'BackOff', message: 'y'.repeat(500) }), {
          qos: 1,
          expirySeconds: expirySeconds.event,
        });
      }
      await clock.advance(10_000);
    }
  };
  await story(2, 0);
  const early = heapBytes();
  await story(10, 720);
  const grown = heapBytes() - early;
  assert.ok(grown < 1_000_000, `${grown} bytes more after ten further hours`);
  const { retainedTopics, eventsWaiting, eventsDropped } = session.counters();
  assert.deepEqual([retainedTopics, eventsWaiting], [5, 200]);
  assert.ok(eventsDropped > 20_000);

  broker.restart();
  const [publishes, connects] = [broker.publishes.length, broker.connects.length];
  while (broker.connects.length === connects) await clock.advance(1_000);
  await clock.advance(30_000);
  const sent = broker.publishes.slice(publishes).filter((p) => !p.topic.endsWith('/online') && !p.topic.endsWith('/_marker'));
  assert.ok(sent.length <= retainedTopics + 200, `${sent.length} messages`);
  for (const pod of pods) assert.equal(JSON.parse(broker.retainedNow()[session.topics.pod('default', pod)] ?? '{}').restarts, 4_319);
});
