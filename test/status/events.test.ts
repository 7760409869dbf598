import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { V1Event } from '../../src/api/status.ts';
import { nodeTopics } from '../../src/api/topics.ts';
import { EventRecorder } from '../../src/status/events.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

class CountingStore extends MemoryStore {
  writes = 0;
  override async put(key: string, value: unknown): Promise<void> {
    this.writes++;
    await super.put(key, value);
  }
}

function setUp(o: { clock?: FakeClock; store?: CountingStore } = {}) {
  const clock = o.clock ?? new FakeClock();
  const store = o.store ?? new CountingStore();
  const told: { topic: string; event: V1Event; expirySeconds: number; at: number }[] = [];
  let seq = 1000;
  const events = new EventRecorder({
    clock,
    log: silentLog,
    store,
    topics: nodeTopics('podsched/v1', 'pi-07'),
    nodeName: 'pi-07',
    tell: (topic, payload, { expirySeconds }) =>
      told.push({ topic, event: JSON.parse(payload), expirySeconds, at: clock.monotonic() - 1_000_000 }),
    boot: () => 3,
    seq: () => ++seq,
  });
  return { clock, store, told, events };
}
const web = { kind: 'Pod', namespace: 'default', name: 'web', uid: 'u1' } as const;
const tenMinutes = 600_000;

test('an event is told at once as a v1 Event, with a name that never comes again', () => {
  const { events, told } = setUp();
  events.event(web, 'Warning', 'BackOff', 'Back-off restarting', 'spec.containers{c}');
  assert.equal(told[0]?.topic, 'podsched/v1/nodes/pi-07/events/default');
  assert.equal(told[0]?.expirySeconds, 3600);
  assert.deepEqual(told[0]?.event, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: 'web.300000000003e9',
      namespace: 'default',
      annotations: { 'podsched.dev/boot': '3', 'podsched.dev/seq': '1002' },
    },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'web', uid: 'u1', apiVersion: 'v1', fieldPath: 'spec.containers{c}' },
    type: 'Warning',
    reason: 'BackOff',
    message: 'Back-off restarting',
    source: { component: 'podsched', host: 'pi-07' },
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    count: 1,
  });
});

test('repeats of ten minutes are one event, told again once with its count', async () => {
  const { clock, events, told } = setUp();
  for (let i = 0; i < 20; i++) {
    events.event(web, 'Warning', 'BackOff', 'm');
    await clock.advance(10_000);
  }
  assert.equal(told.length, 1);
  assert.deepEqual([events.list()[0]?.count, events.list()[0]?.lastTimestamp], [20, '2026-01-01T00:03:10Z'], 'the list counts at once');
  await clock.advance(tenMinutes);
  assert.deepEqual([told.length, told[1]?.event.count, told[1]?.event.metadata.name === told[0]?.event.metadata.name], [2, 20, true]);
  await clock.advance(tenMinutes);
  assert.equal(told.length, 2, 'a quiet one is closed');
  assert.equal(clock.sleeping, 0);
  events.event(web, 'Warning', 'BackOff', 'm');
  assert.deepEqual([told.length, told[2]?.event.count, told[2]?.event.metadata.name === told[0]?.event.metadata.name], [3, 1, false]);
});

test('another instance, reason, message, type or container is another event', () => {
  const { events } = setUp();
  events.event(web, 'Normal', 'A', 'm');
  events.event({ ...web, uid: 'u2' }, 'Normal', 'A', 'm');
  events.event(web, 'Normal', 'B', 'm');
  events.event(web, 'Normal', 'A', 'n');
  events.event(web, 'Warning', 'A', 'm');
  events.event(web, 'Normal', 'A', 'm', 'spec.containers{c}');
  events.event(web, 'Normal', 'A', 'm');
  assert.equal(events.list().length, 6);
});

