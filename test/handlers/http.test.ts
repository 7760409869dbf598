import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type HttpGet, httpGet } from '../../src/handlers/http.ts';
import { httpTarget } from '../../src/handlers/httpTarget.ts';
import { HandlerTimeout, PlainHttpAnswer } from '../../src/handlers/netErrors.ts';
import { cert, key } from './selfSigned.ts';

/** Listens until the test ends; its port. */
async function listen(t: TestContext, server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Asked {
  readonly url: string;
  readonly headers: string[];
}

/** A server that keeps what it was asked, and answers by path. */
async function recording(t: TestContext, answer: RequestListener = (_, r) => r.end('ok')): Promise<{ port: number; asked: Asked[] }> {
  const asked: Asked[] = [];
  const port = await listen(
    t,
    createServer((request, response) => {
      asked.push({ url: request.url ?? '', headers: request.rawHeaders });
      answer(request, response);
    }),
  );
  return { port, asked };
}

const get = (port: number, more: Partial<HttpGet> = {}) =>
  httpGet({ scheme: 'http', host: '127.0.0.1', port, path: '/', headers: [], userAgent: 'kube-probe/1.32', timeoutMs: 60_000, ...more });

/** Values of a header in their order. */
const values = ({ headers }: Asked, name: string): string[] =>
  headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === name.toLowerCase());

test('a GET has the headers of the kubelet, closes its connection, and asks for no compression', async (t) => {
  const { port, asked } = await recording(t);
  assert.deepEqual(await get(port, { path: '/healthz?full=1' }), { status: 200, body: 'ok', redirectedAway: false });
  assert.deepEqual(asked, [
    {
      url: '/healthz?full=1',
      headers: ['User-Agent', 'kube-probe/1.32', 'Accept', '*/*', 'Host', `127.0.0.1:${port}`, 'Connection', 'close'],
    },
  ]);
});

test('given headers replace the defaults, may come twice, and an empty Accept or User-Agent drops the header', async (t) => {
  const { port, asked } = await recording(t);
  const headers = [
    { name: 'host', value: 'web.example' },
    { name: 'X-Probe', value: 'a' },
    { name: 'x-probe', value: 'b' },
    { name: 'accept', value: 'text/plain' },
    { name: 'user-agent', value: 'me' },
    { name: 'X-Empty', value: '' },
    { name: '__proto__', value: 'x' },
    { name: 'Transfer-Encoding', value: 'chunked' },
  ];
  await get(port, { headers });
  await get(port, {
    headers: [
      { name: 'Accept', value: '' },
      { name: 'User-Agent', value: '' },
      { name: 'Host', value: '' },
    ],
  });
  const [first, second] = asked;
  assert.ok(first && second);
  const named = (of: Asked) =>
    ['host', 'x-probe', 'accept', 'user-agent', 'x-empty', '__proto__', 'transfer-encoding'].map((n) => values(of, n));
  assert.deepEqual(named(first), [['web.example'], ['a', 'b'], ['text/plain'], ['me'], [''], ['x'], []]);
  assert.deepEqual(named(second), [[`127.0.0.1:${port}`], [], [], [], [], [], []]);
});

test('every status is an answer', async (t) => {
  const { port } = await recording(t, (request, response) => {
    response.writeHead(Number(request.url?.slice(1)));
    response.end('body');
  });
  for (const status of [200, 204, 304, 404, 500, 302]) {
    const answer = await get(port, { path: `/${status}` });
    assert.equal(answer.status, status);
    assert.equal(answer.redirectedAway, false, 'without a place there is nothing to follow');
  }
});

test('at most 10 KiB of an answer are read, however long it is', async (t) => {
  const { port } = await recording(t, (_, response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(1000)));
    };
    response.on('drain', more);
    more();
  });
  const { status, body } = await get(port);
  assert.deepEqual([status, body.length], [200, 10_240]);
});

test('redirects of the same host name are followed, to another port too; the given host stays for a path and not for a place', async (t) => {
  const end = await recording(t);
  const { port, asked } = await recording(t, (request, response) => {
    const next = { '/a': '/b?x=1', '/b?x=1': `http://127.0.0.1:${end.port}/c` }[request.url ?? ''];
    response.writeHead(302, { location: next });
    response.end();
  });
  const answer = await get(port, { path: '/a', headers: [{ name: 'Host', value: 'web' }] });
  assert.deepEqual(answer, { status: 200, body: 'ok', redirectedAway: false });
  assert.deepEqual(
    [...asked, ...end.asked].map((a) => [a.url, values(a, 'host')[0]]),
    [
      ['/a', 'web'],
      ['/b?x=1', 'web'],
      ['/c', `127.0.0.1:${end.port}`],
    ],
  );
});

test('a redirect to another host name stops there, with that answer', async (t) => {
  const { port, asked } = await recording(t, (_, response) => {
    response.writeHead(307, { location: 'http://localhost:1/' });
    response.end('elsewhere');
  });
  assert.deepEqual(await get(port), { status: 307, body: 'elsewhere', redirectedAway: true });
  assert.equal(asked.length, 1);
});

