import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { HandlerTimeout } from '../../src/handlers/netErrors.ts';
import { resolvePort } from '../../src/handlers/ports.ts';
import { tcpConnect } from '../../src/handlers/tcp.ts';
import { until } from '../until.ts';

const container = {
  name: 'web',
  ports: [{ name: 'http', containerPort: 8080 }, { containerPort: 9 }, { name: '81', containerPort: 8081 }],
};

for (const [port, wanted] of [
  [80, 80],
  ['http', 8080],
  ['80', 80],
  ['81', 8081],
  [0, /invalid port number: 0/],
  [65536, /invalid port number: 65536/],
  ['-1', /invalid port number: -1/],
  ['htpp', /container web has no port named "htpp": it has http, 81/],
  ['', /no port named ""/],
  ['8080x', /no port named "8080x"/],
] as const) {
  test(`the port ${JSON.stringify(port)} is ${typeof wanted === 'number' ? wanted : 'an error that says why'}`, () => {
    if (typeof wanted === 'number') assert.equal(resolvePort(port, container), wanted);
    else assert.throws(() => resolvePort(port, container), wanted);
  });
}

test('a container without ports says that it names none', () => {
  assert.throws(() => resolvePort('http', { name: 'c' }), /^Error: container c has no port named "http": it names none$/);
});

test('a connection that stands is success and is closed at once; one that is refused says so', async () => {
  const closed: Promise<void>[] = [];
  const server = createServer((socket) => closed.push(new Promise((resolve) => socket.on('close', () => resolve()).resume())));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  await tcpConnect('127.0.0.1', address.port, 30_000);
  await tcpConnect('localhost', address.port, 30_000);
  await until('both were accepted', () => closed.length === 2);
  await Promise.all(closed);
  assert.equal(closed.length, 2);
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(
    tcpConnect('127.0.0.1', address.port, 30_000),
    new RegExp(`^Error: dial tcp 127\\.0\\.0\\.1:${address.port}: connect: connection refused$`),
  );
});

/** Listens with a short backlog and accepts nobody; its port. */
async function deaf(t: TestContext): Promise<number> {
  const script = `const s = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('fs').writeSync(1, String(s.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  return Number(text.toString());
}

test('nobody who accepts is a time-out that says so; an abort ends the waiting with its reason', async (t) => {
  const port = await deaf(t);
  // what waits to be accepted fills the backlog
  await tcpConnect('127.0.0.1', port, 30_000);
  await tcpConnect('127.0.0.1', port, 30_000);
  await assert.rejects(tcpConnect('127.0.0.1', port, 200), (e) => {
    assert.ok(e instanceof HandlerTimeout, String(e));
    assert.equal(e.message, `dial tcp 127.0.0.1:${port}: timeout: no answer in 0.2 s`);
    return true;
  });
  const stop = new AbortController();
  const pending = tcpConnect('127.0.0.1', port, 60_000, stop.signal);
  setTimeout(() => stop.abort(new Error('enough')), 50);
  await assert.rejects(pending, /enough/);
  await assert.rejects(tcpConnect('127.0.0.1', port, 60_000, stop.signal), /enough/);
});
