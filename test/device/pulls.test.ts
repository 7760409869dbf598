/** Pulling on a real containerd from a real registry with a bad proxy before it: what the image manager does, and what the agent tells of it. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { ApiObject, PodUid } from '../../src/api/objects.ts';
import type { Container, PullPolicy } from '../../src/api/v1.ts';
import { Backoff } from '../../src/async/backoff.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { CredentialsFolder } from '../../src/images/credentialsFolder.ts';
import { kernelPlatform } from '../../src/images/kernelPlatform.ts';
import { ImageManager } from '../../src/images/manager.ts';
import { withPull } from '../../src/images/withPull.ts';
import { systemClock } from '../../src/world/clock.ts';
import type { Log } from '../../src/world/log.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type CriProxy, startCriProxy } from './criProxy.ts';
import { type ImageRegistry, registryPassword, registryUser, startImageRegistry, tooManyRequests } from './imageRegistry.ts';
import { busybox2 } from './images.ts';
import { container, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { eventsOf, podsOf, statusOf } from './story.ts';

/** Longer than a busy machine stands still. */
const stallMs = 8000;
/** The first step of the manager's back-off, in which eight pods ask twice; the agent's is 10 s. */
const backoffMs = 6000;
const dockerConfig = (host: string) => JSON.stringify({ auths: { [host]: { username: registryUser, password: registryPassword } } });
const foreign = process.arch === 'x64' ? 'arm64' : 'amd64';
const own = process.arch === 'x64' ? 'amd64' : process.arch;

let plain: ImageRegistry;
let closed: ImageRegistry;
before(async () => {
  [plain, closed] = await Promise.all([startImageRegistry(), startImageRegistry({ htpasswd: true })]);
});
after(async () => {
  await Promise.all([plain?.stop(), closed?.stop()]);
});

