/** The session on a real mosquitto, in real time: restarts, storms, forbidden writes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { MqttBroker } from '../../src/broker/client.ts';
import { startEmbedded } from '../../src/broker/embedded.ts';
import { BrokerSession, type BrokerSessionDeps } from '../../src/broker/session.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { type Mosquitto, startMosquitto } from '../device/mosquitto.ts';
import { freePort } from '../device/process.ts';
import { retainedOnly } from '../device/told.ts';
import { until } from '../until.ts';
import { FakeIdentity, FakeInbox, onlineTopic, root, webTopic } from './rig.ts';

interface Running {
  readonly session: BrokerSession;
  readonly stop: () => Promise<void>;
}

function start(server: string, more: Partial<BrokerSessionDeps> = {}): Running {
  const identity = more.identity ?? new FakeIdentity();
  let seq = 0;
  const session = new BrokerSession({
    clock: systemClock,
    log: silentLog,
    broker: new MqttBroker(),
    servers: [server],
    clientId: `podsched-${identity.nodeName}-${identity.machine}`,
    credentials: async () => ({}),
    keepaliveSeconds: 30,
    random: Math.random,
    splayRangeMs: 1_000,
    identity,
    prefix: 'podsched/v1',
    heartbeatSeconds: () => 60,
    agentVersion: '1',
    clockSynced: () => true,
    seq: () => ++seq,
    report: () => {},
    ...more,
  });
  const running = session.run(new AbortController().signal);
  return {
    session,
    stop: async () => {
      await session.stop();
      await running;
    },
  };
}

const retained = (m: Mosquitto, filter: string) => retainedOnly(m.port, filter, 1);
/** One message from a 3.1.1 client. */
async function publishOnce(m: Mosquitto, topic: string, payload: string): Promise<void> {
  const connection = await new MqttBroker().connect(
    {
      server: m.url,
      protocolVersion: 4,
      clientId: `once-${Math.random()}`,
      cleanStart: true,
      keepaliveSeconds: 60,
      will: { topic: 'once', payload: '', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 60 },
    },
    { onMessage: () => {}, onClose: () => {} },
  );
  await connection.publish(topic, payload, { qos: 1, retain: false });
  await connection.end('disconnect');
}

const settled = (r: Running): boolean => r.session.connected() && r.session.counters().dirtyTopics === 0;

test('field case I2: mosquitto without persistence is killed and started again: twenty topics are back', async () => {
  const m = await startMosquitto();
  const r = start(m.url);
  for (let i = 0; i < 20; i++) r.session.tell(`${root}/pods/default/p${i}`, `{"i":${i}}`, { qos: 1, expirySeconds: 7 * 86_400 });
  r.session.setReady();
  await until('first telling', () => settled(r));
  await m.kill();
  await until('loss noticed', () => !r.session.connected());
  await m.restart();
  await until('connected again', () => r.session.connected());
  await until('all told, long before the next heartbeat', () => settled(r));
  const now = await retained(m, `${root}/#`);
  assert.equal(Object.keys(now).filter((t) => t.includes('/pods/')).length, 20);
  assert.equal(JSON.parse(now[onlineTopic] ?? '{}').state, 'online');
  await r.stop();
  assert.equal(JSON.parse((await retained(m, onlineTopic))[onlineTopic] ?? '{}').state, 'offline');
  await m.stop();
});

test('field case I7: a pod removed while broker and agent were away leaves nothing behind', async () => {
  const m = await startMosquitto({ persistence: true });
  const first = start(m.url);
  for (const pod of ['web', 'gone']) first.session.tell(`${root}/pods/default/${pod}`, '{}', { qos: 1, expirySeconds: 7 * 86_400 });
  await until('told', () => settled(first));
  await m.end();
  await first.stop();
  await m.restart();
  const second = start(m.url);
  second.session.tell(webTopic, '{}', { qos: 1, expirySeconds: 7 * 86_400 });
  await until('told', () => settled(second));
  second.session.setReady();
  await until('no ghost', async () => Object.keys(await retained(m, `${root}/pods/#`)).join() === webTopic);
  await second.stop();
  await m.stop();
});

