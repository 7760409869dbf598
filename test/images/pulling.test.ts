/** What one pod's pull has to do with others', with credentials, with time, and with the node it is for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { ApiObject, PodUid } from '../../src/api/objects.ts';
import type { Container, PullPolicy } from '../../src/api/v1.ts';
import { Backoff } from '../../src/async/backoff.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import { type ImageInfo, type ImageService, type Ingest, type PullOptions, RuntimeError } from '../../src/container/runtime.ts';
import { readDockerConfig } from '../../src/images/credentials.ts';
import { ImageManager, type ImageManagerDeps } from '../../src/images/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

const refused = 'failed to do request: Head "https://r.example/v2/": dial tcp 192.0.2.1:443: connect: connection refused';
const tooMany = 'unexpected status code [manifests 1]: 429 Too Many Requests - toomanyrequests: limit reached';
const unauthorized = 'failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized';

/** What a registry does with one pull; undefined: the image is there. Never resolves: it hangs. */
type Registry = (image: string, o: PullOptions) => Promise<void> | void;

class Room {
  readonly clock = new FakeClock();
  readonly events: string[] = [];
  readonly pulls: { readonly image: string; readonly auth: PullOptions['auth']; aborted: boolean }[] = [];
  readonly here = new Map<string, Partial<ImageInfo>>();
  readonly changed: string[] = [];
  readonly pods = new Map<string, ReturnType<typeof toDesiredPod>>();
  readonly secrets = new Map<string, ApiObject>();
  ingests: () => readonly Ingest[] = () => [];
  registry: Registry = () => undefined;
  readonly manager: ImageManager;

  constructor(o: Partial<ImageManagerDeps> = {}) {
    const none = () => Promise.reject(new Error('not asked'));
    const images: ImageService = {
      imageStatus: async (name) => this.#info(name),
      pullImage: async (image, options = {}) => {
        const pull = { image, auth: options.auth, aborted: false };
        this.pulls.push(pull);
        options.signal?.addEventListener('abort', () => {
          pull.aborted = true;
        });
        const gone = new Promise<never>((_, reject) => options.signal?.addEventListener('abort', () => reject(options.signal?.reason)));
        await Promise.race([this.registry(image, options), gone]);
        if (!this.here.has(image)) this.here.set(image, {});
        return 'id';
      },
      listImages: none,
      removeImage: none,
      imageFilesystems: none,
    };
    this.manager = new ImageManager({
      clock: this.clock,
      log: silentLog,
      images,
      backoff: new Backoff(this.clock, () => ({ firstMs: 10_000, maxMs: 300_000 })),
      serializePulls: true,
      content: { ingests: async () => this.ingests() },
      objects: (_kind, namespace, name) => this.secrets.get(`${namespace}/${name}`),
      desired: (uid) => this.pods.get(uid),
      staleChanged: (uid) => this.changed.push(uid),
      event: (pod, name, type, reason, message) => this.events.push(`${pod.uid}/${name ?? ''} ${type} ${reason}: ${message}`),
      ...o,
    });
  }

  ensure(image: string, o: { policy?: PullPolicy; pod?: string; signal?: AbortSignal; secrets?: string[] } = {}): Promise<EnsureResult> {
    const container: Container = { name: 'c', image, imagePullPolicy: o.policy ?? 'IfNotPresent' };
    const imagePullSecrets = (o.secrets ?? []).map((name) => ({ name }));
    const desired = toDesiredPod(
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [container], imagePullSecrets } },
      { uid: (o.pod ?? 'a') as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '' },
    );
    this.pods.set(desired.uid, desired);
    return this.manager.ensure(desired, container, o.signal ?? new AbortController().signal);
  }

  /** Events of these reasons. */
  told(...reasons: string[]): string[] {
    return this.events.filter((e) => reasons.some((r) => e.includes(` ${r}: `)));
  }

  #info(name: string): ImageInfo | undefined {
    const info = this.here.get(name);
    return info && { id: 'sha256:1', tags: [name], digests: [], pinned: false, username: '', ...info };
  }
}

const fails =
  (text: string): Registry =>
  () =>
    Promise.reject(new RuntimeError('unknown', text));
const hangs: Registry = () => new Promise(() => {});
const text = (result: EnsureResult): string => (result.ok ? 'ok' : `${result.reason}: ${result.message}`);
const credentials = (...entries: [string, string, string][]) => ({
  all: async () =>
    readDockerConfig(
      JSON.stringify({ auths: Object.fromEntries(entries.map(([host, username, password]) => [host, { username, password }])) }),
      'credentials.d/x.json',
    ).credentials,
  problems: () => [],
});
const pullSecret = (name: string, username: string, password: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'default' },
  type: 'kubernetes.io/dockerconfigjson',
  stringData: { '.dockerconfigjson': JSON.stringify({ auths: { 'r.example': { username, password } } }) },
});

