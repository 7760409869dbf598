import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardReply } from '../../src/remote/guard.ts';

const at = { prefix: 'podsched/v1', node: 'pi-07' };

test('answers go to the reply topics of this node and nowhere else', () => {
  const right = ['podsched/v1/reply/ops/pi-07', 'podsched/v1/reply/o/pi-07', 'podsched/v1/reply/ops-1-x/pi-07'];
  const wrong = [
    '',
    '/',
    'podsched/v1/reply/ops/pi-08',
    'podsched/v1/reply/ops',
    'podsched/v1/reply//pi-07',
    'podsched/v1/reply/ops/pi-07/',
    'podsched/v1/reply/ops/x/pi-07',
    'podsched/v1/reply/+/pi-07',
    'podsched/v1/reply/#/pi-07',
    'podsched/v1/reply/#',
    'podsched/v1/reply/Ops/pi-07',
    'podsched/v1/reply/-ops/pi-07',
    'podsched/v1/reply/ops-/pi-07',
    'podsched/v1/reply/o.ps/pi-07',
    'podsched/v1/reply/o ps/pi-07',
    'podsched/v1/reply/ops\0/pi-07',
    'podsched/v1/reply/ops/pi-07\0',
    'podsched/v1/reply/ops/pi-07/../../desired/all',
    `podsched/v1/reply/${'x'.repeat(129)}/pi-07`,
    'podsched/v1/desired/nodes/pi-07/default/web',
    'podsched/v1/nodes/pi-07/online',
    'podsched/v1/cmd/pi-08/restart',
    'podsched/v2/reply/ops/pi-07',
    'Podsched/v1/reply/ops/pi-07',
    ' podsched/v1/reply/ops/pi-07',
    '$SYS/broker/uptime',
    'homeassistant/device/x/config',
  ];
  for (const topic of right) {
    for (const given of [{ responseTopic: topic }, { replyTo: topic }]) {
      const guarded = guardReply(at, given);
      assert.ok(guarded.ok && guarded.to?.topic === topic, topic);
      assert.equal(guarded.to.requester, topic.split('/')[3]);
    }
  }
  for (const topic of wrong)
    for (const given of [{ responseTopic: topic }, { replyTo: topic }]) assert.equal(guardReply(at, given).ok, false, topic);
});

test('another prefix has other reply topics', () => {
  const guarded = guardReply({ prefix: 'fleet', node: 'a' }, { replyTo: 'fleet/reply/ops/a' });
  assert.ok(guarded.ok && guarded.to?.requester === 'ops');
  assert.equal(guardReply({ prefix: 'fleet', node: 'a' }, { replyTo: 'podsched/v1/reply/ops/a' }).ok, false);
});

test('the response topic of MQTT 5 wins, even when it is the wrong one of the two', () => {
  const [right, other] = ['podsched/v1/reply/ops/pi-07', 'podsched/v1/reply/other/pi-07'];
  const both = guardReply(at, { responseTopic: right, replyTo: other });
  assert.ok(both.ok && both.to?.topic === right);
  assert.equal(guardReply(at, { responseTopic: 'somewhere', replyTo: right }).ok, false);
  assert.deepEqual(guardReply(at, {}), { ok: true });
});

test('correlation data goes back with a response topic, when it is small', () => {
  const responseTopic = 'podsched/v1/reply/ops/pi-07';
  const correlationData = Uint8Array.from([0, 255, 7]);
  assert.deepEqual(guardReply(at, { responseTopic, correlationData }), {
    ok: true,
    to: { topic: responseTopic, requester: 'ops', correlationData },
  });
  assert.deepEqual(guardReply(at, { replyTo: responseTopic, correlationData }), {
    ok: true,
    to: { topic: responseTopic, requester: 'ops' },
  });
  assert.equal(guardReply(at, { responseTopic, correlationData: new Uint8Array(1024) }).ok, true);
  assert.equal(guardReply(at, { responseTopic, correlationData: new Uint8Array(1025) }).ok, false);
});
