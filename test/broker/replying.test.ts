import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokerError } from '../../src/world/broker.ts';
import { rig, root, webTopic } from './rig.ts';

const replyTopic = 'podsched/v1/reply/ops-1/pi-1';
const options = { expirySeconds: 60 };

const code = (want: number | undefined) => (e: unknown) => e instanceof BrokerError && e.code === want;

test('a reply goes out at QoS 1, not retained, with its correlation data, and resolves at PUBACK', async () => {
  const r = rig();
  await r.clock.advance(5_000);
  r.broker.onPublish = (p) => (p.topic === replyTopic ? 'hold' : 'ack');
  let told = false;
  const replied = r.session
    .reply(replyTopic, '{"a":1}', { correlationData: new TextEncoder().encode('c-1'), expirySeconds: 60 })
    .then(() => {
      told = true;
    });
  await r.clock.advance(100);
  assert.equal(told, false);
  r.broker.release();
  await r.clock.advance(10);
  await replied;
  const { at: _at, ...sent } = r.broker.publishes.find((p) => p.topic === replyTopic) ?? assert.fail('nothing was sent');
  assert.deepEqual(sent, {
    clientId: 'podsched-pi-1-aaaaaaaaaaaa',
    topic: replyTopic,
    payload: '{"a":1}',
    qos: 1,
    retain: false,
    expirySeconds: 60,
    correlationData: 'c-1',
  });
});

test('in 3.1.1 a reply has neither expiry nor correlation data', async () => {
  const r = rig();
  r.broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
  await r.clock.advance(5_000);
  await Promise.all([r.session.reply(replyTopic, '{}', { correlationData: Uint8Array.of(1), expirySeconds: 60 }), r.clock.advance(10)]);
  const sent = r.broker.publishes.find((p) => p.topic === replyTopic);
  assert.ok(sent !== undefined && !('expirySeconds' in sent) && !('correlationData' in sent));
});

test('a reply cut off by the end of the connection is rejected, and not sent again', async () => {
  const r = rig();
  await assert.rejects(r.session.reply(replyTopic, '{}', options), code(undefined));
  await r.clock.advance(5_000);
  r.broker.onPublish = (p) => (p.topic === replyTopic ? 'cut' : 'ack');
  const rejected = assert.rejects(r.session.reply(replyTopic, '{}', options), code(undefined));
  await r.clock.advance(10);
  await rejected;
  r.broker.onPublish = () => 'ack';
  await r.clock.advance(60_000);
  assert.equal(r.times(replyTopic), 1);
});

test('a refused reply is rejected with the code', async () => {
  const r = rig();
  await r.clock.advance(5_000);
  r.broker.onPublish = (p) => (p.topic === replyTopic ? 0x87 : 'ack');
  await Promise.all([assert.rejects(r.session.reply(replyTopic, '{}', options), code(0x87)), r.clock.advance(10)]);
});

test('replies go before statuses and after what is urgent, and keep to the rate the broker asked for', async () => {
  const r = rig();
  await r.clock.advance(5_000);
  r.broker.onPublish = () => 'hold';
  // the 20 messages that may wait are out: all further ones queue
  for (let i = 0; i < 25; i++) r.tellPod(`p${i}`);
  const replied = r.session.reply(replyTopic, '{}', options);
  await r.clock.advance(10);
  r.broker.onPublish = () => 'ack';
  r.broker.publishes.splice(0);
  r.broker.release();
  await r.clock.advance(10);
  await replied;
  assert.equal(r.broker.publishes[0]?.topic, replyTopic);
  let quota = 1;
  r.broker.onPublish = (p) => (p.topic === replyTopic && quota-- > 0 ? 0x97 : 'ack');
  r.broker.publishes.splice(0);
  const all = Promise.all([1, 2, 3].map((i) => r.session.reply(replyTopic, `${i}`, options)));
  await r.clock.advance(2_000);
  await all;
  const sent = r.broker.publishes.filter((p) => p.topic === replyTopic);
  assert.deepEqual(sent.map((p) => p.payload).toSorted(), ['1', '1', '2', '3']);
  const [first, last] = [sent[0], sent.at(-1)];
  assert.equal(last?.payload, '1', 'the refused one is sent again');
  assert.ok((last?.at ?? 0) - (first?.at ?? 0) >= 99, `after ${(last?.at ?? 0) - (first?.at ?? 0)} ms`);
});

