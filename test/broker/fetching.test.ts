import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokerError } from '../../src/world/broker.ts';
import { FakeInbox, type Rig, rig, root } from './rig.ts';

const own = 'podsched/v1/desired/nodes/pi-1/#';
const marker = `${root}/_marker`;
const topicOf = (i: number) => `podsched/v1/desired/nodes/pi-1/default/p${i}`;

async function connected(): Promise<Rig & { inbox: FakeInbox }> {
  const inbox = new FakeInbox();
  const r = rig({ inbox });
  r.session.follow([own]);
  await r.clock.advance(5_000);
  r.broker.subscribes.splice(0);
  return { ...r, inbox };
}

/** How a promise stands. */
function watch(p: Promise<unknown>): { state: 'waits' | 'done' | BrokerError } {
  const w: { state: 'waits' | 'done' | BrokerError } = { state: 'waits' };
  p.then(
    () => {
      w.state = 'done';
    },
    (e) => {
      w.state = e;
    },
  );
  return w;
}

test('what a full queue dropped is asked for by name, 8 at once, and given to the inbox; then the subscriptions are ended', async () => {
  const inbox = new FakeInbox();
  const r = rig({ inbox });
  r.broker.queueLimit = 100;
  for (let i = 0; i < 120; i++) r.broker.say(topicOf(i), `${i}`, { retain: true });
  r.session.follow([own]);
  await r.clock.advance(5_000);
  assert.equal(inbox.messages.length, 100);
  r.broker.subscribes.splice(0);
  const fetched = watch(r.session.fetch(Array.from({ length: 20 }, (_, i) => topicOf(100 + i))));
  await r.clock.advance(1_000);
  assert.equal(fetched.state, 'done');
  assert.deepEqual(
    inbox.texts().slice(100),
    Array.from({ length: 20 }, (_, i) => `${100 + i}`),
  );
  assert.deepEqual(
    r.broker.subscribes.map((s) => s.filters.length),
    [8, 8, 4],
  );
  assert.ok(![...(r.broker.sessions.values().next().value?.filters.keys() ?? [])].some((f) => f.includes('/default/')));
});

test('topics that nobody retains cost half a second of waiting for eight, and no more', async () => {
  const r = await connected();
  const fetched = watch(r.session.fetch([topicOf(1), topicOf(2)]));
  await r.clock.advance(400);
  assert.equal(fetched.state, 'waits', 'some brokers let the marker pass retained messages by');
  await r.clock.advance(200);
  assert.equal(fetched.state, 'done');
  assert.deepEqual(r.inbox.messages, []);
});

test('an exact topic that is followed as such is not unsubscribed', async () => {
  const r = await connected();
  r.session.follow([own, topicOf(1)]);
  await r.clock.advance(5_000);
  const fetched = watch(r.session.fetch([topicOf(1), topicOf(2)]));
  await r.clock.advance(5_000);
  assert.equal(fetched.state, 'done');
  assert.deepEqual(
    r.broker.unsubscribes.map((u) => u.filters),
    [[topicOf(2)]],
  );
});

test('the end of the connection is told to everybody who waits, in turn or not', async () => {
  const r = await connected();
  r.broker.onPublish = (p) => (p.topic === marker ? 'swallow' : 'ack');
  const waits = [r.session.fetch([topicOf(1)]), r.session.fetch([topicOf(2)])].map(watch);
  await r.clock.advance(1_000);
  r.broker.cut();
  await r.clock.advance(10);
  for (const w of waits) assert.ok(w.state instanceof BrokerError, String(w.state));
  r.broker.onPublish = () => 'ack';
  r.broker.kill();
  await r.clock.advance(10);
  await assert.rejects(r.session.fetch([topicOf(3)]), BrokerError);
});

test('a marker that does not come for a minute holds no fetch up for ever, nor those behind it', async () => {
  const r = await connected();
  r.broker.onPublish = (p) => (p.topic === marker ? 'swallow' : 'ack');
  const waits = [r.session.fetch([topicOf(1)]), r.session.fetch([topicOf(2)])].map(watch);
  await r.clock.advance(125_000);
  assert.deepEqual(
    waits.map((w) => w.state),
    ['done', 'done'],
  );
});

test('a refused topic is as one that is not there, and the others of its batch come', async () => {
  const r = await connected();
  r.broker.onSubscribe = (_, filter) => (filter === topicOf(1) ? 0x87 : undefined);
  r.broker.say(topicOf(2), '2', { retain: true });
  await r.clock.advance(10);
  r.inbox.messages.splice(0);
  const fetched = watch(r.session.fetch([topicOf(1), topicOf(2)]));
  await r.clock.advance(5_000);
  assert.equal(fetched.state, 'done');
  assert.deepEqual(r.inbox.texts(), ['2']);
  assert.equal(r.broker.connects.length, 1);
});

test('what is no topic is not asked for: names come from anybody', async () => {
  const r = await connected();
  const fetched = watch(r.session.fetch(['a/#', '', 'a/+/b', 'a\u0000b', 'a/\ud800', `a/${'x'.repeat(2_000)}`]));
  await r.clock.advance(10);
  assert.equal(fetched.state, 'done');
  assert.deepEqual(r.broker.subscribes, []);
});

test('a fetch, a new filter and the reading of the subtree are never out together', async () => {
  const r = await connected();
  const out: string[] = [];
  let most = 0;
  r.broker.onPublish = (p) => {
    if (p.topic === marker) most = Math.max(most, r.broker.subscribes.length - out.push(p.payload));
    return 'ack';
  };
  const fetched = watch(r.session.fetch(Array.from({ length: 30 }, (_, i) => topicOf(i))));
  r.session.follow([own, 'podsched/v1/desired/all/#', 'podsched/v1/rollouts/+']);
  r.session.setReady();
  await r.clock.advance(20_000);
  assert.equal(fetched.state, 'done');
  // four batches, two filters, one subtree; each had its marker before the next was asked for
  assert.equal(r.broker.subscribes.length, 7);
  assert.equal(out.length, 7);
  assert.equal(most, 0);
});
