import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DiscoveryFacts } from '../../src/homeassistant/discovery.ts';
import { HomeAssistant } from '../../src/homeassistant/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { read } from './documented.ts';

const topic = 'homeassistant/device/pi-07/config';

class CountingStore extends MemoryStore {
  writes = 0;
  override async put(key: string, value: unknown): Promise<void> {
    this.writes++;
    await super.put(key, value);
  }
}

function setUp(o: { store?: CountingStore; enabled?: boolean; haPrefix?: string; random?: number } = {}) {
  const clock = new FakeClock();
  const store = o.store ?? new CountingStore();
  const sent: { topic: string; payload: string | undefined; at: number }[] = [];
  const leftOut: (readonly string[])[] = [];
  const world = { pods: [] as { namespace: string; name: string }[], told: true, verbs: true };
  const at = () => clock.monotonic() - 1_000_000;
  let last: string | undefined;
  const facts = (): DiscoveryFacts => ({
    prefix: 'podsched/v1',
    node: 'pi-07',
    agentVersion: '0.1.0',
    heartbeatSeconds: 60,
    quiet: false,
    hasTemperature: false,
    hasPower: false,
    pods: world.pods,
    allowsVerb: () => world.verbs,
  });
  const ha = new HomeAssistant({
    clock,
    log: silentLog,
    random: () => o.random ?? 0.5,
    store,
    enabled: o.enabled ?? true,
    haPrefix: o.haPrefix ?? 'homeassistant',
    nodeName: 'pi-07',
    facts,
    tell: (t, payload) => {
      sent.push({ topic: t, payload, at: at() });
      last = payload;
    },
    again: (t) => sent.push({ topic: t, payload: last, at: at() }),
    told: () => world.told,
    leftOut: (what) => leftOut.push(what),
  });
  const components = () => read(sent.at(-1)?.payload ?? '{"cmps":{},"dev":{},"origin":{}}').components;
  const say = (text: string) => ha.message(new TextEncoder().encode(text));
  const begin = async () => {
    await ha.load();
    ha.ready();
    await clock.advance(1_000);
  };
  return { clock, store, sent, leftOut, world, ha, components, say, begin };
}
const web = { namespace: 'default', name: 'web' };
const cam = { namespace: 'default', name: 'cam' };

test('nothing is announced before what is desired is known; then once, and several changes of a moment are one message', async () => {
  const { clock, sent, world, ha, components } = setUp();
  await ha.load();
  ha.changed();
  await clock.advance(60_000);
  assert.equal(sent.length, 0);
  ha.ready();
  world.pods = [web];
  ha.changed();
  ha.changed();
  await clock.advance(60_000);
  assert.deepEqual(
    sent.map((s) => s.topic),
    [topic],
  );
  assert.ok(components().pod_default_web);
  ha.changed();
  await clock.advance(60_000);
  assert.equal(sent.length, 1, 'nothing is different');
});

test('a pod that leaves: its components once with only their platform, then no more; one that comes back is whole again', async () => {
  const { clock, world, ha, components, begin } = setUp();
  world.pods = [web, cam];
  await begin();
  world.pods = [cam];
  ha.changed();
  await clock.advance(1_000);
  assert.deepEqual(components().pod_default_web, { platform: 'binary_sensor' });
  assert.deepEqual(components().pod_default_web_restart, { platform: 'button' });
  world.pods = [];
  ha.changed();
  await clock.advance(1_000);
  assert.equal(components().pod_default_web, undefined);
  assert.deepEqual(components().pod_default_cam, { platform: 'binary_sensor' });
  world.pods = [cam];
  ha.changed();
  await clock.advance(1_000);
  assert.equal(components().pod_default_cam?.device_class, 'running');
});

test('what left while the broker was away is taken back until that has been told', async () => {
  const { clock, world, ha, components, begin } = setUp();
  world.pods = [web, cam];
  await begin();
  world.told = false;
  world.pods = [cam];
  ha.changed();
  await clock.advance(1_000);
  world.pods = [];
  ha.changed();
  await clock.advance(1_000);
  assert.deepEqual(components().pod_default_web, { platform: 'binary_sensor' }, 'the message before was never sent');
});

test('a verb that is no longer allowed takes its buttons with it', async () => {
  const { clock, world, ha, components, begin } = setUp();
  await begin();
  assert.ok(components().resync?.command_topic);
  world.verbs = false;
  ha.changed();
  await clock.advance(1_000);
  assert.deepEqual(components().resync, { platform: 'button' });
});

