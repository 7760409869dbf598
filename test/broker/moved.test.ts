/** A node whose address changed: the socket of before would hang until its keepalive failed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rig } from './rig.ts';

test('I5: an address that is gone ends the connection made from it, and a new one is made at once; any other change ends nothing', async () => {
  const { broker, clock, online, session } = rig();
  await clock.advance(5_000);
  assert.equal(broker.connects.length, 1);
  session.addressesAre(['127.0.0.1', '192.0.2.7', '198.51.100.4']);
  await clock.advance(5_000);
  assert.equal(broker.connects.length, 1);
  session.addressesAre(['127.0.0.1', '198.51.100.4']);
  await clock.advance(3_000);
  assert.equal(broker.connects.length, 2);
  assert.equal(online()?.state, 'online');
});
