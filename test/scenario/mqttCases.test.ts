/** Field cases C5, F1, I2, I8, I10 and I12 on the whole agent with desired state from its broker: what the link does is no wish of anybody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MemoryStore } from '../../src/world/store.ts';
import { Afar, absent, mapJson, podJson, words } from './afar.ts';
import { manifest } from './world.ts';

/** A node with so many pods from topics, all running. */
async function node(count: number, a = new Afar()): Promise<Afar> {
  for (let i = 0; i < count; i++) a.keep(a.topic(`m${i}`), podJson(`m${i}`));
  await a.world.start();
  await a.world.advance(20);
  assert.equal(a.world.runtime.running().length, count);
  return a;
}
const runs = (a: Afar): string[] => a.world.runtime.running();
const starts = (a: Afar): number => a.world.runtime.deeds.filter((d) => d === 'startContainer').length;
/** The keys that are written from now on. */
function writesOf(store: MemoryStore): string[] {
  const written: string[] = [];
  const put = store.put.bind(store);
  store.put = async (key, value) => {
    written.push(key);
    await put(key, value);
  };
  return written;
}
/** As the broker comes back, the agent may wait up to its longest pause. */
const longestPause = 130;

test('C5: a source that never answers from the first boot on: file pods come and go, nothing waits for it', async () => {
  const a = new Afar();
  a.broker.down = true;
  a.world.folder.files.set('web.yaml', manifest('web'));
  await a.world.start();
  await a.world.advance(10);
  assert.deepEqual(runs(a), ['web/app']);
  a.world.folder.write('new.yaml', manifest('new'));
  a.world.folder.remove('web.yaml');
  await a.world.advance(10);
  assert.deepEqual(runs(a), ['new/app']);
  await a.world.reboot();
  await a.world.advance(10);
  assert.deepEqual(runs(a), ['new/app']);
});

test('C5: a broker that takes the connection and answers no SUBSCRIBE: pods of files and of the checkpoint run, nothing is deleted', async () => {
  const a = await node(2);
  a.world.folder.write('web.yaml', manifest('web'));
  await a.world.advance(5);
  // markers are lost: no snapshot ever ends
  a.broker.onPublish = (p) => (p.topic.endsWith('/_marker') ? 'lose' : 'ack');
  a.broker.restart();
  a.broker.cut();
  for (const how of ['killed', 'rebooted'] as const) {
    await (how === 'killed' ? a.world.restart() : a.world.reboot());
    await a.world.advance(300);
    assert.deepEqual(runs(a), ['m0/app', 'm1/app', 'web/app'], how);
    a.world.folder.write(`${how}.yaml`, manifest(how));
    await a.world.advance(5);
    assert.ok(runs(a).includes(`${how}/app`), 'a new file runs at once');
    a.world.folder.remove(`${how}.yaml`);
    await a.world.advance(5);
    assert.deepEqual(runs(a), ['m0/app', 'm1/app', 'web/app'], 'and goes at once');
  }
});

test('F1: three cold boots without a broker, in the third without the folder: pods that came by topics run within seconds each time', async () => {
  const a = await node(3);
  a.broker.kill();
  for (let boot = 1; boot <= 3; boot++) {
    a.world.folder.missing = boot === 3;
    await a.world.reboot();
    await a.world.advance(10);
    assert.deepEqual(runs(a), ['m0/app', 'm1/app', 'm2/app'], `boot ${boot}`);
  }
  a.world.folder.missing = false;
  a.broker.restart();
  await a.world.advance(longestPause);
  assert.deepEqual(runs(a), ['m0/app', 'm1/app', 'm2/app'], 'a broker that lost its store takes none of them away');
  assert.equal(a.said('m0'), 'Accepted SourceGone');
});

test('I2: a broker that forgot everything: the node obeys again in 5 s, wishes and commands', async () => {
  const a = await node(2);
  for (let i = 1; i <= 3; i++) {
    a.broker.kill();
    a.broker.restart();
    const before = a.broker.connects.length;
    while (a.broker.connects.length === before) await a.world.advance(0.5);
    await a.world.advance(5);
    const deeds = a.deeds;
    assert.deepEqual(words(await a.ask('get', {}, 1)), ['ok']);
    assert.equal(a.deeds, deeds);
    a.keep(a.topic(`new${i}`), podJson(`new${i}`));
    await a.world.advance(5);
    assert.ok(runs(a).includes(`new${i}/app`));
  }
  assert.equal(starts(a), 5, 'and what ran before the first of them runs on');
});

