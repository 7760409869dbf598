/** What must not keep an update waiting for ever, nor take a good revision back: power cuts, late Secrets, crashes, cards that are full. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyText, keyText } from '../../src/api/objects.ts';
import type { ToldPod } from '../../src/api/status.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { World } from './world.ts';

const key: KeyText = keyText({ kind: 'Pod', namespace: 'default', name: 'web' });

interface Text {
  readonly tag: number | string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly lines?: readonly string[];
  readonly more?: string;
}

const text = ({ tag, annotations = {}, lines = [], more = '' }: Text): string =>
  [
    'apiVersion: v1',
    'kind: Pod',
    `metadata: {name: web, annotations: ${JSON.stringify(annotations)}}`,
    'spec:',
    '  terminationGracePeriodSeconds: 2',
    ...lines.map((l) => `  ${l}`),
    '  containers:',
    `  - {name: app, image: "localhost/busybox:${tag}"${more === '' ? '' : `, ${more}`}}`,
    '',
  ].join('\n');

async function running(first: Text, world = new World()): Promise<World> {
  world.folder.files.set('web.yaml', text(first));
  await world.start();
  await world.advance(30);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  return world;
}

const image = (w: World): string | undefined => w.runtime.find('web', 'app')?.config.userSpecifiedImage.split(':').at(-1);
const told = (w: World): string => `${w.sync('web')?.phase} ${w.sync('web')?.reason}`;
const edit = (w: World, t: Text): void => w.folder.write('web.yaml', text(t));
const back = { 'podsched.dev/rollback': '1m' };

test('F8: a new revision that crashes soon after each start goes back, although nothing asks whether it is ready', async () => {
  const world = new World();
  world.runtime.onStart((_, c) => (c.userSpecifiedImage.endsWith(':2') ? { exitAfterMs: 1_500, exitCode: 1 } : {}));
  const w = await running({ tag: 1, annotations: back }, world);
  edit(w, { tag: 2, annotations: back });
  await w.advance(90);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
});

test('a pod that is moved off the node by its selector does not come back by its rollback', async () => {
  const w = await running({ tag: 1, annotations: back });
  edit(w, { tag: 1, annotations: back, lines: ['nodeSelector: {disk: nvme}'] });
  await w.advance(200);
  assert.deepEqual([w.runtime.running(), told(w)], [[], 'Failed NodeAffinity']);
});

test('an update whose pull secret comes later is pulled within seconds of its coming', async () => {
  const w = await running({ tag: 1 });
  w.runtime.images.set('localhost/busybox:private', {
    state: 'failing',
    error: new RuntimeError('unknown', 'pull access denied: 401 Unauthorized'),
  });
  edit(w, { tag: 'private', lines: ['imagePullSecrets: [{name: reg}]'] });
  await w.advance(1_000);
  assert.equal(w.sync('web')?.phase, 'UpdateBlocked');
  w.runtime.images.set('localhost/busybox:private', { state: 'pullable' });
  const auths = Buffer.from(JSON.stringify({ auths: { localhost: { username: 'u', password: 'secret' } } })).toString('base64');
  w.folder.write(
    'reg.yaml',
    `apiVersion: v1\nkind: Secret\nmetadata: {name: reg}\ntype: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: ${auths}}\n`,
  );
  await w.advance(10);
  assert.deepEqual([image(w), told(w)], ['private', 'Running Ready']);
});

test('an update that waits takes nothing back of what is said of the image that runs', async () => {
  const world = new World();
  world.runtime.images.set('localhost/busybox:1', { state: 'present' });
  world.runtime.failNext('pullImage', new RuntimeError('unknown', 'dial tcp: connection refused'), 1000);
  const w = await running({ tag: 1, more: 'imagePullPolicy: Always' }, world);
  const stale = () => w.pod('web')?.status.conditions?.find((c) => c.type === 'podsched.dev/ImageStale')?.message;
  const before = stale();
  assert.match(before ?? '', /busybox:1/);
  edit(w, { tag: 'missing' });
  await w.advance(30);
  assert.deepEqual([w.sync('web')?.phase, stale()], ['UpdateBlocked', before]);
});

test('an edit that a full card refused is not lost when its pod is judged again for another reason', async () => {
  const w = await running({ tag: 1 });
  const put = w.stateStore.put.bind(w.stateStore);
  w.stateStore.put = async () => Promise.reject(new Error('no space left on device'));
  edit(w, { tag: 2 });
  await w.advance(5);
  const again = w.kubelet.config.retryBlocked([key]);
  await w.advance(5);
  await again;
  assert.equal(image(w), '1');
  w.stateStore.put = put;
  await w.advance(25);
  assert.deepEqual([image(w), told(w)], ['2', 'Running Ready']);
});

test('an agent restart forgets no stale image: it stays told, and is refreshed when its registry is back', async () => {
  const world = new World();
  const pull = world.runtime.pullImage.bind(world.runtime);
  world.runtime.pullImage = async () => Promise.reject(new RuntimeError('unknown', 'dial tcp: connection refused'));
  const w = await running({ tag: 1, more: 'imagePullPolicy: Always' }, world);
  const isStale = (pod: ToldPod | undefined) => pod?.status.conditions?.some((c) => c.type === 'podsched.dev/ImageStale') === true;
  assert.equal(isStale(w.pod('web')), true);
  const seen: boolean[] = [];
  w.onTold.push((topic, payload) => {
    if (topic.includes('/pods/') && payload !== undefined) seen.push(isStale(JSON.parse(payload) as ToldPod));
  });
  await w.restart();
  await w.advance(30);
  assert.deepEqual([...new Set(seen), isStale(w.pod('web'))], [true, true]);
  w.runtime.pullImage = pull;
  await w.advance(320);
  assert.equal(isStale(w.pod('web')), false);
  await w.restart();
  await w.advance(30);
  assert.equal(isStale(w.pod('web')), false);
});
