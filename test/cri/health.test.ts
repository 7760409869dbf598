import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { checkHealth } from '../../src/cri/health.ts';
import { type Clock, systemClock } from '../../src/world/clock.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { until } from '../until.ts';

type Answer = (service: string, reply: (e: grpc.ServiceError | null, bytes?: Buffer) => void) => void;

interface Asked {
  readonly service: string;
  readonly agent: string;
}

/** A health server that answers by the service's name. */
async function healthServer(
  t: TestContext,
  answer: Answer,
  path = '/grpc.health.v1.Health/Check',
): Promise<{ port: number; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = new grpc.Server();
  const raw = (bytes: Buffer) => bytes;
  server.addService(
    {
      check: {
        path,
        requestStream: false,
        responseStream: false,
        requestSerialize: raw,
        requestDeserialize: raw,
        responseSerialize: raw,
        responseDeserialize: raw,
      },
    },
    {
      check: (call: grpc.ServerUnaryCall<Buffer, Buffer>, reply: grpc.sendUnaryData<Buffer>) => {
        // field 1: tag and a length of one byte, or of two
        const from = (call.request[1] ?? 0) < 0x80 ? 2 : 3;
        const service = call.request.subarray(from).toString();
        asked.push({ service, agent: String(call.metadata.get('user-agent')[0]) });
        answer(service, (e, bytes) => reply(e, bytes));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (e, bound) => (e ? reject(e) : resolve(bound))),
  );
  t.after(() => server.forceShutdown());
  return { port, asked };
}

const status = (code: number, ...more: number[]): Buffer => Buffer.from([...more, 0x08, code]);

const check = (
  port: number,
  more: { service?: string; timeoutMs?: number; signal?: AbortSignal; host?: string } = {},
  clock: Clock = systemClock,
) => checkHealth(clock, { host: '127.0.0.1', port, service: '', timeoutMs: 30_000, signal: new AbortController().signal, ...more });

test('SERVING is success, and the service and the user agent reach the server', async (t) => {
  const { port, asked } = await healthServer(t, (_, reply) => reply(null, status(1)));
  assert.deepEqual(await check(port), { serving: true, message: '' });
  const long = 'x'.repeat(300);
  await check(port, { service: 'web' });
  await check(port, { service: long });
  assert.deepEqual(
    asked.map((a) => a.service),
    ['', 'web', long],
  );
  assert.match(asked[0]?.agent ?? '', /^kube-probe\/1\.32/);
});

test('another status, an empty answer and one with unknown fields are read as they are meant', async (t) => {
  const answers: Record<string, Buffer> = {
    not: status(2),
    unknown: status(3),
    empty: Buffer.alloc(0),
    odd: status(9),
    more: status(1, 0x12, 0x02, 0x08, 0x02, 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8),
  };
  const { port } = await healthServer(t, (service, reply) => reply(null, answers[service]));
  const said = async (service: string) => (await check(port, { service })).message;
  assert.equal(await said('not'), 'service unhealthy (responded with "NOT_SERVING")');
  assert.equal(await said('unknown'), 'service unhealthy (responded with "SERVICE_UNKNOWN")');
  assert.equal(await said('empty'), 'service unhealthy (responded with "UNKNOWN")');
  assert.equal(await said('odd'), 'service unhealthy (responded with "9")');
  assert.deepEqual(await check(port, { service: 'more' }), { serving: true, message: '' });
});

test('an answer that is no message is a failure', async (t) => {
  const { port } = await healthServer(t, (service, reply) => reply(null, service === 'cut' ? Buffer.from([0x08]) : Buffer.from([0x0b, 1])));
  for (const service of ['cut', 'group']) {
    const { serving, message } = await check(port, { service });
    assert.equal(serving, false);
    assert.match(message, /^error: health rpc probe failed: /);
  }
});

test('a server without the health protocol, and one that answers with an error, say so', async (t) => {
  const other = await healthServer(t, () => {}, '/other.Service/Check');
  assert.match((await check(other.port)).message, /^error: this server does not implement the grpc health protocol/);
  const { port } = await healthServer(t, (_, reply) =>
    reply(Object.assign(new Error('x'), { code: grpc.status.NOT_FOUND, details: 'unknown service', metadata: new grpc.Metadata() })),
  );
  assert.deepEqual(await check(port), { serving: false, message: 'error: health rpc probe failed: unknown service' });
});

test('nobody there is a failure that names the address', async () => {
  const { serving, message } = await check(1);
  assert.equal(serving, false);
  assert.match(message, /^error: failed to connect service at "127\.0\.0\.1:1": .*ECONNREFUSED/);
});

test('one time-out covers the dial and the call, and says which of them was late', async (t) => {
  const { port, asked } = await healthServer(t, () => {});
  const clock = new FakeClock();
  const silent = check(port, { timeoutMs: 300 }, clock);
  await until('it was asked', () => asked.length === 1);
  await clock.advance(300);
  assert.deepEqual(await silent, {
    serving: false,
    message: 'timeout: health rpc did not complete within 0.3 s',
    timedOut: true,
  });
  // accepts and says nothing
  const mute = createServer((socket) => {
    socket.on('error', () => {});
    t.after(() => socket.destroy());
  });
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  t.after(() => mute.close());
  const address = mute.address();
  assert.ok(typeof address === 'object' && address !== null);
  const late = await check(address.port, { timeoutMs: 300 });
  assert.equal(late.timedOut, true);
  assert.match(late.message, /^timeout: failed to connect service "127\.0\.0\.1:\d+" within 0\.3 s$/);
});

test('an abort ends it with the reason of the signal', async (t) => {
  const { port } = await healthServer(t, () => {});
  const stop = new AbortController();
  const pending = check(port, { signal: stop.signal });
  setTimeout(() => stop.abort(new Error('enough')), 50);
  await assert.rejects(pending, /enough/);
});
