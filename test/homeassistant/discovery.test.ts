import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { CommandSchema } from '../../src/api/messages.ts';
import { HomeAssistantSchema } from '../../src/api/toldSchemas.ts';
import { parseTopic } from '../../src/api/topics.ts';
import { defaultVerbs, type Verb } from '../../src/api/verbs.ts';
import { type DiscoveryFacts, discovery, maxComponents } from '../../src/homeassistant/discovery.ts';
import { availabilityKeys, deviceClasses, deviceKeys, keysOf, originKeys, read, requiredOf, sharedKeys } from './documented.ts';

const facts = (more: Partial<DiscoveryFacts> = {}): DiscoveryFacts => ({
  prefix: 'podsched/v1',
  node: 'pi-07',
  agentVersion: '0.1.0',
  model: 'Raspberry Pi 4 Model B Rev 1.4',
  serial: '10000000a1b2c3d4',
  heartbeatSeconds: 60,
  quiet: false,
  hasTemperature: true,
  hasPower: true,
  pods: [{ namespace: 'default', name: 'web' }],
  allowsVerb: () => true,
  ...more,
});
const allowing =
  (...verbs: Verb[]) =>
  (verb: Verb): boolean =>
    verbs.includes(verb);
const pods = (count: number, namespace = 'default', name = 'pod') =>
  Array.from({ length: count }, (_, i) => ({ namespace, name: `${name}-${String(i).padStart(3, '0')}` }));

test('the message has Home Assistant’s documented keys and no others, and every required one', () => {
  for (const f of [facts(), facts({ quiet: true, hasTemperature: false, hasPower: false, pods: [] }), facts({ pods: pods(30) })]) {
    const { payload } = discovery(f, { gone: 'sensor' });
    const { shared, device, origin, components } = read(payload);
    assert.deepEqual([...Value.Errors(HomeAssistantSchema, JSON.parse(payload))], []);
    for (const key of Object.keys(shared)) assert.ok(sharedKeys.includes(key), key);
    for (const key of Object.keys(device)) assert.ok(deviceKeys.includes(key), key);
    for (const key of Object.keys(origin)) assert.ok(originKeys.includes(key), key);
    assert.ok(device.identifiers !== undefined && origin.name === 'podsched', 'both are mandatory');
    for (const [id, component] of Object.entries(components)) {
      const platform = String(component.platform);
      if (id === 'gone') continue;
      for (const key of Object.keys(component)) assert.ok(keysOf[platform]?.includes(key), `${id}: ${key}`);
      for (const key of requiredOf[platform] ?? []) assert.equal(typeof component[key], 'string', `${id}: ${key}`);
      if (component.device_class !== undefined) assert.ok(deviceClasses[platform]?.includes(String(component.device_class)), id);
      // a sensor may be diagnostic, a button may also configure
      if (component.entity_category !== undefined)
        assert.ok((platform === 'button' ? ['config', 'diagnostic'] : ['diagnostic']).includes(String(component.entity_category)), id);
      for (const one of (component.availability ?? []) as readonly Record<string, unknown>[])
        for (const key of Object.keys(one)) assert.ok(availabilityKeys.includes(key), `${id}: ${key}`);
    }
  }
});

test('the entities of a node, and those of a pod', () => {
  assert.deepEqual(Object.keys(discovery(facts(), {}).components), [
    ...['connectivity', 'pods_ready', 'problem', 'cpu_temperature', 'under_voltage', 'resync', 'identify'],
    ...['pod_default_web', 'pod_default_web_restart'],
  ]);
  assert.deepEqual(
    Object.keys(discovery(facts({ hasTemperature: false, hasPower: false, pods: [], allowsVerb: () => false }), {}).components),
    ['connectivity', 'pods_ready', 'problem'],
  );
});

test('each entity lives on a topic of the contract, and is there while the node is online', () => {
  const { components } = read(discovery(facts(), {}).payload);
  const of = (topic: unknown) => parseTopic('podsched/v1', String(topic))?.of;
  for (const [id, c] of Object.entries(components)) {
    assert.ok(of(c.state_topic ?? c.command_topic), id);
    if (id === 'connectivity') assert.equal(c.availability, undefined, 'it says itself whether the node is there');
    else assert.deepEqual(of((c.availability as readonly { topic: string }[])[0]?.topic), 'online', id);
  }
  assert.deepEqual(
    Object.entries(components)
      .filter(([, c]) => c.state_topic !== undefined)
      .map(([id, c]) => [id, of(c.state_topic)]),
    [
      ['connectivity', 'online'],
      ['pods_ready', 'summary'],
      ['problem', 'summary'],
      ['cpu_temperature', 'summary'],
      ['under_voltage', 'info'],
      ['pod_default_web', 'pod'],
    ],
  );
});