test('pull secrets are tried first, then the node’s own credentials, then none; the first that is taken ends it', async () => {
  const room = new Room({
    credentials: credentials(['r.example', 'node', 'n'], ['r.example/team', 'team', 't'], ['o.example', 'other', 'o']),
  });
  room.secrets.set('default/regcred', pullSecret('regcred', 'pod', 'p'));
  room.registry = (_image, { auth }) => (auth === undefined ? undefined : Promise.reject(new RuntimeError('unknown', unauthorized)));
  assert.equal(text(await room.ensure('r.example/team/app:1', { secrets: ['regcred'] })), 'ok');
  assert.deepEqual(
    room.pulls.map((p) => p.auth?.username),
    ['pod', 'team', 'node', undefined],
  );
});

test('when all are refused the answer names what was tried, and no password', async () => {
  const room = new Room({ credentials: credentials(['r.example', 'node', 'canary-2']) });
  room.secrets.set('default/regcred', pullSecret('regcred', 'pod', 'canary-1'));
  room.registry = (_image, { auth }) => Promise.reject(new RuntimeError('unknown', `${unauthorized} (it was shown ${auth?.password})`));
  const result = await room.ensure('r.example/app:1', { secrets: ['regcred'] });
  assert.equal(
    text(result),
    `ErrImagePull: ${unauthorized} (it was shown …) (tried: Secret regcred, credentials.d/x.json, without credentials)`,
  );
  assert.ok(!room.events.join('\n').includes('canary'));
});

test('a registry that does not answer is not shown the next credential', async () => {
  const room = new Room({ credentials: credentials(['r.example', 'a', 'a'], ['*.example', 'b', 'b']) });
  room.registry = fails(refused);
  await room.ensure('r.example/app:1');
  assert.equal(room.pulls.length, 1);
});

test('a pull secret that is missing is told as the kubelet tells it, and the pull goes on', async () => {
  const room = new Room();
  assert.equal(text(await room.ensure('r.example/app:1', { secrets: ['one', 'two'] })), 'ok');
  assert.deepEqual(room.told('FailedToRetrieveImagePullSecret'), [
    'a/ Warning FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (one, two); attempting to pull the image may not succeed.',
  ]);
});