test('a reply larger than the broker takes is not sent: rejected with 0x95, and largestMessage says how large it may be', async () => {
  const r = rig();
  r.broker.maximumPacketBytes = 2_000;
  await r.clock.advance(5_000);
  const most = r.session.largestMessage(replyTopic);
  assert.ok(most > 1_800 && most < 2_000, `${most}`);
  await assert.rejects(r.session.reply(replyTopic, 'x'.repeat(most + 1), options), code(0x95));
  await Promise.all([r.session.reply(replyTopic, 'x'.repeat(most), options), r.clock.advance(10)]);
  assert.equal(r.broker.connects.length, 1);
});

test('more replies than anybody waits for are refused, not kept', async () => {
  const r = rig();
  await r.clock.advance(5_000);
  r.broker.onPublish = () => 'hold';
  const all = Array.from({ length: 400 }, () => r.session.reply(replyTopic, '{}', options));
  const settled = Promise.allSettled(all);
  await r.clock.advance(10);
  r.broker.onPublish = () => 'ack';
  r.broker.release();
  await r.clock.advance(1_000);
  const refused = (await settled).filter((s) => s.status === 'rejected');
  assert.ok(refused.length > 100 && refused.every((s) => code(0x97)(s.reason)), `${refused.length}`);
});

test('a heartbeat that changed is said at once, and holds from then on', async () => {
  let seconds = 900;
  const r = rig({ heartbeatSeconds: () => seconds });
  await r.clock.advance(10_000);
  seconds = 10;
  const before = r.times(`${root}/online`);
  r.session.heartbeatChanged();
  await r.clock.advance(10);
  assert.equal(r.online()?.heartbeatSeconds, 10);
  await r.clock.advance(60_000);
  assert.equal(r.times(`${root}/online`) - before, 7);
});

for (const [name, codeOfEnd] of [
  ['not authorized', 0x87],
  ['bad user or password', 0x86],
] as const) {
  test(`a connection that the broker ends with "${name}" is not opened again for 5 min, and that is told`, async () => {
    const r = rig();
    await r.clock.advance(5_000);
    r.broker.cut(undefined, codeOfEnd);
    await r.clock.advance(290_000);
    assert.equal(r.broker.connects.length, 1);
    assert.deepEqual(
      r.session.conditions().map((c) => [c.type, c.reason]),
      [['BrokerUnreachable', 'Refused']],
    );
    await r.clock.advance(60_000);
    assert.ok(r.session.connected());
    assert.deepEqual(r.session.conditions(), []);
  });
}

test('a connection ended with "quota exceeded" halves the rate of the next one, and nothing is lost', async () => {
  const r = rig();
  await r.clock.advance(5_000);
  let once = true;
  r.broker.onPublish = (p) => {
    if (p.topic !== webTopic || !once) return 'ack';
    once = false;
    return { closeWith: 0x97 };
  };
  for (const pod of ['web', 'a', 'b', 'c']) r.tellPod(pod);
  await r.clock.advance(100);
  r.broker.publishes.splice(0);
  await r.clock.advance(30_000);
  const sent = r.broker.publishes.filter((p) => p.topic.startsWith(`${root}/pods/`)).map((p) => p.at);
  assert.ok(r.broker.retainedNow()[webTopic]);
  assert.ok(
    sent.slice(1).every((at, i) => at - (sent[i] ?? 0) >= 99),
    `${sent}`,
  );
  assert.deepEqual(r.reports, []);
});
