import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reads } from '../../src/broker/reads.ts';
import { BrokerError } from '../../src/world/broker.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeIdentity, FakeInbox, onlineTopic, type Rig, type RigOptions, rig, root, webTopic } from './rig.ts';

const commands = 'podsched/v1/cmd/pi-1/+';
const own = 'podsched/v1/desired/nodes/pi-1/#';
const group = 'podsched/v1/desired/groups/cams/#';
const all = 'podsched/v1/desired/all/#';
const marker = `${root}/_marker`;
const filters = [commands, own, group, all];

const topicOf = (filter: string, name = 'default/web') => filter.replace('#', name).replace('+', 'restart');

function followed(o: RigOptions = {}, list: readonly string[] = filters): Rig & { inbox: FakeInbox } {
  const inbox = new FakeInbox();
  const r = rig({ inbox, ...o });
  r.session.follow(list);
  return { ...r, inbox };
}

const asked = (r: Rig): string[] => r.broker.subscribes.flatMap((s) => s.filters);

test('the filters are subscribed one at a time, in order, each with a marker after it, and the birth waits for none of it', async () => {
  const r = followed();
  r.broker.say(topicOf(own), 'a', { retain: true });
  r.broker.say(topicOf(all), 'b', { retain: true });
  let atBirth: string[] | undefined;
  r.broker.onPublish = (p) => {
    if (p.topic === onlineTopic) atBirth ??= r.inbox.lines.slice();
    return 'ack';
  };
  await r.clock.advance(10_000);
  assert.deepEqual(asked(r), [onlineTopic, marker, ...filters]);
  assert.ok(r.broker.subscribes.every((s) => s.filters.length === 1));
  assert.equal(r.times(marker), 4);
  assert.deepEqual(atBirth, ['connected']);
  assert.deepEqual(r.inbox.take(), [
    'connected',
    `snapshot ${commands}`,
    `${topicOf(own)}!`,
    `snapshot ${own}`,
    `snapshot ${group}`,
    `${topicOf(all)}!`,
    `snapshot ${all}`,
  ]);
  assert.deepEqual(r.session.conditions(), []);
});

test('nothing but what was asked for is given on: neither the own topics, nor the subtree, nor a stray', async () => {
  const r = followed();
  r.session.setReady();
  r.tellPod('web');
  await r.clock.advance(20_000);
  r.broker.say(topicOf(own), 'x');
  r.broker.say('podsched/v1/desired/nodes/pi-2/default/web', 'x');
  await r.clock.advance(10);
  assert.deepEqual(
    r.inbox.messages.map((m) => m.topic),
    [topicOf(own)],
  );
});

test('responseTopic and correlationData come through', async () => {
  const r = followed();
  await r.clock.advance(5_000);
  r.broker.say(topicOf(commands), '{}', { responseTopic: 'podsched/v1/reply/ops/pi-1', correlationData: Uint8Array.of(1, 2, 255) });
  r.broker.say(topicOf(commands), '{}');
  await r.clock.advance(10);
  const [a, b] = r.inbox.messages;
  assert.equal(a?.responseTopic, 'podsched/v1/reply/ops/pi-1');
  assert.deepEqual(a?.correlationData, Uint8Array.of(1, 2, 255));
  assert.equal(a?.queued, false);
  assert.deepEqual(Object.keys(b ?? {}).sort(), ['payload', 'queued', 'retain', 'topic']);
});

test('what came before the first marker of a connection may have been queued, and says so', async () => {
  const r = followed();
  await r.clock.advance(5_000);
  r.inbox.take();
  r.broker.cut();
  r.broker.say(topicOf(commands), 'while away');
  r.broker.say(topicOf(own), 'edited while away', { retain: true });
  await r.clock.advance(5_000);
  r.broker.say(topicOf(commands), 'now');
  await r.clock.advance(10);
  assert.deepEqual(r.inbox.take(), [
    'disconnected',
    'connected again',
    `${topicOf(commands)}?`,
    `${topicOf(own)}?`,
    `snapshot ${commands}`,
    `${topicOf(own)}!`,
    `snapshot ${own}`,
    `snapshot ${group}`,
    `snapshot ${all}`,
    topicOf(commands),
  ]);
});

