/** What PLEG adds to the record of an ended container: its last words, and a kill for want of memory that only an event told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PodCache } from '../../src/container/cache.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { type ContainerId, labels } from '../../src/container/words.ts';
import { OomKills } from '../../src/pleg/oomKills.ts';
import { Pleg } from '../../src/pleg/pleg.ts';
import type { Monotonic } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

async function world(words: (id: string) => string = () => '') {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  const told: string[] = [];
  const asked: string[] = [];
  const runs: string[] = [];
  const cache = new PodCache({ clock, onWait: (uid) => pleg.look(uid) });
  const pleg: Pleg = new Pleg({
    clock,
    log: silentLog,
    runtime,
    cache,
    mine: (l) => l[labels.managed] === 'node1',
    emit: (e) => told.push(e.type),
    inspectTimeoutMs: 10_000,
    running: (uid, ids) => runs.push(`${uid}: ${ids.join(' ')}`),
    lastWords: async ({ id }) => {
      asked.push(id);
      return words(id);
    },
  });
  const ours = { [labels.managed]: 'node1' };
  const config = sandboxConfig('web', { labels: ours });
  const sandbox = await runtime.runSandbox(config, '');
  const start = async (attempt: number): Promise<ContainerId> => {
    const id = await runtime.createContainer(sandbox, containerConfig(config, 'app', { labels: ours, attempt }), config);
    await runtime.startContainer(id);
    return id;
  };
  const first = await start(0);
  await pleg.relist();
  told.splice(0);
  const record = (id: string = first) => cache.get(config.uid)?.containers.find((c) => c.id === id);
  const oom = async (id: string) => {
    pleg.onRuntimeEvent({ containerId: id, topic: 'oom' });
    await settle();
    await settle();
  };
  return { clock, runtime, pleg, cache, told, asked, runs, config, start, first, record, oom };
}

test('the last words of a container stand behind the runtime’s own message, and are read once', async () => {
  const { runtime, pleg, first, record, asked, start } = await world(() => 'disk on fire');
  assert.deepEqual(asked, [], 'what runs has none');
  const c = runtime.containers.get(first);
  assert.ok(c);
  runtime.exit(first, 1);
  await pleg.relist();
  assert.equal(record()?.message, 'disk on fire');
  const second = await start(1);
  await pleg.relist();
  const other = runtime.containers.get(second);
  assert.ok(other);
  other.message = 'the runtime says';
  runtime.exit(second, 1);
  for (let i = 0; i < 3; i++) await pleg.relist();
  assert.equal(record(second)?.message, 'the runtime says: disk on fire');
  assert.equal(record()?.message, 'disk on fire');
  assert.deepEqual(asked, [first, second]);
});

test('without words the message is the runtime’s', async () => {
  const { runtime, pleg, first, record } = await world();
  const c = runtime.containers.get(first);
  assert.ok(c);
  c.message = 'only this';
  runtime.exit(first, 1);
  await pleg.relist();
  assert.equal(record()?.message, 'only this');
});

test('an inspection that failed is made again, words and all', async () => {
  const { runtime, pleg, first, record, told } = await world(() => 'bye');
  runtime.exit(first, 1);
  runtime.failNext('containerStatus', new RuntimeError('unknown', 'broken pipe'));
  await pleg.relist();
  assert.equal(record()?.state, 'running');
  await pleg.relist();
  assert.equal(record()?.message, 'bye');
  assert.deepEqual(told, ['ContainerDied']);
});

test('a kill that the runtime told only by an event is an OOM kill', async () => {
  const { runtime, pleg, first, record, oom } = await world();
  await oom(first);
  assert.equal(record()?.reason, '');
  runtime.exit(first, 137);
  await pleg.relist();
  assert.equal(record()?.reason, 'OOMKilled');
});

test('a kill that only the kernel counted is an OOM kill, told before the end or after it', async () => {
  for (const when of ['before', 'after'] as const) {
    const { runtime, pleg, first, record, config, told } = await world();
    const counted = async () => {
      pleg.oomKilled(first, config.uid);
      await settle();
      await settle();
    };
    if (when === 'before') await counted();
    runtime.exit(first, 137);
    await pleg.relist();
    if (when === 'after') await counted();
    assert.equal(record()?.reason, 'OOMKilled', when);
    assert.deepEqual(told, when === 'before' ? ['ContainerDied'] : ['ContainerDied', 'ContainerChanged']);
  }
});

test('a killed child of a container that goes on changes nothing', async () => {
  const { pleg, first, record, config, told } = await world();
  pleg.oomKilled(first, config.uid);
  await settle();
  await settle();
  assert.equal(record()?.state, 'running');
  assert.equal(record()?.reason, '');
  assert.deepEqual(told, []);
});

test('which containers of a pod run is said whenever it may have changed, for as long as there is a pod', async () => {
  const { runtime, pleg, first, config, start, runs } = await world();
  assert.deepEqual(runs.splice(0), [`${config.uid}: ${first}`]);
  await pleg.relist();
  assert.deepEqual(runs, []);
  runtime.exit(first, 1);
  await pleg.relist();
  assert.equal(runs.splice(0).at(-1), `${config.uid}: `);
  const second = await start(1);
  await pleg.relist();
  assert.equal(runs.splice(0).at(-1), `${config.uid}: ${second}`);
  const [sandbox] = runtime.sandboxes.keys();
  await runtime.removeSandbox(sandbox ?? assert.fail());
  await pleg.relist();
  assert.equal(runs.at(-1), `${config.uid}: `);
});

test('an event after the end corrects what was told, once, and that is news', async () => {
  const { runtime, pleg, first, record, oom, told, asked } = await world();
  runtime.exit(first, 137);
  await pleg.relist();
  assert.equal(record()?.reason, 'Error');
  assert.deepEqual(told.splice(0), ['ContainerDied']);
  await oom(first);
  assert.equal(record()?.reason, 'OOMKilled');
  assert.deepEqual(told.splice(0), ['ContainerChanged']);
  await oom(first);
  await pleg.relist();
  assert.deepEqual(told, []);
  assert.equal(asked.length, 2);
});

test('other ends stay what they are: another exit code, a reason the runtime gave, a kill long before', async () => {
  for (const [exitCode, reason, waitMs, wanted] of [
    [1, '', 0, 'Error'],
    [0, '', 0, 'Completed'],
    [137, 'StartError', 0, 'StartError'],
    [137, '', 31_000, 'Error'],
    [137, '', 29_000, 'OOMKilled'],
  ] as const) {
    const { clock, runtime, pleg, first, record, oom } = await world();
    await oom(first);
    await clock.advance(waitMs);
    const c = runtime.containers.get(first);
    assert.ok(c);
    c.reason = reason;
    runtime.exit(first, exitCode);
    await pleg.relist();
    assert.equal(record()?.reason, wanted, `${exitCode} ${reason} ${waitMs}`);
  }
});

test('kills are remembered for the newest containers only, and forgotten with them', () => {
  const kills = new OomKills();
  const at = (ms: number) => ms as Monotonic;
  for (let i = 0; i < 10_000; i++) kills.hear(`c${i}`, at(1));
  assert.equal(kills.near('c9743', at(2)), false);
  assert.equal(kills.near('c9744', at(2)), true);
  kills.forget('c9999');
  assert.equal(kills.near('c9999', at(2)), false);
});
