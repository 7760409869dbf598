import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { absence, parseReply, type RemoteNode } from '../../src/cli/remoteNode.ts';
import { type Bed, drive, fleetBed, online, openNode, root } from './fleetBed.ts';

const onlineTopic = `${root}/nodes/pi-07/online`;
const replyTopic = `${root}/reply/ops/pi-07`;
const ends = (code: number, text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof CommandError, String(e));
  assert.match(e.message, text);
  assert.equal(e.code, code, e.message);
  return true;
};

/** A node that answers each command with these replies. */
function answering(
  bed: Bed,
  replies: readonly Record<string, unknown>[],
  o: { readonly via?: 'correlation' } = {},
): Record<string, unknown>[] {
  const heard: Record<string, unknown>[] = [];
  bed.broker.onPublish = (p) => {
    if (!p.topic.startsWith(`${root}/cmd/`)) return 'ack';
    const command = JSON.parse(p.payload) as Record<string, unknown>;
    heard.push({ ...command, topic: p.topic, responseTopic: p.responseTopic, retain: p.retain, expirySeconds: p.expirySeconds });
    for (const reply of replies) {
      const id = o.via === 'correlation' ? '' : command.id;
      const data = new TextEncoder().encode(String(command.id));
      bed.broker.say(replyTopic, JSON.stringify({ kind: 'Reply', id, ...reply }), { correlationData: data });
    }
    return 'ack';
  };
  return heard;
}

async function withNode(version: 4 | 5 = 5): Promise<{ bed: Bed; node: RemoteNode }> {
  const bed = await fleetBed(version);
  bed.broker.say(onlineTopic, online('pi-07'), { retain: true });
  return { bed, node: await openNode(bed) };
}

const states: readonly [string, Parameters<typeof absence>[1], boolean, number | undefined][] = [
  ['nothing is known', undefined, false, exitCodes.notFound],
  ['it told of itself, and its heartbeats have run out', undefined, true, exitCodes.unreachable],
  ['it was ended', { state: 'offline' }, true, exitCodes.unreachable],
  ['its connection broke', { state: 'lost' }, true, exitCodes.unreachable],
  ['its name is taken', { state: 'duplicate' }, true, exitCodes.unreachable],
  ['it is there', { state: 'online' }, true, undefined],
];
for (const [name, heard, told, code] of states)
  test(`is a node there: ${name}`, () => assert.equal(absence('pi-07', heard, told)?.code, code));

test('a node that nobody knows is not waited for', async () => {
  const bed = await fleetBed();
  await assert.rejects(openNode(bed), ends(exitCodes.notFound, /no node "pi-07" is known/));
});

test('a node that is offline, lost or silent is said to be so at once', async () => {
  const bed = await fleetBed();
  bed.broker.say(onlineTopic, online('pi-07', 'offline'), { retain: true });
  await assert.rejects(openNode(bed), ends(exitCodes.unreachable, /is offline/));
  bed.broker.say(onlineTopic, online('pi-07', 'lost'), { retain: true });
  await assert.rejects(openNode(bed), ends(exitCodes.unreachable, /is lost/));
  bed.broker.say(onlineTopic, '', { retain: true });
  bed.broker.say(`${root}/nodes/pi-07/info`, '{"kind":"Node"}', { retain: true });
  const before = bed.clock.monotonic();
  await assert.rejects(openNode(bed), ends(exitCodes.unreachable, /is stale/));
  assert.ok(bed.clock.monotonic() - before < 5000);
});

for (const version of [5, 4] as const)
  test(`since when a node is away is known by the broker's clock: MQTT ${version === 5 ? '5 says it, in steps that people read' : '3.1.1 says nothing'}`, async () => {
    const bed = await fleetBed(version);
    for (const [state, words] of [
      ['offline', 'is offline: its agent was ended'],
      ['lost', 'is lost: its connection to the broker broke'],
    ] as const) {
      bed.broker.say(onlineTopic, online('pi-07', state), { retain: true, expirySeconds: 30 * 24 * 3600 });
      await bed.pass(300);
      await assert.rejects(openNode(bed), ends(exitCodes.unreachable, new RegExp(`"pi-07" ${words}${version === 5 ? ' 5m ago' : ''}$`)));
    }
    // of somebody who counts otherwise
    bed.broker.say(onlineTopic, online('pi-07', 'offline'), { retain: true, expirySeconds: 90 * 24 * 3600 });
    await assert.rejects(openNode(bed), ends(exitCodes.unreachable, /ended$/));
  });

