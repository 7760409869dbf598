import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, PullPolicy } from '../../src/api/v1.ts';
import { Backoff } from '../../src/async/backoff.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { ImageManager } from '../../src/images/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

const refused = 'failed to do request: Head "https://r.example/v2/": dial tcp 192.0.2.1:443: connect: connection refused';

class Room {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly events: string[] = [];
  readonly manager: ImageManager;

  constructor(serializePulls = true) {
    this.manager = new ImageManager({
      clock: this.clock,
      log: silentLog,
      images: this.runtime,
      backoff: new Backoff(this.clock, () => ({ firstMs: 10_000, maxMs: 300_000 })),
      serializePulls,
      event: (_pod, name, type, reason, message) => this.events.push(`${name} ${type} ${reason}: ${message}`),
    });
  }

  ensure(image: string, o: { policy?: PullPolicy; pod?: string; signal?: AbortSignal } = {}): Promise<EnsureResult> {
    const container: Container = { name: 'c', image, imagePullPolicy: o.policy ?? 'IfNotPresent' };
    const desired = toDesiredPod(
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [container] } },
      { uid: (o.pod ?? 'uid-1') as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '' },
    );
    return this.manager.ensure(desired, container, o.signal ?? new AbortController().signal);
  }

  pulls(): number {
    return this.runtime.calls.filter((c) => c.method === 'pullImage').length;
  }
}

const fails = (room: Room, image: string, text = refused) =>
  room.runtime.images.set(image, { state: 'failing', error: new RuntimeError('unknown', text) });

test('an image that is here is used without a pull', async () => {
  const room = new Room();
  const result = await room.ensure('localhost/busybox:1');
  assert.ok(result.ok && result.image.id.startsWith('sha256:'));
  assert.equal(room.pulls(), 0);
  assert.deepEqual(room.events, ['c Normal Pulled: Container image "localhost/busybox:1" already present on machine']);
});

test('two people want one image: one who goes away takes nothing from the other', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/x:1', { state: 'pullable', pullMs: 5_000 });
  const leaves = new AbortController();
  const first = room.manager.pullNow('r.example/x:1', leaves.signal);
  const second = room.manager.pullNow('r.example/x:1', new AbortController().signal);
  await room.clock.advance(1_000);
  leaves.abort();
  await assert.rejects(first);
  await room.clock.advance(10_000);
  assert.equal((await second).ok, true);
  assert.equal(room.pulls(), 1);
});

test('an absent image is pulled and told with its times', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/x:1', { state: 'pullable', pullMs: 1250, username: 'nginx' });
  const pull = room.ensure('r.example/x:1');
  await room.clock.advance(1250);
  const result = await pull;
  assert.ok(result.ok);
  assert.equal(result.image.username, 'nginx');
  assert.deepEqual(room.events, [
    'c Normal Pulling: Pulling image "r.example/x:1"',
    'c Normal Pulled: Successfully pulled image "r.example/x:1" in 1.25s (1.25s including waiting).',
  ]);
});

test('a name without tag is asked for as latest', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/x:latest', { state: 'present' });
  assert.equal((await room.ensure('r.example/x')).ok, true);
});

test('policy Never: an absent image is an answer, no pull', async () => {
  const room = new Room();
  const text = 'Container image "localhost/absent:1" is not present with pull policy of Never';
  assert.deepEqual(await room.ensure('localhost/absent:1', { policy: 'Never' }), { ok: false, reason: 'ErrImageNeverPull', message: text });
  assert.deepEqual(room.events, [`c Warning ErrImageNeverPull: ${text}`]);
  assert.equal(room.pulls(), 0);
});

test('what is no image name says InvalidImageName in the kubelet’s words', async () => {
  const room = new Room();
  const result = await room.ensure('Bad/UPPER:tag');
  assert.ok(!result.ok);
  const text = `Failed to apply default image tag "Bad/UPPER:tag": couldn't parse image name "Bad/UPPER:tag": invalid reference format: repository name (UPPER) must be lowercase`;
  assert.deepEqual([result.reason, result.message], ['InvalidImageName', text]);
  assert.deepEqual(room.events, [`c Warning InspectFailed: ${text}`]);
});

