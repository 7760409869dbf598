import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readHostDns, watchHostDns } from '../../src/node/hostDns.ts';
import type { HostDns } from '../../src/node/resolvConf.ts';
import { systemClock } from '../../src/world/clock.ts';
import { patienceMs } from '../until.ts';

const made: string[] = [];
const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-dns-'));
  made.push(dir);
  return dir;
};
after(() => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true });
});

const servers = (...ips: readonly string[]): string => ips.map((ip) => `nameserver ${ip}\n`).join('');

test('a loopback stub is replaced by the first upstream file that has servers; searches and options stay the node’s own', () => {
  const dir = folder();
  const [own, empty, upstream] = ['own', 'empty', 'upstream'].map((name) => join(dir, name));
  assert.ok(own && empty && upstream);
  writeFileSync(own, `${servers('127.0.0.53')}search lan\noptions edns0\n`);
  writeFileSync(empty, servers('127.0.0.1'));
  writeFileSync(upstream, `${servers('192.0.2.1', '::1', '2001:db8::1')}search other\noptions rotate\n`);
  const files = [join(dir, 'missing'), empty, upstream];
  assert.deepEqual(readHostDns(own, files), { servers: ['192.0.2.1', '2001:db8::1'], searches: ['lan'], options: ['edns0'] });
  // nothing better is known: pods on the node's network can use it
  assert.deepEqual(readHostDns(own, [empty]).servers, ['127.0.0.53']);
  writeFileSync(own, servers('127.0.0.1', '192.0.2.9'));
  assert.deepEqual(readHostDns(own, files).servers, ['192.0.2.9']);
  assert.deepEqual(readHostDns(join(dir, 'missing'), files), { servers: [], searches: [], options: [] });
});

class Watched {
  readonly told: HostDns[] = [];
  readonly #stop = new AbortController();
  #wake: (() => void) | undefined;

  constructor(path: string, upstreams: readonly string[] = []) {
    const onChange = (dns: HostDns): void => {
      this.told.push(dns);
      this.#wake?.();
    };
    watchHostDns(path, { clock: systemClock, onChange, upstreams }, this.#stop.signal);
    after(() => this.#stop.abort());
  }

  /** Waits until this is the last word. */
  async until(...ips: readonly string[]): Promise<void> {
    const deadline = AbortSignal.timeout(patienceMs);
    while (this.told.at(-1)?.servers.join() !== ips.join()) {
      assert.ok(!deadline.aborted, `told: ${JSON.stringify(this.told)}`);
      await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), systemClock.sleep(1000)]);
    }
  }
}

test('a file that is replaced again and again is followed, and a change that says the same is not told', async () => {
  const dir = folder();
  const path = join(dir, 'resolv.conf');
  writeFileSync(path, servers('192.0.2.1'));
  const watched = new Watched(path);
  for (const ip of ['192.0.2.2', '192.0.2.3', '192.0.2.4']) {
    writeFileSync(`${path}.new`, servers(ip));
    renameSync(`${path}.new`, path);
    await watched.until(ip);
  }
  writeFileSync(path, `# another comment\n${servers('192.0.2.4')}`);
  writeFileSync(join(dir, 'other'), 'x');
  await systemClock.sleep(500);
  assert.equal(watched.told.length, 3);
});

test('a link whose folder comes later, and goes and comes again, is followed; while it is away the last servers stand', async () => {
  const dir = folder();
  const run = join(dir, 'run/systemd/resolve');
  const path = join(dir, 'resolv.conf');
  symlinkSync(join(run, 'stub-resolv.conf'), path);
  const watched = new Watched(path);
  mkdirSync(run, { recursive: true });
  writeFileSync(join(run, 'stub-resolv.conf'), servers('192.0.2.1'));
  await watched.until('192.0.2.1');
  rmSync(join(dir, 'run'), { recursive: true });
  await systemClock.sleep(500);
  assert.equal(watched.told.length, 1, 'without servers nothing is told: pods keep those they had');
  mkdirSync(run, { recursive: true });
  writeFileSync(join(run, 'stub-resolv.conf'), servers('192.0.2.2'));
  await watched.until('192.0.2.2');
  unlinkSync(path);
  writeFileSync(path, servers('192.0.2.3'));
  await watched.until('192.0.2.3');
});

test('behind a stub the upstreams are what is watched', async () => {
  const dir = folder();
  const [path, upstream] = [join(dir, 'resolv.conf'), join(dir, 'up/resolv.conf')];
  mkdirSync(join(dir, 'up'));
  writeFileSync(path, servers('127.0.0.53'));
  writeFileSync(upstream, servers('192.0.2.1'));
  const watched = new Watched(path, [upstream]);
  writeFileSync(upstream, servers('192.0.2.2'));
  await watched.until('192.0.2.2');
});