test('a node that is there and answers nothing: it is said why that may be', async () => {
  const { bed, node } = await withNode();
  await assert.rejects(
    bed.run(node.ask('why')),
    ends(exitCodes.unreachable, /does not answer to why: its last word was "online".*passwordFile$/),
  );
});

test('MQTT 5: the command has a response topic and correlation data, an end after 30 s, and is not retained', async () => {
  const { bed, node } = await withNode();
  const [heard] = [answering(bed, [{ status: 'ok', data: 'done' }])];
  const { stdout } = await bed.run(node.ask('why', { target: { pod: 'web' }, args: { output: 'text' } }));
  assert.equal(Buffer.from(stdout).toString(), 'done');
  const [command] = heard;
  assert.equal(command?.topic, `${root}/cmd/pi-07/why`);
  assert.equal(command?.responseTopic, replyTopic);
  assert.equal(command?.retain, false);
  assert.equal(command?.expirySeconds, 30);
  assert.deepEqual(command?.target, { pod: 'web' });
  assert.equal(command?.replyTo, undefined);
});

test('MQTT 3.1.1: after CONNACK code 1 the topic for the answer is in the command', async () => {
  const { bed, node } = await withNode(4);
  assert.equal(node.remote.protocolVersion, 4);
  const heard = answering(bed, [{ status: 'ok', data: 'done' }]);
  await bed.run(node.ask('resync'));
  assert.equal(heard[0]?.replyTo, replyTopic);
  assert.equal(heard[0]?.responseTopic, undefined);
});

test('pieces are put together in their order, one that came twice counts once, bytes come as bytes', async () => {
  const { bed, node } = await withNode();
  answering(bed, [
    { status: 'accepted' },
    { status: 'ok', chunk: { seq: 0, last: false }, data: 'eins ' },
    { status: 'ok', chunk: { seq: 0, last: false }, data: 'eins ' },
    { status: 'ok', chunk: { seq: 1, last: false }, data: Buffer.from([0xff, 0x00]).toString('base64'), encoding: 'base64' },
    { status: 'ok', chunk: { seq: 2, last: true }, data: 'err', stream: 'stderr', exitCode: 3 },
  ]);
  const { stdout, stderr, last } = await bed.run(node.ask('exec'));
  assert.deepEqual(Buffer.from(stdout), Buffer.concat([Buffer.from('eins '), Buffer.from([0xff, 0x00])]));
  assert.equal(Buffer.from(stderr).toString(), 'err');
  assert.equal(last.exitCode, 3);
});

test('a piece that is missing ends the answer', async () => {
  const { bed, node } = await withNode();
  answering(bed, [
    { status: 'ok', chunk: { seq: 0, last: false }, data: 'a' },
    { status: 'ok', chunk: { seq: 2, last: true }, data: 'c' },
  ]);
  await assert.rejects(bed.run(node.ask('get')), ends(exitCodes.failed, /a piece of the answer/));
});

const refusals: readonly [Record<string, unknown>, number, RegExp][] = [
  [{ status: 'error', reason: 'NotFound', message: 'pod "web" not found' }, exitCodes.notFound, /^pod "web" not found$/],
  [{ status: 'error', reason: 'Conflict', message: 'held' }, exitCodes.failed, /^held$/],
  [{ status: 'denied', reason: 'VerbNotAllowed', message: 'policy.mqtt.verbs' }, exitCodes.failed, /does not allow exec over MQTT: policy/],
  [{ status: 'expired', reason: 'Queued' }, exitCodes.unreachable, /too late, and has not run it/],
  [{ status: 'tooLarge', message: 'ask for one name' }, exitCodes.failed, /ask for one name/],
];
for (const [reply, code, text] of refusals) {
  test(`what a node answers with ${reply.status} ${reply.reason ?? ''} is said in its words`, async () => {
    const { bed, node } = await withNode();
    answering(bed, [reply]);
    await assert.rejects(bed.run(node.ask('exec')), ends(code, text));
  });
}

test('a refusal without an id is known by its correlation data', async () => {
  const { bed, node } = await withNode();
  answering(bed, [{ status: 'denied', message: 'no envelope of ours' }], { via: 'correlation' });
  await assert.rejects(bed.run(node.ask('exec')), ends(exitCodes.failed, /no envelope of ours/));
});

