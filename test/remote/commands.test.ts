/** What happens to a command, from the message to its last answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verbs } from '../../src/api/verbs.ts';
import type { AgentView, PodActRequest } from '../../src/operations/agentView.ts';
import { told } from '../operations/view.ts';
import { commandBed, replyTopic, self } from './commandBed.ts';

/** A view whose acts are written down, and end when told. */
function actor() {
  const acts: PodActRequest[] = [];
  const waiting: (() => void)[] = [];
  let slow = false;
  const act: AgentView['act'] = async (request) => {
    acts.push(request);
    if (slow) await new Promise<void>((resolve) => waiting.push(resolve));
    return { ok: true, value: { message: `pod/${request.pod} ${request.act}ed` } };
  };
  return {
    acts,
    view: { act },
    beSlow: () => {
      slow = true;
    },
    finish: () => waiting.shift()?.(),
  };
}

test('a question of a 3.1.1 client is answered on its reply topic, with its id', async () => {
  const b = commandBed();
  await b.ask('get', { id: 'q-1', args: { what: 'version' } });
  assert.deepEqual(b.published, [
    {
      topic: replyTopic(),
      reply: {
        apiVersion: 'podsched.dev/v1',
        kind: 'Reply',
        id: 'q-1',
        node: self,
        verb: 'get',
        status: 'ok',
        chunk: { seq: 0, last: true },
        data: '{"version":"1.2.3","nodeName":"pi-07"}',
        boot: 3,
        seq: 42,
      },
    },
  ]);
  assert.deepEqual(b.events, []);
});

test('a question of an MQTT 5 client is answered on its response topic, with its correlation data', async () => {
  const b = commandBed();
  const correlationData = Uint8Array.from([1, 2, 3]);
  b.raw('get', '', { responseTopic: replyTopic('dash-1'), correlationData });
  await b.rest();
  const [only] = b.published;
  assert.equal(only?.topic, replyTopic('dash-1'));
  assert.deepEqual(only?.correlationData, correlationData);
  assert.equal(only?.reply.id, '');
  assert.equal((JSON.parse(only?.reply.data ?? '') as { kind: string }).kind, 'PodList');
});

test('pods over MQTT have no environment, whatever the manifest has', async () => {
  const secret = 'hunter2';
  const pod = told('web', {
    spec: { containers: [{ name: 'app', image: 'i', env: [{ name: 'P', value: secret }], command: ['sh', '-c', secret] }] },
    metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': secret, long: 'x'.repeat(300) } },
  });
  const b = commandBed({ view: { pods: () => [pod], sync: () => [] } });
  await b.ask('get', { args: { what: 'pods' } });
  await b.ask('describe', { target: { pod: 'web' } });
  assert.deepEqual(b.said(), ['ok', 'ok']);
  assert.match(b.data(), /"name":"app"/);
  assert.doesNotMatch(b.data(), /hunter2|x{300}/);
});

test('a changing verb is accepted, done, and an event that says who asked', async () => {
  const { acts, view } = actor();
  const b = commandBed({ view, allows: verbs });
  await b.ask('restart', { id: 'r', target: { pod: 'web' } });
  assert.deepEqual(acts, [{ act: 'restart', namespace: 'default', pod: 'web' }]);
  assert.deepEqual(b.said(), ['accepted', 'ok']);
  assert.equal(b.replies()[1]?.message, 'pod/web restarted');
  assert.deepEqual(b.events, [
    {
      subject: { kind: 'Pod', namespace: 'default', name: 'web', uid: 'uid-web' },
      type: 'Normal',
      reason: 'Commanded',
      message: 'restart default/web, asked for by ops',
    },
  ]);
});

