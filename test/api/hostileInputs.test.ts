/**
 * Everything that arrives is hostile: a hundred thousand payloads and topics through everything that reads them. None of it throws, what is taken
 * is what it should be, and nothing of it stays in memory.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { keyText } from '../../src/api/objects.ts';
import { takes } from '../../src/api/rollout.ts';
import { isTopicPrefix, parseTopic, unescapeFileName } from '../../src/api/topics.ts';
import { filterMatches, isFilter, isTopic } from '../../src/broker/filters.ts';
import { OwnSubtree, samePayload, toldByOther } from '../../src/broker/ghosts.ts';
import { parseOnline } from '../../src/broker/online.ts';
import { readIndex } from '../../src/config/desiredIndex.ts';
import { type ObjectPlace, placeOf } from '../../src/config/desiredTopics.ts';
import { readNodeConfig } from '../../src/config/nodeConfig.ts';
import { decodePayload, readJsonValue } from '../../src/config/payload.ts';
import { readRollout } from '../../src/config/rollouts.ts';
import { HomeAssistant } from '../../src/homeassistant/manager.ts';
import { looksLikeEnvelope, openDetached, openEnvelope, type PayloadKind, payloadTypes, type TrustedKey } from '../../src/policy/dsse.ts';
import { judgeObject, readPolicy } from '../../src/policy/policy.ts';
import { newSigningKey, signEnvelope } from '../../src/policy/signing.ts';
import { checkArgs } from '../../src/remote/arguments.ts';
import { decodeCommand } from '../../src/remote/decode.ts';
import { guardReply } from '../../src/remote/guard.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { online as remoteBed } from '../config/remoteBuilders.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { type Chance, chanceOf, hostileBytes, hostileTopic } from './hostile.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const heapBytes = (): number => {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
};

const listener = { prefix: 'podsched/v1', nodeName: 'pi-1', groups: ['attic'] };
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web',
    namespace: 'default',
    labels: { app: 'web' },
    annotations: { 'podsched.dev/generation': '3', 'podsched.dev/rollout': 'r1' },
  },
  spec: {
    restartPolicy: 'Always',
    containers: [
      {
        name: 'app',
        image: 'localhost/busybox:1',
        command: ['sleep', '100'],
        env: [{ name: 'A', value: '1' }],
        ports: [{ containerPort: 80, hostPort: 8080 }],
        resources: { limits: { memory: '64Mi', cpu: '0.5' } },
        securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } },
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
        livenessProbe: { httpGet: { path: '/', port: 80 }, periodSeconds: 5 },
      },
    ],
    volumes: [{ name: 'data', hostPath: { path: '/srv' } }],
  },
};
const podYaml =
  'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: app\n    image: "localhost/busybox:1"\n    args: [a, "b"]\n';
const tombstone = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', annotations: { 'podsched.dev/state': 'absent', 'podsched.dev/generation': '4' } },
};
const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data: { a: 'b' }, binaryData: { c: 'AAAA' } };
const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'web', annotations: { 'podsched.dev/sealed': 'x25519' } },
  data: { a: 'AAAA' },
};
const index = {
  apiVersion: 'podsched.dev/v1',
  kind: 'DesiredIndex',
  generation: 7,
  parts: 2,
  entries: [{ kind: 'Pod', ns: 'default', name: 'web', sha256: '0123456789abcdef', generation: 3 }],
};
const config = {
  apiVersion: 'podsched.dev/v1',
  kind: 'NodeConfig',
  generation: 1,
  groups: ['attic'],
  labels: { site: 'a' },
  heartbeatSeconds: 60,
  logLevel: 'info',
};
const rollout = {
  apiVersion: 'podsched.dev/v1',
  kind: 'Rollout',
  id: 'r1',
  waves: [{ selector: { site: 'a' }, percent: 10 }, { percent: 100 }],
  gate: 1,
  bakeSeconds: 5,
};
const command = {
  apiVersion: 'podsched.dev/v1',
  kind: 'Command',
  id: '1',
  target: { namespace: 'default', pod: 'web', container: 'app' },
  args: { tailLines: 10, command: ['ls'], new: true },
  replyTo: 'podsched/v1/reply/ops-1/pi-1',
  session: 5,
};
const online = {
  apiVersion: 'podsched.dev/v1',
  kind: 'NodeOnline',
  node: 'pi-1',
  state: 'online',
  machine: 'aaaa',
  session: 1,
  heartbeatSeconds: 60,
  boot: 1,
  seq: 1,
};

const signing = newSigningKey();
const publicKey = createPublicKey(createPrivateKey(signing.privateKeyPem));
const keys: readonly TrustedKey[] = [{ keyid: signing.keyid, publicKey, file: 'ops.pub' }];
const kinds = Object.keys(payloadTypes) as readonly PayloadKind[];
const envelopes: readonly unknown[] = kinds.map((kind) =>
  JSON.parse(signEnvelope(Buffer.from(JSON.stringify(pod)), payloadTypes[kind][0] ?? '', signing.privateKeyPem)),
);

const place = (topic: string): ObjectPlace => {
  const found = placeOf(listener, topic);
  if (found.of !== 'object') throw new Error(topic);
  return found;
};
const places = ['web', 'configmap:web', 'secret:web'].map((name) => place(`podsched/v1/desired/nodes/pi-1/default/${name}`));
const policies = [readPolicy({}, 'mqtt'), readPolicy({ allow: 'all' }, 'file')];

const homeAssistant = new HomeAssistant({
  clock: new FakeClock(),
  log: silentLog,
  random: () => 0.5,
  store: new MemoryStore(),
  enabled: true,
  haPrefix: 'homeassistant',
  nodeName: 'pi-1',
  facts: () => assert.fail('nobody said online'),
  tell: () => {},
  again: () => {},
  told: () => true,
  leftOut: () => {},
});

const properName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** What reads something that arrives: how often it is tried, and once. */
const readers: Readonly<Record<string, readonly [times: number, once: (chance: Chance) => void]>> = {
  topics: [
    35_500,
    (chance) => {
      const topic = hostileTopic(chance);
      parseTopic(listener.prefix, topic);
      isTopicPrefix(topic);
      unescapeFileName(topic.split('/').at(-1) ?? '');
      const [proper, filter] = [isTopic(topic), isFilter(topic)];
      filterMatches(topic, hostileTopic(chance));
      const found = placeOf(listener, topic);
      if (found.of !== 'object') return;
      assert.ok(proper && filter, topic);
      assert.match(found.key.name, properName);
      assert.match(found.key.namespace, properName);
      assert.ok(!found.key.name.includes('..') && found.text === keyText(found.key), topic);
    },
  ],
  online: [
    12_000,
    (chance) => {
      const bytes = hostileBytes(chance, [online, pod]);
      const heard = parseOnline(bytes);
      if (heard !== undefined) assert.match(heard.machine, /^[\w.-]{1,64}$/);
      toldByOther(bytes, new Set(['aaaa']));
      samePayload(JSON.stringify(online), bytes);
      const root = 'podsched/v1/nodes/pi-1';
      const subtree = new OwnSubtree(root, (t) => (t.endsWith('/web') ? JSON.stringify(pod) : undefined), new Set(['aaaa']));
      subtree.see(`${root}/pods/default/web`, bytes, true);
      subtree.see(`${root}/sync/default/${chance.below(9)}`, bytes, true);
      subtree.plan([`${root}/pods/default/web`]);
    },
  ],
  commands: [
    18_000,
    (chance) => {
      const decoded = decodeCommand(hostileBytes(chance, [command, command, envelopes[1]]));
      if (decoded.as === 'command') {
        const { target = {}, args } = decoded.command;
        for (const name of [target.namespace, target.pod, target.container]) if (name !== undefined) assert.match(name, properName);
        for (const verb of ['logs', 'exec', 'restart', 'get', 'decommission'] as const) checkArgs(verb, args);
      }
      const replyTo = decoded.as === 'command' ? decoded.command.replyTo : decoded.as === 'refused' ? decoded.replyTo : undefined;
      const guarded = guardReply({ prefix: 'podsched/v1', node: 'pi-1' }, { replyTo: replyTo ?? hostileTopic(chance) });
      if (guarded.ok && guarded.to !== undefined) assert.match(guarded.to.topic, /^podsched\/v1\/reply\/[a-z0-9-]+\/pi-1$/);
    },
  ],
  envelopes: [
    12_000,
    (chance) => {
      const bytes = hostileBytes(chance, envelopes);
      looksLikeEnvelope(bytes);
      const kind = chance.pick(kinds);
      const opened = openEnvelope(bytes, keys, kind);
      // whatever became of its wrapping: what is taken is what was signed, for this use
      if (opened.ok)
        assert.ok(Buffer.from(opened.payload).equals(Buffer.from(JSON.stringify(pod))) && payloadTypes[kind].includes(opened.payloadType));
      openDetached(bytes, Buffer.from('other bytes'), keys, kind);
    },
  ],
  'indexes, configurations and rollouts': [
    18_000,
    (chance) => {
      const value = readJsonValue(hostileBytes(chance, [index, config, rollout]));
      const listed = readIndex(value);
      if (listed.ok) assert.ok(listed.part.entries.length <= 1_000 && Number.isSafeInteger(listed.part.generation));
      const read = readNodeConfig(value);
      if (read.ok) for (const group of read.config.groups ?? []) assert.match(group, properName);
      const waves = readRollout(value, 'r1');
      if (waves.ok) takes(waves.rollout, { name: 'pi-1', labels: { site: 'a' } });
    },
  ],
  'Home Assistant’s status': [
    2_000,
    (chance) => {
      const bytes = hostileBytes(chance, ['onlin', 'ofline', index]);
      if (new TextDecoder().decode(bytes).trim() !== 'online') homeAssistant.message(bytes);
    },
  ],
  'desired state': [
    2_500,
    (chance) => {
      const at = chance.pick(places);
      const payload = decodePayload(hostileBytes(chance, [pod, pod, podYaml, tombstone, configMap, secret]), at, {
        strict: chance.below(2) === 0,
        allowedUnsafeSysctls: [],
        node: { name: 'pi-1', labels: {} },
      });
      if (!payload.ok) {
        assert.ok(payload.problems.length > 0, 'a refusal says why');
        return;
      }
      if (payload.decoded === undefined) return;
      assert.equal(payload.decoded.key, at.text);
      for (const policy of policies) judgeObject(payload.decoded.object, policy);
    },
  ],
};

