/** Field cases C6, C7 and C14 on the whole agent: another release, a runtime with words of its own, restarts without number. Nothing is touched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { annotations } from '../../src/container/words.ts';
import type { FakeMethod } from '../fakes/fakeMachine.ts';
import { manifest, World } from './world.ts';

const calls = (w: World, method: FakeMethod) => w.runtime.calls.filter((c) => c.method === method);
const container = (name: string, more = '') => `{name: ${name}, image: "localhost/busybox:1"${more}}`;

/** Five pods of five kinds: plain, two containers with limits, init and sidecar, on the host's network, a job that has ended. */
const five: Readonly<Record<string, string>> = {
  'web.yaml': manifest('web', { labels: { app: 'web' } }),
  'two.yaml': manifest('two', { containers: [container('a', ', resources: {limits: {memory: 64Mi, cpu: "0.5"}}'), container('b')] }),
  'side.yaml': manifest('side', {
    lines: ['initContainers:', `- ${container('first', ', command: [exit]')}`, `- ${container('log', ', restartPolicy: Always')}`],
  }),
  'host.yaml': manifest('host', {
    lines: ['hostNetwork: true'],
    containers: [container('app', ', ports: [{containerPort: 80}], securityContext: {privileged: true}')],
  }),
  'job.yaml': manifest('job', { lines: ['restartPolicy: Never'], containers: [container('app', ', command: [exit]')] }),
};
const runningFive = ['host/app', 'side/app', 'side/log', 'two/a', 'two/b', 'web/app'];

async function withFive(world = new World()): Promise<World> {
  world.runtime.onStart((_, { command }) => (command[0] === 'exit' ? { exitAfterMs: 100, exitCode: 0 } : {}));
  for (const [name, text] of Object.entries(five)) world.folder.files.set(name, text);
  await world.start();
  await world.advance(60);
  assert.deepEqual(world.runtime.running(), runningFive);
  assert.equal(world.sync('job')?.phase, 'Completed');
  return world;
}

/** Everything that is told of pods, without the stamps of telling. */
const told = (w: World) =>
  w
    .toldPods()
    .map((p) => [p.metadata.name, p.metadata.uid, p.status])
    .sort();

/** What is written on sandboxes and containers in another scheme: by a later release, or by one that is no longer known. */
function rewriteHashes(world: World, rewrite: (hash: string) => string | undefined): void {
  const records = [...world.runtime.sandboxes.values(), ...world.runtime.containers.values()];
  for (const { config } of records) {
    const written = config.annotations as Record<string, string>;
    for (const name of [annotations.podHash, annotations.ourContainerHash]) {
      const hash = written[name];
      if (hash === undefined) continue;
      const next = rewrite(hash);
      if (next === undefined) delete written[name];
      else written[name] = next;
    }
  }
}

/** What a later release keeps in stateDir: revisions, hashes and fields of its own. */
function rewriteState(world: World, scheme: string): void {
  for (const [key, text] of world.stateStore.entries) {
    const value = JSON.parse(text) as Record<string, unknown>;
    if (key.startsWith('completions/')) value.workHash = `${scheme}:feedfeedfeed`;
    if (key.startsWith('objects/')) {
      value.newField = { of: 'a later release' };
      for (const c of value.candidates as Record<string, unknown>[]) {
        c.revision = 'feedfeedfeed';
        const pod = c.object as { spec: Record<string, unknown> };
        pod.spec.newlyDefaulted = 'yes';
      }
    }
    if (key.startsWith('adopted/')) world.stateStore.entries.set(key, JSON.stringify(`${scheme}:feedfeedfeed`));
    else world.stateStore.entries.set(key, JSON.stringify(value));
  }
}

const schemes: readonly (readonly [string, (hash: string) => string | undefined])[] = [
  ['a newer scheme', (h) => h.replace(/^1:/, '2:').replace(/[0-9a-f]{12}$/, 'feedfeedfeed')],
  ['a scheme nobody knows', () => 'v9-somehow'],
  ['no hash at all', () => undefined],
];