test('on a resumed session, and on a new one, everything is subscribed again', async () => {
  const r = followed();
  await r.clock.advance(5_000);
  for (const forget of [false, true]) {
    r.broker.subscribes.splice(0);
    if (forget) {
      r.broker.kill();
      r.broker.restart();
    } else r.broker.cut();
    await r.clock.advance(60_000);
    assert.deepEqual(
      asked(r).filter((f) => filters.includes(f)),
      filters,
    );
  }
});

test('a marker that does not come back is sent again after 10 s, and the next filter waits for it', async () => {
  const r = followed();
  let lost = 2;
  r.broker.onPublish = (p) => (p.topic === marker && lost-- > 0 ? 'swallow' : 'ack');
  await r.clock.advance(19_000);
  assert.deepEqual(asked(r), [onlineTopic, marker, commands]);
  assert.deepEqual(r.inbox.take(), ['connected']);
  await r.clock.advance(10_000);
  assert.deepEqual(
    r.inbox.take(),
    filters.map((f) => `snapshot ${f}`),
  );
});

test('a marker that never comes back stops nothing: all is subscribed, no snapshot is claimed, and it is told', async () => {
  const r = followed();
  let forbidden = true;
  r.broker.onPublish = (p) => (p.topic === marker && forbidden ? 'swallow' : 'ack');
  await r.clock.advance(180_000);
  assert.deepEqual(asked(r), [onlineTopic, marker, ...filters]);
  r.broker.say(topicOf(own), 'live');
  await r.clock.advance(10);
  assert.deepEqual(r.inbox.take(), ['connected', `${topicOf(own)}?`]);
  assert.deepEqual(
    r.session.conditions().map((c) => [c.type, c.reason]),
    [['BrokerRefusesWrites', 'MarkerNotReadBack']],
  );
  const sent = r.times(marker);
  await r.clock.advance(3_600_000);
  assert.ok(r.times(marker) - sent < 80, `${r.times(marker) - sent} markers in an hour`);
  forbidden = false;
  await r.clock.advance(400_000);
  assert.deepEqual(r.inbox.take(), [`snapshot ${filters.join(' ')}`]);
  assert.deepEqual(r.session.conditions(), []);
});

test('a refused subscription is told, asked for again every 5 min, and keeps nothing else from being followed', async () => {
  const r = followed();
  let refused = true;
  r.broker.onSubscribe = (_, filter) => (filter === group && refused ? 0x87 : undefined);
  await r.clock.advance(10_000);
  assert.deepEqual(r.inbox.take(), ['connected', ...[commands, own, all].map((f) => `snapshot ${f}`)]);
  const [condition] = r.session.conditions();
  assert.equal(condition?.type, 'BrokerRefusesReads');
  assert.equal(condition?.reason, 'SubscriptionRefused');
  assert.ok(condition?.message.includes(`${group} (0x87)`), condition?.message);
  assert.equal(r.broker.connects.length, 1);
  await r.clock.advance(280_000);
  assert.equal(asked(r).filter((f) => f === group).length, 1);
  await r.clock.advance(20_000);
  assert.equal(asked(r).filter((f) => f === group).length, 2);
  refused = false;
  r.broker.say(topicOf(group), 'x', { retain: true });
  await r.clock.advance(300_000);
  assert.deepEqual(r.inbox.take(), [`${topicOf(group)}!`, `snapshot ${group}`]);
  assert.deepEqual(r.session.conditions(), []);
  await r.clock.advance(900_000);
  assert.equal(asked(r).filter((f) => f === group).length, 3);
});

test('a resync asks at once for what was refused', async () => {
  const r = followed();
  r.broker.onSubscribe = (_, filter) => (filter === group ? 0x87 : undefined);
  await r.clock.advance(10_000);
  r.broker.onSubscribe = () => undefined;
  r.inbox.take();
  r.session.resync();
  await r.clock.advance(2_000);
  assert.deepEqual(r.inbox.take(), [`snapshot ${group}`]);
  assert.deepEqual(r.session.conditions(), []);
});