test('no answer for 30 s: unreachable, with the last word of the node', async () => {
  const { bed, node } = await withNode();
  const before = bed.clock.monotonic();
  await assert.rejects(
    bed.run(node.ask('get')),
    ends(exitCodes.unreachable, /does not answer to get: its last word was "online", a heartbeat is due every 60 s/),
  );
  assert.equal(Math.round(bed.clock.monotonic() - before), 30_000);
});

test('a node that says good-bye meanwhile is not waited for', async () => {
  const { bed, node } = await withNode();
  const before = bed.clock.monotonic();
  const asked = node.ask('get');
  asked.catch(() => {});
  await bed.clock.advance(2000);
  bed.broker.say(onlineTopic, online('pi-07', 'lost'), { retain: true });
  await assert.rejects(bed.run(asked), ends(exitCodes.unreachable, /is lost/));
  assert.ok(bed.clock.monotonic() - before < 3000);
});

test('what was accepted may take as long as the node is heard', async () => {
  const { bed, node } = await withNode();
  const heard = answering(bed, [{ status: 'accepted' }]);
  const asked = node.ask('images', { args: { do: 'pull', image: 'x' } });
  for (let i = 0; i < 15; i++) {
    await bed.clock.advance(60_000);
    bed.broker.say(onlineTopic, online('pi-07'), { retain: true });
  }
  bed.broker.say(replyTopic, JSON.stringify({ kind: 'Reply', id: heard[0]?.id, status: 'ok', data: '{}' }));
  assert.equal(Buffer.from((await bed.run(asked)).stdout).toString(), '{}');
});

test('a connection that breaks ends the command as unreachable', async () => {
  const { bed, node } = await withNode();
  const asked = node.ask('get');
  asked.catch(() => {});
  await bed.clock.advance(1000);
  bed.broker.cut();
  await assert.rejects(bed.run(asked), ends(exitCodes.unreachable, /the connection to the broker ended/));
});

test('a signed command names node, verb, boot and session, and nothing is in clear beside it', async () => {
  const bed = await fleetBed();
  bed.broker.say(onlineTopic, online('pi-07'), { retain: true });
  const node = await openNode(bed, 'pi-07', { sign: (text) => JSON.stringify({ signed: JSON.parse(text) }) });
  const sent: unknown[] = [];
  bed.broker.onPublish = (p) => {
    if (p.topic.startsWith(`${root}/cmd/`)) sent.push(JSON.parse(p.payload));
    return 'ack';
  };
  const asked = node.ask('exec', { target: { pod: 'web' }, args: { command: ['id'] } });
  asked.catch(() => {});
  await bed.clock.advance(10);
  const [envelope] = sent as { signed: Record<string, unknown> }[];
  assert.deepEqual(Object.keys(envelope ?? {}), ['signed']);
  const { node: name, verb, bootID, session } = envelope?.signed ?? {};
  assert.deepEqual({ name, verb, bootID, session }, { name: 'pi-07', verb: 'exec', bootID: 'boot-1', session: 1000 });
  await assert.rejects(bed.run(asked));
});

test('replies out of bytes: whatever is none is passed over', () => {
  const parse = (value: unknown) => parseReply(new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)));
  for (const bad of ['', 'x', '[]', 'null', { id: 'a' }, { id: 1, status: 'ok' }, { id: 'a', status: 'fine' }])
    assert.equal(parse(bad), undefined);
  const odd = parse({ id: 'a', status: 'ok', chunk: 'x', data: 5, exitCode: '0', stream: 'other' });
  assert.deepEqual(odd, { id: 'a', reply: { status: 'ok', data: Buffer.from('') } });
});

test('a server that refuses is told with its reason, and the next one is tried', async () => {
  const bed = await fleetBed();
  bed.broker.connackCode = (o) => (o.server === 'mqtt://a' ? 0x87 : undefined);
  const remote = await bed.another({ servers: ['mqtt://a', 'mqtt://b'] });
  assert.equal(bed.broker.connects.at(-1)?.options.server, 'mqtt://b');
  await remote.close();
  await assert.rejects(bed.another(), ends(exitCodes.unreachable, /mqtt:\/\/a: .*0x87/));
  bed.broker.down = true;
  await assert.rejects(bed.another(), ends(exitCodes.unreachable, /no broker can be reached/));
});

test('a command that is cut off leaves nothing behind: its will clears', async () => {
  const bed = await fleetBed();
  const { will } = bed.broker.connects[0]?.options ?? assert.fail('no connection');
  assert.equal(will.payload, '');
  bed.broker.cut();
  await drive(bed.clock, bed.clock.sleep(10));
  assert.deepEqual(bed.retained(), {});
});