test('I8: twelve hours without a broker: what ran runs on, and at the return the wishes of that time are taken once', async () => {
  const a = await node(5);
  a.broker.kill();
  await a.world.advance(12 * 3600);
  assert.equal(starts(a), 5);
  a.broker.restart({ keepRetained: true });
  // five edits each while nobody listens: the last one counts
  for (let i = 1; i <= 5; i++) a.keep(a.topic('m0'), podJson('m0', { image: 1 + (i % 3) }));
  a.keep(a.topic('m1'), absent('Pod', 'm1'));
  a.keep(a.topic('m2'), '');
  const connects = a.broker.connects.length;
  const before = a.broker.publishes.length;
  while (a.broker.connects.length === connects) await a.world.advance(1);
  await a.world.advance(30);
  assert.deepEqual(runs(a), ['m0/app', 'm2/app', 'm3/app', 'm4/app'], 'an empty payload was heard by nobody, a tombstone stands there');
  assert.equal(a.world.runtime.find('m0', 'app')?.config.userSpecifiedImage, 'localhost/busybox:3');
  assert.equal(starts(a), 6);
  assert.equal(a.said('m2'), 'Accepted SourceGone');
  const sent = a.broker.publishes.slice(before);
  assert.ok(sent.length < 80, `${sent.length} messages`);
});

test('I10: ten stable pods cost a heartbeat a minute and nothing else, however long', async () => {
  const a = await node(10);
  await a.world.advance(600);
  const before = a.broker.publishes.length;
  await a.world.advance(3600);
  const sent = a.broker.publishes.slice(before).map((p) => p.topic.slice(a.world.root.length + 1));
  assert.deepEqual([...new Set(sent)], ['online']);
  assert.ok(sent.length >= 59 && sent.length <= 61, `${sent.length} in an hour`);
});

test('I10: a pod whose readiness is another each second is told at most once in 5 s after its first four, and its last word always', async () => {
  const a = new Afar();
  let ready = true;
  a.world.runtime.onStart(() => ({ exec: () => ({ exitCode: ready ? 0 : 1 }) }));
  const readinessProbe = { exec: { command: ['ready'] }, periodSeconds: 1, failureThreshold: 1 };
  a.keep(a.topic('flap'), podJson('flap', { container: { readinessProbe } }));
  a.keep(a.topic('calm'), podJson('calm'));
  await a.world.start();
  await a.world.advance(60);
  const before = a.broker.publishes.length;
  // the probe is asked once a second, and the answer is another each time
  for (let i = 0; i < 120; i++) {
    ready = !ready;
    await a.world.advance(1);
  }
  ready = true;
  await a.world.advance(20);
  const of = (topic: string) => a.broker.publishes.slice(before).filter((p) => p.topic === `${a.world.root}/${topic}`);
  const told = of('pods/default/flap');
  assert.ok(told.length > 5 && told.length <= 4 + 120 / 5 + 3, `${told.length} statuses in two minutes`);
  assert.equal(of('pods/default/calm').length, 0);
  const condition = a.world.pod('flap')?.status.conditions?.find((c) => c.type === 'Ready');
  assert.equal(condition?.status, 'True');
});

for (const kept of [true, false]) {
  test(`I12: ten minutes of link loss, ${kept ? 'with' : 'without'} retained config for every pod at the return: 0 restarts, 0 calls that change anything`, async () => {
    const a = new Afar();
    for (let i = 0; i < 8; i++) a.keep(a.topic(`m${i}`), podJson(`m${i}`));
    a.keep(a.topic('configmap:site'), mapJson('site', { PLACE: 'attic' }));
    a.world.folder.files.set('web.yaml', manifest('web'));
    await a.world.start();
    await a.world.advance(20);
    assert.equal(runs(a).length, 9);
    const deeds = a.deeds;
    const stored = writesOf(a.world.stateStore);
    const uids = a.world.toldPods().map((p) => p.metadata.uid);
    for (let i = 0; i < 5; i++) {
      a.broker.kill();
      await a.world.advance(600);
      a.broker.restart({ keepRetained: kept });
      await a.world.advance(longestPause);
      assert.equal(a.world.online()?.state, 'online');
      // published once more, as tools do that know nothing of what stands there
      for (let p = 0; p < 8; p++) a.keep(a.topic(`m${p}`), podJson(`m${p}`));
      await a.world.advance(30);
    }
    assert.equal(a.deeds, deeds);
    assert.deepEqual(
      a.world.toldPods().map((p) => p.metadata.uid),
      uids,
    );
    if (kept) assert.deepEqual(stored, [], 'nor is anything written to the card');
    await a.world.restart();
    await a.world.advance(60);
    assert.equal(a.deeds, deeds);
  });
}

test('I12: an old connection that is taken over, a marker that is late, wishes that come twice: 0 restarts', async () => {
  const a = await node(4);
  const deeds = a.deeds;
  for (let i = 0; i < 20; i++) {
    a.broker.cut(undefined, i % 3 === 0 ? 0x8e : undefined);
    if (i % 5 === 0) a.broker.sessions.clear();
    await a.world.advance(i % 4 === 0 ? 400 : 40);
    a.keep(a.topic('m0'), podJson('m0'));
  }
  await a.world.advance(longestPause);
  assert.equal(a.deeds, deeds);
  assert.deepEqual(a.said('m0'), 'Accepted Accepted');
});
