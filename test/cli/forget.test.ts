import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { forget } from '../../src/cli/forget.ts';
import { type Bed, fleetBed, online, root } from './fleetBed.ts';

const own = (rest: string): string => `${root}/nodes/pi-07/${rest}`;
const ends = (code: number, text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof CommandError, String(e));
  assert.match(e.message, text);
  assert.equal(e.code, code);
  return true;
};

function fill(bed: Bed, state: 'online' | 'lost' = 'lost'): void {
  bed.broker.say(own('online'), online('pi-07', state), { retain: true });
  for (const topic of ['info', 'summary', 'pods/default/web', 'sync/default/web', 'duplicates/bbbb'])
    bed.broker.say(own(topic), '{}', { retain: true });
  bed.broker.say('homeassistant/device/pi-07/config', '{}', { retain: true });
  bed.broker.say(`${root}/nodes/pi-08/online`, online('pi-08'), { retain: true });
  bed.broker.say(`${root}/desired/nodes/pi-07/default/web`, '{}', { retain: true });
}

test('everything a dead node told goes, and its device; what is desired of it and other nodes stay', async () => {
  const bed = await fleetBed();
  fill(bed);
  assert.equal(await bed.run(forget('pi-07', {}, bed.remote, bed.print)), exitCodes.done);
  assert.deepEqual(Object.keys(bed.retained()).sort(), [`${root}/desired/nodes/pi-07/default/web`, `${root}/nodes/pi-08/online`]);
  assert.equal(bed.said(), 'node/pi-07 forgotten: 6 topics cleared\n');
});

test('a node whose last word was online is listened for over two heartbeats', async () => {
  const bed = await fleetBed();
  fill(bed, 'online');
  const before = bed.clock.monotonic();
  await bed.run(forget('pi-07', {}, bed.remote, bed.print));
  assert.ok(bed.clock.monotonic() - before >= 120_000);
  assert.match(bed.err.join(''), /listening for 120 s/);
});

test('a node that is heard meanwhile is not forgotten', async () => {
  const bed = await fleetBed();
  fill(bed, 'online');
  const work = forget('pi-07', {}, bed.remote, bed.print);
  work.catch(() => {});
  await bed.clock.advance(30_000);
  bed.broker.say(own('online'), online('pi-07'), { retain: true });
  await assert.rejects(bed.run(work), ends(exitCodes.failed, /is alive/));
  assert.equal(Object.keys(bed.retained(own(''))).length, 6);
});

test('a late will is no life', async () => {
  const bed = await fleetBed();
  fill(bed, 'online');
  const work = forget('pi-07', {}, bed.remote, bed.print);
  await bed.clock.advance(30_000);
  bed.broker.say(own('online'), online('pi-07', 'lost'), { retain: true });
  assert.equal(await bed.run(work), exitCodes.done);
});

test('with --force nobody is listened for', async () => {
  const bed = await fleetBed();
  fill(bed, 'online');
  const before = bed.clock.monotonic();
  await bed.run(forget('pi-07', { force: true }, bed.remote, bed.print));
  assert.ok(bed.clock.monotonic() - before < 10_000);
});

test('a node of which nothing is there is not found, a name that is none is a mistake', async () => {
  const bed = await fleetBed();
  await assert.rejects(bed.run(forget('pi-09', {}, bed.remote, bed.print)), ends(exitCodes.notFound, /nothing of a node "pi-09"/));
  await assert.rejects(bed.run(forget('pi/#', {}, bed.remote, bed.print)), ends(exitCodes.usage, /name of a node/));
});

test('a broker that forbids it says so in MQTT 5, and is noticed in 3.1.1', async () => {
  const five = await fleetBed(5);
  fill(five);
  five.broker.onPublish = (p) => (p.topic.startsWith(own('')) ? 0x87 : 'ack');
  await assert.rejects(
    five.run(forget('pi-07', {}, five.remote, five.print)),
    ends(exitCodes.failed, /does not take .* from this user \(0x87\)/),
  );
  const old = await fleetBed(4);
  fill(old);
  old.broker.onPublish = (p) => (p.topic.startsWith(own('')) ? 'swallow' : 'ack');
  await assert.rejects(old.run(forget('pi-07', {}, old.remote, old.print)), ends(exitCodes.failed, /is still there/));
});

test('who may not clear the device of Home Assistant is told, and the node is forgotten all the same', async () => {
  const bed = await fleetBed();
  fill(bed);
  bed.broker.onPublish = (p) => (p.topic.startsWith('homeassistant/') ? 0x87 : 'ack');
  assert.equal(await bed.run(forget('pi-07', {}, bed.remote, bed.print)), exitCodes.done);
  assert.match(bed.err.join(''), /Home Assistant/);
});
