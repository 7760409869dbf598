/** Stories of one pod and its owner, on the whole agent in virtual time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

async function running(name = 'web', text = manifest(name), ignoresTerm = false): Promise<World> {
  const world = new World();
  world.runtime.onStart(() => ({ ignoresTerm }));
  world.folder.files.set(`${name}.yaml`, text);
  await world.start();
  await world.advance(3);
  assert.equal(world.pod(name)?.status.phase, 'Running');
  return world;
}

test('a manifest dropped in runs and is told; removed, it ends and its topics are gone', async () => {
  const world = new World();
  await world.start();
  world.folder.write('web.yaml', manifest('web'));
  await world.advance(2);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.pod('web')?.status.phase, 'Running');
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.ready, true);
  assert.equal(world.sync('web')?.phase, 'Running');
  world.folder.remove('web.yaml');
  await world.advance(5);
  assert.deepEqual(world.runtime.running(), []);
  assert.equal(world.runtime.sandboxes.size, 0);
  assert.equal(world.pod('web'), undefined);
  assert.equal(world.sync('web'), undefined);
  assert.deepEqual(world.runtime.violations, []);
});

test('an agent killed and started again touches nothing and tells the same times', async () => {
  const world = await running();
  const before = world.pod('web');
  const deeds = world.runtime.deeds.length;
  for (let i = 0; i < 3; i++) {
    await world.restart();
    await world.advance(5);
  }
  assert.equal(world.runtime.deeds.length, deeds);
  assert.deepEqual(world.pod('web')?.status, before?.status);
  assert.equal(world.pod('web')?.metadata.uid, before?.metadata.uid);
});

test('a manifest removed while the agent is away ends by its own grace', async () => {
  const world = await running('web', manifest('web', { lines: ['terminationGracePeriodSeconds: 7'] }), true);
  world.kill();
  world.folder.files.delete('web.yaml');
  await world.start();
  await world.advance(20);
  const stops = world.runtime.calls.filter((c) => c.method === 'stopContainer');
  assert.deepEqual(
    stops.map((c) => c.args[1]),
    [7],
  );
  assert.equal(world.pod('web'), undefined);
  assert.equal(world.runtime.sandboxes.size, 0);
});

test('a broken file keeps its pod, over an agent restart too, and says where it is broken', async () => {
  const world = await running();
  world.folder.write('web.yaml', 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: app\n');
  await world.advance(5);
  assert.equal(world.pod('web')?.status.phase, 'Running');
  const problem = world.sync('web')?.sources[0]?.problems[0];
  assert.equal(problem?.path, 'spec.containers[0].image');
  assert.equal(problem?.line, 6);
  await world.restart();
  await world.advance(30);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.runtime.deeds.filter((d) => d === 'stopContainer').length, 0);
});

test('a crash loop waits 10, 20, 40 s between its exits and starts, and says CrashLoopBackOff', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 1 }));
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(100);
  const starts = world.runtime.calls.filter((c) => c.method === 'startContainer').map((c) => c.at);
  const gaps = starts.slice(1).map((at, i) => Math.round((at - (starts[i] ?? 0)) / 1000));
  assert.deepEqual(gaps, [1, 11, 21, 41]);
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.state.waiting?.reason, 'CrashLoopBackOff');
  assert.equal(world.sync('web')?.reason, 'CrashLoopBackOff');
});

test('a one-shot pod runs once: not again after an agent restart, a label edit, or the loss of its containers', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 0 }));
  const lines = ['restartPolicy: Never'];
  world.folder.files.set('job.yaml', manifest('job', { lines }));
  await world.start();
  await world.advance(10);
  assert.equal(world.pod('job')?.status.phase, 'Succeeded');
  assert.equal(world.sync('job')?.phase, 'Completed');
  world.folder.write('job.yaml', manifest('job', { lines, labels: { a: 'b' } }));
  await world.restart();
  await world.advance(70);
  world.runtime.containers.clear();
  world.runtime.sandboxes.clear();
  await world.restart();
  await world.advance(70);
  assert.equal(world.runtime.deeds.filter((d) => d === 'startContainer').length, 1);
  assert.equal(world.pod('job')?.status.phase, 'Succeeded');
  world.folder.write('job.yaml', manifest('job', { lines, containers: ['{name: app, image: localhost/busybox:2}'] }));
  await world.advance(10);
  assert.equal(world.runtime.deeds.filter((d) => d === 'startContainer').length, 2);
});

test('init containers run in order before the app, and again after a reboot', async () => {
  const world = new World();
  world.runtime.onStart((name) => (name.startsWith('init') ? { exitAfterMs: 500, exitCode: 0 } : {}));
  const init = ['initContainers:', '- {name: init1, image: localhost/busybox:1}', '- {name: init2, image: localhost/busybox:1}'];
  world.folder.files.set('web.yaml', manifest('web', { lines: init }));
  await world.start();
  await world.advance(10);
  const created = () => world.runtime.calls.filter((c) => c.method === 'createContainer').map((c) => (c.args[1] as { name: string }).name);
  assert.deepEqual(created(), ['init1', 'init2', 'app']);
  await world.reboot();
  await world.advance(60);
  assert.deepEqual(created(), ['init1', 'init2', 'app', 'init1', 'init2', 'app']);
  assert.equal(world.pod('web')?.status.phase, 'Running');
  assert.deepEqual(world.runtime.violations, []);
});

test('an edit of one of two containers replaces that one only', async () => {
  const two = (tag: number) =>
    manifest('web', { containers: ['{name: a, image: localhost/busybox:1}', `{name: b, image: localhost/busybox:${tag}}`] });
  const world = await running('web', two(1));
  const a = world.runtime.find('web', 'a')?.id;
  const uid = world.pod('web')?.metadata.uid;
  world.folder.write('web.yaml', two(2));
  await world.advance(10);
  assert.equal(world.runtime.find('web', 'a')?.id, a);
  assert.equal(world.runtime.find('web', 'b')?.config.userSpecifiedImage, 'localhost/busybox:2');
  assert.equal(world.pod('web')?.metadata.uid, uid);
  assert.equal(world.pod('web')?.status.containerStatuses?.[1]?.restartCount, 1);
});

test('a new set of containers is a new pod, and the old one is fully gone first', async () => {
  const world = await running('web', manifest('web', { lines: ['terminationGracePeriodSeconds: 5'] }), true);
  const uid = world.pod('web')?.metadata.uid;
  world.folder.write(
    'web.yaml',
    manifest('web', { containers: ['{name: app, image: localhost/busybox:1}', '{name: more, image: localhost/busybox:1}'] }),
  );
  await world.advance(2);
  assert.notEqual(world.pod('web')?.metadata.deletionTimestamp, undefined);
  assert.equal(world.sync('web')?.reason, 'WaitingForPredecessor');
  await world.advance(20);
  assert.deepEqual(world.runtime.running(), ['web/app', 'web/more']);
  assert.notEqual(world.pod('web')?.metadata.uid, uid);
  assert.deepEqual(world.runtime.violations, []);
});

test('activeDeadlineSeconds counts over an agent restart and is final', async () => {
  const world = await running('web', manifest('web', { lines: ['activeDeadlineSeconds: 60', 'terminationGracePeriodSeconds: 1'] }));
  await world.advance(30);
  await world.restart();
  await world.advance(25);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  await world.advance(10);
  assert.deepEqual(world.runtime.running(), []);
  assert.equal(world.pod('web')?.status.phase, 'Failed');
  assert.equal(world.pod('web')?.status.reason, 'DeadlineExceeded');
  await world.advance(300);
  assert.deepEqual(world.runtime.running(), []);
});

test('without a runtime the agent runs and says so, and goes on when it is there', async () => {
  const world = new World();
  world.runtime.setDown(true);
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(5);
  assert.equal(world.sync('web')?.reason, 'RuntimeDown');
  world.runtime.setDown(false);
  await world.advance(10);
  assert.equal(world.pod('web')?.status.phase, 'Running');
});
