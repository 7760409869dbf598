/** What only the fake has: the hand of the test, virtual time, and its watch over what must never happen. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId, SandboxId } from '../../src/container/words.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

async function pod(o: { readonly latencyMs?: number } = {}) {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock, ...o });
  const config = sandboxConfig('web');
  const start = async (name: string, attempt = 0, sandbox = config): Promise<ContainerId> => {
    const [newest] = (await runtime.listSandboxes(sandbox.uid)).slice(-1);
    const id = newest === undefined ? await runtime.runSandbox(sandbox, '') : newest.id;
    const c = await runtime.createContainer(id, containerConfig(sandbox, name, { attempt }), sandbox);
    await runtime.startContainer(c);
    return c;
  };
  return { clock, runtime, config, start };
}

test('a process ends by itself when its time has come, with the code it was given', async () => {
  const { clock, runtime, start } = await pod();
  runtime.onStart((name) => (name === 'job' ? { exitAfterMs: 5_000, exitCode: 4 } : undefined));
  const job = await start('job');
  await start('server');
  await clock.advance(4_999);
  assert.deepEqual(runtime.running(), ['web/job', 'web/server']);
  await clock.advance(1);
  assert.deepEqual(runtime.running(), ['web/server']);
  const status = await runtime.containerStatus(job);
  assert.deepEqual([status.exitCode, (status.finishedAt ?? 0) - (status.startedAt ?? 0)], [4, 5_000]);
  assert.equal(clock.sleeping, 0);
});

test('a stop takes the stop delay, or the grace where TERM is ignored, and a shorter grace overtakes', async () => {
  const { clock, runtime, start } = await pod();
  runtime.onStart((name) => ({ stopDelayMs: 700, ignoresTerm: name === 'deaf' }));
  const [good, deaf] = [await start('good'), await start('deaf')];
  const stops = [runtime.stopContainer(good, 30), runtime.stopContainer(deaf, 30)];
  await clock.advance(700);
  assert.deepEqual(runtime.running(), ['web/deaf']);
  await clock.advance(1_000);
  stops.push(runtime.stopContainer(deaf, 2));
  await clock.advance(1_999);
  assert.deepEqual(runtime.running(), ['web/deaf']);
  await clock.advance(1);
  await Promise.all(stops);
  assert.deepEqual([(await runtime.containerStatus(good)).exitCode, (await runtime.containerStatus(deaf)).exitCode], [143, 137]);
});

test('a failure comes before the deed or after it, as often as asked', async () => {
  const { runtime, config } = await pod();
  runtime.failNext('runSandbox', new RuntimeError('unknown', 'cni'), 2);
  await assert.rejects(runtime.runSandbox(config, ''), /cni/);
  await assert.rejects(runtime.runSandbox(config, ''), /cni/);
  assert.equal(runtime.sandboxes.size, 0);
  runtime.failNext('runSandbox', new RuntimeError('deadlineExceeded', 'lost'), 1, 'after');
  await assert.rejects(runtime.runSandbox(config, ''), /lost/);
  assert.equal(runtime.sandboxes.size, 1);
  await assert.rejects(runtime.runSandbox(config, ''), /is reserved for/);
});

test('a hanging call goes on when released, ends by its deadline otherwise, and holds up no other', async () => {
  const { clock, runtime, config } = await pod();
  const other = sandboxConfig('other');
  const release = runtime.hang('runSandbox', ([c]) => (c as typeof config).name === 'web');
  const hung = runtime.runSandbox(config, '');
  await runtime.runSandbox(other, '');
  release();
  await hung;
  runtime.hang('listSandboxes');
  const list = assert.rejects(runtime.listSandboxes(), (e) => e instanceof RuntimeError && e.code === 'deadlineExceeded');
  await clock.advance(120_000);
  await list;
});

test('a stop whose caller went away leaves the container running', async () => {
  const { clock, runtime, start } = await pod();
  runtime.onStart(() => ({ ignoresTerm: true }));
  const id = await start('deaf');
  const stop = assert.rejects(runtime.stopContainer(id, 5), (e) => e instanceof RuntimeError && e.code === 'unavailable');
  await clock.advance(1_000);
  runtime.dropClients();
  await stop;
  await clock.advance(60_000);
  assert.deepEqual(runtime.running(), ['web/deaf']);
});

test('while the daemon is away every call is unavailable and containers live on', async () => {
  const { runtime, start } = await pod({});
  await start('main');
  runtime.setDown(true);
  await assert.rejects(runtime.version(), (e) => e instanceof RuntimeError && e.code === 'unavailable');
  runtime.setDown(false);
  assert.deepEqual(runtime.running(), ['web/main']);
});

test('a reboot leaves dead sandboxes and exited records, and no timers', async () => {
  const { clock, runtime, start } = await pod();
  runtime.onStart(() => ({ exitAfterMs: 60_000 }));
  const id = await start('main');
  runtime.reboot();
  const status = await runtime.containerStatus(id);
  assert.deepEqual([status.state, status.exitCode, status.reason], ['exited', 255, 'Unknown']);
  assert.deepEqual(
    (await runtime.listSandboxes()).map((s) => s.state),
    ['notready'],
  );
  assert.equal(clock.sleeping, 0);
});

test('a dead sandbox takes its containers along only where they share its process namespace', async () => {
  const { runtime, start } = await pod();
  const shared = sandboxConfig('shared', { namespaces: { network: 'POD', pid: 'POD', ipc: 'POD' } });
  await start('main');
  await start('main', 0, shared);
  for (const id of [...runtime.sandboxes.keys()]) runtime.killSandbox(id);
  assert.deepEqual(runtime.running(), ['web/main']);
});

test('events reach every listener, are lost when asked, and break', async () => {
  const { clock, runtime, start } = await pod();
  const told: string[] = [];
  const stop = new AbortController();
  const one = runtime.events(
    (e) => told.push(e.topic),
    () => told.push('ready'),
    stop.signal,
  );
  const id = await start('main');
  await clock.advance(0);
  assert.deepEqual(told, ['ready', 'create', 'start', 'create', 'start']);
  runtime.loseEvents(1);
  runtime.exit(id, 1);
  await clock.advance(0);
  assert.equal(told.length, 5);
  runtime.breakEvents();
  await assert.rejects(one, RuntimeError);
  assert.equal(runtime.listeners, 0);
});

test('an image is pulled in its time, or fails with its own error', async () => {
  const { clock, runtime } = await pod();
  runtime.images.set('slow:1', { state: 'pullable', pullMs: 3_000 });
  runtime.images.set('bad:1', { state: 'failing', error: new RuntimeError('unknown', 'toomanyrequests') });
  await assert.rejects(runtime.pullImage('bad:1'), /toomanyrequests/);
  const pull = runtime.pullImage('slow:1');
  await clock.advance(2_999);
  assert.equal(await runtime.imageStatus('slow:1'), undefined);
  await clock.advance(1);
  assert.equal((await runtime.imageStatus(await pull))?.id, await pull);
});

test('latency is on the clock', async () => {
  const { clock, runtime } = await pod({ latencyMs: 50 });
  let answered = false;
  const version = runtime.version().then(() => {
    answered = true;
  });
  await clock.advance(49);
  assert.equal(answered, false);
  await clock.advance(1);
  await version;
});

test('it sees two of one name run, a second sandbox beside a live one, and a successor before its predecessor\u2019s end', async () => {
  const { runtime, config, start } = await pod();
  const first = await start('main');
  await start('main', 1);
  assert.match(runtime.violations.splice(0).join(), /container main of default\/web started .* while .* runs/);
  runtime.exit(first, 0);
  await runtime.runSandbox({ ...config, attempt: 1 }, '');
  assert.match(runtime.violations.splice(0).join(), /its own older sandbox/);
  await runtime.runSandbox(sandboxConfig('web', { uid: 'next' as PodUid }), '');
  assert.match(runtime.violations.splice(0).join(), /its predecessor uid-web/);
  // a pod of somebody else, with the same name, is none of our business
  await runtime.runSandbox(sandboxConfig('web', { uid: 'theirs' as PodUid, labels: { 'podsched.dev/managed': 'another' } }), '');
  assert.deepEqual(runtime.violations, []);
  for (const id of [...runtime.sandboxes.keys()] as SandboxId[]) await runtime.stopSandbox(id);
  await runtime.runSandbox(sandboxConfig('web', { uid: 'later' as PodUid }), '');
  assert.deepEqual(runtime.violations, []);
});