test('Home Assistant comes online: announced again within 30 s, unchanged as it is; other words and other sizes do nothing', async () => {
  for (const [random, ms] of [
    [0, 0],
    [0.5, 15_000],
    [0.999, 29_970],
  ] as const) {
    const { clock, sent, say, begin } = setUp({ random });
    await begin();
    say('online');
    await clock.advance(30_000);
    assert.deepEqual(
      sent.map((s) => s.at - (sent[0]?.at ?? 0)),
      [0, ms],
    );
    assert.equal(sent[1]?.payload, sent[0]?.payload);
    for (const text of ['offline', '', 'online!', `online${' '.repeat(100)}`, '\u0000']) say(text);
    await clock.advance(60_000);
    assert.equal(sent.length, 2);
  }
});

test('an agent that was away knows what it had announced', async () => {
  const one = setUp();
  one.world.pods = [web];
  await one.begin();
  await one.ha.stop();
  const two = setUp({ store: one.store });
  await two.begin();
  assert.deepEqual(two.components().pod_default_web, { platform: 'binary_sensor' });
});

test('the card is written when the entities change, and not else', async () => {
  const { clock, store, world, ha, say, begin } = setUp();
  world.pods = [web];
  await begin();
  assert.equal(store.writes, 1);
  for (let i = 0; i < 5; i++) {
    ha.changed();
    say('online');
    await clock.advance(60_000);
  }
  assert.equal(store.writes, 1);
  world.pods = [];
  ha.changed();
  await clock.advance(1_000);
  assert.equal(store.writes, 1, 'what is to be taken back is still known');
});

test('switched off: the message is cleared, until that has been told; then nothing is known or said any more', async () => {
  const one = setUp();
  await one.begin();
  const off = setUp({ store: one.store, enabled: false });
  await off.begin();
  off.say('online');
  off.ha.changed();
  await off.clock.advance(60_000);
  assert.deepEqual(
    off.sent.map(({ topic: t, payload }) => [t, payload]),
    [[topic, undefined]],
  );
  off.world.told = false;
  await off.ha.stop();
  const again = setUp({ store: one.store, enabled: false });
  await again.begin();
  assert.equal(again.sent.length, 1, 'the broker never heard of it');
  await again.ha.stop();
  const last = setUp({ store: one.store, enabled: false });
  await last.begin();
  assert.equal(last.sent.length, 0);
});

test('another prefix: the message of before is cleared, the new one announced', async () => {
  const one = setUp();
  await one.begin();
  const two = setUp({ store: one.store, haPrefix: 'ha' });
  await two.begin();
  assert.deepEqual(
    two.sent.map(({ topic: t, payload }) => [t, payload === undefined]),
    [
      [topic, true],
      ['ha/device/pi-07/config', false],
    ],
  );
  assert.equal(two.ha.statusTopic, 'ha/status');
});

test('the node leaves for good: cleared and forgotten', async () => {
  const { sent, store, ha, begin } = setUp();
  await begin();
  await ha.remove();
  assert.deepEqual([sent.at(-1)?.payload, await store.list('')], [undefined, []]);
});

test('what has no room is said once, and again when it is something else', async () => {
  const { clock, leftOut, world, ha, say, begin } = setUp();
  const many = (count: number) => Array.from({ length: count }, (_, i) => ({ namespace: 'a', name: `p${i + 10}` }));
  world.pods = many(30);
  await begin();
  say('online');
  await clock.advance(60_000);
  assert.equal(leftOut.length, 1);
  world.pods = many(31);
  ha.changed();
  await clock.advance(1_000);
  assert.equal(leftOut.length, 2);
  world.pods = [];
  ha.changed();
  await clock.advance(1_000);
  assert.deepEqual(leftOut.at(-1), []);
});

test('what an earlier version stored, or somebody damaged, is no reason to stop', async () => {
  for (const bad of [7, null, 'x', {}, { topic: 5, components: {} }, { topic, components: { a: 'lamp', b: 5 } }]) {
    const store = new CountingStore();
    await store.put('homeassistant', bad);
    const { sent, begin } = setUp({ store });
    await begin();
    assert.equal(sent.length, 1);
  }
  const torn = new CountingStore();
  torn.entries.set('homeassistant', '{');
  const { sent, begin } = setUp({ store: torn });
  await begin();
  await settle();
  assert.equal(sent.length, 1);
});
