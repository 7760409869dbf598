/** A stub that listens as Home Assistant would, at the broker of a node that is announced to it: what it finds, sees and presses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildHomeAssistant } from '../../src/agentHomeAssistant.ts';
import { configurationKeys, type PodschedConfiguration } from '../../src/api/configuration.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { Inbound } from '../../src/broker/inbox.ts';
import type { HomeAssistant } from '../../src/homeassistant/manager.ts';
import type { BrokerConnection, BrokerMessage } from '../../src/world/broker.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { rig, root } from '../broker/rig.ts';
import type { FakeBroker } from '../fakes/fakeBroker.ts';
import { settle } from '../fakes/fakeClock.ts';
import { desiredPod, simple } from '../status/build.ts';
import { type Json, read } from './documented.ts';

class StubHomeAssistant {
  /** Entities by id, as the messages made them. */
  readonly entities = new Map<string, Json>();
  readonly states = new Map<string, string>();
  announcements = 0;
  #connection: BrokerConnection | undefined;

  async connect(broker: FakeBroker): Promise<void> {
    this.#connection = await broker.connect(
      {
        server: 'mqtt://a',
        protocolVersion: 5,
        clientId: 'home-assistant',
        cleanStart: true,
        keepaliveSeconds: 60,
        will: { topic: 'homeassistant/status', payload: 'offline', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 60 },
      },
      { onMessage: (m) => this.#hear(m), onClose: () => {} },
    );
    await this.#connection.subscribe(['homeassistant/device/+/config'], 1);
    await this.#connection.publish('homeassistant/status', 'online', { qos: 1, retain: false });
  }

  /** Somebody presses a button. */
  async press(id: string): Promise<void> {
    const { command_topic: topic, payload_press: payload, retain } = this.entities.get(id) ?? {};
    await this.#connection?.publish(String(topic), String(payload), { qos: 1, retain: retain === true });
  }

  #hear({ topic, payload }: BrokerMessage): void {
    const text = new TextDecoder().decode(payload);
    if (!topic.startsWith('homeassistant/device/')) {
      this.states.set(topic, text);
      return;
    }
    this.announcements++;
    if (text === '') {
      this.entities.clear();
      return;
    }
    for (const [id, component] of Object.entries(read(text).components)) {
      if (Object.keys(component).length === 1) this.entities.delete(id);
      else this.entities.set(id, component);
      if (component.state_topic !== undefined) void this.#connection?.subscribe([String(component.state_topic)], 1);
    }
  }
}

const haPod = (name: string): DesiredPod => desiredPod(simple(), { name, uid: name, labels: { 'podsched.dev/ha': 'true' } });

function node(store = new MemoryStore(), enabled = true) {
  const commands: Inbound[] = [];
  const events: string[] = [];
  const world = { pods: [haPod('web'), desiredPod(simple(), { name: 'plain', uid: 'plain' })] };
  let ha: HomeAssistant | undefined;
  const all = rig({
    inbox: {
      message: (m) => {
        if (m.topic === ha?.statusTopic) ha.message(m.payload);
        else commands.push(m);
      },
      snapshot: () => {},
      connected: () => {},
      disconnected: () => {},
    },
  });
  const defaults = Object.fromEntries(Object.entries(configurationKeys).map(([key, { default: value }]) => [key, value]));
  ha = buildHomeAssistant({
    clock: all.clock,
    log: silentLog,
    random: () => 0.5,
    store,
    nodeName: 'pi-1',
    config: { ...defaults, 'homeAssistant.enabled': enabled } as unknown as PodschedConfiguration,
    agentVersion: '0.1.0',
    heartbeatSeconds: () => 60,
    session: all.session,
    pods: () => world.pods,
    board: () => ({ model: 'Raspberry Pi 4 Model B Rev 1.4', hasTemperature: true, hasPower: true }),
    allowsVerb: (verb) => verb !== 'identify',
    event: (type, reason, message) => events.push(`${type} ${reason} ${message}`),
  });
  all.session.follow(['podsched/v1/cmd/pi-1/+', ...ha.filters]);
  return { ...all, ha, world, commands, events, store };
}

