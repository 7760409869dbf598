import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Container, Probe } from '../../src/api/v1.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { attempt, type GrpcCheck } from '../../src/prober/attempt.ts';
import { Slots } from '../../src/prober/slots.ts';
import { systemClock } from '../../src/world/clock.ts';

const container: Container = { name: 'app', image: 'i' };
const bytes = (text: string) => new TextEncoder().encode(text);

async function server(t: TestContext): Promise<{ port: number; agents: string[] }> {
  const agents: string[] = [];
  const http = createServer((request, response) => {
    agents.push(request.headers['user-agent'] ?? '');
    if (request.url === '/hang') return;
    if (request.url === '/away') {
      response.writeHead(302, { location: 'http://localhost:1/' });
      return response.end('there');
    }
    response.writeHead(Number(request.url?.slice(1) || '200'));
    response.end('fine');
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return { port: (http.address() as AddressInfo).port, agents };
}

async function ask(
  probe: Probe,
  o: { ip?: string; of?: Partial<Container>; timeoutMs?: number; grpcCheck?: GrpcCheck; exec?: [number, string, string] } = {},
): Promise<string> {
  const [exitCode, stdout, stderr] = o.exec ?? [0, '', ''];
  const deps = {
    clock: systemClock,
    runtime: { execSync: async () => ({ exitCode, stdout: bytes(stdout), stderr: bytes(stderr) }) },
    grpcCheck: o.grpcCheck ?? (() => Promise.reject(new Error('not asked for'))),
    slots: new Slots(1, systemClock),
  };
  const ip = 'ip' in o ? o.ip : '127.0.0.1';
  const target = { id: 'c1' as ContainerId, container: { ...container, ...o.of }, probe, ip, timeoutMs: o.timeoutMs ?? 30_000 };
  const { kind, output, timedOut } = await attempt(deps, target, new AbortController().signal);
  return `${kind}${timedOut ? ' (time-out)' : ''}: ${output}`;
}

test('http: 2xx succeeds, a redirect away is a warning, other statuses and a time-out fail', async (t) => {
  const { port, agents } = await server(t);
  const get = (path: string, more: object = {}, timeoutMs = 30_000) => ask({ httpGet: { path, port, ...more } }, { timeoutMs });
  assert.equal(await get('/200'), 'success: fine');
  assert.equal(await get('/299'), 'success: fine');
  assert.equal(await get('/304'), 'warning: answered with status 304, which is not followed: ');
  assert.equal(await get('/away'), 'warning: answered with status 302, which is not followed: there');
  assert.equal(await get('/400'), 'failure: HTTP probe failed with statuscode: 400');
  assert.equal(await get('/503'), 'failure: HTTP probe failed with statuscode: 503');
  assert.equal(await get('/hang', {}, 300), `failure (time-out): Get "http://127.0.0.1:${port}/hang": timeout: no answer in 0.3 s`);
  assert.match(await get('/', { port: 1 }), /^failure: Get "http:\/\/127\.0\.0\.1:1\/": dial tcp .*: connection refused$/);
  assert.match(await get('/', { scheme: 'HTTPS' }), /^failure: .*plain http/);
  assert.deepEqual(new Set(agents), new Set(['kube-probe/1.32']));
});

test('http and tcp go to the pod’s address and a named port, or to the host that is given', async (t) => {
  const { port } = await server(t);
  const of = { ports: [{ name: 'web', containerPort: port }] };
  assert.equal(await ask({ httpGet: { path: '/200', port: 'web' } }, { of }), 'success: fine');
  assert.equal(await ask({ tcpSocket: { port: 'web' } }, { of }), 'success: ');
  assert.equal(await ask({ httpGet: { path: '/200', port: 'web', host: '127.0.0.1' } }, { of, ip: '192.0.2.1' }), 'success: fine');
  assert.equal(await ask({ tcpSocket: { port: 1 } }), 'failure: dial tcp 127.0.0.1:1: connect: connection refused');
});

test('what says nothing of the container is an error: no address, no such port, no handler', async () => {
  const nowhere = { of: {}, ...{ ip: undefined as unknown as string } };
  assert.equal(await ask({ tcpSocket: { port: 1 } }, nowhere), 'error: the pod has no address yet');
  assert.equal(await ask({ httpGet: { port: 1 } }, nowhere), 'error: the pod has no address yet');
  assert.equal(await ask({ httpGet: { port: 'web' } }), 'error: container app has no port named "web": it names none');
  assert.equal(await ask({}), 'error: the probe of container app has no handler');
});

test('grpc: the pod’s address, the port and the service are asked, and what came of it is told', async () => {
  const asked: unknown[] = [];
  const probe = { grpc: { port: 50051, service: 'web' } };
  const answering =
    (answer: Awaited<ReturnType<GrpcCheck>>): GrpcCheck =>
    async ({ signal: _, ...o }) => {
      asked.push(o);
      return answer;
    };
  assert.equal(await ask(probe, { grpcCheck: answering({ serving: true, message: '' }) }), 'success: ');
  assert.equal(await ask(probe, { grpcCheck: answering({ serving: false, message: 'no' }) }), 'failure: no');
  assert.equal(await ask(probe, { grpcCheck: answering({ serving: false, message: 'late', timedOut: true }) }), 'failure (time-out): late');
  assert.deepEqual(asked[0], { host: '127.0.0.1', port: 50051, service: 'web', timeoutMs: 30_000 });
});

test('exec: the exit code decides, both outputs are told, and no more than 10 KiB', async () => {
  const probe = { exec: { command: ['x'] } };
  assert.equal(await ask(probe, { exec: [0, 'out', ''] }), 'success: out');
  assert.equal(await ask(probe, { exec: [1, 'out\n', 'err\n'] }), 'failure: out\nerr\n');
  assert.equal((await ask(probe, { exec: [1, 'x'.repeat(20_000), 'y'] })).length, 'failure: '.length + 10_240);
});
