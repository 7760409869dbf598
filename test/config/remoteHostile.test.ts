/** Everything that arrives is hostile: each message is refused with a reason where one is due, and costs no more than its own handling. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { KeyText } from '../../src/api/objects.ts';
import { mostTopics } from '../../src/config/remoteObjects.ts';
import {
  allTopic,
  configText,
  groupTopic,
  indexText,
  mapText,
  nodeTopic,
  online,
  podText,
  prefix,
  remoteRig,
  rolloutTopicOf,
  web,
} from './remoteBuilders.ts';

const at = nodeTopic('default/web');

// topic, payload → what is told of the pod `web`; what was there before goes on
const refusals: readonly (readonly [claim: string, payload: string | Uint8Array, reason: string])[] = [
  ['not JSON, not YAML', '{]', 'Invalid'],
  ['ten megabytes', new Uint8Array(10 << 20).fill(0x20), 'TooLarge'],
  ['a byte more than is taken', `${podText('web')}${' '.repeat(60 * 1024 + 1 - podText('web').length)}`, 'TooLarge'],
  ['nested deeply', `${'{"a":'.repeat(9000)}1${'}'.repeat(9000)}`, 'Invalid'],
  ['another kind', mapText('web'), 'NameMismatch'],
  ['another name', podText('db'), 'NameMismatch'],
  ['another audience', podText('web', { audience: 'other' }), 'WrongAudience'],
  ['bytes that are no UTF-8', new Uint8Array([0xc3, 0x28]), 'Invalid'],
  [
    'a bomb of aliases',
    `a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n${'cdefghij'
      .split('')
      .map((c, i) => `${c}: &${c} [${Array(8).fill(`*${'bcdefghi'[i]}`).join(',')}]`)
      .join('\n')}`,
    'Invalid',
  ],
];
for (const [claim, payload, reason] of refusals) {
  test(`refused, and the last good goes on: ${claim}`, async () => {
    const r = await online({ [at]: podText('web') });
    r.take();
    await r.publish(at, payload);
    assert.equal(r.row(web, 'mqtt:node'), `Refused ${reason}`);
    assert.deepEqual(r.take(), []);
    const { length } = r.events;
    await r.publish(at, payload);
    assert.equal(r.events.length, length, 'told once');
    await r.publish(at, podText('web', { image: 'busybox:2' }));
    assert.deepEqual(r.take(), ['UPDATE web']);
  });
}

test('a payload of exactly 60 KiB is taken', async () => {
  const r = await online();
  await r.publish(at, `${podText('web')}${' '.repeat(60 * 1024 - podText('web').length)}`);
  assert.equal(r.told(web), 'Accepted Accepted');
});

test('topics of other nodes and groups, commands and what nobody knows are passed over or told, and nothing runs of them', async () => {
  const r = await online({}, { groups: ['cams'] });
  for (const topic of [
    `${prefix}/desired/nodes/other/default/web`,
    groupTopic('attic', 'default/web'),
    `${prefix}/cmd/pi/restart`,
    `${prefix}/nodes/pi/online`,
    'other/desired/nodes/pi/default/web',
    nodeTopic('default/..'),
    nodeTopic('default/~~'),
    nodeTopic('..%2f/web'),
    nodeTopic(`default/${'w'.repeat(300)}`),
    nodeTopic('default/web/more'),
    '',
  ]) {
    await r.publish(topic, podText('web'));
  }
  assert.deepEqual(r.take(), []);
  assert.deepEqual(r.config.view().objects, []);
  assert.equal(r.config.view().files.length, 5, 'the wrong names below its own topics');
});

test('wrong indexes, configurations and rollouts are told and change nothing', async () => {
  const r = await online({ [at]: podText('web') });
  r.take();
  const big = indexText(
    9,
    Array.from({ length: 900 }, (_, i) => ({ name: `p${i}`, text: 'x' })),
  );
  for (const [topic, payload] of [
    [nodeTopic('_index'), 'x'],
    [allTopic('_index'), '[]'],
    [nodeTopic('_index/1'), big],
    [nodeTopic('_config'), configText({ groups: ['a/b'] })],
    [rolloutTopicOf('r1'), '{"gate":"x"}'],
  ] as const) {
    await r.publish(topic, payload);
  }
  assert.deepEqual(r.take(), []);
  assert.deepEqual(
    r.config.view().files.map((f) => f.file.slice(prefix.length + 1)),
    ['desired/all/_index', 'desired/nodes/pi/_config', 'desired/nodes/pi/_index', 'desired/nodes/pi/_index/1', 'rollouts/r1'],
  );
});

test('more topics than are remembered are told, and those that were accepted go on', async () => {
  const r = remoteRig();
  await r.config.load();
  await r.config.readFolder();
  r.remote.connected();
  const bytes = new TextEncoder().encode('{]');
  for (let i = 0; i < mostTopics + 500; i++) r.remote.message({ topic: nodeTopic(`default/p${i}`), payload: bytes, retain: true });
  r.remote.snapshot(r.remote.filters());
  await r.settle();
  const { objects, files } = r.config.view();
  assert.equal(objects.length, mostTopics);
  assert.match(JSON.stringify(files), /at most 4000/);
});

test('a flood that no queue holds is asked for again, topic by topic, and nothing is lost', async () => {
  const r = remoteRig();
  const count = 120;
  const text = (i: number): string => mapText(`m${i}`, { value: `${i} ${'x'.repeat(50_000)}` });
  for (let i = 0; i < count; i++) r.broker.set(nodeTopic(`default/configmap:m${i}`), text(i));
  await r.config.load();
  await r.config.readFolder();
  await r.connect();
  for (let i = 0; i < 10; i++) await r.settle();
  assert.ok(r.asked.flat().length > 20, 'some were asked for');
  const missing = Array.from({ length: count }, (_, i) => `ConfigMap/default/m${i}` as KeyText).filter(
    (key) => r.config.object(key) === undefined,
  );
  assert.deepEqual(missing, []);
});

test('random changes of a payload never throw, and never run what is not there', async () => {
  const r = await online();
  let seed = 7;
  const random = (n: number): number => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % n;
  };
  const good = [
    new TextEncoder().encode(podText('web')),
    new TextEncoder().encode(indexText(1, [{ name: 'web', text: 'x' }])),
    new TextEncoder().encode(configText({ groups: ['a'] })),
  ];
  const topics = [at, nodeTopic('_index'), nodeTopic('_config'), rolloutTopicOf('r'), allTopic('default/secret:x')];
  for (let i = 0; i < 3000; i++) {
    const payload = Uint8Array.from(good[random(good.length)] ?? []);
    for (let j = random(4); j >= 0; j--) payload[random(payload.length)] = random(256);
    r.remote.message({
      topic: topics[random(topics.length)] ?? at,
      payload: payload.subarray(0, random(3) === 0 ? random(payload.length) : payload.length),
      retain: random(2) === 0,
    });
    if (i % 100 === 0) await r.settle();
  }
  await r.settle();
  for (const { key, winner } of r.config.view().objects) if (winner !== undefined) assert.equal(key, web);
});

test('1,500 objects with their indexes, some of them dropped by the broker’s queue: all judged, and less than 25 MB', {
  timeout: 120_000,
}, async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const used = (): number => {
    gc();
    return process.memoryUsage().heapUsed;
  };
  const r = remoteRig({ groups: ['cams'] });
  const scopes = [
    { topic: (rest: string) => nodeTopic(rest), count: 1100, prefix: 'n' },
    { topic: (rest: string) => groupTopic('cams', rest), count: 200, prefix: 'g' },
    { topic: (rest: string) => allTopic(rest), count: 200, prefix: 'a' },
  ];
  for (const scope of scopes) {
    const entries = Array.from({ length: scope.count }, (_, i) => {
      const name = `${scope.prefix}${i}`;
      const env = Array.from({ length: 10 }, (__, j) => ({ name: `NAME_${j}`, value: `value ${i} ${j}` }));
      return {
        name,
        text: podText(name, { generation: i, spec: { containers: [{ name: 'c', image: `registry.example/team/${name}:1.2.3`, env }] } }),
        generation: i,
      };
    });
    for (const { name, text } of entries) r.broker.set(scope.topic(`default/${name}`), text);
    for (let i = 0; i * 400 < entries.length; i++) {
      const part = indexText(1, entries.slice(i * 400, (i + 1) * 400), { parts: Math.ceil(entries.length / 400) });
      r.broker.set(scope.topic(`_index${i === 0 ? '' : `/${i}`}`), part);
    }
  }
  for (let i = 1021; i < 1100; i++) r.broker.dropped.add(nodeTopic(`default/n${i}`));
  await r.config.load();
  await r.config.readFolder();
  const before = used();
  await r.connect();
  for (let i = 0; i < 20; i++) await r.settle();
  assert.equal(r.take().length, 1500);
  assert.equal(r.asked.flat().length, 79);
  // what the fake broker and card keep is not the node's
  r.updates.length = 0;
  const kept = (used() - before - [...r.store.entries.values()].reduce((n, text) => n + text.length, 0)) / 2 ** 20;
  assert.ok(kept < 25, `${kept.toFixed(1)} MB`);
  const writes = r.store.writes.length;
  r.remote.disconnected();
  await r.connect();
  assert.equal(r.store.writes.length, writes);
  assert.deepEqual(r.take(), []);
  assert.equal(r.asked.flat().length, 79, 'what the index vouches for is not asked for again');
});