test('it finds the node, sees the states of its entities, and its presses arrive as commands that are not retained', async () => {
  const { clock, broker, session, ha, commands } = node();
  await ha.load();
  ha.ready();
  session.tell(`${root}/pods/default/web`, '{"status":{"phase":"Running"}}', { qos: 1 });
  await clock.advance(10_000);
  const stub = new StubHomeAssistant();
  await stub.connect(broker);
  await clock.advance(1_000);
  assert.deepEqual(
    [...stub.entities.keys()],
    [
      ...['connectivity', 'pods_ready', 'problem', 'cpu_temperature', 'under_voltage', 'resync'],
      ...['pod_default_web', 'pod_default_web_restart'],
    ],
  );
  assert.equal(JSON.parse(stub.states.get(`${root}/online`) ?? '{}').state, 'online');
  assert.equal(stub.states.get(`${root}/pods/default/web`), '{"status":{"phase":"Running"}}');
  await stub.press('resync');
  await stub.press('pod_default_web_restart');
  await settle();
  assert.deepEqual(
    commands.map((m) => [m.topic, m.retain, m.queued, JSON.parse(new TextDecoder().decode(m.payload)).target]),
    [
      ['podsched/v1/cmd/pi-1/resync', false, false, undefined],
      ['podsched/v1/cmd/pi-1/restart', false, false, { namespace: 'default', pod: 'web' }],
    ],
  );
});

test('after its birth the node is announced once more within 30 s, and the retained message is what it was', async () => {
  const { clock, broker, ha } = node();
  await ha.load();
  ha.ready();
  await clock.advance(10_000);
  const before = broker.retainedNow('homeassistant/');
  const stub = new StubHomeAssistant();
  await stub.connect(broker);
  await clock.advance(1_000);
  assert.equal(stub.announcements, 1, 'the retained one');
  await clock.advance(30_000);
  assert.equal(stub.announcements, 2);
  assert.deepEqual(broker.retainedNow('homeassistant/'), before);
  assert.equal(broker.publishes.find((p) => p.topic.startsWith('homeassistant/device/'))?.expirySeconds, undefined, 'it has no expiry');
});

test('a pod loses its label: its entities go; the broker was away meanwhile: they go when it is back', async () => {
  const { clock, broker, ha, world } = node();
  await ha.load();
  ha.ready();
  await clock.advance(10_000);
  const stub = new StubHomeAssistant();
  await stub.connect(broker);
  await clock.advance(40_000);
  broker.cut('podsched-pi-1-aaaaaaaaaaaa');
  world.pods = [];
  ha.changed();
  await clock.advance(1_000);
  world.pods = [haPod('cam')];
  ha.changed();
  await clock.advance(300_000);
  assert.ok(!stub.entities.has('pod_default_web') && stub.entities.has('pod_default_cam'), [...stub.entities.keys()].join());
});

test('the broker forgets everything: it is told again; switched off, the message goes', async () => {
  const one = node();
  await one.ha.load();
  one.ha.ready();
  await one.clock.advance(10_000);
  one.broker.kill();
  one.broker.restart();
  await one.clock.advance(300_000);
  assert.equal(Object.keys(one.broker.retainedNow('homeassistant/')).length, 1);
  const off = node(one.store, false);
  off.broker.say('homeassistant/device/pi-1/config', '{}', { retain: true });
  await off.ha.load();
  off.ha.ready();
  await off.clock.advance(60_000);
  assert.deepEqual(off.broker.retainedNow('homeassistant/'), {});
  assert.equal(
    off.broker.subscribes.some((s) => s.filters.includes('homeassistant/status')),
    false,
    'nobody is listened to',
  );
});

test('a node with too many labelled pods says which have no room', async () => {
  const { clock, ha, world, events } = node();
  world.pods = Array.from({ length: 40 }, (_, i) => haPod(`pod-${i + 10}`));
  await ha.load();
  ha.ready();
  await clock.advance(10_000);
  assert.equal(events.length, 1);
  assert.match(events[0] ?? '', /^Warning HomeAssistantFull no room in Home Assistant's message for 23: pod default\/pod-27, /);
});