test('a pull secret of another type says so', async () => {
  const room = new Room();
  room.secrets.set('default/tls', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls', namespace: 'default' }, type: 'Opaque' });
  await room.ensure('r.example/app:1', { secrets: ['tls'] });
  assert.match(room.told('FailedToRetrieveImagePullSecret').join(), /tls cannot be used as it is: is of type Opaque, not of kubernetes/);
});

test('a refusal names a file of credentials that cannot be read: it may be why', async () => {
  const problems = () => [{ file: 'credentials.d/x.json', message: 'is no JSON: line 1, column 2' }];
  const room = new Room({ credentials: { all: async () => [], problems } });
  room.registry = fails(unauthorized);
  assert.equal(
    text(await room.ensure('r.example/app:1')),
    `ErrImagePull: ${unauthorized} (credentials.d/x.json is no JSON: line 1, column 2)`,
  );
});

test('a corrected credential is tried at once: the back-off is of what was refused', async () => {
  const room = new Room();
  room.registry = (_image, { auth }) =>
    auth?.password === 'right' ? undefined : Promise.reject(new RuntimeError('unknown', unauthorized));
  room.secrets.set('default/regcred', pullSecret('regcred', 'pod', 'wrong'));
  assert.match(text(await room.ensure('r.example/app:1', { secrets: ['regcred'] })), /^ErrImagePull/);
  assert.match(text(await room.ensure('r.example/app:1', { secrets: ['regcred'] })), /^ImagePullBackOff/);
  room.secrets.set('default/regcred', pullSecret('regcred', 'pod', 'right'));
  assert.equal(text(await room.ensure('r.example/app:1', { secrets: ['regcred'] })), 'ok');
});

test('two pods that want one image at once share its pull; it ends only when both are gone', async () => {
  const room = new Room();
  room.registry = hangs;
  const [first, second] = [new AbortController(), new AbortController()];
  const a = room.ensure('r.example/x:1', { pod: 'a', signal: first.signal });
  const b = room.ensure('r.example/x:1', { pod: 'b', signal: second.signal });
  await settle();
  assert.equal(room.pulls.length, 1);
  first.abort();
  await assert.rejects(a, { name: 'AbortError' });
  await settle();
  assert.equal(room.pulls[0]?.aborted, false, 'the other one waits for it');
  second.abort();
  await assert.rejects(b, { name: 'AbortError' });
  await settle();
  assert.equal(room.pulls[0]?.aborted, true);
  room.registry = () => undefined;
  assert.equal(text(await room.ensure('r.example/x:1', { pod: 'c' })), 'ok', 'an ended pull is nobody’s');
});

test('who joins a pull under way hears of it as if it were its own', async () => {
  const room = new Room();
  room.registry = () => room.clock.sleep(5000);
  const a = room.ensure('r.example/x:1', { pod: 'a' });
  await room.clock.advance(2000);
  const b = room.ensure('r.example/x:1', { pod: 'b' });
  await room.clock.advance(3000);
  assert.deepEqual([text(await a), text(await b)], ['ok', 'ok']);
  assert.equal(room.pulls.length, 1);
  assert.equal(room.told('Pulling').length, 2);
  assert.match(room.told('Pulled').join('\n'), /a\/c .*in 5s \(5s including waiting\)(.|\n)*b\/c .*in 5s \(3s including waiting\)/);
});

test('the same image with other credentials is another pull: one pod’s credentials serve no other', async () => {
  const room = new Room({ serializePulls: false });
  room.secrets.set('default/regcred', pullSecret('regcred', 'pod', 'p'));
  room.registry = () => room.clock.sleep(1000);
  const both = [room.ensure('r.example/x:1', { pod: 'a', secrets: ['regcred'] }), room.ensure('r.example/x:1', { pod: 'b' })];
  await room.clock.advance(1000);
  await Promise.all(both);
  assert.deepEqual(room.pulls.map((p) => p.auth?.username).sort(), ['pod', undefined]);
});

test('eight pods on a registry answering 429: one pull in each back-off slot, also side by side and with a pause', async () => {
  for (const serializePulls of [true, false]) {
    const room = new Room({ serializePulls });
    room.registry = fails(tooMany);
    const eight = Array.from({ length: 8 }, (_, i) => i);
    const all = () => Promise.all(eight.map((i) => room.ensure(`r.example/x${i}:1`, { pod: `p${i}` })));
    // side by side nobody knows at the first time
    await (serializePulls ? all() : room.ensure('r.example/x0:1', { pod: 'p0' }));
    assert.equal(room.pulls.length, 1);
    for (let slot = 2; slot <= 5; slot++) {
      await room.clock.advance(10_000 * 2 ** (slot - 2) - 1000);
      await all();
      assert.equal(room.pulls.length, slot - 1, 'not before its time');
      await room.clock.advance(1000);
      await all();
      assert.equal(room.pulls.length, slot);
    }
    await room.clock.advance(300_000);
    room.registry = () => undefined;
    assert.ok((await all()).every((r) => r.ok));
  }
});

test('pulls that failed side by side are one step of their registry’s back-off', async () => {
  const room = new Room({ serializePulls: false });
  room.registry = async () => {
    await room.clock.sleep(100);
    throw new RuntimeError('unknown', tooMany);
  };
  const all = ['x', 'y', 'z'].map((n) => room.ensure(`r.example/${n}:1`, { pod: n }));
  await room.clock.advance(100);
  for (const result of await Promise.all(all)) assert.ok(!result.ok && result.waitMs === 10_000);
});

test('Retry-After is kept where the runtime’s text has it', async () => {
  const room = new Room();
  room.registry = fails(`${tooMany}, retry-after: 90`);
  const result = await room.ensure('r.example/x:1');
  assert.ok(!result.ok && result.waitMs === 90_000);
  await room.clock.advance(89_000);
  assert.match(text(await room.ensure('r.example/y:1', { pod: 'b' })), /^ImagePullBackOff/);
  await room.clock.advance(1000);
  room.registry = () => undefined;
  assert.equal(text(await room.ensure('r.example/y:1', { pod: 'b' })), 'ok');
});

test('so many pulls at once as are allowed', async () => {
  const room = new Room({ serializePulls: false, parallelPulls: 2 });
  room.registry = hangs;
  for (const name of ['x', 'y', 'z']) void room.ensure(`r.example/${name}:1`, { pod: name });
  await settle();
  assert.deepEqual(
    room.pulls.map((p) => p.image),
    ['r.example/x:1', 'r.example/y:1'],
  );
});

test('F2: Always, the image here, and a registry that hangs: it runs after ten seconds, and the pull is ended', async () => {
  const room = new Room();
  room.here.set('r.example/x:1', {});
  room.registry = hangs;
  const result = room.ensure('r.example/x:1', { policy: 'Always' });
  await room.clock.advance(9999);
  assert.equal(room.pulls[0]?.aborted, false);
  await room.clock.advance(1);
  assert.deepEqual(await result, {
    ok: true,
    image: { id: 'sha256:1', tags: ['r.example/x:1'], digests: [], pinned: false, username: '' },
    stale: 'no answer in 10s',
  });
  await settle();
  assert.equal(room.pulls[0]?.aborted, true);
  assert.deepEqual(room.manager.stale('a' as PodUid), [{ container: 'c', image: 'r.example/x:1', why: 'no answer in 10s' }]);
  assert.deepEqual(room.told('ImageStale'), [
    'a/c Warning ImageStale: Image "r.example/x:1" could not be refreshed; the one that is here is used: no answer in 10s',
  ]);
});

test('eight such pods on a hanging registry all run after ten seconds, not one after the other', async () => {
  const room = new Room();
  room.registry = hangs;
  const all = Array.from({ length: 8 }, (_, i) => {
    room.here.set(`r.example/x${i % 4}:1`, {});
    return room.ensure(`r.example/x${i % 4}:1`, { policy: 'Always', pod: `p${i}` });
  });
  await room.clock.advance(10_000);
  assert.ok((await Promise.all(all)).every((r) => r.ok && r.stale !== undefined));
  assert.equal(room.pulls.length, 1);
});

test('a pull that moves is waited for, however long it takes', async () => {
  const room = new Room();
  room.here.set('r.example/x:1', {});
  room.registry = () => room.clock.sleep(90_000);
  const began = room.clock.monotonic();
  room.ingests = () => [{ ref: 'layer-1', offsetBytes: (room.clock.monotonic() - began) * 1000, totalBytes: 120_000_000 }];
  const result = room.ensure('r.example/x:1', { policy: 'Always' });
  await room.clock.advance(90_000);
  assert.deepEqual((await result).ok && Object.hasOwn(await result, 'stale'), false);
  assert.deepEqual(
    room.told('PullProgress').map((e) => e.slice(e.indexOf(':') + 2)),
    ['Pulling image "r.example/x:1": 30 MB of 120 MB', 'Pulling image "r.example/x:1": 60 MB of 120 MB'],
    'at most one in thirty seconds',
  );
});

test('a stale image is refreshed in the background, with back-off, and nothing is restarted for it', async () => {
  const room = new Room();
  room.here.set('r.example/x:1', {});
  room.registry = fails(refused);
  await room.ensure('r.example/x:1', { policy: 'Always' });
  assert.deepEqual(room.changed, ['a']);
  await room.clock.advance(10_000 + 20_000 + 40_000 - 1);
  assert.equal(room.pulls.length, 3);
  room.registry = () => void room.here.set('r.example/x:1', { id: 'sha256:2' });
  await room.clock.advance(60_000);
  assert.equal(room.pulls.length, 4);
  assert.deepEqual(room.manager.stale('a' as PodUid), []);
  assert.deepEqual(room.changed, ['a', 'a']);
  assert.deepEqual(room.told('ImageRefreshed'), [
    'a/c Normal ImageRefreshed: Image "r.example/x:1" has come from its registry; it is used from the next start on',
  ]);
  await room.clock.advance(3_600_000);
  assert.equal(room.pulls.length, 4, 'and that is all');
  assert.equal(room.clock.sleeping, 0);
});

test('a stale image of a pod that is gone, or names another one now, is left alone', async () => {
  const room = new Room();
  room.here.set('r.example/x:1', {});
  room.registry = fails(refused);
  await room.ensure('r.example/x:1', { policy: 'Always' });
  room.pods.delete('a');
  await room.clock.advance(600_000);
  assert.equal(room.pulls.length, 1);
  assert.equal(room.clock.sleeping, 0);
});

test('a stale image that is fresh at the next start is not stale any more', async () => {
  const room = new Room();
  room.here.set('r.example/x:1', { id: 'sha256:1' });
  room.registry = fails(refused);
  await room.ensure('r.example/x:1', { policy: 'Always' });
  room.registry = () => undefined;
  await room.clock.advance(9999);
  room.pods.clear();
  await room.clock.advance(1);
  assert.deepEqual(room.manager.stale('a' as PodUid), []);
  assert.equal(text(await room.ensure('r.example/x:1', { policy: 'Always' })), 'ok');
});

test('F4: a pull that stands still is ended, counts as failed, and the next one gets twice the time', async () => {
  const room = new Room();
  room.registry = hangs;
  const first = room.ensure('r.example/x:1');
  await room.clock.advance(130_000);
  assert.equal(text(await first), 'ErrImagePull: pull stalled: 0 bytes in 2m0s');
  assert.equal(room.pulls[0]?.aborted, true);
  await room.clock.advance(10_000);
  const second = room.ensure('r.example/x:1');
  await room.clock.advance(250_000);
  assert.equal(text(await second), 'ErrImagePull: pull stalled: 0 bytes in 4m0s');
});

test('a runtime without a content service: no progress, no stall, and ten seconds for Always', async () => {
  const unimplemented = () => Promise.reject(new RuntimeError('unimplemented', 'unknown service'));
  const room = new Room({ content: { ingests: unimplemented } });
  room.registry = () => room.clock.sleep(3_000_000);
  const pull = room.ensure('r.example/x:1');
  await room.clock.advance(3_000_000);
  assert.equal(text(await pull), 'ok');
  room.registry = hangs;
  const always = room.ensure('r.example/x:1', { policy: 'Always' });
  await room.clock.advance(10_000);
  assert.equal((await always).ok, true);
});

test('F6: an image for another processor is named, and is not pulled again and again', async () => {
  const room = new Room({ nodePlatform: { os: 'linux', architecture: 'arm64' } });
  room.registry = (image) => void room.here.set(image, { platform: { os: 'linux', architecture: 'amd64' } });
  const first = await room.ensure('r.example/x:1');
  assert.equal(text(first), 'WrongPlatform: image amd64, node arm64');
  assert.ok(!first.ok && first.waitMs === 600_000);
  for (let minute = 1; minute < 10; minute++) {
    await room.clock.advance(60_000);
    assert.equal(text(await room.ensure('r.example/x:1')), 'WrongPlatform: image amd64, node arm64');
  }
  assert.equal(room.pulls.length, 1);
  await room.clock.advance(60_000);
  room.registry = (image) => void room.here.set(image, { platform: { os: 'linux', architecture: 'arm64' } });
  assert.equal(text(await room.ensure('r.example/x:1')), 'ok', 'the tag has a build for this node now');
});

test('an image for another processor that was here is pulled once, and stays wrong when that fails', async () => {
  const room = new Room({ nodePlatform: { os: 'linux', architecture: 'arm64' } });
  room.here.set('r.example/x:1', { platform: { os: 'linux', architecture: 'amd64' } });
  assert.equal(text(await room.ensure('r.example/x:1', { policy: 'Never' })), 'WrongPlatform: image amd64, node arm64');
  assert.equal(room.pulls.length, 0);
  room.registry = fails(refused);
  assert.equal(text(await room.ensure('r.example/x:1', { pod: 'b' })), 'WrongPlatform: image amd64, node arm64');
  assert.equal(text(await room.ensure('r.example/x:1', { policy: 'Always', pod: 'c' })), 'WrongPlatform: image amd64, node arm64');
  assert.equal(room.pulls.length, 1);
});

test('a tag of many builds without one for this node says WrongPlatform', async () => {
  const room = new Room({ nodePlatform: { os: 'linux', architecture: 'arm64' } });
  room.registry = fails('failed to pull and unpack image "r.example/x:1": no match for platform in manifest: not found');
  const result = await room.ensure('r.example/x:1');
  assert.match(text(result), /^WrongPlatform: no build of the image is for this node, arm64: .*no match for platform in manifest/);
  assert.ok(!result.ok && result.waitMs === 600_000);
});

test('a person’s pull uses the node’s credentials, asks at once, and says how it went', async () => {
  const room = new Room({ credentials: credentials(['r.example', 'node', 'n']) });
  const { signal } = new AbortController();
  room.registry = fails(tooMany);
  await room.ensure('r.example/x:1');
  assert.deepEqual(await room.manager.pullNow('r.example/x:1', signal), { ok: false, reason: 'ErrImagePull', message: tooMany });
  room.registry = () => undefined;
  const pulled = await room.manager.pullNow('r.example/x', signal);
  assert.ok(pulled.ok && pulled.image.id === 'sha256:1');
  assert.deepEqual([room.pulls.at(-1)?.image, room.pulls.at(-1)?.auth?.username], ['r.example/x:latest', 'node']);
  assert.equal((await room.manager.pullNow('Bad/UPPER', signal)).ok, false);
  room.registry = hangs;
  const stop = new AbortController();
  const ended = room.manager.pullNow('r.example/y:1', stop.signal);
  await settle();
  stop.abort();
  await assert.rejects(ended, { name: 'AbortError' });
  await settle();
  assert.equal(room.pulls.at(-1)?.aborted, true);
});
