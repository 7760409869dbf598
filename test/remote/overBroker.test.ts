/** Commands through the node's session with a broker, as a client at the same broker sees them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reply } from '../../src/api/messages.ts';
import { nodeTopics } from '../../src/api/topics.ts';
import { verbs } from '../../src/api/verbs.ts';
import type { Inbox } from '../../src/broker/inbox.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import { Commands } from '../../src/remote/commands.ts';
import { runVerb } from '../../src/remote/verbs.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { type Rig, rig } from '../broker/rig.ts';
import { agentView } from '../operations/view.ts';

const node = 'pi-1';
const topics = nodeTopics('podsched/v1', node);
const commandTopic = (verb: string): string => topics.commands.replace('+', verb);

interface Bed extends Rig {
  readonly events: string[];
  readonly restarts: () => number;
  /** Replies that reached the broker, as `status reason`. */
  readonly said: () => string[];
  readonly replies: () => { readonly topic: string; readonly correlationData?: string; readonly reply: Reply }[];
}

function bed(version: 4 | 5, view: Partial<AgentView> = {}): Bed {
  const events: string[] = [];
  let restarts = 0;
  const inbox: Inbox = {
    message: (m) => commands.message(m),
    snapshot: () => {},
    connected: () => commands.connected(),
    disconnected: () => commands.disconnected(),
  };
  const r = rig({ inbox });
  if (version === 4) r.broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
  const commands = new Commands({
    clock: r.clock,
    log: silentLog,
    nodeName: node,
    prefix: 'podsched/v1',
    bootId: 'boot-id',
    session: () => r.session.session(),
    view: () =>
      agentView({
        act: async () => {
          restarts++;
          return { ok: true, value: { message: 'done' } };
        },
        ...view,
      }),
    loadVerbs: async () => runVerb,
    allows: (verb) => verbs.includes(verb),
    allowsNamespace: () => true,
    openCommand: () => ({ ok: false, reason: 'KeyUnknown', message: '' }),
    judgeCommand: () => undefined,
    store: new MemoryStore(),
    event: (_, __, reason) => void events.push(reason),
    boot: () => 3,
    seq: () => 1,
    reply: (topic, payload, o) => r.session.reply(topic, payload, o),
    publishLogs: (topic, payload) => r.session.reply(topic, payload, { expirySeconds: 60 }),
    largestMessage: (topic) => r.session.largestMessage(topic),
  });
  r.session.follow([topics.commands]);
  const replies: Bed['replies'] = () =>
    r.broker.publishes
      .filter((p) => p.topic.startsWith('podsched/v1/reply/'))
      .map(({ topic, payload, correlationData }) => ({
        topic,
        reply: JSON.parse(payload) as Reply,
        ...(correlationData !== undefined && { correlationData }),
      }));
  return {
    ...r,
    events,
    restarts: () => restarts,
    replies,
    said: () => replies().map(({ reply: { status, reason } }) => (reason === undefined ? status : `${status} ${reason}`)),
  };
}

const restart = (id: string): string => JSON.stringify({ id, target: { pod: 'web' }, replyTo: topics.reply('ops') });

for (const version of [4, 5] as const) {
  test(`a command is answered over MQTT ${version}`, async () => {
    const b = bed(version);
    await b.clock.advance(5_000);
    b.broker.say(commandTopic('restart'), restart('a'));
    await b.clock.advance(100);
    assert.deepEqual(b.said(), ['accepted', 'ok']);
    assert.deepEqual([b.replies()[1]?.topic, b.replies()[1]?.reply.id], ['podsched/v1/reply/ops/pi-1', 'a']);
    assert.deepEqual(b.events, ['Commanded']);
    await b.session.stop();
  });
}

test('the response topic and the correlation data of MQTT 5 are used', async () => {
  const b = bed(5);
  await b.clock.advance(5_000);
  b.broker.say(commandTopic('get'), '', { responseTopic: topics.reply('dash'), correlationData: Buffer.from('c-7') });
  await b.clock.advance(100);
  assert.deepEqual(
    b.replies().map(({ topic, correlationData, reply }) => [topic, correlationData, reply.status]),
    [['podsched/v1/reply/dash/pi-1', 'c-7', 'ok']],
  );
  await b.session.stop();
});

test('a restart that was published while the node was away, within its session, is answered expired and not run', async () => {
  const b = bed(5);
  await b.clock.advance(5_000);
  b.broker.cut();
  b.broker.say(commandTopic('restart'), restart('late'));
  await b.clock.advance(30_000);
  assert.deepEqual(b.said(), ['expired Queued']);
  assert.equal(b.restarts(), 0);
  b.broker.say(commandTopic('restart'), restart('now'));
  await b.clock.advance(100);
  assert.deepEqual(b.said(), ['expired Queued', 'accepted', 'ok']);
  await b.session.stop();
});

test('a retained command is not run at any connection, with or without a session', async () => {
  for (const version of [4, 5] as const) {
    const b = bed(version);
    b.broker.say(commandTopic('restart'), restart('kept'), { retain: true });
    await b.clock.advance(5_000);
    b.broker.cut();
    await b.clock.advance(150_000);
    assert.deepEqual([b.restarts(), b.said()], [0, []]);
    assert.ok(b.events.includes('CommandRefused'));
    await b.session.stop();
  }
});

test('a link that drops in the middle of a log: no further piece, and the next question is answered whole', async () => {
  let open = 0;
  const b = bed(5, {
    logs: async () => {
      open++;
      async function* stream(): AsyncGenerator<Uint8Array, void> {
        try {
          for (let i = 0; i < 5; i++) yield Buffer.alloc(48 * 1024, 0x61);
        } finally {
          open--;
        }
      }
      return { ok: true, value: stream() };
    },
  });
  await b.clock.advance(5_000);
  let pieces = 0;
  b.broker.onPublish = (p) => (p.topic.startsWith('podsched/v1/reply/') && ++pieces === 3 ? 'cut' : 'ack');
  const ask = JSON.stringify({ id: 'l', target: { pod: 'web' }, replyTo: topics.reply('ops') });
  b.broker.say(commandTopic('logs'), ask);
  await b.clock.advance(1_000);
  assert.deepEqual([pieces, open], [3, 0]);
  await b.clock.advance(60_000);
  assert.equal(pieces, 3);
  b.broker.say(commandTopic('logs'), ask);
  await b.clock.advance(1_000);
  assert.equal(
    b
      .replies()
      .slice(3)
      .reduce((sum, { reply }) => sum + (reply.data?.length ?? 0), 0),
    5 * 48 * 1024,
  );
  await b.session.stop();
});
