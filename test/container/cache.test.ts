import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { PodCache } from '../../src/container/cache.ts';
import { emptyPodStatus } from '../../src/container/words.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

const web = 'uid-web' as PodUid;
const db = 'uid-db' as PodUid;
const statusOf = (uid: PodUid, ip: string) => ({ ...emptyPodStatus(uid, 'web', 'default'), ips: [ip] });

function world() {
  const waited: PodUid[] = [];
  const cache = new PodCache({ clock: new FakeClock(), onWait: (uid) => waited.push(uid) });
  return { cache, waited, signal: new AbortController().signal };
}

/** What a promise has come to by now. */
async function now<T>(p: Promise<T>): Promise<T | 'waits' | Error> {
  await settle();
  return Promise.race([p.catch((e: Error) => e), Promise.resolve('waits' as const)]);
}

test('stamps never repeat, though the clock stands still', () => {
  const { cache } = world();
  const stamps = [cache.stamp(), cache.stamp(), cache.stamp()];
  assert.ok(stamps.every((s, i) => i === 0 || s > (stamps[i - 1] ?? 0)));
});

test('news newer than the deed are given at once; older ones are waited out, and PLEG is told that somebody waits', async () => {
  const { cache, waited, signal } = world();
  cache.set(web, statusOf(web, '10.0.0.1'), cache.stamp());
  const deed = cache.stamp();
  const waiting = cache.getNewerThan(web, deed, signal);
  assert.equal(await now(waiting), 'waits');
  assert.deepEqual(waited, [web]);
  cache.set(web, statusOf(web, '10.0.0.2'), cache.stamp());
  assert.deepEqual((await waiting).ips, ['10.0.0.2']);
  assert.deepEqual((await cache.getNewerThan(web, deed, signal)).ips, ['10.0.0.2']);
});

test('a list asked for before the deed does not do, however late its answer comes: one more look is asked for', async () => {
  const { cache, waited, signal } = world();
  const listed = cache.stamp();
  const waiting = cache.getNewerThan(web, cache.stamp(), signal);
  cache.set(web, statusOf(web, '10.0.0.1'), listed);
  assert.equal(await now(waiting), 'waits');
  assert.deepEqual(waited, [web, web]);
  cache.touch(web, cache.stamp());
  assert.deepEqual((await waiting).ips, ['10.0.0.1']);
});

test('an unknown pod is empty once all pods were listed after the deed, and waits until then', async () => {
  const { cache, signal } = world();
  const waiting = cache.getNewerThan(web, cache.stamp(), signal);
  assert.equal(await now(waiting), 'waits');
  cache.setGlobal(cache.stamp());
  assert.deepEqual(await waiting, emptyPodStatus(web, '', ''));
});

test('a pod that a list showed and nobody has read yet is not empty', async () => {
  const { cache, signal } = world();
  const waiting = cache.getNewerThan(web, cache.stamp(), signal);
  cache.expect(web);
  cache.setGlobal(cache.stamp());
  assert.equal(await now(waiting), 'waits');
  const later = cache.getNewerThan(web, cache.stamp(), signal);
  cache.set(web, statusOf(web, '10.0.0.1'), cache.stamp());
  assert.deepEqual((await waiting).ips, ['10.0.0.1']);
  assert.deepEqual((await later).ips, ['10.0.0.1']);
});

test('a pod that is gone from the runtime gives the empty status to who waited for that', async () => {
  const { cache, signal } = world();
  cache.set(web, statusOf(web, '10.0.0.1'), cache.stamp());
  const waiting = cache.getNewerThan(web, cache.stamp(), signal);
  cache.delete(web, cache.stamp());
  assert.deepEqual((await waiting).sandboxes, []);
  assert.equal(cache.get(web), undefined);
});

test('a failed inspection rejects who asks for newer news, keeps the last good status, and is healed by the next', async () => {
  const { cache, signal } = world();
  cache.set(web, statusOf(web, '10.0.0.1'), cache.stamp());
  const deed = cache.stamp();
  const waiting = cache.getNewerThan(web, deed, signal);
  cache.set(web, new Error('broken pipe'), cache.stamp());
  await assert.rejects(waiting, /broken pipe/);
  await assert.rejects(cache.getNewerThan(web, deed, signal), /broken pipe/);
  assert.deepEqual(cache.get(web)?.ips, ['10.0.0.1']);
  cache.touch(web, cache.stamp());
  await assert.rejects(cache.getNewerThan(web, deed, signal), /broken pipe/);
  cache.set(web, statusOf(web, '10.0.0.2'), cache.stamp());
  assert.deepEqual((await cache.getNewerThan(web, deed, signal)).ips, ['10.0.0.2']);
});

test('older news never replace newer ones', () => {
  const { cache } = world();
  const early = cache.stamp();
  cache.set(web, statusOf(web, '10.0.0.2'), cache.stamp());
  cache.set(web, statusOf(web, '10.0.0.1'), early);
  assert.deepEqual(cache.get(web)?.ips, ['10.0.0.2']);
});

test('abort ends a wait with its reason; waits of other pods go on', async () => {
  const { cache } = world();
  const stop = new AbortController();
  const aborted = cache.getNewerThan(web, cache.stamp(), stop.signal);
  const other = cache.getNewerThan(db, cache.stamp(), new AbortController().signal);
  stop.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  await assert.rejects(cache.getNewerThan(web, cache.stamp(), stop.signal), { name: 'AbortError' });
  cache.set(web, statusOf(web, '10.0.0.1'), cache.stamp());
  assert.equal(await now(other), 'waits');
  cache.set(db, statusOf(db, '10.0.0.3'), cache.stamp());
  assert.deepEqual((await other).ips, ['10.0.0.3']);
});
