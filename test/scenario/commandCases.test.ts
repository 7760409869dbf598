/**
 * Field cases D13, I11, I15 and L5 on the whole agent: whoever orders something through the broker is told what became of it, and only those who
 * may are obeyed.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import type { Reply } from '../../src/api/messages.ts';
import { SupportBundles } from '../../src/operations/bundle.ts';
import { manifestJson } from '../../src/policy/dsse.ts';
import { signEnvelope } from '../../src/policy/signing.ts';
import { bytesOf } from '../../src/remote/chunks.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { Afar, absent, podJson, prefix, replyTopic, words } from './afar.ts';

async function running(a: Afar, pods: Readonly<Record<string, string>> = { web: podJson('web') }): Promise<Afar> {
  for (const [name, payload] of Object.entries(pods)) a.keep(a.topic(name), payload);
  await a.world.start();
  await a.world.advance(10);
  return a;
}
const runs = (a: Afar): string[] => a.world.runtime.running();
const starts = (a: Afar): number => a.world.runtime.deeds.filter((d) => d === 'startContainer').length;
const reasons = (a: Afar): string[] => a.world.events.map((e) => e.reason);
const everyVerb = { 'policy.mqtt': { verbs: ['*'] } };
const web = { target: { pod: 'web' } };
const data = (replies: readonly Reply[]): Buffer =>
  Buffer.concat(replies.map(({ data: d = '', encoding }) => bytesOf({ data: d, ...(encoding !== undefined && { encoding }) })));

/** What is sent to a verb, and what comes back; `deeds`: something happens to a pod. */
const outcomes: readonly {
  readonly what: string;
  readonly verb: string;
  readonly send: object | string;
  readonly said: readonly string[];
  readonly does?: true;
}[] = [
  { what: 'looking', verb: 'get', send: {}, said: ['ok'] },
  { what: 'a change of a pod', verb: 'restart', send: web, said: ['accepted', 'ok'], does: true },
  { what: 'a pod that there is not', verb: 'restart', send: { target: { pod: 'wep' } }, said: ['accepted', 'error NotFound'] },
  { what: 'no pod at all', verb: 'restart', send: {}, said: ['error TargetRequired'] },
  {
    what: 'a container that there is not',
    verb: 'restart',
    send: { target: { pod: 'web', container: 'x' } },
    said: ['accepted', 'error NotFound'],
  },
  { what: 'a misspelt argument', verb: 'restart', send: { ...web, args: { nwe: true } }, said: ['error BadArguments'] },
  { what: 'another version of the schema', verb: 'restart', send: { ...web, apiVersion: 'podsched.dev/v9' }, said: ['error BadCommand'] },
  { what: 'another kind', verb: 'restart', send: { ...web, kind: 'Order' }, said: ['error BadCommand'] },
  { what: 'a verb that there is not', verb: 'reboot', send: web, said: ['error UnknownVerb'] },
  { what: 'another session than this one', verb: 'restart', send: { ...web, session: 7 }, said: ['expired OtherSession'] },
  { what: 'another boot than this one', verb: 'restart', send: { ...web, bootID: 'boot-0' }, said: ['expired OtherBoot'] },
  { what: 'more bytes than a command has', verb: 'restart', send: 'x'.repeat(200_000), said: ['tooLarge CommandTooLarge'] },
  { what: 'no JSON', verb: 'restart', send: '{"target": ', said: ['error BadCommand'] },
];
for (const { what, verb, send, said, does } of outcomes) {
  test(`I11: a command with ${what}: ${said.join(', then ')}, and ${does ? 'it is done once' : 'nothing happens'}`, async () => {
    const a = await running(new Afar(everyVerb));
    const before = a.deeds;
    if (typeof send === 'string') {
      // who cannot be read in the payload is told on the response topic of MQTT 5
      assert.deepEqual(words(await a.send(verb, send, 10, { responseTopic: replyTopic })), said);
    } else assert.deepEqual(words(await a.ask(verb, { ...send })), said);
    assert.equal(a.deeds > before, does === true);
    for (const reply of a.replies().filter((r) => r.status === 'error')) assert.ok((reply.message ?? '').length > 10, 'with words');
    assert.deepEqual(runs(a), ['web/app']);
  });
}