function managerStories(): void {
  const lines: string[] = [];
  const line = (nouns: object, sentence: string) => void lines.push(`${sentence} ${JSON.stringify(nouns)}`);
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
  const events: string[] = [];
  const secrets = new Map<string, ApiObject>();
  /** The image of each pull that the runtime was asked for. */
  const pulled: string[] = [];
  let bed: Bed;
  let runtime: CriRuntime;
  let folder: string;
  let manager: ImageManager;

  // a runtime of its own: containerd does not say which pull wrote what, so that one beside it looks like progress
  before(async () => {
    bed = await startBed({ name: 'pulls' });
    folder = mkdtempSync(join(tmpdir(), 'podsched-credentials-'));
    mkdirSync(join(folder, 'credentials.d'));
    runtime = new CriRuntime({ endpoint: bed.endpoint, log });
    const platform = kernelPlatform();
    manager = new ImageManager({
      clock: systemClock,
      log,
      images: withPull(runtime.images, (image, o) => {
        pulled.push(image);
        return runtime.images.pullImage(image, o);
      }),
      content: runtime.images,
      backoff: new Backoff(systemClock, () => ({ firstMs: backoffMs, maxMs: 300_000 })),
      serializePulls: true,
      pullStallMs: stallMs,
      credentials: new CredentialsFolder({ log, dir: join(folder, 'credentials.d') }),
      objects: (_kind, _namespace, name) => secrets.get(name),
      ...(platform && { nodePlatform: platform }),
      event: (_pod, name, type, reason, message) => events.push(`${name ?? ''} ${type} ${reason}: ${message}`),
    });
  });
  after(async () => {
    manager?.stop();
    runtime?.close();
    rmSync(folder, { recursive: true, force: true });
    await bed?.stop();
  });

  let uids = 0;
  const ensure = (image: string, o: { policy?: PullPolicy; signal?: AbortSignal; secrets?: string[] } = {}): Promise<EnsureResult> => {
    const c: Container = { name: 'c', image, imagePullPolicy: o.policy ?? 'IfNotPresent' };
    const imagePullSecrets = (o.secrets ?? []).map((name) => ({ name }));
    const spec = { containers: [c], imagePullSecrets };
    const desired = toDesiredPod(
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: `p${uids}`, namespace: 'default' }, spec },
      { uid: `uid-${uids++}` as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '' },
    );
    return manager.ensure(desired, c, o.signal ?? new AbortController().signal);
  };
  const failed = (result: EnsureResult): string => (result.ok ? 'it is here' : `${result.reason}: ${result.message}`);

  test('a name, a digest, and both: pulled, and found again', async () => {
    const name = await plain.push(undefined, { name: 'plain/app:1' });
    const digest = await plain.digest(name);
    const byDigest = `${plain.host}/plain/app@${digest}`;
    for (const image of [byDigest, `${name}@${digest}`, name]) {
      const result = await ensure(image);
      assert.ok(result.ok, failed(result));
      assert.ok((await ensure(image, { policy: 'Never' })).ok, `${image} is here`);
    }
    const wrong = `${plain.host}/plain/app@sha256:${'0'.repeat(64)}`;
    assert.match(failed(await ensure(wrong)), /^ErrImagePull: .*not found/);
  });

  test('a tag that is not there is named, and is no fault of the registry', async () => {
    assert.match(failed(await ensure(`${plain.host}/plain/app:nowhere`)), /^ErrImagePull: .*plain\/app:nowhere.*not found/);
    assert.ok((await ensure(await plain.push(undefined, { name: 'plain/next:1' }))).ok);
  });

  test('a registry that wants a password gets the node’s, once it is written down; a wrong one is refused and told nowhere', async () => {
    const image = await closed.push(undefined, { name: 'closed/app:1' });
    assert.match(failed(await ensure(image)), /^ErrImagePull: .*(401|authoriz|no basic auth)/i);
    const file = join(folder, 'credentials.d', 'lab.json');
    writeFileSync(file, JSON.stringify({ auths: { [closed.host]: { username: registryUser, password: 'canary-wrong' } } }), {
      mode: 0o600,
    });
    assert.match(failed(await ensure(image)), /tried: credentials\.d\/lab\.json, without credentials/);
    writeFileSync(file, dockerConfig(closed.host), { mode: 0o600 });
    const result = await ensure(image);
    assert.ok(result.ok, failed(result));
    rmSync(file);
  });

  test('the same by a pull secret, tried before anything else', async () => {
    const image = await closed.push(undefined, { name: 'closed/secret:1' });
    const metadata = { name: 'regcred', namespace: 'default' };
    const write = (host: string) =>
      secrets.set('regcred', {
        ...{ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/dockerconfigjson' },
        stringData: { '.dockerconfigjson': dockerConfig(host) },
      });
    write('127.0.*.1');
    assert.match(failed(await ensure(image, { secrets: ['regcred'] })), /401|authoriz|no basic auth/i, 'another port');
    write(`127.*.0.1:${closed.host.split(':')[1]}`);
    const result = await ensure(image, { secrets: ['regcred'] });
    assert.ok(result.ok, failed(result));
    for (const text of [...lines, ...events]) assert.ok(!text.includes(registryPassword) && !text.includes('canary-wrong'), text);
  });

  test('429: eight pods make one pull in each back-off slot, and all run when it is over', async () => {
    const images = await Promise.all(Array.from({ length: 8 }, (_, i) => plain.push(undefined, { name: `busy/x${i}:1` })));
    plain.setFault(tooManyRequests());
    const pulls = () => pulled.filter((image) => images.includes(image)).length;
    const all = () => Promise.all(images.map((image) => ensure(image)));
    for (let slot = 1; slot <= 2; slot++) {
      const results = await all();
      const reasons = results.map((r) => (r.ok ? 'ok' : r.reason)).sort();
      assert.deepEqual(reasons, ['ErrImagePull', ...Array(7).fill('ImagePullBackOff')]);
      assert.equal(pulls(), slot);
      await all();
      assert.equal(pulls(), slot, 'nobody asks in between');
      const [first] = results;
      await sleep((first?.ok === false ? (first.waitMs ?? 0) : 0) + 50);
    }
    plain.setFault(undefined);
    for (const result of await all()) assert.ok(result.ok, failed(result));
  });

  test('a server error, a broken connection and a registry that is gone are told, and the next try goes well', async () => {
    const image = await plain.push(undefined, { name: 'bad/app:1', extraBytes: 400_000 });
    plain.setFault({ does: 'answers', status: 500 });
    assert.match(failed(await ensure(image)), /^ErrImagePull: .*500 Internal Server Error/);
    plain.setFault({ does: 'breaksOff', afterBytes: 0, on: 'blob' });
    assert.match(failed(await ensure(image)), /^ErrImagePull: .*(EOF|unexpected|reset|short)/i);
    plain.setFault(undefined);
    await plain.setGone(true);
    assert.match(failed(await ensure(image)), /^ErrImagePull: .*connection refused/);
    await plain.setGone(false);
    await sleep(backoffMs + 100);
    plain.setFault({ does: 'breaksOff', afterBytes: 150_000, on: 'blob' });
    const result = await ensure(image);
    assert.ok(result.ok, failed(result));
    plain.setFault(undefined);
  });

  test('a certificate that nobody knows is named', async () => {
    const distrusted = await startImageRegistry({ wrongCertificate: true });
    try {
      const image = await distrusted.push();
      assert.match(failed(await ensure(image)), /^ErrImagePull: .*x509: certificate/);
    } finally {
      await distrusted.stop();
    }
  });

  test('a registry that takes the connection and says nothing: ended as stalled; with the image here that one is used', async () => {
    const hanging = await startImageRegistry();
    try {
      const image = await hanging.push(undefined, { name: 'hang/app:1' });
      assert.ok((await ensure(image)).ok);
      hanging.setFault({ does: 'hangs' });
      assert.match(failed(await ensure(`${hanging.host}/hang/other:1`)), /^ErrImagePull: pull stalled: 0 bytes in \d+s$/);
      await until('the proxy to see the client go', 60_000, () => hanging.requests.every((r) => r.over));
      await sleep(backoffMs + 100);
      const stale = await ensure(image, { policy: 'Always' });
      assert.ok(stale.ok, failed(stale));
      assert.match(stale.stale ?? '', /stalled|no answer/);
      assert.ok(events.some((e) => e.startsWith('c Warning ImageStale: ')));
    } finally {
      await hanging.stop();
    }
  });

  test('F4: a pull that stands still in the middle is ended, tells how far it was, and goes well later', async () => {
    const image = await plain.push(undefined, { name: 'stall/app:1', extraBytes: 5_000_000 });
    plain.setFault({ does: 'hangs', afterBytes: 2_500_000, on: 'blob' });
    assert.match(failed(await ensure(image)), /^ErrImagePull: pull stalled: \d{5,} bytes in /);
    plain.setFault(undefined);
    const result = await ensure(image);
    assert.ok(result.ok, failed(result));
  });

  test('who leaves ends its pull: the registry sees the connection close', async () => {
    const image = await plain.push(undefined, { name: 'left/app:1', extraBytes: 6_000_000 });
    plain.setFault({ does: 'slow', bytesPerSecond: 600_000, on: 'blob' });
    plain.forgetRequests();
    const [one, two] = [new AbortController(), new AbortController()];
    const pulls = [ensure(image, { signal: one.signal }), ensure(image, { signal: two.signal })];
    const results = Promise.allSettled(pulls);
    await until('blobs to come', 60_000, () => plain.requests.some((r) => r.kind === 'blob' && r.bytes > 300_000));
    one.abort();
    await sleep(500);
    assert.ok(!plain.requests.some((r) => r.closedEarly), 'the other pod waits for it');
    two.abort();
    await until('the connection to close', 60_000, () => plain.requests.some((r) => r.closedEarly));
    assert.deepEqual(
      (await results).map((r) => r.status),
      ['rejected', 'rejected'],
    );
    plain.setFault(undefined);
    assert.equal((await runtime.images.imageStatus(image)) === undefined, true);
  });

  test('F6: an image for another processor is named after the pull', async () => {
    const image = await plain.push(undefined, { name: 'foreign/app:1', architecture: foreign });
    assert.equal(failed(await ensure(image)), `WrongPlatform: image ${foreign}, node ${own}`);
    assert.equal(failed(await ensure(image, { policy: 'Never' })), `WrongPlatform: image ${foreign}, node ${own}`);
  });

  test('a person’s pull', async () => {
    const image = await plain.push(undefined, { name: 'hand/app:1' });
    const { signal } = new AbortController();
    const result = await manager.pullNow(image, signal);
    assert.ok(result.ok && result.image.tags.includes(image));
    assert.equal((await manager.pullNow(`${image}0`, signal)).ok, false);
  });
}