test('at most five a second are told; the rest waits, and what is over the row is dropped and counted', async () => {
  const { clock, events, told } = setUp();
  for (let i = 0; i < 120; i++) events.event({ ...web, uid: `u${i}` }, 'Normal', 'Started', 'm');
  assert.equal(told.length, 5);
  assert.equal(events.dropped(), 15);
  await clock.advance(60_000);
  assert.equal(told.length, 105);
  for (const { at } of told) {
    const inOne = told.filter((t) => t.at >= at && t.at < at + 1000);
    assert.ok(inOne.length <= 5, `${inOne.length} in the second from ${at} ms on`);
  }
  assert.equal(told.at(-1)?.at, 20_000, 'no slower than that either');
  assert.equal(events.list().length, 120, 'the list has them all');
});

test('five a second holds wherever the second begins: after a calm minute no ten come at once', async () => {
  const { clock, events, told } = setUp();
  await clock.advance(60_000);
  for (let i = 0; i < 30; i++) {
    events.event({ ...web, uid: `u${i}` }, 'Normal', 'Started', 'm');
    await clock.advance(100);
  }
  for (const { at } of told) assert.ok(told.filter((t) => t.at >= at && t.at < at + 1000).length <= 5, `from ${at} ms on`);
  await clock.advance(10_000);
  assert.equal(told.length, 30);
  assert.equal(clock.sleeping, 1, 'only the ends of the ten minutes are waited for');
});

test('a repeat that is told with its count takes its turn among the five', async () => {
  const { clock, events, told } = setUp();
  for (let i = 0; i < 8; i++) events.event({ ...web, uid: `u${i}` }, 'Normal', 'Started', 'm');
  await clock.advance(10_000);
  for (let i = 0; i < 8; i++) events.event({ ...web, uid: `u${i}` }, 'Normal', 'Started', 'm');
  assert.equal(told.length, 8);
  await clock.advance(660_000);
  const counted = told.slice(8);
  assert.deepEqual(
    counted.map((t) => t.event.count),
    Array(8).fill(2),
  );
  for (const { at } of counted) assert.ok(counted.filter((t) => t.at >= at && t.at < at + 1000).length <= 5);
});

test('a repeat of an event that still waits goes with it', async () => {
  const { clock, events, told } = setUp();
  for (let i = 0; i < 6; i++) events.event(web, 'Normal', 'Started', `${i}`);
  events.event(web, 'Normal', 'Started', '5');
  await clock.advance(1000);
  assert.deepEqual([told.length, told[5]?.event.count], [6, 2]);
});

test('the list holds the last 500, the latest last, and can be asked for one object', () => {
  const { events } = setUp();
  for (let i = 0; i < 600; i++) events.event({ ...web, name: `p${i}`, uid: `u${i}` }, 'Normal', 'A', 'm');
  assert.equal(events.list().length, 500);
  events.event({ kind: 'Pod', namespace: 'lab', name: 'p599' }, 'Normal', 'A', 'm');
  assert.deepEqual(
    events.list({ namespace: 'lab' }).map((e) => e.involvedObject.name),
    ['p599'],
  );
  assert.equal(events.list({ name: 'p599' }).length, 2);
  events.event({ ...web, name: 'p150', uid: 'u150' }, 'Normal', 'A', 'm');
  assert.deepEqual([events.list().at(-1)?.involvedObject.name, events.list().at(-1)?.count], ['p150', 2]);
});

test('a flood of events of their own keeps no more open than the ring holds: the oldest is then a new event again', () => {
  const { clock, events } = setUp();
  const flood = (i: number) => events.event({ ...web, uid: `u${i}` }, 'Warning', 'Flood', 'm');
  for (let i = 0; i < 700; i++) flood(i);
  assert.ok(clock.sleeping <= 2, `${clock.sleeping} timers`);
  flood(0);
  flood(699);
  const of = (uid: string) =>
    events
      .list()
      .filter((e) => e.involvedObject.uid === uid)
      .map((e) => e.count);
  assert.deepEqual([of('u0'), of('u699')], [[1], [2]]);
});