test('I11: what policy does not name is denied, and an event on the node; allowed by SIGHUP, it is done', async () => {
  const a = await running(new Afar());
  assert.deepEqual(words(await a.ask('stop', web)), ['denied VerbDenied']);
  assert.ok(reasons(a).includes('CommandRefused'));
  assert.deepEqual(runs(a), ['web/app']);
  a.orders.settings = everyVerb;
  await a.world.reload();
  assert.deepEqual(words(await a.ask('stop', web)), ['accepted', 'ok']);
  await a.world.advance(40);
  assert.deepEqual([runs(a), a.world.sync('web')?.phase], [[], 'Stopped']);
  await a.world.reboot();
  await a.world.advance(20);
  assert.deepEqual(runs(a), [], 'over a reboot');
  assert.deepEqual(words(await a.ask('start', web)), ['accepted', 'ok']);
  assert.deepEqual(runs(a), ['web/app']);
});

test('I11: one id twice, over an agent restart too: done once, answered each time; with other words it is refused', async () => {
  const a = await running(new Afar(everyVerb));
  assert.deepEqual(words(await a.ask('restart', { ...web, id: 'x' })), ['accepted', 'ok']);
  assert.deepEqual(words(await a.ask('restart', { ...web, id: 'x' })), ['ok']);
  await a.world.restart();
  await a.world.advance(10);
  assert.deepEqual(words(await a.ask('restart', { ...web, id: 'x' })), ['ok']);
  assert.deepEqual(words(await a.ask('stop', { ...web, id: 'x' })), ['error IdReused']);
  assert.deepEqual([starts(a), runs(a)], [2, ['web/app']]);
});

for (const version of [4, 5] as const) {
  test(`I11: a retained command is not run again at reconnects nor after an agent restart, and one of a time away never, MQTT ${version}`, async () => {
    const a = new Afar(everyVerb);
    if (version === 4) a.broker.connackCode = (o) => (o.protocolVersion === 5 ? 1 : undefined);
    await running(a);
    await a.send('restart', JSON.stringify({ id: 'kept', ...web, replyTo: replyTopic }), 10, { retain: true });
    const before = starts(a);
    // in 3.1.1 nobody says of a message that comes just now that it will be retained
    assert.equal(before, version === 4 ? 2 : 1);
    for (const how of ['cut', 'session lost', 'agent'] as const) {
      if (how === 'agent') await a.world.restart();
      else a.broker.cut();
      if (how === 'session lost') a.broker.sessions.clear();
      await a.world.advance(700);
    }
    assert.equal(starts(a), before);
    assert.ok(reasons(a).includes('CommandRefused'));
    a.broker.say(`${prefix}/cmd/pi/restart`, '', { retain: true });
    await a.world.advance(5);
    assert.equal(starts(a), before, 'its deletion is no command');
    a.broker.cut();
    const said = a.replies().length;
    a.broker.say(`${prefix}/cmd/pi/stop`, JSON.stringify({ id: 'late', ...web, replyTo: replyTopic }));
    await a.world.advance(130);
    // a session of MQTT 5 keeps it for the node, and it is told; in 3.1.1 it was heard by nobody
    assert.deepEqual(words(a.replies().slice(said)), version === 5 ? ['expired Queued'] : []);
    assert.deepEqual(runs(a), ['web/app']);
  });
}