function agentStories(): void {
  let bed: Bed;
  /** Between the agent and containerd, so that calls can be counted: one pull makes a few requests of the registry. */
  let proxy: CriProxy;
  let agent: Agent;
  let shy: ImageRegistry;
  let busy: ImageRegistry;
  before(async () => {
    [bed, shy, busy] = await Promise.all([startBed({ name: 'pulls-agent' }), startImageRegistry(), startImageRegistry()]);
    proxy = await startCriProxy(join(bed.dir, 'proxy.sock'), bed.socket);
    agent = await startAgent(proxy, { nodeName: 'pulls' });
  });
  after(async () => {
    await agent?.remove();
    await proxy?.close();
    await Promise.all([shy?.stop(), busy?.stop(), bed?.stop()]);
  });

  const drop = (name: string, image: string, more: object = {}, spec: object = {}) =>
    agent.drop(`${name}.yaml`, manifest(pod(name, { containers: [{ ...container('main'), image, ...more }], ...spec })));
  const told = async (name: string) => (await podsOf(agent)).find((p) => p.metadata.name === name);
  const state = async (name: string) => statusOf(await told(name).catch(() => undefined), 'main')?.state;
  const runs = (name: string, timeoutMs = 90_000) =>
    until(`${name} to run`, timeoutMs, async () => (await state(name))?.running !== undefined, 100);
  const waits = (name: string, message: RegExp) =>
    until(
      `${name} to wait with ${message}`,
      60_000,
      async () => {
        const waiting = (await state(name))?.waiting;
        return message.test(`${waiting?.reason}: ${waiting?.message}`);
      },
      100,
    );
  const stale = async (name: string) =>
    ((await told(name))?.status.conditions ?? []).find((c) => c.type === 'podsched.dev/ImageStale')?.message;

  describe('of three registries', { concurrency: true }, () => {
    test('pods with a private image start when their credentials come, by file or by Secret; no password is told anywhere', async () => {
      const [byFile, bySecret] = await Promise.all([
        closed.push(undefined, { name: 'agent/file:1' }),
        closed.push(undefined, { name: 'agent/secret:1' }),
      ]);
      drop('by-secret', bySecret, {}, { imagePullSecrets: [{ name: 'regcred' }] });
      await waits('by-secret', /ErrImagePull|ImagePullBackOff/);
      assert.ok((await eventsOf(agent, 'by-secret')).some((e) => e.includes('Unable to retrieve some image pull secrets (regcred)')));
      const secret = {
        ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'regcred' }, type: 'kubernetes.io/dockerconfigjson' },
        stringData: { '.dockerconfigjson': dockerConfig(closed.host) },
      };
      agent.drop('regcred.yaml', JSON.stringify(secret));
      await runs('by-secret');
      drop('by-file', byFile);
      await waits('by-file', /ErrImagePull|ImagePullBackOff/);
      mkdirSync(join(agent.manifests, 'credentials.d'), { mode: 0o700 });
      writeFileSync(join(agent.manifests, 'credentials.d/lab.json'), dockerConfig(closed.host), { mode: 0o600 });
      await runs('by-file');
      const said = [agent.log(), (await agent.get('/pods')).body, (await agent.get('/events')).body].join('\n');
      assert.ok(!said.includes(registryPassword));
      for (const name of ['by-secret', 'by-file']) agent.removeManifest(`${name}.yaml`);
    });

    test('F2: registry gone: an Always pod runs the image that is here and says so; back: refreshed, and nothing restarts', async () => {
      const image = await shy.push(undefined, { name: 'shy/app:latest' });
      drop('first', image, { imagePullPolicy: 'Always' });
      await runs('first');
      await shy.setGone(true);
      drop('second', image, { imagePullPolicy: 'Always' });
      await runs('second');
      await until('ImageStale to be told', 60_000, async () => (await stale('second')) !== undefined, 100);
      assert.match((await stale('second')) ?? '', /connection refused/);
      const id = statusOf(await told('second'), 'main')?.containerID;
      await shy.push(busybox2, { name: 'shy/app:latest' });
      await shy.setGone(false);
      await until('ImageStale to go', 90_000, async () => (await stale('second')) === undefined, 200);
      const refreshed = (e: string): boolean => e.startsWith('ImageRefreshed: ') && e.includes('has come from its registry');
      await until('that it was refreshed', 45_000, async () => (await eventsOf(agent, 'second')).some(refreshed));
      const after = statusOf(await told('second'), 'main');
      assert.deepEqual([after?.containerID, after?.restartCount], [id, 0]);
      for (const name of ['first', 'second']) agent.removeManifest(`${name}.yaml`);
    });

    test('eight pods on a registry answering 429: one pull in each back-off slot in all, and all run when it is over', async () => {
      const names = Array.from({ length: 8 }, (_, i) => `busy-${i}`);
      const images = await Promise.all(names.map((name) => busy.push(undefined, { name: `busy/${name}:1` })));
      let pulls = 0;
      proxy.listen = (path, request) => {
        if (path.endsWith('/PullImage') && images.some((image) => request.includes(image))) pulls++;
        return undefined;
      };
      busy.setFault(tooManyRequests());
      busy.forgetRequests();
      for (const [i, name] of names.entries()) drop(name, images[i] ?? '');
      for (const name of names) await waits(name, /^(ErrImagePull|ImagePullBackOff): .*429/);
      // at 0 and 10 s, and again at 30 s: the requests of one pull lie close together
      const isFirst = (at: number, i: number): boolean => at - (busy.requests[i - 1]?.at ?? Number.NEGATIVE_INFINITY) > 5000;
      const slots = () => busy.requests.map((r) => r.at).filter(isFirst);
      await until('the second slot', 60_000, () => slots().length >= 2);
      await sleep(5000);
      const counted = pulls;
      await sleep(1000); // what is on its way has come to the registry then
      const seen = slots();
      const apart = seen.slice(1).map((at, i) => at - (seen[i] ?? at));
      const early = apart.filter((ms, i) => ms <= 9_000 * 2 ** i);
      assert.deepEqual(early, [], `${apart}`);
      assert.ok(counted >= 2 && counted <= seen.length, `${counted} pulls in ${seen.length} slots`);
      busy.setFault(undefined);
      for (const name of names) await runs(name, 90_000);
      for (const name of names) agent.removeManifest(`${name}.yaml`);
    });
  });

  test('a removed pod ends its pull, and an edited one begins another', async () => {
    const [slow, quick] = [
      await shy.push(undefined, { name: 'shy/slow:1', extraBytes: 5_000_000 }),
      await shy.push(undefined, { name: 'shy/quick:1' }),
    ];
    const begins = async () => {
      shy.forgetRequests();
      shy.setFault({ does: 'slow', bytesPerSecond: 100_000, on: 'blob' });
      drop('slow', slow);
      await until('blobs to come', 60_000, () => shy.requests.some((r) => r.kind === 'blob' && r.bytes > 20_000)); // of the layer
    };
    const ends = () => until('the connection to close', 60_000, () => shy.requests.some((r) => r.closedEarly));
    await begins();
    agent.removeManifest('slow.yaml');
    await ends();
    await begins();
    drop('slow', quick);
    await ends();
    await runs('slow');
    shy.setFault(undefined);
    agent.removeManifest('slow.yaml');
  });
}

// most of it is waiting for back-offs and stalls: side by side
describe('pulling', { concurrency: true }, () => {
  describe('the image manager on a real runtime', { concurrency: 1 }, managerStories);
  describe('the agent', { concurrency: 1 }, agentStories);
});