for (const [what, rewrite] of schemes) {
  for (const checkpoint of ['kept', 'of the other release', 'lost', 'unreadable'] as const) {
    test(`C6: five pods made with ${what}, the checkpoint ${checkpoint}: 0 restarts, over many agent restarts and a label edit`, async () => {
      const world = await withFive();
      const before = world.runtime.deeds.length;
      const was = told(world);
      world.kill();
      rewriteHashes(world, rewrite);
      if (checkpoint === 'of the other release') rewriteState(world, '2');
      for (const key of [...world.stateStore.entries.keys()].filter((k) => /^(objects|config)\//.test(k))) {
        if (checkpoint === 'lost') world.stateStore.entries.delete(key);
        if (checkpoint === 'unreadable') world.stateStore.entries.set(key, '{"torn');
      }
      await world.start();
      await world.advance(130);
      for (let i = 0; i < 3; i++) {
        await world.restart();
        await world.advance(70);
      }
      world.folder.write('web.yaml', manifest('web', { labels: { app: 'other' } }));
      await world.advance(10);
      world.folder.write('web.yaml', manifest('web', { labels: { app: 'web' } }));
      await world.advance(130);
      assert.deepEqual(world.runtime.deeds.slice(before), []);
      assert.deepEqual(told(world), was);
      const adopted = world.events.filter((e) => e.reason === 'Adopted').map((e) => `${e.involvedObject.name} ${e.message}`);
      assert.equal(new Set(adopted).size, adopted.length, 'each is told as adopted once');
      assert.ok(adopted.length > 0);
    });
  }
}

test('C6: after an upgrade an edit is an edit again: the one container it names is replaced, and no other', async () => {
  const world = await withFive();
  world.kill();
  rewriteHashes(world, (h) => h.replace(/^1:/, '2:'));
  rewriteState(world, '2');
  await world.start();
  await world.advance(70);
  const before = world.runtime.deeds.length;
  const b = world.runtime.find('two', 'b')?.id;
  const a = '{name: a, image: "localhost/busybox:2", resources: {limits: {memory: 64Mi, cpu: "0.5"}}}';
  world.folder.write('two.yaml', manifest('two', { containers: [a, container('b')] }));
  await world.advance(10);
  assert.equal(world.runtime.find('two', 'a')?.config.userSpecifiedImage, 'localhost/busybox:2');
  assert.equal(world.runtime.find('two', 'b')?.id, b);
  assert.deepEqual(
    world.runtime.deeds.slice(before).filter((d) => d !== 'removeContainer'),
    ['stopContainer', 'createContainer', 'startContainer'],
  );
});

test('C6: there and back again: upgraded, edited, downgraded: only the edit restarts something', async () => {
  const world = await withFive();
  world.kill();
  rewriteHashes(world, (h) => h.replace(/^1:/, '2:'));
  rewriteState(world, '2');
  await world.start();
  await world.advance(70);
  const starts = calls(world, 'startContainer').length;
  world.folder.write('web.yaml', manifest('web', { containers: ['{name: app, image: "localhost/busybox:2"}'] }));
  await world.advance(10);
  world.kill();
  rewriteHashes(world, (h) => h.replace(/^1:/, '2:'));
  rewriteState(world, '2');
  await world.start();
  await world.advance(130);
  assert.equal(calls(world, 'startContainer').length, starts + 1);
  assert.deepEqual(world.runtime.running(), runningFive);
});

test('C6: made by this release, adopted by a later one in its own scheme, downgraded: 0 restarts, nothing told as adopted', async () => {
  const world = await withFive();
  const before = world.runtime.deeds.length;
  world.kill();
  for (const id of [...world.runtime.sandboxes.keys(), ...world.runtime.containers.keys()])
    world.stateStore.entries.set(`adopted/${id}`, '"2:feedfeedfeed"');
  rewriteState(world, '2');
  await world.start();
  await world.advance(130);
  assert.deepEqual(world.runtime.deeds.slice(before), []);
  assert.deepEqual(world.events.filter((e) => e.reason === 'Adopted' && e.involvedObject.name !== 'job').length, 0);
});

/** Rewrites every record in an answer: images as short names and digests, lists in another order, texts the runtime adds. */
function otherWords(method: string, answer: unknown): unknown {
  const record = (r: Record<string, unknown>): Record<string, unknown> => ({
    ...r,
    ...('image' in r && { image: 'sha256:0123456789abcdef', imageRef: 'docker.io/library/busybox@sha256:feed' }),
    ...('createdAt' in r && { createdAt: Math.floor(Number(r.createdAt) / 1000) * 1000 }),
    ...('annotations' in r && { annotations: { 'io.runtime/added': method, ...(r.annotations as object) } }),
    ...('labels' in r && { labels: { ...(r.labels as object), 'io.runtime/kind': 'x' } }),
    ...('resources' in r && { resources: { memoryLimitBytes: 4096 } }),
  });
  if (!/^(list|containerStatus|sandboxStatus)/.test(method)) return answer;
  return Array.isArray(answer) ? answer.map(record).reverse() : record(answer as Record<string, unknown>);
}

test('C7: a runtime that says everything in other words: ten sync passes and two agent restarts, 0 restarts of containers', async () => {
  const world = await withFive(new World({ echo: otherWords }));
  const before = world.runtime.deeds.length;
  const ids = [...world.runtime.containers.keys()];
  await world.advance(10 * 90);
  for (let i = 0; i < 2; i++) {
    await world.restart();
    await world.advance(130);
  }
  assert.deepEqual(world.runtime.deeds.slice(before), []);
  assert.deepEqual([...world.runtime.containers.keys()], ids);
});

test('C7: the same pod in every spelling that means the same: 0 restarts, and nothing is told anew', async () => {
  const spec = (more: string, limits: string, rest: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: web${more}}\nspec:\n  containers:\n  - {name: app, image: busybox:1, resources: {limits: {memory: ${limits}}}${rest}}\n`;
  const world = new World();
  world.runtime.images.set('busybox:1', { state: 'present' });
  world.runtime.images.set('docker.io/library/busybox:1', { state: 'present' });
  world.folder.files.set('web.yaml', spec('', '64Mi', ''));
  await world.start();
  await world.advance(30);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  const before = world.runtime.deeds.length;
  const was = told(world);
  for (const text of [
    spec(', namespace: default', '65536Ki', ''),
    spec(', labels: {}, annotations: {}', '67108864', ', env: [], args: [], command: []'),
    spec('', '64Mi', ', imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log'),
    `${spec('', '64Mi', '')}  restartPolicy: Always\n  dnsPolicy: ClusterFirst\n  volumes: []\n  securityContext: {}\n`,
    spec('', '"67108864.0"', ', stdin: false, tty: false, workingDir: ""'),
  ]) {
    world.folder.write('web.yaml', text);
    await world.advance(30);
    assert.deepEqual(world.file('web.yaml'), undefined, text);
  }
  await world.restart();
  await world.advance(70);
  assert.deepEqual(world.runtime.deeds.slice(before), []);
  assert.deepEqual(told(world), was);
});

test('C14: twenty agent restarts under load: ids, start times and what is told of the settled pods stay the same', async () => {
  const world = await withFive(new World({ latencyMs: 20 }));
  world.runtime.onStart((_, { command }) => (command[0] === 'crash' ? { exitAfterMs: 500, exitCode: 1 } : {}));
  const settled = (w: World) => told(w).filter(([name]) => `${name}.yaml` in five);
  const records = () =>
    [...world.runtime.containers.values()].filter((c) => runningFive.some((r) => r.startsWith(`${podNameOf(world, c.sandboxId)}/`)));
  const before = records().map((c) => [c.id, c.startedAt, c.state]);
  const was = settled(world);
  world.folder.write('crash.yaml', manifest('crash', { containers: [container('app', ', command: [crash]')] }));
  for (let i = 0; i < 20; i++) {
    world.folder.write(`load${i}.yaml`, manifest(`load${i}`));
    if (i > 3) world.folder.remove(`load${i - 3}.yaml`);
    await world.advance(0.02 + (i % 7) * 0.31);
    await world.restart();
    await world.advance((i % 5) * 0.4);
  }
  await world.advance(120);
  assert.deepEqual(
    records().map((c) => [c.id, c.startedAt, c.state]),
    before,
  );
  assert.deepEqual(settled(world), was);
  assert.deepEqual(
    world.runtime.running().filter((r) => r.startsWith('load')),
    ['load0/app', 'load17/app', 'load18/app', 'load19/app'],
  );
  assert.deepEqual(world.runtime.violations, []);
});

const podNameOf = (w: World, sandboxId: Parameters<typeof w.runtime.sandboxes.get>[0]): string =>
  w.runtime.sandboxes.get(sandboxId)?.config.name ?? '';

test('C14: the agent is killed, and one container meanwhile: only that one starts again', async () => {
  const world = await withFive();
  const before = new Map([...world.runtime.containers].map(([id, c]) => [id, c.startedAt]));
  const victim = world.runtime.find('two', 'a');
  assert.ok(victim);
  world.kill();
  world.runtime.exit(victim.id, 137);
  await world.advance(40);
  const deeds = world.runtime.deeds.length;
  await world.start();
  await world.advance(70);
  assert.deepEqual(
    world.runtime.deeds.slice(deeds).filter((d) => d !== 'removeContainer'),
    ['createContainer', 'startContainer'],
  );
  assert.equal(world.runtime.find('two', 'a')?.config.attempt, 1);
  assert.deepEqual(world.runtime.running(), runningFive);
  for (const [id, c] of world.runtime.containers) if (before.has(id)) assert.equal(c.startedAt, before.get(id));
  assert.equal(world.pod('two')?.status.containerStatuses?.find((c) => c.name === 'a')?.restartCount, 1);
  assert.equal(world.pod('two')?.status.containerStatuses?.find((c) => c.name === 'b')?.restartCount, 0);
});

test('C14: killed while it makes a pod, at every step of it: the next agent ends with one pod, one container, no leftovers', async () => {
  for (let ms = 0; ms <= 300; ms += 15) {
    const world = new World({ latencyMs: 20 });
    await world.start();
    world.folder.write('web.yaml', manifest('web'));
    await world.clock.advance(ms);
    await world.restart();
    await world.advance(130);
    assert.deepEqual(world.runtime.running(), ['web/app'], `killed after ${ms} ms`);
    assert.equal([...world.runtime.sandboxes.values()].filter((s) => s.state === 'ready').length, 1);
    assert.equal(world.pod('web')?.status.phase, 'Running');
    assert.deepEqual(world.runtime.violations, []);
  }
});
