/** Ends that meet something else: an edit at the last moment, an agent that was away, a stop while a call hangs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const never = ['restartPolicy: Never'];
const app = (tag: string) => [`{name: app, image: "localhost/${tag}"}`];

async function running(name: string, text = manifest(name), ignoresTerm = false): Promise<World> {
  const world = new World();
  world.runtime.onStart(() => ({ ignoresTerm }));
  world.folder.files.set(`${name}.yaml`, text);
  await world.start();
  await world.advance(3);
  assert.equal(world.pod(name)?.status.phase, 'Running');
  return world;
}

async function endsWithin(world: World, seconds: number, work: Promise<unknown>): Promise<boolean> {
  let ended = false;
  void work.then(() => {
    ended = true;
  });
  await world.advance(seconds);
  return ended;
}

test('a running one-shot pod edited to an image that is not there goes on, and is replaced when the image comes', async () => {
  const world = await running('job', manifest('job', { lines: never }));
  world.folder.write('job.yaml', manifest('job', { lines: never, containers: app('other:1') }));
  await world.advance(40);
  assert.equal(world.pod('job')?.status.phase, 'Running');
  assert.equal(world.sync('job')?.phase, 'UpdateBlocked');
  assert.match(world.sync('job')?.reason ?? '', /^(ErrImagePull|ImagePullBackOff)$/);
  world.runtime.images.set('localhost/other:1', { state: 'present' });
  await world.advance(400);
  assert.deepEqual(world.runtime.running(), ['job/app']);
  assert.equal(world.runtime.find('job', 'app')?.config.userSpecifiedImage, 'localhost/other:1');
  assert.deepEqual(world.runtime.violations, []);
});

test('an edit that comes while the end of a one-shot pod is being recorded is not lost', async () => {
  for (const waitMs of [0, 100, 450, 500, 520, 600, 3000]) {
    const world = new World();
    world.runtime.onStart((_, c) => (c.userSpecifiedImage.endsWith(':1') ? { exitAfterMs: 5000, exitCode: 0 } : {}));
    const put = world.stateStore.put.bind(world.stateStore);
    world.stateStore.put = async (key, value) => {
      if (key.startsWith('completions/')) await world.clock.sleep(500);
      await put(key, value);
    };
    world.folder.files.set('job.yaml', manifest('job', { lines: never }));
    await world.start();
    while (world.runtime.running().length === 0) await world.clock.advance(10);
    while (world.runtime.running().length > 0) await world.clock.advance(10);
    await world.clock.advance(waitMs);
    world.folder.write('job.yaml', manifest('job', { lines: never, containers: app('busybox:2') }));
    await world.advance(60);
    assert.deepEqual(world.runtime.running(), ['job/app'], `edited ${waitMs} ms after its end`);
    assert.deepEqual(world.runtime.violations, []);
  }
});

test('a one-shot pod cut off by a reboot and edited meanwhile runs as edited', async () => {
  const world = await running('job', manifest('job', { lines: never }));
  world.folder.files.set('job.yaml', manifest('job', { lines: never, containers: app('busybox:2') }));
  await world.reboot();
  await world.advance(60);
  assert.deepEqual(world.runtime.running(), ['job/app']);
  assert.equal(world.runtime.find('job', 'app')?.config.userSpecifiedImage, 'localhost/busybox:2');
});

test('a pod removed while the agent was away is told as ending until it has ended', async () => {
  const world = await running('web', manifest('web', { lines: ['terminationGracePeriodSeconds: 20'] }), true);
  world.kill();
  world.folder.files.delete('web.yaml');
  await world.start();
  for (let s = 1; s < 18; s++) {
    await world.advance(1);
    assert.notEqual(world.pod('web'), undefined, `after ${s} s it runs and is not told`);
  }
  assert.equal(world.pod('web')?.metadata.deletionGracePeriodSeconds, 20);
  await world.advance(30);
  assert.deepEqual(world.runtime.running(), []);
  assert.equal(world.runtime.sandboxes.size, 0);
  assert.equal(world.pod('web'), undefined);
  assert.equal(world.sync('web'), undefined);
});

test('a pod that was made another while the agent was away is told as ending, then as the new one, and never as gone', async () => {
  const lines = ['terminationGracePeriodSeconds: 20'];
  const world = await running('web', manifest('web', { lines }), true);
  world.kill();
  world.folder.files.set('web.yaml', manifest('web', { lines: [...lines, 'hostname: other'] }));
  await world.start();
  for (let s = 1; s < 18; s++) {
    await world.advance(1);
    assert.notEqual(world.pod('web')?.metadata.deletionTimestamp, undefined, `after ${s} s`);
  }
  await world.advance(30);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.pod('web')?.metadata.deletionTimestamp, undefined);
  assert.deepEqual(world.runtime.violations, []);
});

test('the agent stops in seconds while a call hangs or an orphan ends slowly', async () => {
  const hung = new World();
  hung.runtime.hang('runSandbox');
  hung.folder.files.set('web.yaml', manifest('web'));
  await hung.start();
  await hung.advance(3);
  assert.ok(await endsWithin(hung, 5, hung.kubelet.stop()));

  const slow = await running('web', manifest('web', { lines: ['terminationGracePeriodSeconds: 600'] }), true);
  slow.kill();
  slow.folder.files.clear();
  slow.stateStore.entries.clear();
  await slow.start();
  await slow.advance(10);
  assert.equal(slow.runtime.calls.filter((c) => c.method === 'stopContainer').length, 1);
  assert.ok(await endsWithin(slow, 5, slow.kubelet.stop()));
});

test('a file rewritten every second does not keep housekeeping away', async () => {
  const world = await running('old');
  world.kill();
  world.folder.files.clear();
  world.stateStore.entries.clear();
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  for (let n = 1; n < 100; n++) {
    world.folder.write('web.yaml', manifest('web', { labels: { n: String(n) } }));
    await world.advance(1);
  }
  assert.deepEqual(world.runtime.running(), ['web/app']);
});

test('an agent restart tells nothing that is not so', async () => {
  const world = await running('web');
  await world.advance(60);
  const said = new Set<string>();
  const events = world.events.length;
  world.onTold.push((topic, payload) => {
    if (!topic.includes('/sync/') || payload === undefined) return;
    const { phase, reason } = JSON.parse(payload) as { phase: string; reason: string };
    said.add(`${phase} ${reason}`);
  });
  await world.restart();
  await world.advance(30);
  assert.deepEqual([...said], ['Running Ready']);
  assert.deepEqual(world.events.slice(events), []);
});

test("no sandbox is made before the runtime's cgroup driver is known", async () => {
  const world = new World();
  world.runtime.driver = 'systemd';
  const release = world.runtime.hang('cgroupDriver');
  world.folder.files.set('web.yaml', manifest('web', { lines: ['hostNetwork: true'] }));
  await world.start();
  await world.advance(1);
  release();
  await world.advance(5);
  const parents = world.runtime.calls
    .filter((c) => c.method === 'runSandbox')
    .map((c) => (c.args[0] as { cgroupParent: string }).cgroupParent);
  assert.equal(parents.length, 1);
  assert.match(parents[0] ?? '', /\.slice$/);
});