test('a hundred thousand hostile inputs: nothing throws, nothing is taken for what it is not, and the heap stays flat', () => {
  const seed = Number(process.env.SEED ?? 11);
  const rounds = 10;
  let inputs = 0;
  let early = 0;
  for (let round = 0; round < rounds; round++) {
    for (const [what, [times, once]] of Object.entries(readers)) {
      for (let i = 0; i < times / rounds; i++) {
        const own = seed + 1_000_003 * inputs++;
        try {
          once(chanceOf(own));
        } catch (cause) {
          throw new Error(`${what}, seed ${own}`, { cause });
        }
      }
    }
    if (round === 1) early = heapBytes();
  }
  assert.ok(inputs >= 100_000, `${inputs}`);
  const grown = heapBytes() - early;
  assert.ok(grown < 2_000_000, `${grown} bytes more after eight further rounds`);
});

test('four thousand of them through the whole MQTT source: it throws nothing, runs nothing that was not whole, and takes the next good object', async () => {
  const r = await remoteBed({}, { groups: ['attic'] });
  const chance = chanceOf(5);
  const base = 'podsched/v1/desired/nodes/pi';
  const topics = [
    ...['default/web', 'default/configmap:web', 'default/secret:web', '_index', '_index/1', '_config'].map((t) => `${base}/${t}`),
    'podsched/v1/desired/groups/attic/default/web',
    'podsched/v1/desired/all/default/web',
    'podsched/v1/desired/all/_index',
    'podsched/v1/rollouts/r1',
  ];
  const seeds = [pod, podYaml, tombstone, configMap, secret, index, config, rollout, ...envelopes];
  for (let i = 0; i < 4_000; i++) {
    const topic = chance.below(10) === 0 ? hostileTopic(chance).replace('pi-1', 'pi') : chance.pick(topics);
    r.remote.message({ topic, payload: hostileBytes(chance, seeds), retain: chance.below(2) === 0 });
    if (i % 100 === 99) await r.settle();
  }
  for (const { pods } of r.updates) for (const p of pods) assert.match(p.key, /^Pod\/default\/web$/);
  await r.publish(`${base}/default/last`, podYaml.replace('name: web', 'name: last'));
  assert.equal(r.told('Pod/default/last'), 'Accepted Accepted');
});

