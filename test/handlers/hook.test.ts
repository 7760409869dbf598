import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Container, LifecycleHandler } from '../../src/api/v1.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { type HookRun, runHook } from '../../src/handlers/hook.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

const web: Pick<Container, 'name' | 'ports'> = { name: 'web' };

interface Rig extends HookRun {
  readonly clock: FakeClock;
  readonly execs: (readonly string[])[];
  readonly warnings: string[];
}

function rig(
  o: Partial<Omit<HookRun, 'exec' | 'clock'>> & { readonly exec?: () => Promise<number>; readonly clock?: FakeClock } = {},
): Rig {
  const execs: (readonly string[])[] = [];
  const warnings: string[] = [];
  return {
    container: web,
    podIps: () => assert.fail('nobody asked for an address'),
    clock: new FakeClock(),
    warn: (reason, message) => warnings.push(`${reason}: ${message}`),
    signal: new AbortController().signal,
    ...o,
    exec: async (command) => {
      execs.push(command);
      return (await o.exec?.()) ?? 0;
    },
    execs,
    warnings,
  };
}

/** A server on loopback that answers everything with `status`; yields its port and what was asked. */
async function served(t: TestContext, status: number): Promise<{ port: number; asked: IncomingMessage[] }> {
  const asked: IncomingMessage[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request);
    response.writeHead(status).end('said');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, asked };
}

const loopback = { podIps: async () => ['127.0.0.1'] };

test('a command runs without a time-out, its words as written', async () => {
  const r = rig();
  await runHook({ exec: { command: ['sh', '-c', 'echo $(X) $$'] } }, r);
  assert.deepEqual(r.execs, [['sh', '-c', 'echo $(X) $$']]);
});

test('a command that ends otherwise than with 0, or cannot run, is an error that repeats none of its words', async () => {
  const failing = rig({ exec: async () => 3 });
  await assert.rejects(runHook({ exec: { command: ['curl', 'token'] } }, failing), {
    message: 'the command of the hook ended with exit code 3',
  });
  const gone = rig({ exec: () => Promise.reject(new RuntimeError('notFound', 'no such container')) });
  await assert.rejects(runHook({ exec: { command: ['x'] } }, gone), /no such container/);
});

test('a sleep takes its seconds and ends early with its signal', async () => {
  const stop = new AbortController();
  const r = rig({ signal: stop.signal });
  let ended = false;
  const whole = runHook({ sleep: { seconds: 5 } }, rig({ clock: r.clock })).then(() => {
    ended = true;
  });
  await r.clock.advance(4999);
  assert.equal(ended, false);
  await r.clock.advance(1);
  await whole;
  const cut = runHook({ sleep: { seconds: 5 } }, r);
  stop.abort();
  await assert.rejects(cut, { name: 'AbortError' });
});

test('tcpSocket was never a hook, and an empty handler is none', async () => {
  await assert.rejects(runHook({ tcpSocket: { port: 80 } }, rig()), /^Error: invalid handler/);
  await assert.rejects(runHook({}, rig()), /^Error: invalid handler/);
});

test('an http hook succeeds with any status', async (t) => {
  for (const status of [200, 302, 404, 500]) {
    const { port, asked } = await served(t, status);
    await runHook({ httpGet: { port, path: '/bye?now=1' } }, rig(loopback));
    assert.equal(asked[0]?.url, '/bye?now=1');
    assert.equal(asked[0]?.method, 'GET');
    assert.equal(asked[0]?.headers['user-agent'], 'kube-lifecycle/1.32');
    assert.equal(asked[0]?.headers.accept, '*/*');
  }
});

test('its port is a number, a number as text, or a name; its host is the pod unless it says another', async (t) => {
  const { port, asked } = await served(t, 200);
  const named: Pick<Container, 'name' | 'ports'> = { name: 'web', ports: [{ name: 'admin', containerPort: port }] };
  await runHook({ httpGet: { port: String(port) } }, rig(loopback));
  await runHook({ httpGet: { port: 'admin' } }, rig({ ...loopback, container: named }));
  await runHook({ httpGet: { port, host: '127.0.0.1', httpHeaders: [{ name: 'X-Who', value: 'me' }] } }, rig());
  assert.equal(asked.length, 3);
  assert.equal(asked[2]?.headers['x-who'], 'me');
  await assert.rejects(runHook({ httpGet: { port: 'amdin' } }, rig({ ...loopback, container: named })), /amdin.*admin/);
  await assert.rejects(runHook({ httpGet: { port } }, rig({ podIps: async () => [] })), /no address/);
});

test('only what keeps an answer from coming is a failure, told without the path', async () => {
  // nobody listens on port 1
  await assert.rejects(runHook({ httpGet: { port: 1, path: '/?token=secret' } }, rig(loopback)), (e: Error) => {
    assert.match(e.message, /connection refused/);
    assert.doesNotMatch(e.message, /secret/);
    return true;
  });
});

test('an https hook answered in plain http is sent once more over http, without its password, and told', async (t) => {
  const { port, asked } = await served(t, 500);
  const httpHeaders = [
    { name: 'Authorization', value: 'Bearer x' },
    { name: 'X-Kept', value: 'yes' },
  ];
  const r = rig(loopback);
  await runHook({ httpGet: { port, scheme: 'HTTPS', httpHeaders } }, r);
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.headers.authorization, undefined);
  assert.equal(asked[0]?.headers['x-kept'], 'yes');
  assert.deepEqual(r.warnings, [
    `LifecycleHTTPFallback: the https hook at 127.0.0.1:${port} was answered in plain http and sent again over http`,
  ]);
});

test('a hook ends with its signal wherever it waits', async (t) => {
  const server = createServer(() => undefined); // never answers
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const never = new Promise<never>(() => undefined);
  const table: readonly (readonly [LifecycleHandler, Parameters<typeof rig>[0]])[] = [
    [{ httpGet: { port } }, loopback],
    [{ httpGet: { port } }, { podIps: () => never }],
    [{ exec: { command: ['x'] } }, { exec: () => never }],
    [{ sleep: { seconds: 3600 } }, {}],
  ];
  for (const [handler, o] of table) {
    const stop = new AbortController();
    const hook = runHook(handler, rig({ ...o, signal: stop.signal }));
    await settle();
    stop.abort();
    await assert.rejects(hook, { name: 'AbortError' });
  }
  const stopped = rig({ signal: AbortSignal.abort() });
  await assert.rejects(runHook({ exec: { command: ['x'] } }, stopped), { name: 'AbortError' });
  assert.deepEqual(stopped.execs, []);
});