/** Wishes are answered in `sync`: what is said there of each. */
const wishes: readonly (readonly [what: string, payload: string, row: RegExp])[] = [
  ['no JSON and no YAML', '{"kind": ', /^Refused Invalid$/],
  ['another version of the schema', podJson('web').replace('"v1"', '"v9"'), /^Refused Invalid$/],
  ['another name than its topic', podJson('wep'), /^Refused NameMismatch$/],
  [
    'an older generation than the one that runs',
    podJson('web', { image: 2, annotations: { 'podsched.dev/generation': '3' } }),
    /^Refused GenerationFell$/,
  ],
  [
    'the same generation with other words',
    podJson('web', { image: 2, annotations: { 'podsched.dev/generation': '5' } }),
    /^Refused GenerationConflict$/,
  ],
  ['what the policy does not allow', podJson('web', { spec: { hostNetwork: true } }), /^Refused PolicyDenied$/],
];
for (const [what, payload, row] of wishes) {
  test(`I11: a wish with ${what}: told at its topic with the reason, the revision that runs is told beside it and goes on`, async () => {
    const text = podJson('web', { annotations: { 'podsched.dev/generation': '5' } });
    const a = await running(new Afar(), { web: text });
    const [before, revision] = [a.deeds, a.world.sync('web')?.running?.revision];
    assert.ok(revision !== undefined);
    a.keep(a.topic('web'), payload);
    await a.world.advance(5);
    const sync = a.world.sync('web');
    assert.match(a.said('web') ?? '', row);
    assert.deepEqual([sync?.phase, sync?.reason, sync?.running?.revision, a.deeds], ['Running', 'EditRefused', revision, before]);
  });
}

test('I11: a wish whose image nobody has: the old one runs on, the reason is told, and the new one takes over when it can be had', async () => {
  const a = await running(new Afar());
  a.keep(a.topic('web'), podJson('web', { image: 9 }));
  await a.world.advance(30);
  assert.deepEqual(runs(a), ['web/app']);
  assert.equal(a.world.sync('web')?.phase, 'UpdateBlocked');
  assert.notEqual(a.world.sync('web')?.desired?.revision, a.world.sync('web')?.running?.revision);
  a.world.runtime.images.set('localhost/busybox:9', { state: 'pullable', pullMs: 1000 });
  await a.world.advance(400);
  assert.equal(a.world.runtime.find('web', 'app')?.config.userSpecifiedImage, 'localhost/busybox:9');
  assert.equal(a.world.sync('web')?.phase, 'Running');
});

test('D13: retry now: a restart through the broker starts what waits for its back-off at once', async () => {
  const a = new Afar(everyVerb);
  let fails = true;
  a.world.runtime.onStart(() => (fails ? { exitAfterMs: 100, exitCode: 1 } : {}));
  await running(a);
  await a.world.advance(600);
  assert.equal(a.world.sync('web')?.reason, 'CrashLoopBackOff');
  fails = false;
  assert.deepEqual(words(await a.ask('restart', web, 3)), ['accepted', 'ok']);
  await a.world.advance(5);
  assert.deepEqual([runs(a), a.world.sync('web')?.reason], [['web/app'], 'Ready']);
});

