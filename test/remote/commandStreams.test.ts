/** Answers that take more than one message: logs, programs, bundles; and a connection that ends in the middle. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verbs } from '../../src/api/verbs.ts';
import type { AgentView, ExecRequest } from '../../src/operations/agentView.ts';
import type { LogRequest } from '../../src/operations/logRequest.ts';
import { commandBed, replyTopic } from './commandBed.ts';

const target = { pod: 'web' };

/** A log of so many bytes, with what was asked of it and whether its file was closed. */
function logOf(bytes: number, piece = 8192) {
  const requests: LogRequest[] = [];
  let open = 0;
  let read = 0;
  const logs: AgentView['logs'] = async (request, signal) => {
    requests.push(request);
    open++;
    async function* stream(): AsyncGenerator<Uint8Array, void> {
      try {
        for (let given = 0; given < bytes && !signal.aborted; given += piece) {
          read += piece;
          yield Buffer.alloc(Math.min(piece, bytes - given), 0x61);
        }
      } finally {
        open--;
      }
    }
    return { ok: true, value: stream() };
  };
  return { requests, logs, open: () => open, read: () => read };
}

test('a log is asked for by the only container, with a tail nobody had to name', async () => {
  const log = logOf(10);
  const b = commandBed({ view: { logs: log.logs } });
  await b.ask('logs', { id: 'l', target });
  await b.ask('logs', { target, args: { sinceSeconds: 60, timestamps: true, previous: true } });
  await b.ask('logs', { target, args: { sinceTime: '2026-01-01T00:00:00Z', tailLines: 3 } });
  const common = { namespace: 'default', pod: 'web', container: 'app', follow: false, previous: false, timestamps: false };
  assert.deepEqual(log.requests, [
    { ...common, tailLines: 1000 },
    { ...common, previous: true, timestamps: true, sinceSeconds: 60 },
    { ...common, tailLines: 3, sinceNanos: 1767225600000000000n },
  ]);
  assert.equal(b.data(), 'a'.repeat(30));
  await b.ask('logs', { target, args: { sinceTime: 'yesterday' } });
  await b.ask('logs', { target: { pod: 'nobody' } });
  await b.ask('logs', { target: { pod: 'web', container: 'other' } });
  assert.deepEqual(b.said().slice(3), ['error BadArguments', 'error NotFound', 'error NotFound']);
});

test('the next piece of a log is sent only when the broker has the last, and read no further than that', async () => {
  const log = logOf(400 * 1024);
  const b = commandBed({ view: { logs: log.logs } });
  b.holdAcks();
  await b.ask('logs', { id: 'l', target });
  assert.equal(b.published.length, 1);
  assert.ok(log.read() <= 64 * 1024, String(log.read()));
  await b.ack();
  assert.equal(b.published.length, 2);
  for (let i = 0; i < 20; i++) await b.ack();
  assert.equal(b.data().length, 400 * 1024);
  assert.deepEqual(
    b.replies().map((r) => [r.chunk?.seq, r.chunk?.last]),
    b.published.map((_, i) => [i, i === b.published.length - 1]),
  );
  assert.equal(log.open(), 0);
});

test('two requests for ten megabytes beside one another: each gets its cap and is told so', async () => {
  const log = logOf(10 << 20);
  const b = commandBed({ view: { logs: log.logs } });
  b.raw('logs', JSON.stringify({ id: 'a', target, args: { limitBytes: 100_000 } }), { responseTopic: replyTopic('one') });
  b.raw('logs', JSON.stringify({ id: 'b', target }), { responseTopic: replyTopic('two') });
  await b.rest();
  await b.rest();
  for (const [id, bytes] of [
    ['a', 100_000],
    ['b', 1 << 20],
  ] as const) {
    const own = b.replies().filter((r) => r.id === id);
    assert.equal(
      own.reduce((sum, r) => sum + (r.data?.length ?? 0), 0),
      bytes,
    );
    assert.equal(own.at(-1)?.truncated, `after ${bytes} bytes`);
    assert.deepEqual(
      own.map((r) => r.chunk?.seq),
      own.map((_, i) => i),
    );
  }
  assert.equal(log.open(), 0);
});