test('each verb asks the view what it should', async () => {
  const { acts, view } = actor();
  const nodeActs: unknown[] = [];
  const b = commandBed({
    view: {
      ...view,
      nodeAct: async (request) => {
        nodeActs.push(request);
        return { ok: true, value: { message: 'done' } };
      },
      bundle: async () => ({ ok: true, value: { part: 1 } }),
      doctor: async () => [{ name: 'clock', level: 'ok', message: 'set' }],
    },
    allows: verbs,
  });
  const target = { namespace: 'kitchen', pod: 'cam', container: 'app' };
  await b.ask('restart', { target, args: { new: true } });
  for (const verb of ['stop', 'start', 'hold', 'release', 'rollback']) await b.ask(verb, { target });
  await b.ask('resync', { args: { forgetLost: true } });
  await b.ask('identify', { args: { seconds: 5 } });
  await b.ask('decommission', { args: { confirm: self } });
  await b.ask('bundle');
  await b.ask('doctor');
  assert.deepEqual(acts, [
    { act: 'restart', namespace: 'kitchen', pod: 'cam', container: 'app', new: true },
    ...['stop', 'start', 'hold', 'release', 'rollback'].map((act) => ({ act, namespace: 'kitchen', pod: 'cam' })),
  ]);
  assert.deepEqual(nodeActs, [
    { act: 'resync', forgetLost: true },
    { act: 'identify', seconds: 5 },
    { act: 'decommission', confirm: self },
  ]);
  assert.deepEqual(
    b.said().filter((s) => s !== 'accepted'),
    new Array(11).fill('ok'),
  );
});

test('what policy does not allow is denied, and an event', async () => {
  const { acts, view } = actor();
  const b = commandBed({ view });
  await b.ask('restart', { id: 'r', target: { pod: 'web' } });
  assert.deepEqual(acts, []);
  assert.deepEqual(b.said(), ['denied VerbDenied']);
  assert.deepEqual(
    b.events.map(({ type, reason }) => [type, reason]),
    [['Warning', 'CommandRefused']],
  );
  assert.match(b.events[0]?.message ?? '', /^restart, asked for by ops: VerbDenied: /);
});

test('without a reply topic it is done, unanswered; a refusal is an event; a question is not even asked', async () => {
  const { acts, view } = actor();
  let asked = 0;
  const b = commandBed({
    view: {
      ...view,
      pods: () => {
        asked++;
        return [told('web')];
      },
    },
    allows: ['restart', 'get'],
  });
  b.raw('restart', '{"target":{"pod":"web"}}');
  await b.rest();
  assert.equal(acts.length, 1);
  asked = 0;
  b.raw('get', '');
  await b.rest();
  assert.equal(asked, 0);
  b.raw('restart', '');
  b.raw('restart', 'no json');
  await b.rest();
  assert.equal(acts.length, 1);
  assert.deepEqual(b.published, []);
  assert.deepEqual(
    b.events.map((e) => /: (\w+): /.exec(e.message)?.[1] ?? e.reason),
    ['Commanded', 'TargetRequired', 'BadCommand'],
  );
});

test('an empty payload is a command for what needs no more', async () => {
  const nodeActs: unknown[] = [];
  const view: Partial<AgentView> = {
    nodeAct: async (request) => {
      nodeActs.push(request);
      return { ok: true, value: { message: 'done' } };
    },
  };
  const b = commandBed({ view });
  b.raw('resync', '');
  b.raw('identify', '');
  await b.rest();
  assert.deepEqual(nodeActs, [{ act: 'resync' }, { act: 'identify', seconds: 10 }]);
});

test('a retained command is never run, and its deletion is nothing', async () => {
  const { acts, view } = actor();
  const b = commandBed({ view, allows: verbs });
  await b.ask('restart', { target: { pod: 'web' } }, { retain: true });
  assert.deepEqual([acts.length, b.published.length, b.events.length], [0, 0, 1]);
  assert.match(b.events[0]?.message ?? '', /Retained/);
  b.raw('resync', '', { retain: true });
  b.raw('restart', '', { retain: true });
  await b.rest();
  assert.deepEqual([acts.length, b.published.length, b.events.length], [0, 0, 1]);
});

test('what waited while the node was away is expired, for another session and boot too', async () => {
  const { acts, view } = actor();
  const b = commandBed({ view, allows: verbs });
  const target = { pod: 'web' };
  await b.ask('restart', { id: 'a', target }, { queued: true });
  await b.ask('restart', { id: 'b', target, session: 999 });
  await b.ask('restart', { id: 'c', target, bootID: 'boot-0' });
  await b.ask('restart', { id: 'd', target, session: 1000, bootID: 'boot-1' });
  assert.deepEqual(b.said(), ['expired Queued', 'expired OtherSession', 'expired OtherBoot', 'accepted', 'ok']);
  assert.equal(acts.length, 1);
});