const pair = generateKeyPairSync('ed25519');
const pem = String(pair.privateKey.export({ format: 'pem', type: 'pkcs8' }));
const stranger = String(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
/** With the key's own id left out: all known keys are tried. */
const signed = (text: string, by = pem, type = manifestJson): string => {
  const { payload, payloadType, signatures } = JSON.parse(signEnvelope(Buffer.from(text), type, by)) as {
    payload: string;
    payloadType: string;
    signatures: { sig: string }[];
  };
  return JSON.stringify({ payloadType, payload, signatures: signatures.map(({ sig }) => ({ sig })) });
};
const meant = (generation: number, image: number, audience = 'pi'): string =>
  podJson('web', { image, annotations: { 'podsched.dev/audience': audience, 'podsched.dev/generation': String(generation) } });
const tampered = (): string => {
  const envelope = JSON.parse(signed(meant(7, 1))) as object;
  return JSON.stringify({ ...envelope, payload: Buffer.from(meant(7, 2)).toString('base64') });
};
const trusting = async (clock: FakeClock): Promise<Afar> => {
  const a = new Afar({ 'policy.mqtt': { requireSignature: true, verbs: ['*'] } }, { clock });
  a.orders.keys = [{ keyid: 'ops', publicKey: pair.publicKey, file: 'ops.pub' }];
  return running(a, { web: signed(meant(5, 1)) });
};

const attempts: readonly (readonly [what: string, payload: () => string, row: RegExp])[] = [
  ['unsigned', () => meant(6, 2), /^Refused Unsigned$/],
  ['tampered with', tampered, /^Refused SignatureInvalid$/],
  ['signed by a stranger', () => signed(meant(6, 2), stranger), /^Refused (SignatureInvalid|KeyUnknown)$/],
  ['a replay of an older one', () => signed(meant(4, 2)), /^Refused GenerationFell$/],
  ['another node’s', () => signed(meant(6, 2, 'pi-2')), /^Refused /],
  ['a group’s', () => signed(meant(6, 2, 'group:attic')), /^Refused /],
  ['empty', () => '', /./],
  ['an unsigned tombstone', () => absent('Pod', 'web', 9), /^Refused Unsigned$/],
];
for (const year of [1970, 2026]) {
  test(`I15: signatures in ${year}: the right one runs, each other one is refused with its reason, and what runs goes on`, async () => {
    const a = await trusting(new FakeClock(Date.parse(`${year}-01-01T00:00:00Z`)));
    assert.deepEqual([runs(a), a.said('web')], [['web/app'], 'Accepted Accepted']);
    const before = a.deeds;
    for (const [what, payload, row] of attempts) {
      a.keep(a.topic('web'), payload());
      await a.world.advance(10);
      assert.match(a.said('web') ?? '', row, what);
      assert.deepEqual([runs(a), a.deeds], [['web/app'], before], what);
    }
    await a.world.reboot();
    await a.world.advance(20);
    assert.deepEqual(runs(a), ['web/app'], 'what was accepted runs without its envelope at the broker');
    a.keep(a.topic('web'), signed(meant(6, 3)));
    await a.world.advance(10);
    assert.equal(a.world.runtime.find('web', 'app')?.config.userSpecifiedImage, 'localhost/busybox:3');
    assert.equal(a.said('web'), 'Accepted Accepted');
  });
}

test('I15: a key that is taken away ends what it signed; given back, it runs again', async () => {
  const a = await trusting(new FakeClock());
  const { keys } = a.orders;
  a.orders.keys = [];
  await a.world.reload();
  await a.world.advance(45);
  assert.deepEqual([runs(a), a.said('web')?.split(' ')[0]], [[], 'Refused']);
  a.orders.keys = keys;
  await a.world.reload();
  await a.world.advance(45);
  assert.deepEqual(runs(a), ['web/app']);
});

test('I15: without any policy of its own a node takes no privileged pod, no path and no network of the host from the broker', async () => {
  const a = await running(new Afar(), {
    priv: podJson('priv', { container: { securityContext: { privileged: true } } }),
    path: podJson('path', { spec: { volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] } }),
    net: podJson('net', { spec: { hostNetwork: true } }),
    web: podJson('web'),
  });
  assert.deepEqual(runs(a), ['web/app']);
  for (const name of ['priv', 'path', 'net']) assert.equal(a.said(name), 'Refused PolicyDenied', name);
});

async function* pieces(bytes: Uint8Array, size = 65_536): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test('L5: ten megabytes of log with a cap of 100 KB: 100 KB in chunks of at most 48 KiB, the last says so, and no more is read', async () => {
  const a = new Afar();
  let read = 0;
  a.orders.view = {
    logs: async () => ({
      ok: true,
      value: (async function* () {
        for await (const piece of pieces(new Uint8Array(10 * 2 ** 20).fill(120))) {
          read += piece.length;
          yield piece;
        }
      })(),
    }),
  };
  await running(a);
  const replies = await a.ask('logs', { ...web, args: { limitBytes: 100_000 } });
  assert.equal(data(replies).length, 100_000);
  assert.ok(replies.every((r) => (r.data ?? '').length <= 48 * 1024) && replies.length >= 3);
  assert.deepEqual(
    replies.map((r) => r.chunk),
    replies.map((_, seq) => ({ seq, last: seq === replies.length - 1 })),
  );
  assert.match(replies.at(-1)?.truncated ?? '', /./);
  assert.ok(read <= 300_000, `${read} bytes read`);
});