test('a connection that ends aborts what is read for somebody, closes its file, and frees its place', async () => {
  const log = logOf(400 * 1024);
  const b = commandBed({ view: { logs: log.logs } });
  b.holdAcks();
  for (let i = 0; i < 6; i++) await b.ask('logs', { id: `l${i}`, target });
  assert.equal(log.open(), 4);
  await b.disconnect();
  assert.equal(log.open(), 0);
  assert.equal(log.requests.length, 4, 'what waited is not begun for nobody');
  b.clear();
  b.reconnect(2000);
  await b.ask('logs', { id: 'l0', target });
  assert.equal(b.data().length, 400 * 1024);
  assert.equal(b.clock.sleeping, 0);
});

test('a log that opens after the connection has ended is closed again', async () => {
  const log = logOf(100);
  let opens = (): void => {};
  const b = commandBed({
    view: {
      logs: async (request, signal) => {
        await new Promise<void>((resolve) => {
          opens = resolve;
        });
        return log.logs(request, signal);
      },
    },
  });
  await b.ask('logs', { target });
  await b.disconnect();
  opens();
  await b.rest();
  assert.equal(log.open(), 0);
  assert.equal(log.requests.length, 1);
});

test('what changes something goes on without its connection, and its answer waits for who asks again', async () => {
  let finish = (): void => {};
  let acts = 0;
  const b = commandBed({
    view: {
      act: async () => {
        acts++;
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return { ok: true, value: { message: 'done' } };
      },
    },
    allows: verbs,
  });
  b.holdAcks();
  await b.ask('restart', { id: 'r', target });
  await b.disconnect();
  finish();
  await b.rest();
  b.clear();
  b.reconnect(2000);
  await b.ask('restart', { id: 'r', target });
  assert.deepEqual([acts, b.said()], [1, ['ok']]);
});

test('a broker that acknowledges nothing keeps a place for no longer than the answer may take', async () => {
  const b = commandBed();
  b.holdAcks();
  for (let i = 0; i < 4; i++) await b.ask('get', { args: { what: 'version' } });
  await b.ask('get', { id: 'last', args: { what: 'version' } });
  assert.ok(!b.replies().some((r) => r.id === 'last' && r.status === 'ok'));
  await b.clock.advance(60_000);
  await b.rest();
  await b.ask('get', { id: 'later', args: { what: 'version' } });
  assert.ok(b.replies().some((r) => r.id === 'later' && r.status === 'ok'));
});

test('following says where the lines are, and they come there until the connection ends', async () => {
  let write = (_: string): void => {};
  const requests: LogRequest[] = [];
  const logs: AgentView['logs'] = async (request, signal) => {
    requests.push(request);
    async function* stream(): AsyncGenerator<Uint8Array, void> {
      for (;;) {
        const line = await new Promise<string | undefined>((resolve) => {
          write = resolve;
          signal.addEventListener('abort', () => resolve(undefined), { once: true });
        });
        if (line === undefined) return;
        yield Buffer.from(line);
      }
    }
    return { ok: true, value: stream() };
  };
  const b = commandBed({ view: { logs } });
  await b.ask('logs', { id: 'f', target, args: { follow: true, leaseSeconds: 30 } });
  assert.deepEqual(JSON.parse(b.data()), {
    namespace: 'default',
    pod: 'web',
    container: 'app',
    topic: 'podsched/v1/nodes/pi-07/logs/default/web',
    leaseSeconds: 30,
    lease: 'new',
  });
  assert.equal(requests[0]?.follow, true);
  assert.equal(requests[0]?.tailLines, 10);
  write('one\n');
  await b.clock.advance(1_000);
  assert.deepEqual(
    b.lines.map(({ kind, node, pod, container, data }) => [kind, node, pod, container, data]),
    [['LogLines', 'pi-07', 'web', 'app', 'one\n']],
  );
  // the same requester renews under another id
  await b.ask('logs', { id: 'g', target, args: { follow: true, leaseSeconds: 30 } });
  assert.equal((JSON.parse(b.replies().at(-1)?.data ?? '') as { lease: string }).lease, 'renewed');
  await b.disconnect();
  write('two\n');
  await b.clock.advance(5_000);
  assert.equal(b.lines.length, 1);
  assert.equal(requests.length, 1);
  assert.equal(b.clock.sleeping, 0);
});

