/**
 * The broker may be away, forget, refuse, move and lie: the real bundle on a real mosquitto (MQTT 5) and on a broker that speaks only 3.1.1.
 * What is retained is always the truth again, and no pod is ever touched for the broker's sake.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { startEmbedded } from '../../src/broker/embedded.ts';
import { silentLog } from '../../src/world/log.ts';
import { type Agent, type AgentOptions, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type Mosquitto, startMosquitto } from './mosquitto.ts';
import { freePort, mustRun, processes, sleep, until } from './process.ts';
import { startTcpProxy } from './tcpProxy.ts';
import { assertContract, isRunning, retainedOnly, told, unstamped } from './told.ts';
import { retainedNow, type Watcher, watchTopics } from './watcher.ts';

/** Digits, so that it can also be a number where a string belongs. */
const canary = '735190284617';
/** What an earlier life of a node may have left. */
const ghost = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'ghost', annotations: { 'podsched.dev/boot': '1', 'podsched.dev/seq': '1' } },
});
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

let bed: Bed;
before(async () => {
  bed = await startBed({ name: 'broker' });
});
after(() => bed.stop());

const sleeper = (name: string, labels: Readonly<Record<string, string>> = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: 'localhost/busybox:1',
          command: ['sleep', '2147483647'],
          env: [{ name: 'PASSWORD', value: canary }],
        },
      ],
    },
  });

/** Of all sorts: pods, a refused object with the canary in it, a broken file, a ConfigMap, a Secret. */
function dropAllSorts(agent: Agent, pods: readonly string[]): void {
  for (const name of pods) agent.drop(`${name}.yaml`, sleeper(name));
  agent.drop(
    'refused.yaml',
    sleeper('refused').replace('"value"', '"valeu"').replace('"command"', '"comand"').replace('"image"', '"imag"'),
  );
  agent.drop('broken.yaml', `apiVersion: v1\nkind: Pod\nmetadata:\n  name: broken\nspec: {containers: [{env: [{value: "${canary}]}\n`);
  agent.drop('number.yaml', sleeper('number').replace(`{"name":"PASSWORD","value":"${canary}"}`, `"PASSWORD=${canary}", ${canary}`));
  agent.drop('listed.yaml', sleeper('listed').replace(`"value":"${canary}"`, `"value":["${canary}"]`));
  agent.drop('named.yaml', sleeper('named').replace('"name":"PASSWORD"', `"name":"PASSWORD=${canary}"`));
  agent.drop('map.yaml', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { key: canary } }));
  agent.drop('secret.yaml', JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls' }, stringData: { key: canary } }));
}

const runningIn = (agent: Agent, values: ReadonlyMap<string, unknown>, names: readonly string[]): boolean =>
  names.every((n) => isRunning(values.get(agent.topic(`pods/default/${n}`))));

/** Ids and start times of what runs on this node, by the second opinion. */
async function running(node: string): Promise<string[]> {
  const mine = (await bed.cri.containers()).filter((c) => c.labels['podsched.dev/managed'] === node && c.state === 'running');
  const statuses = await Promise.all(mine.map((c) => bed.cri.containerStatus(c.id)));
  return statuses.map((c) => `${c.labels['io.kubernetes.pod.name']} ${c.id} ${c.startedAt}`).sort();
}

async function removePods(node: string): Promise<void> {
  const mine = (await bed.cri.sandboxes()).filter((s) => s.labels['podsched.dev/managed'] === node);
  await Promise.all(mine.map((s) => bed.cri.stopSandbox(s.id).then(() => bed.cri.removeSandbox(s.id))));
}

const conditions = async (agent: Agent): Promise<readonly { readonly type: string; readonly reason: string; readonly message: string }[]> =>
  JSON.parse((await agent.get('/conditions')).body).items;

const unreachable = async (agent: Agent) => (await conditions(agent)).find((c) => c.type === 'BrokerUnreachable');

const phases = async (agent: Agent): Promise<Record<string, string | undefined>> => {
  const answer = await agent.get('/pods').catch(() => undefined);
  if (answer?.status !== 200) return {};
  const items: readonly unknown[] = JSON.parse(answer.body).items;
  return Object.fromEntries(items.map(told).map((p) => [p.metadata?.name, p.status?.phase]));
};