test('an image that cannot be looked at says ImageInspectError', async () => {
  const room = new Room();
  room.runtime.failNext('imageStatus', new RuntimeError('unavailable', 'gone'));
  const result = await room.ensure('localhost/busybox:1');
  assert.deepEqual(result, { ok: false, reason: 'ImageInspectError', message: 'Failed to inspect image "localhost/busybox:1": gone' });
});

test('an image that was pulled and cannot be inspected is not run: its user is not known, and root would be a guess', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/user:1', { state: 'pullable', pullMs: 1000, uid: 1000 });
  const first = room.ensure('r.example/user:1');
  await room.clock.advance(500);
  room.runtime.failNext('imageStatus', new RuntimeError('unavailable', 'gone'));
  await room.clock.advance(1000);
  assert.deepEqual(await first, { ok: false, reason: 'ImageInspectError', message: 'Failed to inspect image "r.example/user:1": gone' });
  const then = await room.ensure('r.example/user:1');
  assert.equal(then.ok && then.image.uid, 1000, 'it is here, and needs no second pull');
  assert.equal(room.runtime.calls.filter((c) => c.method === 'pullImage').length, 1);
});

test('a registry that does not answer is asked by one pod in each back-off slot, not by each of eight', async () => {
  const room = new Room();
  const eight = Array.from({ length: 8 }, (_, i) => `r.example/x${i}:1`);
  for (const image of eight) fails(room, image);
  for (let slot = 1; slot <= 3; slot++) {
    const results = await Promise.all(eight.map((image, i) => room.ensure(image, { pod: `uid-${i}` })));
    assert.equal(room.pulls(), slot);
    assert.ok(results.every((r) => !r.ok && r.waitMs === 10_000 * 2 ** (slot - 1)));
    assert.equal(results.filter((r) => !r.ok && r.reason === 'ErrImagePull').length, 1);
    await room.clock.advance(10_000 * 2 ** (slot - 1));
  }
});

test('a failing pull: ErrImagePull, then ImagePullBackOff with the last error, doubling to 5 min', async () => {
  const room = new Room();
  fails(room, 'r.example/x:1');
  const waits: number[] = [];
  for (let i = 0; i < 7; i++) {
    const failed = await room.ensure('r.example/x:1');
    assert.deepEqual({ ...failed, waitMs: 0 }, { ok: false, reason: 'ErrImagePull', message: refused, waitMs: 0 });
    await room.clock.advance(1000);
    const waiting = await room.ensure('r.example/x:1');
    assert.ok(!waiting.ok);
    assert.equal(waiting.reason, 'ImagePullBackOff');
    assert.equal(waiting.message, `Back-off pulling image "r.example/x:1": ErrImagePull: ${refused}`);
    waits.push((waiting.waitMs ?? 0) + 1000);
    await room.clock.advance(waiting.waitMs ?? 0);
  }
  assert.deepEqual(waits, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  assert.deepEqual(room.events.slice(0, 3), [
    'c Normal Pulling: Pulling image "r.example/x:1"',
    `c Warning Failed: Failed to pull image "r.example/x:1": ${refused}`,
    'c Normal BackOff: Back-off pulling image "r.example/x:1"',
  ]);
});

test('one image’s back-off is not another’s, nor another pod’s', async () => {
  const room = new Room();
  const missing = 'r.example/x:1: not found';
  fails(room, 'r.example/x:1', missing);
  room.runtime.images.set('r.example/y:1', { state: 'pullable' });
  await room.ensure('r.example/x:1');
  assert.equal((await room.ensure('r.example/y:1')).ok, true);
  const other = await room.ensure('r.example/x:1', { pod: 'uid-2' });
  assert.ok(!other.ok && other.reason === 'ErrImagePull');
});

test('pulls come one after the other, and a local image waits behind none', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/slow:1', { state: 'pullable', pullMs: 60_000 });
  room.runtime.images.set('r.example/next:1', { state: 'pullable', pullMs: 1000 });
  const slow = room.ensure('r.example/slow:1', { pod: 'a' });
  await settle();
  const next = room.ensure('r.example/next:1', { pod: 'b' });
  assert.equal((await room.ensure('localhost/busybox:1', { pod: 'c' })).ok, true);
  assert.equal(room.pulls(), 1);
  await room.clock.advance(60_000);
  assert.equal((await slow).ok, true);
  assert.equal(room.pulls(), 2);
  await room.clock.advance(1000);
  assert.equal((await next).ok, true);
  assert.ok(room.events.includes('c Normal Pulled: Successfully pulled image "r.example/next:1" in 1s (1m1s including waiting).'));
});