test('a program: argument vector, both outputs, exit code; told before it runs, without its arguments', async () => {
  const requests: ExecRequest[] = [];
  let toldBefore = 0;
  const b = commandBed({
    view: {
      execCaptured: async (request) => {
        requests.push(request);
        toldBefore = b.events.length;
        return {
          ok: true,
          value: { exitCode: 2, stdout: Buffer.from('out\n'), stderr: Uint8Array.from([0xff]), truncated: true },
        };
      },
    },
    allows: ['exec'],
  });
  await b.ask('exec', { id: 'e', target: { pod: 'web', container: 'app' }, args: { command: ['login', '--password', 'hunter2'] } });
  assert.deepEqual(requests, [
    {
      namespace: 'default',
      pod: 'web',
      container: 'app',
      command: ['login', '--password', 'hunter2'],
      timeoutSeconds: 30,
      limitBytes: 64 * 1024,
    },
  ]);
  assert.equal(toldBefore, 1);
  assert.deepEqual(b.events, [
    {
      subject: { kind: 'Pod', namespace: 'default', name: 'web', uid: 'uid-web' },
      type: 'Normal',
      reason: 'CommandExec',
      message: 'exec in container app of default/web: "login" with 2 arguments, asked for by ops',
    },
  ]);
  assert.deepEqual(
    b.replies().map(({ status, stream, data, encoding, exitCode, truncated }) => [status, stream, data, encoding, exitCode, truncated]),
    [
      ['accepted', undefined, undefined, undefined, undefined, undefined],
      ['ok', 'stdout', 'out\n', undefined, undefined, undefined],
      ['ok', 'stderr', '/w==', 'base64', 2, 'it said more than limitBytes'],
    ],
  );
  assert.doesNotMatch(JSON.stringify([...b.store.entries]), /hunter2/);
});

test('a program that is not allowed is not run, and its arguments are nowhere', async () => {
  const b = commandBed({ view: { execCaptured: async () => assert.fail('it was run') } });
  await b.ask('exec', { target, args: { command: ['sh', '-c', 'hunter2'] } });
  assert.deepEqual(b.said(), ['denied VerbDenied']);
  assert.doesNotMatch(JSON.stringify([b.events, b.published]), /hunter2/);
});

test('a bundle larger than other answers is still sent whole', async () => {
  const value = { part: 'x'.repeat(1_200_000) };
  const b = commandBed({ view: { bundle: async () => ({ ok: true, value }) }, allows: verbs });
  await b.ask('bundle', { id: 'b' });
  await b.rest();
  assert.deepEqual(JSON.parse(b.data()), value);
  assert.equal(b.said()[0], 'accepted');
});

test('a list too large to send says what to ask for instead', async () => {
  const b = commandBed({ view: { configuration: () => ({ x: 'y'.repeat(2 << 20) }) } });
  await b.ask('get', { args: { what: 'configuration' } });
  assert.deepEqual(b.said(), ['tooLarge AnswerTooLarge']);
});

test('a broker with small packets gets small pieces', async () => {
  const log = logOf(20_000);
  const b = commandBed({ view: { logs: log.logs }, deps: { largestMessage: () => 4096 } });
  await b.ask('logs', { target });
  await b.rest();
  assert.equal(b.data().length, 20_000);
  for (const p of b.published) assert.ok(JSON.stringify(p.reply).length <= 4096);
});