interface LogLine {
  readonly time: string;
  readonly msg: string;
  readonly [noun: string]: unknown;
}

/** Lines of the agent's log that say `msg`. */
const logLines = (agent: Agent, msg: string): LogLine[] =>
  agent
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine)
    .filter((line) => line.msg === msg);

const connectedAt = (agent: Agent): number[] => logLines(agent, 'connected to the broker').map((l) => Date.parse(l.time));

/** Runs `act` with an agent, looks for the canary everywhere afterwards, and takes the agent and its pods away. */
async function withAgent(
  o: AgentOptions & { readonly nodeName: string },
  act: (agent: Agent, watch: (url: string) => Promise<Watcher>) => Promise<void>,
): Promise<void> {
  const watchers: Watcher[] = [];
  const watch = async (url: string): Promise<Watcher> => {
    const watcher = await watchTopics(url);
    watchers.push(watcher);
    return watcher;
  };
  const agent = await startAgent(bed, { ...o, config: { fileCheckFrequency: '1s', logging: { level: 'debug' }, ...o.config } });
  try {
    await act(agent, watch);
    assert.ok(!agent.log().includes(canary), 'the log says no values of env');
    if (agent.running())
      // /pods has pods whole, as the kubelet's, for who may open the socket; what is told of them on MQTT is looked at below
      for (const path of ['/sync', '/files', '/events', '/configz']) assert.ok(!(await agent.get(path)).body.includes(canary), path);
    assert.ok(!processes().some((p) => p.argv.some((a) => a.includes(canary))), 'no process has it in its arguments');
  } catch (e) {
    throw new Error(`${e instanceof Error ? e.message : String(e)}\nthe agent's last words:\n${agent.log().slice(-4000)}`, { cause: e });
  } finally {
    await Promise.allSettled(watchers.map((w) => w.end()));
    await agent.remove();
    await removePods(o.nodeName).catch((e) => console.error(`pods of ${o.nodeName} are left: ${e}`));
  }
}

function assertTold(watcher: Watcher, node: string, o: Parameters<typeof assertContract>[2] = {}): void {
  assertContract(watcher.heard, node, o);
  const leak = watcher.heard.find((m) => m.text.includes(canary) || m.topic.includes(canary));
  assert.equal(leak, undefined, 'values of env are never told');
}

/** Without conditions of the machine, which come and go as they like: its memory, its disks. */
function ofAgent(value: unknown): unknown {
  const { kind, status } = value as { readonly kind?: string; readonly status?: { readonly conditions?: readonly { type: string }[] } };
  if (kind !== 'Node' || status === undefined) return value;
  const conditions = status.conditions?.filter(({ type }) => /^(Ready|Network|Runtime|Broker|Duplicate)/.test(type));
  return { ...(value as object), status: { ...status, conditions } };
}

/** The summary moves with the machine, and counts it; all else stays as it was told. */
const lasts = (topic: string): boolean => !topic.endsWith('/summary');

/** What is retained of a node, without what is of the moment of telling. */
const truth = (retained: ReadonlyMap<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    [...retained]
      .filter(([topic]) => lasts(topic))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([topic, value]) => [topic, ofAgent(unstamped(value))]),
  );

/** Another reader finds these topics and no others; a ghost would stay for ever. */
async function onlyTopics(port: number, want: readonly string[]): Promise<void> {
  let now: readonly string[] = [];
  await until('only these topics', 30_000, async () => {
    now = Object.keys(await retainedOnly(port, '#')).filter(lasts);
    return isDeepStrictEqual(now, want);
  }).catch(() => assert.deepEqual(now, want, 'no ghosts'));
}

interface Killable {
  readonly url: string;
  kill(): Promise<void>;
  /** The same address again, with nothing kept. */
  startEmpty(): Promise<void>;
  stop(): Promise<void>;
}

const brokers: Readonly<Record<string, () => Promise<Killable>>> = {
  'mosquitto, MQTT 5': async () => {
    const m = await startMosquitto();
    return { url: m.url, kill: m.kill, startEmpty: () => m.restart({ empty: true }), stop: m.stop };
  },
  'aedes, MQTT 3.1.1': async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    let b = await startEmbedded({ listen }, silentLog);
    return {
      url: b.url,
      kill: () => b.close(),
      startEmpty: async () => {
        b = await startEmbedded({ listen }, silentLog);
      },
      stop: () => b.close(),
    };
  },
};