test('who waited for an image that another pod has pulled meanwhile pulls it not again', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/x:1', { state: 'pullable', pullMs: 5000 });
  const both = [room.ensure('r.example/x:1', { pod: 'a' }), room.ensure('r.example/x:1', { pod: 'b' })];
  await room.clock.advance(5000);
  assert.ok((await Promise.all(both)).every((r) => r.ok));
  assert.equal(room.pulls(), 1);
});

test('without serialising, pulls run beside each other', async () => {
  const room = new Room(false);
  for (const name of ['x', 'y']) room.runtime.images.set(`r.example/${name}:1`, { state: 'pullable', pullMs: 1000 });
  const both = [room.ensure('r.example/x:1'), room.ensure('r.example/y:1')];
  await room.clock.advance(1000);
  assert.ok((await Promise.all(both)).every((r) => r.ok));
});

test('a pod that ends leaves the queue, and its pull is called off; the next one gets its place', async () => {
  const room = new Room();
  for (const name of ['x', 'y', 'z']) room.runtime.images.set(`r.example/${name}:1`, { state: 'pullable', pullMs: 1000 });
  const [first, second] = [new AbortController(), new AbortController()];
  const x = room.ensure('r.example/x:1', { pod: 'a', signal: first.signal });
  const y = room.ensure('r.example/y:1', { pod: 'b', signal: second.signal });
  const z = room.ensure('r.example/z:1', { pod: 'c' });
  await settle();
  second.abort();
  await assert.rejects(y, { name: 'AbortError' });
  first.abort();
  await assert.rejects(x, { name: 'AbortError' });
  await room.clock.advance(1000);
  assert.equal((await z).ok, true);
  assert.ok(!room.events.some((e) => e.includes('Failed')));
});

test('policy Always pulls each time, although the image is here', async () => {
  const room = new Room();
  room.runtime.images.set('r.example/x:1', { state: 'pullable' });
  await room.ensure('r.example/x:1', { policy: 'Always' });
  await room.ensure('r.example/x:1', { policy: 'Always' });
  assert.equal(room.pulls(), 2);
});

test('F2: policy Always and no answer from the registry: the image that is here runs, and says that it is stale', async () => {
  const room = new Room();
  room.runtime.failNext('pullImage', new RuntimeError('unknown', refused));
  for (let i = 0; i < 2; i++) {
    const result = await room.ensure('localhost/busybox:1', { policy: 'Always' });
    assert.ok(result.ok);
    assert.equal(result.stale, refused);
  }
  assert.equal(room.pulls(), 1, 'the registry is not asked again before its back-off has passed');
  await room.clock.advance(10_000);
  const fresh = await room.ensure('localhost/busybox:1', { policy: 'Always' });
  assert.ok(fresh.ok && fresh.stale === undefined);
});

test('policy Always and a registry that says no: the image that is here does not run', async () => {
  const room = new Room();
  room.runtime.failNext('pullImage', new RuntimeError('notFound', 'localhost/busybox:1: not found'));
  const result = await room.ensure('localhost/busybox:1', { policy: 'Always' });
  assert.ok(!result.ok && result.reason === 'ErrImagePull');
});

test('a registry that asks for patience gets it from all pods and images together', async () => {
  const room = new Room();
  fails(room, 'r.example/x:1', 'unexpected status code: 429 Too Many Requests - toomanyrequests: limit reached');
  room.runtime.images.set('r.example/y:1', { state: 'pullable' });
  room.runtime.images.set('other.example/y:1', { state: 'pullable' });
  await room.ensure('r.example/x:1', { pod: 'a' });
  const held = await room.ensure('r.example/y:1', { pod: 'b' });
  assert.ok(!held.ok && held.reason === 'ImagePullBackOff' && held.waitMs === 10_000);
  assert.equal((await room.ensure('other.example/y:1', { pod: 'b' })).ok, true);
  await room.clock.advance(10_000);
  assert.equal((await room.ensure('r.example/y:1', { pod: 'b' })).ok, true);
});
