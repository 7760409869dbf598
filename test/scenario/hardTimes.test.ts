/** Field cases C5, C11, D11, D12, E1, E2, F1, G10 and I12, as far as the rooms for them stand: clocks, reboots, hung calls, dead links. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import type { FakeMethod } from '../fakes/fakeMachine.ts';
import { manifest, World } from './world.ts';

const calls = (w: World, method: FakeMethod) => w.runtime.calls.filter((c) => c.method === method);
const container = (name: string, ...words: string[]) => `{name: ${name}, image: "localhost/busybox:1", command: [${words.join(', ')}]}`;

async function running(names: readonly string[], world = new World()): Promise<World> {
  for (const name of names) world.folder.files.set(`${name}.yaml`, manifest(name));
  await world.start();
  await world.advance(5);
  assert.deepEqual(
    world.runtime.running(),
    names.map((n) => `${n}/app`),
  );
  return world;
}

test('C5: a broker that never answers blocks nothing: pods come and go, orphans are ended', async () => {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  broker.down = true;
  const world = await running(['db', 'web'], new World({ clock, broker }));
  world.kill();
  world.folder.files.delete('db.yaml');
  await world.start();
  await world.advance(10);
  world.folder.write('new.yaml', manifest('new'));
  world.folder.remove('web.yaml');
  await world.advance(10);
  assert.deepEqual(world.runtime.running(), ['new/app']);
});

test('C11: thirty crashes, then it works: Always means always', async () => {
  const world = new World();
  world.runtime.onStart(() => (calls(world, 'startContainer').length <= 30 ? { exitAfterMs: 10, exitCode: 1 } : {}));
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(31 * 300);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.restartCount, 30);
});

const withInit = manifest('web', { lines: ['initContainers:', `- ${container('init', 'exit')}`], containers: [container('app', 'stay')] });
async function initialised(): Promise<World> {
  const world = new World();
  world.runtime.onStart((_, { command }) => (command[0] === 'exit' ? { exitAfterMs: 100, exitCode: 0 } : {}));
  world.folder.files.set('web.yaml', withInit);
  await world.start();
  await world.advance(10);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  return world;
}

test('D11: somebody removes the record of the init container: it does not run again beside the app, over an agent restart too', async () => {
  const world = await initialised();
  const init = world.runtime.find('web', 'init');
  if (init !== undefined) world.runtime.containers.delete(init.id);
  await world.advance(130);
  await world.restart();
  await world.advance(130);
  assert.equal(calls(world, 'startContainer').length, 2);
});

test('D12: after a power cut the init container runs again, and only then the app', async () => {
  const world = await initialised();
  const before = calls(world, 'createContainer').length;
  await world.reboot();
  await world.advance(30);
  const made = calls(world, 'createContainer').slice(before);
  assert.deepEqual(
    made.map((c) => (c.args[1] as { name: string }).name),
    ['init', 'app'],
  );
});

test('E1: the board boots in 1970, then the time jumps: all pods run once, and no name is taken twice', async () => {
  const world = await running(['db', 'web']);
  const attempts = new Map<string, number>();
  for (const year of ['1970', '2031', '1970', '2026']) {
    world.clock.setWall(Date.parse(`${year}-01-01T00:00:00Z`));
    await world.reboot();
    await world.advance(20);
    world.clock.setWall(Date.parse('2026-06-01T00:00:00Z'));
    await world.advance(60);
    assert.deepEqual(world.runtime.running(), ['db/app', 'web/app'], year);
    for (const name of ['db', 'web']) {
      const attempt = world.runtime.find(name, 'app')?.config.attempt ?? -1;
      assert.ok(attempt > (attempts.get(name) ?? -1), 'attempts rise');
      attempts.set(name, attempt);
      assert.equal(world.pod(name)?.status.phase, 'Running');
    }
  }
  assert.deepEqual(world.runtime.violations, []);
});

test('E2: the clock is set to and fro during a crash loop: attempts rise by one, and the pauses are those of the back-off', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 1 }));
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  for (let i = 0; i < 150; i++) {
    world.clock.setWall(Date.parse('2026-01-01T00:00:00Z') + (i % 2 === 0 ? 600_000 : -600_000));
    await world.advance(1);
  }
  const starts = calls(world, 'startContainer').map((c) => c.at);
  const gaps = starts.slice(1).map((at, i) => Math.round((at - (starts[i] ?? 0)) / 1000));
  assert.deepEqual(gaps, [1, 11, 21, 41]);
  const attempts = calls(world, 'createContainer').map((c) => (c.args[1] as { attempt: number }).attempt);
  assert.deepEqual(attempts, [0, 1, 2, 3, 4]);
  assert.deepEqual(world.runtime.violations, []);
});

test('F1: three cold boots without broker, with the manifest folder missing in the third: all pods run within seconds each time', async () => {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  const world = await running(['db', 'mail', 'web'], new World({ clock, broker }));
  broker.kill();
  for (let boot = 1; boot <= 3; boot++) {
    world.folder.missing = boot === 3;
    await world.reboot();
    await world.advance(10);
    assert.deepEqual(world.runtime.running(), ['db/app', 'mail/app', 'web/app'], `boot ${boot}`);
  }
});

for (const method of ['containerStatus', 'sandboxStatus', 'stopContainer', 'createContainer'] as const) {
  test(`G10: ${method} of one pod hangs for ever: the others are edited, end and start as always`, async () => {
    const world = await running(['db', 'web']);
    const sick = world.runtime.find('db', 'app');
    world.runtime.hang(method, (args) => args[0] === sick?.id || args[0] === sick?.sandboxId);
    if (sick !== undefined) world.runtime.exit(sick.id, 1);
    if (method === 'stopContainer') world.folder.remove('db.yaml');
    await world.advance(1);
    world.folder.write('web.yaml', manifest('web', { containers: ['{name: app, image: "localhost/busybox:2"}'] }));
    world.folder.write('new.yaml', manifest('new'));
    await world.advance(5);
    assert.equal(world.runtime.find('web', 'app')?.config.userSpecifiedImage, 'localhost/busybox:2');
    assert.ok(world.runtime.running().includes('new/app'));
    world.folder.remove('new.yaml');
    await world.advance(5);
    assert.ok(!world.runtime.running().includes('new/app'));
    assert.equal(world.pod('new'), undefined);
  });
}

test('I12: the link is lost and comes back, ten times, with every topic retained: 0 restarts', async () => {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  const world = await running(['db', 'web'], new World({ clock, broker }));
  const deeds = world.runtime.deeds.length;
  for (let i = 0; i < 10; i++) {
    if (i % 2 === 0) broker.cut();
    else {
      broker.kill();
      await world.advance(600);
      broker.restart({ keepRetained: true });
    }
    await world.advance(130);
    assert.equal(world.online()?.state, 'online');
  }
  assert.equal(world.runtime.deeds.length, deeds);
});