describe('the broker', { concurrency: 3 }, () => {
  // the longest one first
  test('kill -9: the will says lost after its delay, and not at all when the agent is back before; a stop says offline', async () => {
    const broker = await startMosquitto();
    const nodeName = 'willed';
    try {
      await withAgent({ nodeName, servers: [broker.url], config: { nodeStatusUpdateFrequency: '5s' } }, async (agent, watch) => {
        const watcher = await watch(broker.url);
        const online = agent.topic('online');
        agent.drop('a.yaml', sleeper('a'));
        await watcher.untilAll('it runs', (values) => runningIn(agent, values, ['a']));
        const containers = await running(nodeName);
        const states = () => watcher.heard.filter((m) => m.topic === online).map((m) => told(JSON.parse(m.text)).state);
        // the heartbeat, in the rhythm it announces
        const from = watcher.heard.length;
        const beats = () => watcher.heard.slice(from).filter((m) => m.topic === online && !m.retained);
        await until('heartbeats', 60_000, () => beats().length >= 5);
        // on the whole: one alone may be late
        const at = beats().map((m) => m.at);
        const gap = ((at.at(-1) ?? 0) - (at[1] ?? 0)) / (at.length - 2);
        assert.ok(gap > 4_000 && gap < 6_500, `each ${gap} ms: ${at}`);
        const session = told(watcher.values.get(online)).session ?? 0;

        await agent.kill9();
        agent.start();
        await watcher.until(online, (v) => told(v).state === 'online' && (told(v).session ?? 0) > session);
        await agent.kill9();
        const killed = performance.now();
        await watcher.until(online, (v) => told(v).state === 'lost', 90_000);
        console.log(`  lost is told ${seconds(performance.now() - killed)} after kill -9`);
        assert.deepEqual([...new Set(states())], ['online', 'lost'], 'the agent that came back at once was never told lost');
        agent.start();
        await watcher.until(online, (v) => told(v).state === 'online');
        await watcher.untilAll('told Ready again', (values) => told(values.get(agent.topic('sync/default/a'))).reason === 'Ready');
        assert.equal(await agent.stop(), 0);
        await watcher.until(online, (v) => told(v).state === 'offline');
        assert.deepEqual(await running(nodeName), containers);
        assert.ok(!watcher.heard.some((m) => m.topic === agent.topic('pods/default/a') && m.text === ''));
        agent.start();
        await watcher.until(online, (v) => told(v).state === 'online');
        assertTold(watcher, nodeName);
      });
    } finally {
      await broker.stop();
    }
  });

  for (const [i, [what, start]] of Object.entries(brokers).entries()) {
    test(`${what}: killed and started empty: the retained truth is whole again within 15 s of CONNACK, no pod touched`, async () => {
      const broker = await start();
      const nodeName = `emptied-${i}`;
      const pods = ['p0', 'p1', 'p2', 'p3', 'p4'];
      try {
        await withAgent({ nodeName, servers: [broker.url] }, async (agent, watch) => {
          const watcher = await watch(broker.url);
          dropAllSorts(agent, pods);
          // over 50 topics the telling is spread over 10 s
          const settings = (k: number) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `many-${k}` } });
          if (i === 0) agent.drop('many.yaml', Array.from({ length: 100 }, (_, k) => settings(k)).join('\n---\n'));
          await watcher.untilAll('all pods run', (values) => runningIn(agent, values, pods), 60_000);
          if (i === 0) await watcher.until(agent.topic('sync/default/configmap:many-99'), (v) => v !== undefined);
          await watcher.until(agent.topic('sync/_files/broken~2eyaml'), (v) => v !== undefined);
          let before = truth(await retainedNow(broker.url));
          // what changes fast is told each 5 s: until nothing does any more
          await until('all is told', 90_000, async () => {
            const last = before;
            await sleep(5_500);
            before = truth(await retainedNow(broker.url));
            return isDeepStrictEqual(before, last);
          });
          const containers = await running(nodeName);
          for (const part of [
            'online',
            'info',
            'sync/default/p0',
            'pods/default/p4',
            'sync/default/refused',
            'sync/default/configmap:settings',
            'sync/default/secret:tls',
          ])
            assert.ok(agent.topic(part) in before, `${part} is retained: ${Object.keys(before)}`);
          const connects = connectedAt(agent).length;
          const heardFrom = watcher.heard.length;
          await broker.kill();
          await until('the loss is noticed', 45_000, () => logLines(agent, 'the broker connection ended').length > 0);
          const brokenAt = performance.now();
          await broker.startEmpty();
          await until('connected again', 60_000, () => connectedAt(agent).length > connects);
          const away = performance.now() - brokenAt;
          const connack = connectedAt(agent).at(-1) ?? 0;
          // as it was heard, for to read all that is kept takes a while; the former broker says nothing any more
          const missing = (): string[] => {
            const now = new Set(watcher.heard.filter((m) => m.at >= brokenAt && m.text !== '').map((m) => m.topic));
            return Object.keys(before).filter((topic) => !now.has(topic));
          };
          await until('the truth is whole', 45_000, () => missing().length === 0).catch((e) => {
            throw new Error(`${e}: ${missing()}`);
          });
          const whole = Date.now();
          console.log(`  ${what}: connected ${seconds(away)} after the broker was back, whole ${seconds(whole - connack)} after CONNACK`);
          assert.ok(whole - connack < 15_000);
          await sleep(3_000);
          // the condition of the loss goes when it goes; then all is word for word the same, no topic more, none less
          let after = truth(await retainedNow(broker.url));
          await until('all is as it was', 30_000, async () => {
            after = truth(await retainedNow(broker.url));
            return isDeepStrictEqual(after, before);
          }).catch(() => assert.deepEqual(after, before));
          await onlyTopics(Number(new URL(broker.url).port), Object.keys(before));
          assert.deepEqual(await running(nodeName), containers);
          assert.ok(!watcher.heard.slice(heardFrom).some((m) => m.text === '' && m.topic in before), 'nothing that is true was cleared');
          assertTold(watcher, nodeName, { eventsAgain: true });
        });
      } finally {
        await broker.stop();
      }
    });
  }

  test('a pod is removed while the broker and the agent are away: afterwards only live topics, and nothing of others is touched', async () => {
    const broker = await startMosquitto({ persistence: true });
    const nodeName = 'ghosts';
    try {
      await withAgent({ nodeName, servers: [broker.url] }, async (agent, watch) => {
        const watcher = await watch(broker.url);
        const names = ['stays', 'goes', 'goes-later'];
        dropAllSorts(agent, names);
        await watcher.untilAll('all pods run', (values) => runningIn(agent, values, names), 60_000);
        const foreign: Readonly<Record<string, string>> = {
          'podsched/v1/nodes/ghosts-2/pods/default/goes': '{"of":"a neighbour"}',
          'podsched/v1/nodes/other/sync/default/goes': '{}',
          [`podsched/v1/desired/nodes/${nodeName}/default/wanted`]: '{}',
          [agent.topic('notes/mine')]: 'a note of somebody',
          'homeassistant/device/ghosts/config': '{}',
        };
        const ghosts = { [agent.topic('pods/old/ghost')]: ghost, [agent.topic('sync/_files/old~2eyaml')]: '{}' };
        for (const [topic, text] of Object.entries({ ...foreign, ...ghosts }))
          await watcher.client.publishAsync(topic, text, { qos: 1, retain: true });
        const containers = await running(nodeName);
        await broker.end();
        // looked for on its disk: the agent clears them as soon as it may read them again
        const disk = readFileSync(join(broker.dir, 'store/mosquitto.db'), 'latin1');
        for (const topic of Object.keys(ghosts)) assert.ok(disk.includes(topic), `${topic} is kept`);
        agent.removeManifest('goes.yaml');
        await until('the agent ends it', 45_000, async () => {
          const now = await phases(agent);
          return 'stays' in now && !('goes' in now);
        });
        await agent.kill9();
        agent.removeManifest('goes-later.yaml');
        agent.removeManifest('broken.yaml');
        agent.removeManifest('map.yaml');
        agent.start();
        await until('the new agent ends the other', 45_000, async () => {
          const now = await phases(agent);
          return 'stays' in now && !('goes-later' in now);
        });
        await broker.restart();
        const live = [
          'info',
          'online',
          'pods/default/stays',
          // `wanted` stands among the desired ones: it is refused, told so, and left alone
          ...['listed', 'named', 'number', 'refused', 'secret:tls', 'stays', 'wanted'].map((n) => `sync/default/${n}`),
        ];
        const files = ['listed', 'named', 'number', 'refused'].map((f) => `sync/_files/${f}~2eyaml`);
        const want = [...[...live, ...files].map((t) => agent.topic(t)), ...Object.keys(foreign)].sort();
        let now: string[] = [];
        await until(
          'only live topics',
          60_000,
          async () => {
            now = [...(await retainedNow(broker.url, '#')).keys()].filter(lasts).sort();
            return JSON.stringify(now) === JSON.stringify(want);
          },
          200,
        ).catch(() => assert.deepEqual(now, want));
        await onlyTopics(broker.port, want);
        const kept = await retainedNow(broker.url, '#');
        for (const [topic, text] of Object.entries(foreign))
          assert.deepEqual(kept.get(topic), text.startsWith('{') ? JSON.parse(text) : text);
        const stays = (list: readonly string[]) => list.filter((c) => c.startsWith('stays '));
        assert.deepEqual(await running(nodeName), stays(containers));
        assert.ok(
          !watcher.heard.some((m) => m.topic === agent.topic('pods/default/stays') && m.text === ''),
          'a live topic never vanished',
        );
      });
    } finally {
      await broker.stop();
    }
  });

  test('the broker is not there at the first start: files work, the socket says so, and everything is told when it comes', async () => {
    const port = await freePort();
    const nodeName = 'early';
    let broker: Mosquitto | undefined;
    try {
      await withAgent({ nodeName, servers: [`mqtt://127.0.0.1:${port}`] }, async (agent, watch) => {
        dropAllSorts(agent, ['one', 'two']);
        await until('both run', 60_000, async () => {
          const now = await phases(agent);
          return now.one === 'Running' && now.two === 'Running';
        });
        await until('it is said', 45_000, async () => (await unreachable(agent)) !== undefined);
        assert.match((await unreachable(agent))?.message ?? '', /ECONNREFUSED/);
        assert.match((await agent.get('/healthz')).body, /\[-\]broker failed/);
        const containers = await running(nodeName);
        broker = await startMosquitto({ port });
        const watcher = await watch(broker.url);
        await watcher.until(agent.topic('online'), (v) => told(v).state === 'online', 90_000);
        const since = performance.now();
        const expected = ['info', 'sync/_files/broken~2eyaml', ...['sync/default/one', 'sync/default/secret:tls', 'sync/default/refused']];
        await watcher.untilAll(
          'everything',
          (values) => runningIn(agent, values, ['one', 'two']) && expected.every((t) => values.has(agent.topic(t))),
        );
        await until('events of before', 45_000, () =>
          watcher.heard.some((m) => m.topic.includes('/events/default') && m.text.includes('"Started"')),
        );
        console.log(`  a broker that comes late has everything ${seconds(performance.now() - since)} after online, events too`);
        await until('no condition', 45_000, async () => (await unreachable(agent)) === undefined);
        assert.deepEqual(await running(nodeName), containers);
        assertTold(watcher, nodeName);
      });
    } finally {
      await broker?.stop();
    }
  });

  test('the password is wrong: told as a condition, never written anywhere, pods run; a new start with the right one tells everything', async () => {
    const nodeName = 'keyless';
    const dir = bed.dir;
    const passwords = join(dir, 'mosquitto-passwords');
    await mustRun('mosquitto_passwd', ['-c', '-b', passwords, 'pi', 'right-pa55']);
    const guarded = await startMosquitto({ listener: `allow_anonymous false\npassword_file ${passwords}` });
    const passwordFile = join(dir, 'password');
    writeFileSync(passwordFile, 'wrong-pa55\n', { mode: 0o600 });
    try {
      await withAgent({ nodeName, servers: [guarded.url], config: { mqtt: { username: 'pi', passwordFile } } }, async (agent) => {
        agent.drop('a.yaml', sleeper('a'));
        await until('it runs', 60_000, async () => (await phases(agent)).a === 'Running');
        await until('it is said', 45_000, async () => (await unreachable(agent)) !== undefined);
        assert.equal((await unreachable(agent))?.reason, 'Refused');
        const containers = await running(nodeName);
        writeFileSync(passwordFile, 'right-pa55\n', { mode: 0o600 });
        await agent.restart();
        await until('connected', 45_000, () => connectedAt(agent).length === 1);
        await until('no condition', 45_000, async () => (await unreachable(agent)) === undefined);
        assert.deepEqual(await running(nodeName), containers);
        assert.ok(!/pa55/.test(agent.log()), 'a password is never logged');
        assert.ok(!(await agent.get('/configz')).body.includes('pa55'));
      });
    } finally {
      await guarded.stop();
    }
  });

  test('two servers: the second is used while the first is dead, and the first when the second dies', async () => {
    const first = await startMosquitto();
    const second = await startMosquitto();
    const nodeName = 'moving';
    try {
      await first.kill();
      await withAgent({ nodeName, servers: [first.url, second.url] }, async (agent, watch) => {
        dropAllSorts(agent, ['a']);
        const there = await watch(second.url);
        await there.untilAll('told at the second', (values) => runningIn(agent, values, ['a']));
        const containers = await running(nodeName);
        await first.restart();
        await second.kill();
        const moved = performance.now();
        const here = await watch(first.url);
        await here.untilAll(
          'told at the first',
          (values) => runningIn(agent, values, ['a']) && values.has(agent.topic('sync/_files/broken~2eyaml')),
          60_000,
        );
        console.log(`  moved to the other server, all told, ${seconds(performance.now() - moved)} after the first one died`);
        assert.deepEqual(await running(nodeName), containers);
        assertTold(here, nodeName, { eventsAgain: true });
      });
    } finally {
      await Promise.all([first.stop(), second.stop()]);
    }
  });

  test('a server that takes the connection and says nothing does not keep the agent from the next one', async () => {
    const broker = await startMosquitto();
    const silent = await startTcpProxy(broker.port);
    silent.swallowAnswers = true;
    const nodeName = 'unanswered';
    try {
      await withAgent({ nodeName, servers: [`mqtt://127.0.0.1:${silent.port}`, broker.url] }, async (agent, watch) => {
        agent.drop('a.yaml', sleeper('a'));
        const watcher = await watch(broker.url);
        await watcher.untilAll('told at the second', (values) => runningIn(agent, values, ['a']), 60_000);
        assert.match(logLines(agent, 'no broker connection')[0]?.detail as string, /no answer within/);
      });
    } finally {
      await silent.close();
      await broker.stop();
    }
  });

  test('the line goes silent: noticed by keepalive, and after it everything is told', async () => {
    const broker = await startMosquitto();
    const proxy = await startTcpProxy(broker.port);
    const nodeName = 'silent';
    try {
      await withAgent(
        { nodeName, servers: [`mqtt://127.0.0.1:${proxy.port}`], config: { mqtt: { keepalive: '5s' } } },
        async (agent, watch) => {
          const watcher = await watch(broker.url);
          agent.drop('a.yaml', sleeper('a', { round: '0' }));
          await watcher.untilAll('it runs', (values) => runningIn(agent, values, ['a']));
          await sleep(2_500);
          proxy.swallowAnswers = proxy.swallowRequests = true;
          const silentAt = performance.now();
          agent.drop('a.yaml', sleeper('a', { round: '1' }));
          await until('the loss is noticed', 45_000, () => logLines(agent, 'the broker connection ended').length > 0);
          console.log(`  a silent line is noticed after ${seconds(performance.now() - silentAt)} (keepalive 5 s)`);
          proxy.swallowAnswers = proxy.swallowRequests = false;
          await watcher.until(agent.topic('pods/default/a'), (v) => told(v).metadata?.labels?.round === '1', 60_000);
          await watcher.until(agent.topic('online'), (v) => told(v).state === 'online');
          // of the broker; the machine may have its own
          const left = async () => (await conditions(agent)).map((c) => c.type).filter((type) => /^(Broker|Duplicate)/.test(type));
          await until('no condition is left', 45_000, async () => (await left()).length === 0);
          assertTold(watcher, nodeName, { eventsAgain: true });
        },
      );
    } finally {
      await proxy.close();
      await broker.stop();
    }
  });

  test('MQTT 3.1.1: kill -9 is told lost at once; what was removed meanwhile leaves no ghost; a stop says offline', async () => {
    const broker = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
    const nodeName = 'older';
    try {
      await withAgent({ nodeName, servers: [broker.url] }, async (agent, watch) => {
        const watcher = await watch(broker.url);
        const online = agent.topic('online');
        for (const name of ['stays', 'goes']) agent.drop(`${name}.yaml`, sleeper(name));
        await watcher.untilAll('both run', (values) => runningIn(agent, values, ['stays', 'goes']));
        assert.deepEqual(
          logLines(agent, 'connected to the broker').map((l) => l.protocolVersion),
          [4],
        );
        await watcher.client.publishAsync(agent.topic('pods/old/ghost'), ghost, { qos: 1, retain: true });
        await agent.kill9();
        // long before a broker that only misses it would say so
        await watcher.until(online, (v) => told(v).state === 'lost', 10_000);
        agent.removeManifest('goes.yaml');
        agent.start();
        await watcher.until(online, (v) => told(v).state === 'online');
        const want = ['info', 'online', 'pods/default/stays', 'sync/default/stays'].map((t) => agent.topic(t));
        await until('only live topics', 60_000, async () => {
          return JSON.stringify([...(await retainedNow(broker.url, '#')).keys()].filter(lasts).sort()) === JSON.stringify(want);
        });
        assert.equal(await agent.stop(), 0);
        await watcher.until(online, (v) => told(v).state === 'offline');
        assertTold(watcher, nodeName);
      });
    } finally {
      await broker.close();
    }
  });

  for (const way of ['swallowAnswers', 'swallowRequests'] as const) {
    test(`the line is cut between PUBLISH and PUBACK (${way}): the last value is told, and only then is it done`, async () => {
      const broker = await startMosquitto();
      const proxy = await startTcpProxy(broker.port);
      const nodeName = way === 'swallowAnswers' ? 'cut-a' : 'cut-b';
      try {
        await withAgent({ nodeName, servers: [`mqtt://127.0.0.1:${proxy.port}`] }, async (agent, watch) => {
          const watcher = await watch(broker.url);
          const topic = agent.topic('pods/default/a');
          const label = (v: unknown) => told(v).metadata?.labels?.round;
          agent.drop('a.yaml', sleeper('a', { round: '0' }));
          await watcher.until(topic, isRunning);
          const containers = await running(nodeName);
          await sleep(2_500);
          for (const round of ['1', '2']) {
            proxy[way] = true;
            // two values on the way, or one alone
            if (round === '1') {
              agent.drop('a.yaml', sleeper('a', { round: `${round}-first` }));
              await sleep(400);
            }
            agent.drop('a.yaml', sleeper('a', { round: `${round}-last` }));
            await until('the agent knows', 45_000, async () => (await agent.get('/pods')).body.includes(`${round}-last`));
            await sleep(200);
            proxy[way] = false;
            proxy.cut();
            await watcher.until(topic, (v) => label(v) === `${round}-last`, 60_000);
          }
          await sleep(1_000);
          assert.equal(label((await retainedNow(broker.url)).get(topic)), '2-last');
          assert.deepEqual(await running(nodeName), containers);
          assertTold(watcher, nodeName, { eventsAgain: true });
        });
      } finally {
        await proxy.close();
        await broker.stop();
      }
    });
  }

  test('a value of env is in no file that others may read', async () => {
    await withAgent({ nodeName: 'secretive' }, async (agent) => {
      dropAllSorts(agent, ['a']);
      await until('it runs', 60_000, async () => (await phases(agent)).a === 'Running');
      await agent.stop();
      const open: string[] = [];
      for (const dir of [agent.stateDir, agent.runDir]) {
        for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
          const path = join(entry.parentPath, entry.name);
          if (entry.isFile() && readFileSync(path, 'utf8').includes(canary) && (statSync(path).mode & 0o077) !== 0) open.push(path);
        }
      }
      assert.deepEqual(open, []);
    });
  });
});
