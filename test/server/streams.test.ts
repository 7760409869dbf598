import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientRequest, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StreamTarget } from '../../src/container/runtime.ts';
import { type ExecSession, openSession, upgradeHeaders } from '../../src/cri/streaming.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import type { StreamRequest } from '../../src/operations/streamRequest.ts';
import { startServer } from '../../src/server/server.ts';
import { maxSessions } from '../../src/server/streams.ts';
import { silentLog } from '../../src/world/log.ts';
import { exited, type FakeProcess, type FakeStreaming, startFakeStreaming, success } from '../fakes/fakeStreaming.ts';
import { agentView } from '../operations/view.ts';

const query = 'stdin=true&stdout=true&stderr=true&tty=false';
const path = `/exec/default/web/app?command=sh&${query}`;
const options = { stdin: true, stdout: true, stderr: true, tty: false };

interface Stage {
  readonly socketPath: string;
  readonly streaming: FakeStreaming;
  readonly asked: StreamRequest[];
  close(): Promise<void>;
}

async function onStage(
  run: (p: FakeProcess) => void | Promise<void>,
  work: (s: Stage) => Promise<void>,
  o: { view?: Partial<AgentView>; refuse?: { code: number; text: string } } = {},
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-streams-'));
  const socketPath = join(dir, 'podsched.sock');
  const streaming = await startFakeStreaming(run, o.refuse === undefined ? {} : { refuse: o.refuse });
  const asked: StreamRequest[] = [];
  const target: StreamTarget = { host: '127.0.0.1', port: streaming.port, path: `/exec/token?${query}` };
  const view = agentView({
    stream: async (r) => {
      asked.push(r);
      return { ok: true, value: target };
    },
    ...o.view,
  });
  const server = await startServer({ socketPath, agent: () => view, log: silentLog });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= server.close();
    return closed;
  };
  try {
    await work({ socketPath, streaming, asked, close });
  } finally {
    await close();
    await streaming.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Refusal {
  readonly status: number;
  readonly body: { readonly kind?: string; readonly message?: string; readonly reason?: string };
}
const ask = (socketPath: string, o: { path?: string; method?: string; headers?: Record<string, string>; body?: string }) =>
  new Promise<{ session: ExecSession; socket: Socket } | Refusal>((resolve, reject) => {
    const asked: ClientRequest = request({ socketPath, path, method: 'POST', headers: upgradeHeaders, agent: false, ...o }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : { message: text } }),
      );
    });
    asked.on('upgrade', (_, socket: Socket, head) => resolve({ session: openSession(socket, head, options), socket }));
    asked.on('error', reject);
    asked.end(o.body);
  });