test('one thing said in other words each second is ten events and one that counts the rest, and takes nobody else’s place', async () => {
  const { clock, events, told } = setUp();
  const quiet = { ...web, name: 'quiet', uid: 'u2' };
  events.event(quiet, 'Normal', 'Started', 'm');
  for (let i = 0; i < 590; i++) {
    events.event(web, 'Warning', 'Unhealthy', `failed at ${i}`, 'spec.containers{a}');
    await clock.advance(1000);
  }
  assert.equal(events.list({ name: 'quiet' }).length, 1);
  const said = events.list({ name: 'web' });
  assert.deepEqual([said.length, said.at(-1)?.message, said.at(-1)?.count], [11, '(combined from similar events): failed at 589', 580]);
  // another container, another instance, and what is known already keep their own words
  events.event(web, 'Warning', 'Unhealthy', 'other', 'spec.containers{b}');
  events.event({ ...web, uid: 'u3' }, 'Warning', 'Unhealthy', 'other', 'spec.containers{a}');
  events.event(web, 'Warning', 'Unhealthy', 'failed at 3', 'spec.containers{a}');
  assert.deepEqual(
    events
      .list({ name: 'web' })
      .slice(-3)
      .map((e) => [e.message, e.count]),
    [
      ['other', 1],
      ['other', 1],
      ['failed at 3', 2],
    ],
  );
  await clock.advance(3_600_000);
  assert.ok(told.length < 40, `${told.length} told`);
});

test('a file without an object has its events too', () => {
  const { events, told } = setUp();
  events.event({ file: 'web.yaml' }, 'Warning', 'Invalid', 'web.yaml:3:7: expected a mapping');
  assert.deepEqual(told[0]?.event.involvedObject, { kind: 'File', namespace: 'default', name: 'web.yaml' });
  assert.equal(events.list({ name: 'web.yaml' }).length, 1);
});

test('the ring is written at most once a second, on change only, and is there after an agent restart', async () => {
  const one = setUp();
  await one.events.load();
  for (let i = 0; i < 50; i++) {
    one.events.event({ ...web, uid: `u${i}` }, 'Normal', 'Started', 'm');
    await one.clock.advance(100);
  }
  assert.ok(one.store.writes <= 7, `${one.store.writes} writes in 5 s`);
  await one.clock.advance(60_000);
  const { writes } = one.store;
  await one.clock.advance(300_000);
  assert.equal(one.store.writes, writes, 'a quiet agent writes nothing');

  const two = setUp({ clock: one.clock, store: one.store });
  await two.events.load();
  assert.deepEqual(two.events.list(), one.events.list());
  assert.equal(two.told.length, 0);
  two.events.event({ ...web, uid: 'u49' }, 'Normal', 'Started', 'm');
  assert.deepEqual([two.told.length, two.events.list().at(-1)?.count], [0, 2], 'repeats are merged over the restart');
});

test('flush writes without waiting for the second to pass', async () => {
  const { events, store } = setUp();
  await events.load();
  events.event(web, 'Normal', 'A', '1');
  await events.flush();
  events.event(web, 'Normal', 'A', '2');
  await events.flush();
  assert.match(store.entries.get('events') ?? '', /"message":"2"/);
});

test('what is said before the ring of an earlier agent was read does not write over it, and is stored with it', async () => {
  const one = setUp();
  await one.events.load();
  one.events.event(web, 'Normal', 'Early', 'of the first agent');
  await one.events.flush();
  const two = setUp({ clock: one.clock, store: one.store });
  two.events.event(web, 'Warning', 'Late', 'before the ring is read');
  await two.clock.advance(5_000);
  await two.events.load();
  await two.events.flush();
  const three = setUp({ clock: one.clock, store: one.store });
  await three.events.load();
  for (const { events } of [two, three])
    assert.deepEqual(
      events
        .list()
        .map((e) => e.reason)
        .sort(),
      ['Early', 'Late'],
    );
});

test('a long message is cut', () => {
  const { events } = setUp();
  events.event(web, 'Warning', 'Failed', 'x'.repeat(5000));
  assert.ok((events.list()[0]?.message.length ?? 0) <= 1024);
});