test('field case I3: twenty agents, and their one broker restarts: all come back, and not at once', async () => {
  const m = await startMosquitto();
  const back: number[] = [];
  let restarted = false;
  const broker = new MqttBroker();
  const agents = Array.from({ length: 20 }, (_, i) => {
    const identity = Object.assign(new FakeIdentity(`${i}`.padStart(12, '0')), { nodeName: `pi-${i}` });
    return start(m.url, {
      identity,
      splayRangeMs: 5_000,
      broker: {
        connect: async (...args) => {
          const connection = await broker.connect(...args);
          if (restarted) back.push(performance.now());
          return connection;
        },
      },
    });
  });
  try {
    await until('all connected', () => agents.every((a) => a.session.connected()));
    restarted = true;
    await m.kill();
    await m.restart();
    // one that has not noticed yet is no one who came back
    await until('all back', () => back.length >= agents.length && agents.every((a) => a.session.connected()));
    const spread = Math.max(...back) - Math.min(...back);
    assert.ok(spread > 1_500, `${spread} ms between the first and the last`);
    const inOneTenth = Math.max(...back.map((t) => back.filter((u) => u >= t && u < t + 200).length));
    assert.ok(inOneTenth <= 10, `${inOneTenth} within 200 ms`);
  } finally {
    await Promise.all(agents.map((a) => a.stop()));
    await m.stop();
  }
});

for (const version of [5, 4] as const) {
  test(`a write that the ACL forbids is told, MQTT ${version}`, async () => {
    const acl = `topic read #\ntopic write ${onlineTopic}\ntopic write ${root}/_marker\n`;
    const m = await startMosquitto({ listener: 'allow_anonymous true\nacl_file @/acl', files: { acl } });
    const broker = new MqttBroker();
    const r = start(m.url, { broker: { connect: (o, h, s) => broker.connect({ ...o, protocolVersion: version }, h, s) } });
    await until('connected', () => settled(r));
    r.session.tell(webTopic, '{}', { qos: 1 });
    // 3.1.1 has no way to say no: there the forbidden topic looks told
    if (version === 5) await until('condition', () => r.session.conditions().some((c) => c.reason === 'PublishRefused'));
    assert.deepEqual(Object.keys(await retained(m, `${root}/#`)), [onlineTopic]);
    assert.ok(r.session.connected());
    await r.stop();
    await m.stop();
  });
}

test('an online that the ACL forbids is noticed on 3.1.1 too, since it does not come back', async () => {
  const m = await startMosquitto({ listener: 'allow_anonymous true\nacl_file @/acl', files: { acl: 'topic read #\n' } });
  const broker = new MqttBroker();
  const r = start(m.url, { broker: { connect: (o, h, s) => broker.connect({ ...o, protocolVersion: 4 }, h, s) } });
  await until('condition', () => r.session.conditions().some((c) => c.reason === 'OnlineNotReadBack'));
  await r.stop();
  await m.stop();
});

test('a password that is wrong, then right in its file: refused, told, and taken at the next attempt', async () => {
  const m = await startMosquitto({ listener: 'allow_anonymous false\npassword_file @/passwords', files: { passwords: '' } });
  await promisify(execFile)('mosquitto_passwd', ['-b', `${m.dir}/passwords`, 'pi-1', 'right']);
  await m.kill();
  await m.restart();
  let password = 'wrong';
  const r = start(m.url, { credentials: async () => ({ username: 'pi-1', password: Buffer.from(password) }) });
  await until('refused', () => r.session.conditions().some((c) => c.reason === 'Refused'));
  await r.stop();
  password = 'right';
  const again = start(m.url, { credentials: async () => ({ username: 'pi-1', password: Buffer.from(password) }) });
  await until('connected', () => again.session.connected());
  await again.stop();
  await m.stop();
});

test('field case I6: mosquitto with a small max_packet_size: the large status is told cut, and nothing loops', async () => {
  const m = await startMosquitto({ listener: 'allow_anonymous true\nmax_packet_size 2000' });
  const r = start(m.url);
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, status: { message: 'x'.repeat(10_000) } };
  r.session.tell(webTopic, JSON.stringify(pod), { qos: 1 });
  await until('told', () => settled(r));
  const told = JSON.parse((await retained(m, webTopic))[webTopic] ?? '{}');
  assert.ok(told.metadata.annotations['podsched.dev/truncated']);
  await r.stop();
  await m.stop();
});

const ownDesired = 'podsched/v1/desired/nodes/pi-1/#';
const commands = 'podsched/v1/cmd/pi-1/+';
const desired = (i: number) => `podsched/v1/desired/nodes/pi-1/default/p${i}`;
const retainedTopics = (inbox: FakeInbox): Set<string> => new Set(inbox.messages.filter((m) => m.retain).map((m) => m.topic));

