import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentView } from '../../src/operations/agentView.ts';
import type { LogRequest } from '../../src/operations/logRequest.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';

const path = '/containerLogs/default/web/app';

async function serving(view: AgentView | undefined, work: (ask: Ask, close: () => Promise<void>) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-server-'));
  const socketPath = join(dir, 'podsched.sock');
  const server = await startServer({ socketPath, agent: () => view, log: silentLog });
  const ask: Ask = (target, method = 'GET') =>
    new Promise((resolve, reject) => {
      const r = request({ socketPath, path: target, method, agent: false }, resolve);
      r.on('error', reject);
      r.end();
    });
  try {
    await work(ask, () => server.close());
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
type Ask = (path: string, method?: string) => Promise<IncomingMessage>;

const whole = async (response: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const part of response) text += part;
  return text;
};
const withLogs = (chunks: (request: LogRequest, signal: AbortSignal) => AsyncGenerator<Uint8Array, void>): AgentView =>
  agentView({ logs: async (asked, signal) => ({ ok: true, value: chunks(asked, signal) }) });
const forever = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())));
const soon = async (what: string, check: () => boolean): Promise<void> => {
  for (const end = performance.now() + 30_000; !check(); await new Promise((r) => setTimeout(r, 10)))
    assert.ok(performance.now() < end, what);
};

test('a log comes as text, in the bytes it has, for what the path and the query ask', async () => {
  let seen: LogRequest | undefined;
  const view = withLogs(async function* (asked) {
    seen = asked;
    yield Buffer.from([0xff, 0x00]);
    yield Buffer.from('b\n');
  });
  await serving(view, async (ask) => {
    const response = await ask(`${path}?tailLines=5&follow=true`);
    response.setEncoding('latin1');
    assert.equal(await whole(response), '\xff\0b\n');
    assert.equal(response.headers['content-type'], 'text/plain; charset=utf-8');
    assert.deepEqual([seen?.pod, seen?.container, seen?.tailLines, seen?.follow], ['web', 'app', 5, true]);
  });
});

test('what cannot be served is a v1 Status', async () => {
  const broken = agentView({ logs: () => Promise.reject(new Error('no containerd')) });
  for (const [view, target, method, code, reason, message] of [
    [agentView(), path, 'GET', 404, 'NotFound', /no logs here/],
    [agentView(), `${path}?tailLines=x`, 'GET', 400, 'BadRequest', /tailLines/],
    [agentView(), '/containerLogs/web', 'GET', 400, 'BadRequest', /is meant/],
    [agentView(), path, 'POST', 405, 'MethodNotAllowed', /GET/],
    [undefined, path, 'GET', 503, 'ServiceUnavailable', /starting/],
    [broken, path, 'GET', 500, 'InternalError', /no containerd/],
  ] as const) {
    await serving(view, async (ask) => {
      const response = await ask(target, method);
      const status = JSON.parse(await whole(response));
      assert.deepEqual([response.statusCode, status.kind, status.reason], [code, 'Status', reason], target);
      assert.match(status.message, message);
    });
  }
});

test('a follower has its answer before the first line, and the reading ends when the asker goes away', async () => {
  let ended = false;
  const view = withLogs(async function* (_, signal) {
    try {
      await forever(signal);
      yield Buffer.alloc(0);
    } finally {
      ended = true;
    }
  });
  await serving(view, async (ask) => {
    const response = await ask(`${path}?follow=true`);
    assert.equal(response.statusCode, 200);
    assert.equal(ended, false);
    response.destroy();
    await soon('it ends', () => ended);
  });
});

test('no more is read than the asker takes', async () => {
  let read = 0;
  let ended = false;
  const view = withLogs(async function* () {
    try {
      for (; read < 500; read++) yield Buffer.alloc(64 << 10);
    } finally {
      ended = true;
    }
  });
  await serving(view, async (ask) => {
    const response = await ask(path);
    response.pause();
    await new Promise((r) => setTimeout(r, 300));
    assert.ok(read < 100, `${read} chunks were read`);
    let bytes = 0;
    for await (const part of response) bytes += part.length;
    assert.equal(bytes, 500 * (64 << 10));
    read = 0;
    ended = false;
    const other = await ask(path);
    other.pause();
    await new Promise((r) => setTimeout(r, 100));
    assert.equal(ended, false);
    other.destroy();
    await soon('an asker that goes away ends the reading that waits for it', () => ended);
    assert.ok(read < 100);
  });
});

test('a log that breaks in the middle breaks the connection: half of it is never taken for the whole', async () => {
  const view = withLogs(async function* () {
    yield Buffer.from('half');
    throw new Error('EIO');
  });
  await serving(view, async (ask) => {
    await assert.rejects(ask(path).then(whole), { code: 'ECONNRESET' });
  });
});

test('followers leave room for others, and closing ends them', async () => {
  let open = 0;
  const view = withLogs(async function* (_, signal) {
    open++;
    try {
      await forever(signal);
      yield Buffer.alloc(0);
    } finally {
      open--;
    }
  });
  await serving(view, async (ask, close) => {
    const followers = await Promise.all(Array.from({ length: 32 }, () => ask(path)));
    for (const f of followers) f.on('error', () => {});
    const refused = await ask(path);
    assert.equal(JSON.parse(await whole(refused)).reason, 'TooManyRequests');
    assert.equal((await ask('/healthz')).statusCode, 200);
    await close();
    await soon('all end', () => open === 0);
  });
});