test('a short text that nests deep is refused before a parser goes down there with it: its stack would end, and the agent with it', () => {
  const [at] = places;
  assert.ok(at !== undefined);
  for (const text of [
    '- '.repeat(2_000),
    '? '.repeat(2_000),
    '['.repeat(5_000),
    '{"a":'.repeat(2_000),
    '{a: '.repeat(500),
    `${'['.repeat(3_000)}${']'.repeat(3_000)}`,
  ]) {
    const payload = decodePayload(Buffer.from(text), at, { strict: true, allowedUnsafeSysctls: [], node: { name: 'pi-1', labels: {} } });
    assert.deepEqual(payload.ok ? [] : payload.problems.map((p) => p.expected), ['at most 100 levels'], text.slice(0, 10));
  }
});

test('large and deep payloads are refused, not read to their end', () => {
  const large = Buffer.alloc(1_000_000, 0x61);
  const deep = Buffer.from('['.repeat(100_000));
  const closed = Buffer.from(`${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}`);
  const wide = Buffer.from(`{${Array.from({ length: 20_000 }, (_, i) => `"k${i}":${i}`).join()}}`);
  const [at] = places;
  assert.ok(at !== undefined);
  for (const bytes of [large, deep, closed, wide]) {
    assert.equal(parseOnline(bytes), undefined);
    assert.equal(toldByOther(bytes, new Set()), false);
    assert.equal(samePayload('{}', bytes), false);
    assert.notEqual(decodeCommand(bytes).as, 'command');
    for (const kind of kinds) assert.equal(openEnvelope(bytes, keys, kind).ok, false);
    assert.equal(decodePayload(bytes, at, { strict: true, allowedUnsafeSysctls: [], node: { name: 'pi-1', labels: {} } }).ok, false);
    const value = readJsonValue(bytes);
    assert.equal(readIndex(value).ok || readNodeConfig(value).ok || readRollout(value, 'r1').ok, false);
    homeAssistant.message(bytes);
  }
});