async function open(socketPath: string): Promise<{ session: ExecSession; socket: Socket }> {
  const got = await ask(socketPath, {});
  assert.ok('session' in got);
  return got;
}
async function refusal(socketPath: string, o: Parameters<typeof ask>[1]): Promise<Refusal> {
  const got = await ask(socketPath, o);
  assert.ok('status' in got);
  return got;
}
async function until(check: () => boolean): Promise<void> {
  for (let i = 0; !check(); i++) {
    assert.ok(i < 3000, 'waited too long');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
const textOf = async (s: ExecSession): Promise<string> => {
  let text = '';
  for await (const { data } of s.output) text += Buffer.from(data).toString();
  return text;
};

test('the upgrade is handed on to where the runtime says, and bytes go through both ways', () =>
  onStage(
    (p) =>
      void p.stdinEnded.then(async () => {
        await p.write('stdout', p.stdin());
        p.end(exited(5));
      }),
    async ({ socketPath, streaming, asked }) => {
      const { session } = await open(socketPath);
      const big = Buffer.alloc(1_000_000, 'q');
      await session.write(big);
      session.closeStdin();
      assert.equal((await textOf(session)).length, big.length);
      assert.equal(await session.done, 5);
      assert.equal(streaming.sessions[0]?.url, `/exec/token?${query}`);
      assert.deepEqual(asked[0]?.command, ['sh']);
    },
  ));

test('a slow reader gets everything although the runtime has closed long ago', () =>
  onStage(
    async (p) => {
      for (let i = 0; i < 64; i++) await p.write('stdout', Buffer.alloc(32_000, 'q'));
      p.end(success);
    },
    async ({ socketPath }) => {
      const { session } = await open(socketPath);
      let bytes = 0;
      for await (const { data } of session.output) {
        bytes += data.length;
        if (bytes % 320_000 === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      }
      assert.deepEqual([bytes, await session.done], [2_048_000, 0]);
    },
  ));

test('other protocols go through as they are, each one offered in a header of its own', () =>
  onStage(
    () => {},
    async ({ socketPath, streaming }) => {
      const socket = connect(socketPath);
      const offered = ['v5.channel.k8s.io', 'v4.channel.k8s.io'].map((v) => `X-Stream-Protocol-Version: ${v}\r\n`).join('');
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\nCookie: c\r\n${offered}\r\n`,
      );
      const answer = await new Promise<string>((resolve) => socket.once('data', (d) => resolve(d.toString())));
      assert.match(answer, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
      assert.equal(streaming.upgrades.length, 1);
      const { headers, rawHeaders } = streaming.upgrades[0] ?? assert.fail();
      assert.deepEqual([headers.upgrade, headers['sec-websocket-key'], headers.cookie], ['websocket', 'abc', undefined]);
      assert.equal(rawHeaders.filter((h) => h.toLowerCase() === 'x-stream-protocol-version').length, 2);
      socket.destroy();
    },
  ));

test('what cannot be opened is a v1 Status with its code', async () => {
  await onStage(
    () => {},
    async ({ socketPath, asked }) => {
      for (const [o, status, message] of [
        [{ path: '/exec/default/web' }, 400, /namespace/],
        [{ path: '/exec/default/web/app' }, 400, /command: expected at least one/],
        [{ path: '/exec/default/web/app?command=ls&tty=maybe' }, 400, /tty: expected true or false/],
        [{ path: '/exec/default/web/app?command=ls&tty=1&stderr=1' }, 400, /stderr: expected false/],
        [{ path: '/exec/default/web/app?command=ls&x=1' }, 400, /there is no x/],
        [{ path: '/attach/default/web/app?command=ls' }, 400, /there is no command/],
        [{ path: '/exec/default/web/app?command=ls&stdout=0&stderr=0' }, 400, /at least 1 of stdin, stdout, stderr/],
        [{ path: '/exec/default/%ff/app?command=ls' }, 400, /namespace/],
        [{ method: 'DELETE' }, 405, /takes GET and POST/],
        [{ path: '/nothing' }, 404, /there is no \/nothing/],
        [{ path: '/containerLogs/a/b/c' }, 400, /nothing to upgrade/],
        [{ headers: {} }, 400, /by an upgrade/],
      ] as const) {
        const got = await refusal(socketPath, o);
        assert.equal(got.status, status, JSON.stringify(o));
        assert.match(got.body.message ?? '', message);
        assert.equal(got.body.kind, 'Status');
      }
      assert.equal(asked.length, 0);
      // what needs no upgrade is answered without one
      assert.equal((await refusal(socketPath, { path: '/livez', method: 'GET' })).status, 200);
    },
  );
  const missing = async () => ({ ok: false, code: 404, message: 'container not found ("app")' }) as const;
  await onStage(
    () => {},
    async ({ socketPath }) => assert.equal((await refusal(socketPath, {})).body.message, 'container not found ("app")'),
    { view: { stream: missing } },
  );
  await onStage(
    () => {},
    async ({ socketPath }) => assert.equal((await refusal(socketPath, {})).status, 500),
    { view: { stream: async () => Promise.reject(new Error('containerd is away')) } },
  );
  await onStage(
    () => {},
    async ({ socketPath }) => {
      const got = await refusal(socketPath, {});
      assert.deepEqual([got.status, got.body.message], [404, 'the runtime did not open the session: token not found']);
    },
    { refuse: { code: 404, text: 'token not found' } },
  );
  await onStage(
    () => {},
    async ({ socketPath, streaming }) => {
      await streaming.close();
      assert.equal((await refusal(socketPath, {})).status, 500);
    },
  );
});

test('so many sessions and no more; a place is free again when one has ended or was refused', () =>
  onStage(
    () => {},
    async ({ socketPath, streaming }) => {
      for (let i = 0; i < maxSessions + 5; i++) assert.equal((await refusal(socketPath, { path: '/exec/x' })).status, 400);
      const opened = await Promise.all(Array.from({ length: maxSessions }, () => open(socketPath)));
      assert.equal((await refusal(socketPath, {})).status, 429);
      assert.equal((await refusal(socketPath, { path: '/livez', method: 'GET', headers: {} })).status, 200);
      await until(() => streaming.sessions.length === maxSessions);
      opened[0]?.session.close();
      streaming.sessions[5]?.end(success);
      await until(() => streaming.open() === maxSessions - 2);
      // the runtime's end is closed first, the place is free when the asker's is
      for (let i = 0; opened.length < maxSessions + 2; i++) {
        const got = await ask(socketPath, {});
        if ('session' in got) opened.push(got);
        else assert.ok(got.status === 429 && i < 3000, JSON.stringify(got));
      }
      assert.equal((await refusal(socketPath, {})).status, 429);
      for (const { session } of opened) session.close();
    },
  ));

test('closing ends open sessions at both ends, also one whose answer nobody takes', () =>
  onStage(
    () => {},
    async ({ socketPath, streaming, close }) => {
      const { session } = await open(socketPath);
      await until(() => streaming.sessions.length === 1);
      const upstream = streaming.sessions[0]?.socket;
      assert.ok(upstream);
      const silent = connect({ path: socketPath, allowHalfOpen: true });
      silent.write('POST /exec/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
      await new Promise((resolve) => setTimeout(resolve, 50));
      const began = performance.now();
      const gone = new Promise((resolve) => upstream.once('close', resolve));
      await close();
      await gone;
      assert.ok(performance.now() - began < 9000, 'not when the answer has waited long enough');
      await assert.rejects(session.done, /the session ended before the command did/);
      silent.destroy();
    },
  ));

test('an asker that goes away while the runtime is asked leaves nothing behind', () => {
  let answer: (() => void) | undefined;
  let target: StreamTarget | undefined;
  const stream = async () => {
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return { ok: true, value: target ?? assert.fail() } as const;
  };
  return onStage(
    () => {},
    async ({ socketPath, streaming }) => {
      target = { host: '127.0.0.1', port: streaming.port, path: `/exec/token?${query}` };
      const socket = connect(socketPath);
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n`);
      await until(() => answer !== undefined);
      socket.destroy();
      answer?.();
      // it was told before the asker was missed: then it is let go of at once
      await until(() => streaming.open() === 0);
    },
    { view: { stream } },
  );
});

test('debug takes a container as JSON and answers with what was made of it', async () => {
  const taken: unknown[] = [];
  const debug: AgentView['debug'] = async (r) => {
    taken.push(r);
    if (r.pod === 'gone') return { ok: false, code: 409, message: 'pod "gone" is being removed' };
    if (r.pod === 'full') throw new Error('ENOSPC');
    return { ok: true, value: { name: 'd', image: 'x' } };
  };
  await onStage(
    () => {},
    async ({ socketPath }) => {
      const post = (p: string, body: string | undefined, method = 'POST') =>
        refusal(socketPath, { path: p, method, headers: {}, ...(body !== undefined && { body }) });
      const made = await post('/debug/default/web', '{"name":"d"}');
      assert.deepEqual([made.status, made.body], [201, { name: 'd', image: 'x' }]);
      assert.deepEqual(taken, [{ namespace: 'default', pod: 'web', container: { name: 'd' } }]);
      for (const [p, body, status, reason] of [
        ['/debug/default/gone', '{}', 409, 'Conflict'],
        ['/debug/default/full', '{}', 500, 'InternalError'],
        ['/debug/default', '{}', 400, 'BadRequest'],
        ['/debug/default/web', '{"name":', 400, 'BadRequest'],
        ['/debug/default/web', `"${'x'.repeat(70_000)}"`, 413, 'RequestEntityTooLarge'],
      ] as const) {
        const got = await post(p, body);
        assert.deepEqual([got.status, got.body.reason], [status, reason], p);
      }
      assert.equal((await post('/debug/default/web', undefined, 'GET')).status, 405);
    },
    { view: { debug } },
  );
});
