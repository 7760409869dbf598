import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { rootOf } from '../../src/policy/hostPaths.ts';
import { readPolicy } from '../../src/policy/policy.ts';
import { RealPaths } from '../../src/policy/realPaths.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

/** A small host: `data` is allowed, and somebody may write in it; `etc` is not. */
async function withHost(
  work: (host: string, ask: (path: string, allowed?: readonly string[]) => Promise<string | undefined>) => Promise<void>,
): Promise<void> {
  const host = realpathSync(mkdtempSync(join(tmpdir(), 'podsched-paths-')));
  for (const dir of ['data/app', 'etc', 'ssd/data']) mkdirSync(join(host, dir), { recursive: true });
  const paths = new RealPaths({ clock: new FakeClock() });
  try {
    await work(host, (path, allowed = ['data']) =>
      paths.leadsOut(join(host, path), readPolicy({ hostPath: allowed.map((p) => (p === '/' ? p : join(host, p))) }, 'mqtt')),
    );
  } finally {
    rmSync(host, { recursive: true, force: true });
  }
}

test('a path that is there, and one that is not yet, lead nowhere else', () =>
  withHost(async (_, ask) => {
    assert.equal(await ask('data'), undefined);
    assert.equal(await ask('data/app'), undefined);
    assert.equal(await ask('data/new/deeper'), undefined);
    assert.match((await ask('etc')) ?? '', /does not allow it/);
  }));

test('a link inside an allowed path does not lead out of it', () =>
  withHost(async (host, ask) => {
    symlinkSync(join(host, 'etc'), join(host, 'data/out'));
    symlinkSync('../etc', join(host, 'data/relative'));
    symlinkSync('app', join(host, 'data/inside'));
    assert.match((await ask('data/out')) ?? '', /leads to .*\/etc, which policy\.mqtt\.hostPath does not allow/);
    assert.match((await ask('data/out/new')) ?? '', /leads to .*\/etc\/new/);
    assert.match((await ask('data/relative')) ?? '', /leads to/);
    assert.equal(await ask('data/inside'), undefined);
  }));

test('a link that leads nowhere is not a missing path', () =>
  withHost(async (host, ask) => {
    symlinkSync(join(host, 'etc/not-yet'), join(host, 'data/soon'));
    assert.match((await ask('data/soon')) ?? '', /is a link that leads nowhere/);
    assert.match((await ask('data/soon/x')) ?? '', /is a link that leads nowhere/);
  }));

test('the allowed path itself may be a link of the node’s owner', () =>
  withHost(async (host, ask) => {
    symlinkSync(join(host, 'ssd/data'), join(host, 'linked'));
    assert.equal(await ask('linked', ['linked']), undefined);
    assert.equal(await ask('linked/x', ['linked']), undefined);
    assert.match((await ask('linked', ['data'])) ?? '', /does not allow it/);
  }));

test('an allowed path below another one gives no more than that: who writes there could turn it into a link', () =>
  withHost(async (host, ask) => {
    symlinkSync(join(host, 'etc'), join(host, 'data/app/conf'));
    assert.match((await ask('data/app/conf', ['data', 'data/app/conf'])) ?? '', /leads to/);
  }));

test('where everything is allowed, nobody looks', () =>
  withHost(async (host, ask) => {
    symlinkSync(join(host, 'etc'), join(host, 'data/out'));
    assert.equal(await ask('data/out', ['/']), undefined);
  }));

test('a path that does not answer is refused after a while, and holds up no more than its own looks', async () => {
  const clock = new FakeClock();
  const hang = new Promise<string>(() => {});
  const asked: string[] = [];
  const paths = new RealPaths({
    clock,
    realPath: (path) => {
      asked.push(path);
      return path.startsWith('/data/dead') ? hang : Promise.resolve(path);
    },
  });
  const policy = readPolicy({ hostPath: ['/data'] }, 'mqtt');
  let [dead, again] = ['', ''];
  void paths.leadsOut('/data/dead', policy).then((r) => (dead = r ?? 'fine'));
  void paths.leadsOut('/data/dead', policy).then((r) => (again = r ?? 'fine'));
  await settle();
  assert.equal(await paths.leadsOut('/data/alive', policy), undefined);
  assert.deepEqual(
    asked.filter((p) => p === '/data/dead'),
    ['/data/dead'],
  );
  await clock.advance(10_000);
  await settle();
  assert.match(dead, /does not answer \(10 s\)/);
  assert.match(again, /does not answer/);
});

test('a path that may not be looked at is refused', async () => {
  const paths = new RealPaths({ clock: new FakeClock(), realPath: async () => Promise.reject(new Error('cannot be looked at (EACCES)')) });
  assert.match((await paths.leadsOut('/data/x', readPolicy({ hostPath: ['/data'] }, 'file'))) ?? '', /EACCES/);
});

test('a path must stay in the outermost allowed path that it lies in', () => {
  assert.equal(rootOf('/data/app/x', ['/srv', '/data/app', '/data']), '/data');
  assert.equal(rootOf('/data', ['/data']), '/data');
  assert.equal(rootOf('/database', ['/data']), undefined);
  assert.equal(rootOf('/data', ['/', '/data']), undefined);
});
