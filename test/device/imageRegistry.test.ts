import assert from 'node:assert/strict';
import { request as plainRequest } from 'node:http';
import { request } from 'node:https';
import { test } from 'node:test';
import { startImageRegistry, tooManyRequests } from './imageRegistry.ts';
import { until } from './process.ts';

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  /** Why it broke; undefined: it was whole. */
  readonly broken?: string;
  readonly retryAfter?: string;
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';

/** Never rejects: what came until it broke, or until `timeoutMs` were over. */
function ask(url: string, o: { readonly auth?: string; readonly timeoutMs?: number; readonly trust?: boolean } = {}): Promise<Answer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let [status, retryAfter]: [number, string | undefined] = [0, undefined];
    const end = (broken?: string) =>
      resolve({ status, body: Buffer.concat(parts), ...(broken && { broken }), ...(retryAfter && { retryAfter }) });
    const options = {
      headers: { Accept: manifestType },
      agent: false,
      rejectUnauthorized: o.trust !== true,
      ...(o.auth && { auth: o.auth }),
    };
    const req = (url.startsWith('https') ? request : plainRequest)(url, options, (res) => {
      status = res.statusCode ?? 0;
      retryAfter = res.headers['retry-after'];
      res.on('data', (part: Buffer) => parts.push(part));
      res.on('end', () => end(res.complete ? undefined : 'cut'));
      res.on('error', () => end('cut'));
    });
    req.on('error', (e: NodeJS.ErrnoException) => end(e.code ?? e.message));
    req.setTimeout(o.timeoutMs ?? 30_000, () => req.destroy(Object.assign(new Error('late'), { code: 'late' })));
    req.end();
  });
}

test('the registry of the test bed serves what was pushed, and its proxy does each fault', async () => {
  const registry = await startImageRegistry();
  try {
    const ref = await registry.push(undefined, { extraBytes: 300_000 });
    assert.equal(ref, `${registry.host}/busybox:1`);
    assert.match(await registry.digest(ref), /^sha256:[0-9a-f]{64}$/);
    const url = `http://${registry.host}/v2/busybox/manifests/1`;
    assert.equal((await ask(url)).status, 200);
    assert.equal(registry.count('manifest'), 1);

    registry.setFault(tooManyRequests(7));
    const { status, retryAfter } = await ask(url);
    assert.deepEqual([status, retryAfter], [429, '7']);
    registry.setFault({ does: 'hangs' });
    assert.equal((await ask(url, { timeoutMs: 500 })).broken, 'late');
    registry.setFault(undefined);
    const { layers } = JSON.parse((await ask(url)).body.toString()) as { layers: { digest: string; size: number }[] };
    const blob = `http://${registry.host}/v2/busybox/blobs/${layers.at(-1)?.digest}`;
    assert.equal((await ask(blob)).body.length, layers.at(-1)?.size);

    registry.setFault({ does: 'breaksOff', afterBytes: 1000, on: 'blob' });
    const cut = await ask(blob);
    assert.deepEqual([cut.body.length, cut.broken], [1000, 'cut']);
    assert.equal((await ask(url)).status, 200, 'manifests are none of its business');
    registry.setFault({ does: 'slow', bytesPerSecond: 200_000, on: 'blob' });
    const began = performance.now();
    assert.equal((await ask(blob)).body.length, layers.at(-1)?.size);
    assert.ok(performance.now() - began > 1000, 'it took its time');

    registry.setFault({ does: 'hangs', afterBytes: 500, on: 'blob' });
    assert.equal((await ask(blob, { timeoutMs: 3000 })).body.length, 500);
    await until('the proxy to see the client go', 30_000, () => registry.requests.at(-1)?.closedEarly === true);
    await registry.setGone(true);
    assert.equal((await ask(url)).broken, 'ECONNREFUSED', 'nobody listens');
    await registry.setGone(false);
    registry.setFault(undefined);
    assert.equal((await ask(url)).status, 200);
  } finally {
    await registry.stop();
  }
});

test('with htpasswd it wants a name and a password; with a wrong certificate nobody trusts it', async () => {
  const closed = await startImageRegistry({ htpasswd: true });
  try {
    const ref = await closed.push();
    const url = `http://${closed.host}/v2/busybox/manifests/1`;
    assert.equal((await ask(url)).status, 401);
    assert.equal((await ask(url, { auth: `${closed.user}:${closed.password}` })).status, 200);
    assert.match(await closed.digest(ref), /^sha256:/);
  } finally {
    await closed.stop();
  }
  const distrusted = await startImageRegistry({ wrongCertificate: true });
  try {
    assert.equal((await ask(`https://${distrusted.host}/v2/`)).broken, 'DEPTH_ZERO_SELF_SIGNED_CERT', 'the certificate is not known');
    assert.equal((await ask(`https://${distrusted.host}/v2/`, { trust: true })).status, 200);
  } finally {
    await distrusted.stop();
  }
});