test('1,100 retained under one filter: mosquitto drops some, the snapshot ends all the same, and the missing are fetched by name', async () => {
  const m = await startMosquitto();
  const door = new MqttBroker();
  const operator = await door.connect(
    {
      server: m.url,
      protocolVersion: 5,
      clientId: 'operator',
      cleanStart: true,
      keepaliveSeconds: 60,
      will: { topic: 'operator', payload: '', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 60 },
    },
    { onMessage: () => {}, onClose: () => {} },
  );
  const topics = Array.from({ length: 1_100 }, (_, i) => desired(i));
  for (const topic of topics) await operator.publish(topic, '{}', { qos: 1, retain: true });
  const inbox = new FakeInbox();
  const r = start(m.url, { inbox });
  r.session.follow([commands, ownDesired]);
  await until('the snapshot', () => inbox.lines.includes(`snapshot ${ownDesired}`));
  const missing = topics.filter((t) => !retainedTopics(inbox).has(t));
  assert.ok(missing.length > 0 && missing.length < 200, `${missing.length} missing`);
  await r.session.fetch(missing);
  assert.equal(retainedTopics(inbox).size, topics.length);
  assert.deepEqual(r.session.conditions(), []);
  await r.stop();
  await operator.end('disconnect');
  await m.stop();
});

test('what a 3.1.1 client publishes to an absent MQTT 5 node comes before the first marker, and says so', async () => {
  const m = await startMosquitto();
  const inbox = new FakeInbox();
  const door = new MqttBroker();
  let refuse = false;
  const r = start(m.url, {
    inbox,
    broker: { connect: (...args) => (refuse ? Promise.reject(new Error('not yet')) : door.connect(...args)) },
  });
  r.session.follow([commands, ownDesired]);
  await until('followed', () => inbox.lines.includes(`snapshot ${ownDesired}`));
  refuse = true;
  const command = (verb: string) => publishOnce(m, `podsched/v1/cmd/pi-1/${verb}`, '{}');
  // another with the same client id throws the node out, and leaves the session as it is
  const thrower = await door.connect(
    {
      server: m.url,
      protocolVersion: 5,
      clientId: 'podsched-pi-1-aaaaaaaaaaaa',
      cleanStart: false,
      keepaliveSeconds: 60,
      will: { topic: 'thrower', payload: '', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 60 },
    },
    { onMessage: () => {}, onClose: () => {} },
  );
  await thrower.end('disconnect');
  await until('noticed', () => !r.session.connected());
  await command('restart');
  refuse = false;
  inbox.take();
  await until('back', () => inbox.lines.includes(`snapshot ${ownDesired}`));
  await command('get');
  await until('the second', () => inbox.messages.length === 2);
  assert.deepEqual(
    inbox.messages.map((c) => [c.topic.split('/').at(-1), c.queued]),
    [
      ['restart', true],
      ['get', false],
    ],
  );
  await r.stop();
  await m.stop();
});

test('over a WebSocket the same: what is told is retained, and what is followed comes', async () => {
  const port = await freePort();
  // libwebsockets binds to no address, only to an interface
  const m = await startMosquitto({
    listener: `allow_anonymous true\nlistener ${port}\nbind_interface lo\nprotocol websockets\nallow_anonymous true`,
  });
  const inbox = new FakeInbox();
  const r = start(`ws://127.0.0.1:${port}/mqtt`, { inbox });
  r.session.follow([ownDesired]);
  r.session.tell(desired(1), 'x'.repeat(50_000), { qos: 1 });
  await until('the snapshot', () => inbox.lines.includes(`snapshot ${ownDesired}`) && settled(r));
  await until('the message', () => inbox.texts().includes('x'.repeat(50_000)));
  assert.deepEqual(r.session.conditions(), []);
  await r.stop();
  await m.stop();
});

test('the embedded broker lets the marker pass retained messages by: what is told as the snapshot is all of it', async () => {
  const embedded = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  const first = start(embedded.url);
  for (let i = 0; i < 300; i++) first.session.tell(desired(i), '{}', { qos: 1 });
  await until('published', () => settled(first));
  const identity = new FakeIdentity('bbbbbbbbbbbb');
  const inbox = new FakeInbox();
  const r = start(embedded.url, { inbox, identity: Object.assign(identity, { nodeName: 'pi-2' }) });
  r.session.follow([ownDesired]);
  await until('the snapshot', () => inbox.lines.includes(`snapshot ${ownDesired}`));
  assert.equal(retainedTopics(inbox).size, 300);
  await Promise.all([r.session.fetch([desired(1), desired(2), desired(999)]), r.session.fetch([desired(3)])]);
  assert.equal(inbox.messages.length, 303);
  await r.stop();
  await first.stop();
  await embedded.close();
});

test('the embedded broker serves the agent in 3.1.1, forgets with it, and is filled again', async () => {
  const first = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  const r = start(first.url);
  r.session.setReady();
  r.session.tell(webTopic, '{}', { qos: 1, expirySeconds: 60 });
  await until('told', () => settled(r));
  await first.close();
  await until('loss noticed', () => !r.session.connected());
  const second = await startEmbedded({ listen: first.url.slice('mqtt://'.length) }, silentLog);
  await until('told again', () => settled(r));
  assert.deepEqual(r.session.conditions(), []);
  await r.stop();
  await second.close();
});