test('ten redirects are followed, an eleventh is an error, and so is another scheme', async (t) => {
  const { port, asked } = await recording(t, (request, response) => {
    const n = Number(request.url?.slice(1));
    if (n === 10) return response.end('there');
    response.writeHead(301, { location: n === 50 ? `ftp://127.0.0.1:${port}/` : `/${n + 1}` });
    response.end();
  });
  assert.equal((await get(port, { path: '/0' })).body, 'there');
  asked.length = 0;
  await assert.rejects(get(port, { path: '/11' }), /stopped after 10 redirects/);
  assert.equal(asked.length, 11);
  await assert.rejects(get(port, { path: '/50' }), /redirected to the scheme "ftp:"/);
});

test('the time-out is for the whole exchange and says so', async (t) => {
  const { port } = await recording(t, (request, response) => {
    if (request.url === '/head') return;
    if (request.url === '/body') response.write('a');
    if (request.url?.startsWith('/hop')) {
      setTimeout(() => {
        response.writeHead(302, { location: '/hop' });
        response.end();
      }, 60);
    }
  });
  for (const path of ['/head', '/body', '/hop']) {
    const began = performance.now();
    await assert.rejects(get(port, { path, timeoutMs: 200 }), (e) => {
      assert.ok(e instanceof HandlerTimeout, String(e));
      assert.equal(e.message, `Get "http://127.0.0.1:${port}${path}": timeout: no answer in 0.2 s`);
      return true;
    });
    assert.ok(performance.now() - began < 30_000);
  }
});

test('an abort ends it with the reason of the signal, before and during the exchange', async (t) => {
  const reason = new Error('enough');
  const stop = new AbortController();
  const { port, asked } = await recording(t, () => stop.abort(reason));
  const pending = get(port, { signal: stop.signal });
  await assert.rejects(pending, reason);
  await assert.rejects(get(port, { signal: stop.signal }), reason);
  assert.equal(asked.length, 1);
});

test('an error of the network is told with the address and a word for people', async (t) => {
  const server = createRawServer((socket) => socket.end('SSH-2.0-x\r\n'));
  const port = await listen(t, server);
  await assert.rejects(get(port), new RegExp(`^Error: Get "http://127.0.0.1:${port}/": Parse Error`));
  const silent = await listen(
    t,
    createRawServer((socket) => socket.destroy()),
  );
  await assert.rejects(get(silent), /: (socket hang up|connection reset by peer)$/);
  const cut = await listen(
    t,
    createRawServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'))),
  );
  await assert.rejects(get(cut), /the answer broke off/);
  await assert.rejects(
    get(1, { path: '/x' }),
    /^Error: Get "http:\/\/127\.0\.0\.1:1\/x": dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
  );
  // no name can have so long a part: no server is asked for it, which may take long or be away
  const host = `no.such.host.${'x'.repeat(64)}`;
  await assert.rejects(get(1, { host }), new RegExp(`dial tcp: lookup ${host.replaceAll('.', '\\.')}: `));
  await assert.rejects(get(1, { host: '::1' }), /Get "http:\/\/\[::1\]:1\/": dial tcp \[::1\]:1: connect: /);
});

test('https is asked without looking at the certificate', async (t) => {
  const port = await listen(
    t,
    createSecureServer({ key, cert }, (_, r) => r.end('secure')),
  );
  assert.deepEqual(await get(port, { scheme: 'https' }), { status: 200, body: 'secure', redirectedAway: false });
  await assert.rejects(get(port), /Get "http:/);
});

test('https answered in plain http is an error of its own', async (t) => {
  const { port } = await recording(t);
  await assert.rejects(get(port, { scheme: 'https' }), (e) => e instanceof PlainHttpAnswer && /plain http/.test(e.message));
});

test('an answer of 101 is a status and holds no connection', async (t) => {
  const port = await listen(
    t,
    createRawServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'));
    }),
  );
  assert.equal((await get(port)).status, 101);
});

test('no proxy of the environment is used', async (t) => {
  const proxy = await recording(t);
  const { port } = await recording(t);
  const before = process.env.http_proxy;
  process.env.http_proxy = `http://127.0.0.1:${proxy.port}`;
  try {
    assert.equal((await get(port)).status, 200);
  } finally {
    if (before === undefined) delete process.env.http_proxy;
    else process.env.http_proxy = before;
  }
  assert.deepEqual(proxy.asked, []);
});

for (const [path, target] of [
  ['', '/'],
  ['/', '/'],
  ['healthz', '/healthz'],
  ['/healthz?a=1&b=2', '/healthz?a=1&b=2'],
  ['/a?b=c d', '/a?b=c%20d'],
  ['?only=query', '/?only=query'],
  ['/a b/ü', '/a%20b/%C3%BC'],
  ['/kept%2Fescape', '/kept%2Fescape'],
  ['/a#part', '/a'],
  ['/a?b#part', '/a?b'],
  ['http://other:1/path?q', '/path?q'],
  ['//other/path', '/path'],
  ['/a:b', '/a:b'],
  // cannot be read as a reference: letter by letter
  ['/50%', '/50%25'],
  ['/%zz?x#y', '/%25zz%3Fx%23y'],
  ['a:b?c', '/a:b%3Fc'],
  ['/a\r\nX: y', '/a%0D%0AX:%20y'],
  ['/\ud800', '/%EF%BF%BD'],
] as const) {
  test(`the path ${JSON.stringify(path)} is asked as ${target}`, () => {
    assert.equal(httpTarget(path), target);
  });
}