test('L5: bytes that are no text arrive as they were, and two requests at once are two whole answers', async () => {
  const a = new Afar();
  const bytes = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 31) % 256);
  a.orders.view = { logs: async () => ({ ok: true, value: pieces(bytes, 7_001) }) };
  await running(a);
  const question = (id: string) => JSON.stringify({ id, ...web, replyTo: replyTopic });
  for (const id of ['a', 'b']) a.broker.say(`${prefix}/cmd/pi/logs`, question(id));
  await a.send('logs', question('c'), 20);
  for (const id of ['a', 'b', 'c']) assert.ok(data(a.replies().filter((r) => r.id === id)).equals(bytes), id);
});

test('L5: the link drops in the middle of a log: nothing of it is sent later, the file is closed, and asked again it comes whole', async () => {
  const a = new Afar();
  const [bytes, open] = [new Uint8Array(400_000).fill(120), new Set<number>()];
  let asked = 0;
  a.orders.view = {
    logs: async () => {
      const mine = ++asked;
      open.add(mine);
      async function* log(): AsyncGenerator<Uint8Array, void> {
        try {
          yield* pieces(bytes);
        } finally {
          open.delete(mine);
        }
      }
      return { ok: true, value: log() };
    },
  };
  await running(a);
  let parts = 0;
  a.broker.onPublish = (p) => (p.topic === replyTopic && ++parts === 3 ? 'cut' : 'ack');
  await a.ask('logs', web, 130);
  assert.deepEqual([parts, open.size], [3, 0]);
  const before = a.replies().length;
  assert.equal(data(await a.ask('logs', web)).length, bytes.length);
  assert.equal(a.replies()[before]?.chunk?.seq, 0);
  assert.deepEqual(runs(a), ['web/app']);
});

test('L5: a bundle through the broker: status, mistakes in manifests, what the kernel said of memory and USB, health; and no secret', async () => {
  const a = new Afar({ 'policy.mqtt': { verbs: ['*'] }, 'mqtt.username': 'pi' });
  a.world.folder.files.set('half.yaml', 'kind: [');
  a.orders.view = {
    bundle: (signal) =>
      new SupportBundles({
        ...{ clock: a.clock, nodeName: 'pi', version: '1' },
        pods: () => a.world.kubelet.status.told(),
        sync: () => a.world.kubelet.status.sync(),
        files: () => a.world.kubelet.status.files(),
        objects: () => [],
        events: () => a.world.kubelet.events.list(),
        conditions: () => [],
        health: () => [{ name: 'runtime', ok: true, message: 'ok' }],
        configuration: () => ({ 'mqtt.servers': ['mqtts://pi:hunter2@broker:8883'], 'mqtt.username': a.orders.config['mqtt.username'] }),
        node: async () => ({ kind: 'Node' }),
        runtime: a.world.runtime,
        agent: () => ({}),
        kernelLines: async () => ['usb 1-1: new device', 'Out of memory: Killed process 7'],
      }).make(signal),
  };
  await running(a, { web: podJson('web', { container: { env: [{ name: 'PW', value: 'correct horse' }] } }) });
  const replies = await a.ask('bundle');
  assert.deepEqual([words(replies)[0], words(replies).at(-1)], ['accepted', 'ok']);
  const text = data(replies).toString();
  const bundle = JSON.parse(text) as Record<string, unknown>;
  for (const part of ['sync', 'files', 'events', 'pods', 'kernel', 'health', 'runtime', 'configuration']) assert.ok(part in bundle, part);
  for (const word of ['half.yaml', 'Out of memory', 'usb 1-1', '"web"']) assert.ok(text.includes(word), word);
  assert.ok(!/hunter2|correct horse/.test(text));
});