test('a reply topic outside of the reply space: nothing is run and nothing published', async () => {
  const { acts, view } = actor();
  const b = commandBed({ view, allows: verbs });
  for (const replyTo of ['podsched/v1/desired/all/default/web', 'podsched/v1/reply/ops/pi-08', 'podsched/v1/reply/+/pi-07', '#', ''])
    await b.ask('restart', { target: { pod: 'web' }, replyTo });
  await b.ask('restart', { target: { pod: 'web' } }, { responseTopic: '$SYS/x' });
  assert.deepEqual([acts.length, b.published.length], [0, 0]);
  assert.equal(b.events.length, 6);
  for (const e of b.events) assert.match(e.message, /ReplyTopicRefused/);
});

test('hostile payloads are answered where an answer can be sent, and cost nothing else', async () => {
  const b = commandBed();
  const m = { responseTopic: replyTopic() };
  b.raw('get', new Uint8Array(10 << 20), m);
  b.raw('get', Uint8Array.from([0xff, 0xfe]), m);
  b.raw('get', 'hello', m);
  b.raw('get', '['.repeat(60_000), m);
  b.raw('get', '{"kind":"Pod"}', m);
  b.raw('get', '{"args":{"__proto__":{"what":"node"}}}', m);
  b.raw('frobnicate', '{}', m);
  b.raw('get', '{"payloadType":"x","payload":"e30=","signatures":[]}', m);
  await b.rest();
  assert.deepEqual(b.said(), [
    'tooLarge CommandTooLarge',
    ...new Array(4).fill('error BadCommand'),
    'error BadArguments',
    'error UnknownVerb',
    'denied KeyUnknown',
  ]);
  assert.match(b.replies().find((r) => r.reason === 'BadArguments')?.message ?? '', /^args\.__proto__/);
});

test('topics that are not commands of this node are nothing', async () => {
  const b = commandBed();
  for (const topic of [
    'podsched/v1/cmd/pi-08/get',
    'podsched/v1/cmd/pi-07',
    'podsched/v1/cmd/pi-07/get/x',
    'podsched/v1/cmd/pi-07/',
    'x',
    '',
  ])
    b.commands.message({ topic, payload: new Uint8Array(), retain: false, queued: false, responseTopic: replyTopic() });
  await b.rest();
  assert.deepEqual([b.published, b.events], [[], []]);
});

test('a message never throws, whatever is behind it', async () => {
  const b = commandBed({
    deps: {
      allows: () => {
        throw new Error('policy is broken');
      },
    },
  });
  await b.ask('get');
  assert.deepEqual(b.published, []);
});

test('a command sent twice is done once: the second is answered running, then from memory', async () => {
  const { acts, view, beSlow, finish } = actor();
  beSlow();
  const b = commandBed({ view, allows: verbs });
  const command = { id: 'once', target: { pod: 'web' } };
  await b.ask('restart', command);
  await b.ask('restart', command);
  finish();
  await b.rest();
  await b.ask('restart', command);
  assert.equal(acts.length, 1);
  assert.deepEqual(b.said(), ['accepted', 'running', 'ok', 'ok']);
  assert.deepEqual(b.replies()[2], b.replies()[3]);
  assert.equal(b.events.length, 1);
});

test('an id used twice for different things is refused', async () => {
  const { acts, view } = actor();
  const b = commandBed({ view, allows: verbs });
  await b.ask('restart', { id: 'x', target: { pod: 'web' } });
  await b.ask('stop', { id: 'x', target: { pod: 'web' } });
  await b.ask('restart', { id: 'x', target: { pod: 'cam' } });
  assert.equal(acts.length, 1);
  assert.deepEqual(b.said(), ['accepted', 'ok', 'error IdReused', 'error IdReused']);
});

test('ids outlive the agent: what was done is not done again', async () => {
  const { acts, view } = actor();
  const first = commandBed({ view, allows: verbs });
  await first.ask('restart', { id: 'x', target: { pod: 'web' } });
  await first.commands.stop();
  const second = commandBed({ view, allows: verbs, store: first.store, clock: first.clock });
  await second.ask('restart', { id: 'x', target: { pod: 'web' } });
  assert.equal(acts.length, 1);
  assert.deepEqual(second.said(), ['ok']);
  assert.equal(second.replies()[0]?.message, 'pod/web restarted');
});

test('an agent that is stopped within a command says afterwards that it does not know', async () => {
  const { acts, view, beSlow } = actor();
  beSlow();
  const first = commandBed({ view, allows: verbs });
  await first.ask('restart', { id: 'x', target: { pod: 'web' } });
  await first.commands.stop();
  await first.rest();
  const second = commandBed({ view, allows: verbs, store: first.store, clock: first.clock });
  await second.ask('restart', { id: 'x', target: { pod: 'web' } });
  assert.equal(acts.length, 1);
  assert.deepEqual(second.said(), ['error AgentRestarted']);
  await first.ask('restart', { target: { pod: 'web' } });
  assert.equal(acts.length, 1, 'a stopped one takes nothing');
});