test('everything refused, the own topics too: one condition for it, asked again every 5 min, and statuses are told', async () => {
  const r = followed();
  r.broker.onSubscribe = () => 0x80;
  r.session.setReady();
  r.tellPod('web');
  await r.clock.advance(200_000);
  assert.equal(r.broker.connects.length, 1);
  assert.ok(r.broker.retainedNow()[webTopic]);
  assert.deepEqual(
    r.session.conditions().map((c) => c.type),
    ['BrokerRefusesWrites', 'BrokerRefusesReads'],
  );
  const before = r.broker.subscribes.length;
  r.broker.onSubscribe = () => undefined;
  await r.clock.advance(400_000);
  const again = r.broker.subscribes.slice(before).flatMap((s) => s.filters);
  assert.deepEqual(again.toSorted(), [onlineTopic, marker, `${root}/#`, ...filters].toSorted());
  assert.deepEqual(r.session.conditions(), []);
  assert.deepEqual(r.inbox.take(), ['connected', ...filters.map((f) => `snapshot ${f}`)]);
});

test('a filter over which the broker hangs up is left alone for 5 min after the third time, and costs no status', async () => {
  const r = followed();
  r.broker.hangsUpOn = (filter) => filter === own;
  r.tellPod('web');
  await r.clock.advance(60_000);
  assert.ok(r.session.connected());
  assert.equal(r.broker.connects.length, 4);
  assert.deepEqual(r.reports, []);
  assert.ok(r.broker.retainedNow()[webTopic]);
  assert.match(r.session.conditions()[0]?.message ?? '', /desired\/nodes\/pi-1\/# \(the connection ends/);
  assert.deepEqual(r.inbox.lines.filter((l) => l.startsWith('snapshot')).slice(-2), [`snapshot ${group}`, `snapshot ${all}`]);
  r.broker.hangsUpOn = () => false;
  await r.clock.advance(300_000);
  assert.equal(r.inbox.lines.at(-1), `snapshot ${own}`);
  assert.deepEqual(r.session.conditions(), []);
});

test('connections that break for another reason while a SUBSCRIBE is out make no refusal that lasts', async () => {
  const r = followed();
  let cuts = 2;
  r.broker.hangsUpOn = (filter) => filter === own && cuts-- > 0;
  await r.clock.advance(60_000);
  assert.equal(r.broker.connects.length, 3);
  assert.deepEqual(r.session.conditions(), []);
  assert.deepEqual(
    r.inbox.lines.slice(-4),
    filters.map((f) => `snapshot ${f}`),
  );
});

test('what is new is subscribed and what is gone unsubscribed; the rest is not touched', async () => {
  const r = followed();
  await r.clock.advance(5_000);
  r.broker.subscribes.splice(0);
  r.inbox.take();
  const other = 'podsched/v1/desired/groups/hall/#';
  r.session.follow([commands, own, other, all]);
  await r.clock.advance(5_000);
  assert.deepEqual(asked(r), [other]);
  assert.deepEqual(
    r.broker.unsubscribes.flatMap((u) => u.filters),
    [group],
  );
  r.broker.say(topicOf(group), 'x');
  r.broker.say(topicOf(other), 'y');
  await r.clock.advance(10);
  assert.deepEqual(r.inbox.take(), [`snapshot ${other}`, topicOf(other)]);
});

test('a list that changes while it is being subscribed, or while there is no connection, ends as the last one', async () => {
  const r = followed();
  await r.clock.advance(200);
  r.session.follow([commands, all]);
  r.session.follow([commands, group]);
  await r.clock.advance(5_000);
  const kept = () =>
    [...(r.broker.sessions.values().next().value?.filters.keys() ?? [])].filter((f) => f.includes('/desired/') || f === commands);
  assert.deepEqual(kept(), [commands, group]);
  r.broker.cut();
  r.session.follow([commands, own]);
  await r.clock.advance(5_000);
  assert.deepEqual(kept(), [commands, own]);
});

test('a filter let go and followed again, in one breath too, brings its snapshot again', async () => {
  const r = followed({}, [own]);
  r.broker.say(topicOf(own), 'x', { retain: true });
  await r.clock.advance(5_000);
  r.inbox.take();
  r.session.follow([]);
  r.session.follow([own]);
  await r.clock.advance(5_000);
  assert.deepEqual(r.inbox.take(), [`${topicOf(own)}!`, `snapshot ${own}`]);
  r.session.follow([]);
  await r.clock.advance(5_000);
  r.broker.say(topicOf(own), 'y', { retain: true });
  r.session.follow([own]);
  await r.clock.advance(5_000);
  assert.deepEqual(r.inbox.take(), [`${topicOf(own)}!`, `snapshot ${own}`]);
});

test('a group left while the agent was not running: the first message of it ends the subscription', async () => {
  const fakeClock = new FakeClock();
  const fake = new FakeBroker(fakeClock);
  const client = 'podsched-pi-1-aaaaaaaaaaaa';
  fake.sessions.set(client, { filters: new Map([[group, 1]]), queue: [], connection: undefined });
  const r = followed({ fake, fakeClock }, [commands, own]);
  await r.clock.advance(5_000);
  for (let i = 0; i < 5; i++) fake.say(topicOf(group, `default/p${i}`), 'x');
  await r.clock.advance(10);
  assert.ok(!fake.sessions.get(client)?.filters.has(group));
  assert.equal(fake.unsubscribes.filter((u) => u.filters.includes(group)).length, 1);
  assert.deepEqual(r.inbox.messages, []);
});

test('nothing is followed while listening or as the duplicate; the name taken, everything is', async () => {
  const identity = new FakeIdentity();
  identity.fileMachine = 'bbbbbbbbbbbb';
  const r = followed({ fakeIdentity: identity });
  await r.clock.advance(100_000);
  assert.deepEqual(r.inbox.take(), []);
  assert.deepEqual(asked(r), [onlineTopic]);
  await assert.rejects(r.session.fetch([topicOf(own)]), BrokerError);
  await assert.rejects(r.session.reply('podsched/v1/reply/ops/pi-1', '{}', { expirySeconds: 60 }), BrokerError);
  await r.clock.advance(60_000);
  assert.deepEqual(r.inbox.take(), ['connected', ...filters.map((f) => `snapshot ${f}`)]);
  // and given back again
  r.broker.say(onlineTopic, JSON.stringify({ state: 'online', machine: 'bbbbbbbbbbbb', heartbeatSeconds: 60, session: 5 }), {
    retain: true,
  });
  await r.clock.advance(5_000);
  r.broker.say(topicOf(own), 'x');
  await r.clock.advance(1_000);
  assert.deepEqual(r.inbox.take(), ['disconnected']);
});

test('the session number is the one its online says, and there is none without a connection', async () => {
  const r = followed();
  assert.equal(r.session.session(), undefined);
  await r.clock.advance(5_000);
  assert.equal(r.session.session(), r.online()?.session);
  r.broker.kill();
  await r.clock.advance(1_000);
  assert.equal(r.session.session(), undefined);
});

test('an inbox that throws ends neither the connection nor what comes after', async () => {
  const inbox = new FakeInbox();
  const seen: string[] = [];
  const r = followed({
    inbox: {
      ...inbox,
      message: (m) => {
        seen.push(m.topic);
        throw new Error('odd');
      },
      connected: () => {
        throw new Error('odd');
      },
      snapshot: () => {
        throw new Error('odd');
      },
      disconnected: () => {
        throw new Error('odd');
      },
    },
  });
  r.broker.say(topicOf(own), 'x', { retain: true });
  await r.clock.advance(10_000);
  assert.deepEqual(seen, [topicOf(own)]);
  assert.equal(r.broker.connects.length, 1);
  r.broker.cut();
  await r.clock.advance(10_000);
  assert.equal(seen.length, 2);
});

test('in 3.1.1 the same: all is followed on each connection, and a queue there is none', async () => {
  const r = followed();
  r.broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
  r.broker.say(topicOf(own), 'x', { retain: true });
  await r.clock.advance(5_000);
  r.inbox.take();
  r.broker.cut();
  r.broker.say(topicOf(commands), 'while away');
  await r.clock.advance(5_000);
  assert.deepEqual(r.inbox.take(), [
    'disconnected',
    'connected',
    `snapshot ${commands}`,
    `${topicOf(own)}!`,
    `snapshot ${own}`,
    `snapshot ${group}`,
    `snapshot ${all}`,
  ]);
});

test('a stop tells the inbox once that the connection is gone', async () => {
  const r = followed();
  await r.clock.advance(100);
  const stopped = r.session.stop();
  await r.clock.advance(10_000);
  await stopped;
  assert.equal(r.inbox.lines.filter((l) => l === 'disconnected').length, 1);
});

test('what is no filter is not subscribed: the broker would end the connection over it', () => {
  const reads = new Reads();
  reads.follow(['a/#', '', 'a/#/b', 'x+', 'a/+', 'a/#', 'a\u0000', 'a/\ufffd', 'a\nb', `a/${'x'.repeat(2_000)}`]);
  assert.deepEqual(reads.followed, ['a/#', 'a/+']);
});
