/** Field cases C8, I1–I3, I7, I8 and J2 on the whole agent with a real session: brokers and runtimes that come, go and forget. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { randomOf } from './random.ts';
import { manifest, World } from './world.ts';

function withBroker(): { readonly world: World; readonly broker: FakeBroker } {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  return { broker, world: new World({ clock, broker }) };
}

async function pods(world: World, count: number): Promise<void> {
  for (let i = 0; i < count; i++) world.folder.files.set(`p${i}.yaml`, manifest(`p${i}`));
  await world.start();
  await world.advance(20);
}

test('C8: the broker is away at the start and comes after 5 min: the first retained status is Running, with the true start time', async () => {
  const { world, broker } = withBroker();
  broker.down = true;
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(300);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.kubelet.status.told()[0]?.status.phase, 'Running', 'the local API knows it all the time');
  broker.restart();
  await world.advance(150);
  const told = broker.publishes.filter((p) => p.topic.endsWith('/pods/default/web')).map((p) => JSON.parse(p.payload) as ToldPod);
  assert.deepEqual(
    told.map((p) => [p.status.phase, p.status.startTime]),
    told.map(() => ['Running', '2026-01-01T00:00:00Z']),
  );
  assert.equal(told[0]?.status.containerStatuses?.[0]?.state.running?.startedAt, '2026-01-01T00:00:00Z');
});

test('I1: broker and agent die, only the broker returns: the retained online expires; the agent alone dies: lost; it stops: offline', async () => {
  const { world, broker } = withBroker();
  await pods(world, 1);
  assert.equal(world.online()?.state, 'online');
  broker.kill();
  world.kill();
  broker.restart({ keepRetained: true });
  await world.advance(181);
  assert.equal(world.online(), undefined, 'older than three heartbeats');
  await world.start();
  await world.advance(5);
  assert.equal(world.online()?.state, 'online');
  world.kill();
  await world.advance(31);
  assert.equal(world.online()?.state, 'lost');
  await world.start();
  await world.advance(5);
  assert.equal(world.online()?.state, 'online');
  await world.kubelet.stop();
  await world.session?.stop();
  await world.advance(60);
  assert.equal(world.online()?.state, 'offline');
  assert.deepEqual(world.runtime.running(), ['p0/app'], 'stopping the agent stops no pod');
});

test('I1: killed and started again within the delay of the will: never lost, whenever the old will comes', async () => {
  const { world, broker } = withBroker();
  await pods(world, 1);
  const online = `${world.root}/online`;
  for (const seconds of [1, 10, 29, 31]) {
    const before = broker.publishes.length;
    world.kill();
    await world.advance(seconds);
    await world.start();
    await world.advance(60);
    assert.equal(world.online()?.state, 'online');
    broker.say(online, JSON.stringify({ ...world.online(), state: 'lost', session: 1 }), { retain: true });
    await world.advance(5);
    assert.equal(world.online()?.state, 'online', 'an old will that comes late');
    assert.ok(broker.publishes.length > before);
  }
});

test('I2: a broker that forgot everything: twenty pods, sync and online are back in 5 s, news arrives, no pod is touched', async () => {
  const { world, broker } = withBroker();
  await pods(world, 20);
  const deeds = world.runtime.deeds.length;
  const was = Object.keys(world.topics()).sort();
  assert.equal(was.filter((t) => t.startsWith('pods/')).length, 20);
  for (let i = 0; i < 3; i++) {
    broker.kill();
    broker.restart();
    const before = broker.connects.length;
    while (broker.connects.length === before) await world.advance(0.5);
    await world.advance(5);
    assert.deepEqual(Object.keys(world.topics()).sort(), was);
  }
  assert.equal(world.runtime.deeds.length, deeds);
  world.folder.write('p0.yaml', manifest('p0', { labels: { a: 'b' } }));
  await world.advance(5);
  assert.deepEqual(world.pod('p0')?.metadata.labels, { a: 'b' });
});

test('I3: twenty agents and one broker that restarts: they come back spread over time, and each tells everything', async () => {
  const clock = new FakeClock();
  const broker = new FakeBroker(clock);
  const random = randomOf(7);
  const worlds = Array.from({ length: 20 }, (_, i) => new World({ clock, broker, nodeName: `pi-${i}`, random }));
  for (const w of worlds) {
    w.folder.files.set('web.yaml', manifest('web'));
    await w.start();
  }
  await clock.advance(60_000);
  broker.kill();
  await clock.advance(20_000);
  const before = broker.connects.length;
  broker.restart();
  await clock.advance(180_000);
  const at = broker.connects.slice(before).map((c) => c.at);
  assert.equal(at.length, 20, 'one connection each');
  const perSecond = at.map((t) => at.filter((u) => u >= t && u < t + 1000).length);
  assert.ok(Math.max(...perSecond) <= 8, `${Math.max(...perSecond)} in one second`);
  assert.ok(Math.max(...at) - Math.min(...at) > 5_000);
  for (const w of worlds) {
    assert.equal(w.online()?.state, 'online');
    assert.equal(w.pod('web')?.status.phase, 'Running');
    assert.equal(w.runtime.deeds.filter((d) => d === 'startContainer').length, 1);
  }
});

test('I3: a broker that takes the connection and drops it at once: the pauses grow', async () => {
  const { world, broker } = withBroker();
  broker.dropAfterConnack = true;
  await pods(world, 1);
  await world.advance(1800);
  const at = broker.connects.map((c) => c.at);
  const gaps = at.slice(1).map((t, i) => (t - (at[i] ?? 0)) / 1000);
  assert.ok(at.length < 60, `${at.length} connections in half an hour`);
  assert.ok(Math.max(...gaps) >= 30 && Math.max(...gaps) <= 130, `longest pause ${Math.max(...gaps)} s`);
  broker.dropAfterConnack = false;
  await world.advance(130);
  assert.equal(world.pod('p0')?.status.phase, 'Running');
});

for (const how of ['running', 'killed', 'rebooted'] as const) {
  test(`I7: pods removed and files mended while the broker is away and the agent is ${how}: afterwards only what lives is retained`, async () => {
    const { world, broker } = withBroker();
    world.folder.files.set('bad.yaml', 'kind: [');
    world.folder.files.set('cfg.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\n');
    await pods(world, 3);
    assert.equal(Object.keys(world.topics()).filter((t) => !t.startsWith('online')).length, 8);
    broker.kill();
    if (how !== 'running') world.kill();
    for (const name of ['p0.yaml', 'bad.yaml', 'cfg.yaml']) world.folder.remove(name);
    world.folder.remove('p1.yaml');
    world.folder.write('p1-renamed.yaml', manifest('p1'));
    if (how === 'killed') await world.start();
    if (how === 'rebooted') await world.reboot();
    await world.advance(120);
    broker.restart({ keepRetained: true });
    await world.advance(200);
    const kept = ['online', 'pods/default/p1', 'pods/default/p2', 'sync/default/p1', 'sync/default/p2'];
    assert.deepEqual(Object.keys(world.topics()).sort(), kept);
    assert.equal(world.sync('p1')?.desired?.source, 'file:p1-renamed.yaml');
  });
}

test('I7: while the folder cannot be read nothing is cleared: what is unknown is not gone', async () => {
  const { world, broker } = withBroker();
  await pods(world, 2);
  const was = Object.keys(world.topics()).sort();
  world.kill();
  world.folder.missing = true;
  broker.cut();
  await world.start();
  await world.advance(300);
  assert.deepEqual(Object.keys(world.topics()).sort(), was);
});

test('I8: twelve hours without a broker and five crash loops: at the return at most topics + ring messages, the newest state of each', async () => {
  const { world, broker } = withBroker();
  world.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 1 }));
  await pods(world, 5);
  broker.kill();
  await world.advance(12 * 3600);
  const counters = world.session?.counters();
  assert.ok(counters !== undefined && counters.eventsWaiting <= 200, `${counters?.eventsWaiting} events wait`);
  assert.ok(counters.eventsDropped > 0);
  assert.ok(counters.retainedTopics <= 20);
  const restarts = world.kubelet.status.told().map((p) => p.status.containerStatuses?.[0]?.restartCount);
  assert.ok((restarts[0] ?? 0) > 100);
  broker.restart({ keepRetained: true });
  const before = broker.publishes.length;
  const connects = broker.connects.length;
  while (broker.connects.length === connects) await world.advance(1);
  await world.advance(10);
  const sent = broker.publishes.slice(before).filter((p) => !p.topic.endsWith('/online') && !p.topic.endsWith('/_marker'));
  assert.ok(sent.length <= counters.retainedTopics + 200 + 20, `${sent.length} messages`);
  assert.equal(world.pod('p0')?.status.containerStatuses?.[0]?.lastState.terminated?.exitCode, 1);
  assert.ok((world.pod('p0')?.status.containerStatuses?.[0]?.restartCount ?? 0) >= (restarts[0] ?? 0));
});

test('J2: containerd absent at the first call, then restarted ten times: each time recovered by itself, told, pods untouched', async () => {
  const world = new World();
  world.runtime.setDown(true);
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(40);
  assert.equal(world.sync('web')?.reason, 'RuntimeDown');
  world.runtime.setDown(false);
  await world.advance(10);
  assert.equal(world.pod('web')?.status.phase, 'Running');
  const deeds = world.runtime.deeds.length;
  const was = world.pod('web')?.status;
  for (let i = 0; i < 10; i++) {
    world.runtime.setDown(true);
    await world.advance(i * 7);
    if (i > 0) assert.equal(world.sync('web')?.reason, 'RuntimeDown');
    world.runtime.setDown(false);
    await world.advance(15);
    assert.equal(world.sync('web')?.reason, 'Ready');
  }
  assert.equal(world.runtime.deeds.length, deeds);
  assert.deepEqual(world.pod('web')?.status, was);
  world.folder.write('more.yaml', manifest('more'));
  await world.advance(3);
  assert.deepEqual(world.runtime.running(), ['more/app', 'web/app']);
});

test('J1: 45 quiet minutes, then a new manifest: it runs within a second', async () => {
  const world = new World();
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(45 * 60);
  world.folder.write('more.yaml', manifest('more'));
  await world.advance(1);
  assert.deepEqual(world.runtime.running(), ['more/app', 'web/app']);
});

test('J4: a day of an event stream that breaks every minute: one reader at a time, nothing missed', async () => {
  const world = new World();
  world.folder.files.set('web.yaml', manifest('web'));
  await world.start();
  await world.advance(10);
  for (let minute = 0; minute < 24 * 60; minute++) {
    world.runtime.breakEvents();
    await world.advance(60);
    assert.equal(world.runtime.listeners, 1);
  }
  const app = world.runtime.find('web', 'app');
  assert.ok(app);
  world.runtime.loseEvents(1);
  world.runtime.exit(app.id, 1);
  await world.advance(75);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.restartCount, 1);
});