test('what only reads is written nowhere', async () => {
  const b = commandBed();
  await b.ask('get', { id: 'a' });
  await b.ask('why', { id: 'b', target: { pod: 'web' } });
  assert.deepEqual(await b.store.list(''), []);
});

test('who waits is told that it goes on', async () => {
  const { view, beSlow, finish } = actor();
  beSlow();
  const b = commandBed({ view, allows: verbs });
  await b.ask('stop', { target: { pod: 'web' } });
  await b.clock.advance(25_000);
  assert.deepEqual(b.said(), ['accepted', 'running', 'running']);
  finish();
  await b.rest();
  await b.clock.advance(60_000);
  assert.deepEqual(b.said(), ['accepted', 'running', 'running', 'ok']);
  assert.equal(b.clock.sleeping, 0);
});

test('what does not end is ended, and its place is free again', async () => {
  const b = commandBed({ view: { node: () => new Promise(() => {}) } });
  for (let i = 0; i < 4; i++) await b.ask('get', { id: `n${i}`, args: { what: 'node' } });
  await b.ask('get', { id: 'v', args: { what: 'version' } });
  assert.deepEqual(b.said(), ['accepted']);
  await b.clock.advance(60_000);
  await b.rest();
  assert.deepEqual(
    b
      .said()
      .filter((s) => s !== 'running')
      .sort(),
    ['accepted', ...new Array(4).fill('error TookTooLong'), 'ok'],
  );
  assert.equal(b.clock.sleeping, 0);
});

test('four run, eight wait, the next is turned away', async () => {
  const { acts, view, beSlow, finish } = actor();
  beSlow();
  const b = commandBed({ view, allows: verbs });
  for (let i = 0; i < 13; i++) await b.ask('hold', { id: `h${i}`, target: { pod: 'web' } });
  assert.equal(acts.length, 4);
  assert.deepEqual(b.said(), [...new Array(12).fill('accepted'), 'error Busy']);
  assert.equal(b.replies()[12]?.id, 'h12');
  for (let i = 0; i < 12; i++) {
    finish();
    await b.rest();
  }
  assert.equal(acts.length, 12);
  b.clear();
  await b.ask('get', { args: { what: 'version' } });
  assert.deepEqual(b.said(), ['ok']);
});

test('a view that fails is an answer', async () => {
  const b = commandBed({
    view: {
      node: async () => {
        throw new Error('sensors are gone');
      },
      act: async () => ({ ok: false, code: 409, message: 'pod "web" is stopped' }),
    },
    allows: verbs,
  });
  await b.ask('get', { id: 'n', args: { what: 'node' } });
  await b.ask('restart', { target: { pod: 'web' } });
  await b.ask('describe', { target: { pod: 'wep' } });
  await b.ask('describe', {});
  await b.ask('top', {});
  assert.deepEqual(b.said(), [
    'error InternalError',
    'accepted',
    'error Conflict',
    'error NotFound',
    'error TargetRequired',
    'error Unavailable',
  ]);
  assert.match(b.replies()[3]?.message ?? '', /did you mean "web"/);
});

test('a question that failed may be asked again under its id', async () => {
  let broken = true;
  const b = commandBed({
    view: {
      pods: () => {
        if (broken) throw new Error('not now');
        return [];
      },
    },
  });
  await b.ask('get', { id: 'g' });
  broken = false;
  await b.ask('get', { id: 'g' });
  assert.deepEqual(b.said(), ['error InternalError', 'ok']);
});

test('while the agent starts it says so, and remembers nothing', async () => {
  let there = false;
  const { acts, view } = actor();
  const ready = { act: view.act, pods: () => [told('web')] } as unknown as AgentView;
  const b = commandBed({ allows: verbs, deps: { view: () => (there ? ready : undefined) } });
  await b.ask('stop', { id: 's', target: { pod: 'web' } });
  there = true;
  await b.ask('stop', { id: 's', target: { pod: 'web' } });
  assert.deepEqual(b.said(), ['error Unavailable', 'accepted', 'ok']);
  assert.equal(acts.length, 1);
});