test('a dead node does not stay as it was: what is told at each heartbeat grows old after three, in the quiet profile only connectivity does', () => {
  const ages = (quiet: boolean) =>
    Object.entries(read(discovery(facts({ quiet }), {}).payload).components)
      .filter(([, c]) => c.expire_after !== undefined)
      .map(([id, c]) => `${id} ${c.expire_after}`);
  assert.deepEqual(ages(false), ['connectivity 180', 'pods_ready 180', 'problem 180', 'cpu_temperature 180']);
  assert.deepEqual(ages(true), ['connectivity 180']);
});

test('a button is a Command on its verb’s topic, with the target where the verb needs one', () => {
  const { components } = read(discovery(facts(), {}).payload);
  const buttons = Object.entries(components).filter(([, c]) => c.platform === 'button');
  for (const [, c] of buttons) {
    assert.deepEqual([...Value.Errors(CommandSchema, JSON.parse(String(c.payload_press)))], []);
    assert.notEqual(c.retain, true, 'a retained command is dropped');
  }
  assert.deepEqual(
    buttons.map(([id, c]) => [id, c.command_topic, JSON.parse(String(c.payload_press)).target]),
    [
      ['resync', 'podsched/v1/cmd/pi-07/resync', undefined],
      ['identify', 'podsched/v1/cmd/pi-07/identify', undefined],
      ['pod_default_web_restart', 'podsched/v1/cmd/pi-07/restart', { namespace: 'default', pod: 'web' }],
    ],
  );
});

test('each button only where the policy allows its verb', () => {
  const buttons = (allowsVerb: DiscoveryFacts['allowsVerb']) =>
    Object.entries(discovery(facts({ allowsVerb }), {}).components)
      .filter(([, c]) => c.p === 'button')
      .map(([id]) => id);
  assert.deepEqual(buttons(allowing()), []);
  assert.deepEqual(buttons(allowing('restart')), ['pod_default_web_restart']);
  assert.deepEqual(buttons(allowing(...defaultVerbs)), ['resync', 'identify']);
});

test('ids are of names alone: another board, version or order of pods changes none, and no two pods share one', () => {
  const two = [
    { namespace: 'a', name: 'b-c' },
    { namespace: 'a-b', name: 'c' },
  ];
  const one = discovery(facts({ pods: two }), {}).components;
  const { model: _, serial: __, ...bare } = facts({ pods: [...two].reverse(), agentVersion: '9' });
  const other = discovery(bare, {}).components;
  const ids = (of: typeof one) => Object.entries(of).map(([id, c]) => `${id} ${String(c.uniq_id)}`);
  assert.deepEqual(ids(one), ids(other));
  assert.equal(new Set(Object.values(one).map((c) => c.uniq_id)).size, Object.keys(one).length);
  const dotted = discovery(facts({ pods: [{ namespace: 'a', name: 'b.c' }] }), {}).components;
  assert.ok(Object.keys(dotted).every((id) => /^[a-z0-9_-]+$/.test(id)));
});

test('a component that left stands with its platform alone', () => {
  const { components } = discovery(facts({ pods: [] }), {
    pod_default_web: 'binary_sensor',
    pod_default_web_restart: 'button',
    problem: 'button',
  });
  assert.deepEqual(components.pod_default_web, { p: 'binary_sensor' });
  assert.deepEqual(components.pod_default_web_restart, { p: 'button' });
  assert.equal(components.problem?.p, 'binary_sensor', 'what is there is not taken back');
});

test('at most 40 components: what has no room is named, a pod keeps its sensor before it gets a button', () => {
  const many = discovery(facts({ pods: pods(20) }), {});
  assert.equal(Object.keys(many.components).length, maxComponents);
  assert.deepEqual(many.leftOut.slice(0, 2), ['restart of pod default/pod-016', 'pod default/pod-017']);
  assert.equal(many.leftOut.length, 4);
  const exact = discovery(facts({ pods: pods(33), allowsVerb: allowing('resync', 'identify') }), {});
  assert.deepEqual([Object.keys(exact.components).length, exact.leftOut], [40, []]);
  const gone = Object.fromEntries(pods(60).map(({ name }) => [`old_${name}`, 'button' as const]));
  assert.equal(Object.keys(discovery(facts({ pods: [] }), gone).components).length, maxComponents);
});

test('at most 60 KiB, with names as long as Kubernetes allows', () => {
  const long = pods(30, 'n'.repeat(63), 'p'.repeat(249));
  const { payload, leftOut } = discovery(facts({ node: 'x'.repeat(63), pods: long }), {});
  assert.ok(new TextEncoder().encode(payload).length <= 60 * 1024);
  assert.ok(leftOut.length > 0);
});

test('every template can be rendered on a topic that was cleared', () => {
  const { components } = read(discovery(facts(), {}).payload);
  const templates = Object.values(components).flatMap((c) => [c.value_template, c.json_attributes_template].filter((t) => t !== undefined));
  assert.equal(templates.length, 9);
  for (const template of templates) assert.match(String(template), /^\{\{ .* ?if value_json is defined .*else .* ?\}\}$/);
  for (const c of Object.values(components))
    for (const { value_template: template } of (c.availability ?? []) as readonly { value_template: string }[])
      assert.match(template, /value_json is defined and value_json\.state == 'online'/);
});
