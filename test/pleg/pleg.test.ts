import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { PodCache } from '../../src/container/cache.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { type ContainerId, labels, type SandboxId } from '../../src/container/words.ts';
import { Pleg } from '../../src/pleg/pleg.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

const ours = { [labels.managed]: 'node1' };

function world(o: { latencyMs?: number; expectLooks?: boolean } = {}) {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock, ...(o.latencyMs !== undefined && { latencyMs: o.latencyMs }) });
  const told: string[] = [];
  const cache = new PodCache({ clock, onWait: (uid) => pleg.look(uid) });
  const pleg: Pleg = new Pleg({
    clock,
    log: silentLog,
    runtime,
    cache,
    mine: (l) => l[labels.managed] === 'node1',
    emit: (e) => {
      // what is told is already true for whoever asks
      assert.equal(
        pleg.pods().some((p) => p.uid === e.uid),
        cache.get(e.uid) !== undefined,
      );
      told.push(`${e.uid} ${e.type}`);
    },
    inspectTimeoutMs: 10_000,
  });
  const stop = new AbortController();
  const took = () => told.splice(0);
  const calls = () => {
    const names = runtime.calls.map((c) => c.method);
    runtime.calls.splice(0);
    return names;
  };
  /** A sandbox and one running container. */
  const runPod = async (name: string, managed: Record<string, string> = ours) => {
    const config = sandboxConfig(name, { labels: managed });
    const sandbox = await runtime.runSandbox(config, '');
    const container = await runtime.createContainer(sandbox, containerConfig(config, 'app', { labels: managed }), config);
    await runtime.startContainer(container);
    return { uid: config.uid, sandbox, container, config };
  };
  /** The runtime's events reach PLEG, as the wiring has it. */
  const connect = () => {
    runtime
      .events(
        (e) => pleg.onRuntimeEvent(e),
        () => pleg.setEventsHealthy(true),
        stop.signal,
      )
      .then(
        () => {},
        () => pleg.setEventsHealthy(false),
      );
  };
  return { clock, runtime, cache, pleg, took, calls, runPod, connect, stop };
}

test('a relist tells what changed since the last, in the order cache, record, event', async () => {
  const { pleg, runtime, cache, took, runPod } = world();
  const web = await runPod('web');
  assert.equal(pleg.listed(), false);
  await pleg.relist();
  assert.equal(pleg.listed(), true);
  assert.deepEqual(took(), ['uid-web ContainerStarted', 'uid-web ContainerStarted']);
  assert.deepEqual(cache.get(web.uid)?.ips, ['10.88.0.1']);
  runtime.exit(web.container, 3);
  await pleg.relist();
  assert.deepEqual(took(), ['uid-web ContainerDied']);
  assert.equal(cache.get(web.uid)?.containers[0]?.exitCode, 3);
  await runtime.removeSandbox(web.sandbox);
  await pleg.relist();
  assert.deepEqual(took().sort(), ['uid-web ContainerDied', 'uid-web ContainerRemoved', 'uid-web ContainerRemoved']);
  assert.equal(cache.get(web.uid), undefined);
  assert.deepEqual(pleg.pods(), []);
});

test('only what changed is inspected: a quiet relist is two list calls, an exit one inspection', async () => {
  const { pleg, runtime, calls, runPod } = world();
  const web = await runPod('web');
  await runPod('db');
  await pleg.relist();
  calls();
  await pleg.relist();
  assert.deepEqual(calls(), ['listSandboxes', 'listContainers']);
  runtime.exit(web.container, 0);
  pleg.look(web.uid);
  await settle();
  assert.deepEqual(calls(), ['listSandboxes', 'listContainers', 'containerStatus']);
  runtime.killSandbox(web.sandbox);
  pleg.look(web.uid);
  await settle();
  assert.deepEqual(calls(), ['listSandboxes', 'listContainers', 'sandboxStatus']);
});

test('addresses stay when the sandbox is dead and a new inspection shows none', async () => {
  const { pleg, runtime, cache, runPod } = world();
  const web = await runPod('web');
  await pleg.relist();
  runtime.killSandbox(web.sandbox);
  await pleg.relist();
  assert.equal(cache.get(web.uid)?.sandboxes[0]?.state, 'notready');
  assert.deepEqual(cache.get(web.uid)?.ips, ['10.88.0.1']);
});

test('pods of somebody else are no pods here', async () => {
  const { pleg, took, calls, runPod } = world();
  await runPod('theirs', {});
  calls();
  await pleg.relist();
  assert.deepEqual(took(), []);
  assert.deepEqual(pleg.pods(), []);
  assert.deepEqual(calls(), ['listSandboxes', 'listContainers']);
});

test('a failed inspection tells nothing and leaves the record: the same difference is found again', async () => {
  const { pleg, runtime, cache, clock, took, runPod, stop } = world();
  const web = await runPod('web');
  await pleg.relist();
  took();
  runtime.exit(web.container, 1);
  runtime.failNext('containerStatus', new RuntimeError('unknown', 'broken pipe'), 2);
  const deed = cache.stamp();
  await assert.rejects(cache.getNewerThan(web.uid, deed, stop.signal), /broken pipe/);
  await pleg.relist();
  assert.deepEqual(took(), []);
  assert.equal(cache.get(web.uid)?.containers[0]?.state, 'running');
  await pleg.relist();
  assert.deepEqual(took(), ['uid-web ContainerDied']);
  assert.equal((await cache.getNewerThan(web.uid, deed, stop.signal)).containers[0]?.exitCode, 1);
  await clock.advance(0);
});

test('while it runs, a failed inspection is tried again after 1 s, without waiting for a list of all', async () => {
  const { pleg, runtime, clock, took, runPod, connect, stop } = world();
  connect();
  const running = pleg.run(stop.signal);
  const web = await runPod('web');
  await clock.advance(100);
  took();
  runtime.failNext('containerStatus', new RuntimeError('unknown', 'broken pipe'), 2);
  runtime.exit(web.container, 1);
  await clock.advance(1900);
  assert.deepEqual(took(), []);
  await clock.advance(200);
  assert.deepEqual(took(), ['uid-web ContainerDied']);
  stop.abort();
  await running;
});

test('a hung inspection ends by its own deadline and holds up no other pod', async () => {
  const { pleg, runtime, cache, clock, took, runPod, stop } = world();
  const hung = await runPod('hung');
  const web = await runPod('web');
  const release = runtime.hang('containerStatus', ([id]) => id === hung.container);
  const relisted = pleg.relist();
  const waiting = cache.getNewerThan(hung.uid, cache.stamp(), stop.signal);
  waiting.catch(() => {});
  await clock.advance(1);
  assert.deepEqual(took(), ['uid-web ContainerStarted', 'uid-web ContainerStarted']);
  assert.equal(cache.get(web.uid)?.containers.length, 1);
  runtime.exit(web.container, 0);
  pleg.look(web.uid);
  await clock.advance(1);
  assert.deepEqual(took(), ['uid-web ContainerDied']);
  await clock.advance(20_000);
  await assert.rejects(waiting, /did not answer within 10000 ms/);
  await relisted;
  release();
  await pleg.relist();
  assert.deepEqual(took(), ['uid-hung ContainerStarted', 'uid-hung ContainerStarted']);
});

test('a pod whose first inspection hangs never looks empty to its worker', async () => {
  const { pleg, runtime, cache, clock, runPod, stop } = world();
  await pleg.relist();
  const web = await runPod('web');
  const release = runtime.hang('sandboxStatus');
  const answer = cache.getNewerThan(web.uid, cache.stamp(), stop.signal);
  await clock.advance(10);
  pleg.relist().catch(() => {});
  await clock.advance(10);
  release();
  assert.equal((await answer).sandboxes.length, 1);
});

test('what vanishes between list and inspection is left out, and told as gone', async () => {
  const { pleg, runtime, cache, took, runPod } = world();
  const web = await runPod('web');
  await pleg.relist();
  took();
  runtime.exit(web.container, 0);
  runtime.failNext('containerStatus', new RuntimeError('notFound', 'no such container'));
  await pleg.relist();
  assert.deepEqual(took(), ['uid-web ContainerDied', 'uid-web ContainerRemoved']);
  assert.deepEqual(cache.get(web.uid)?.containers, []);
});

test('an answer that comes late is older news: it undoes nothing that a later list has shown', async () => {
  const { pleg, runtime, cache, took, runPod } = world();
  const web = await runPod('web');
  await pleg.relist();
  took();
  const old = await runtime.listContainers();
  const list = runtime.listContainers.bind(runtime);
  let answer: () => void = () => {};
  runtime.listContainers = (uid) =>
    uid !== undefined
      ? list(uid)
      : new Promise((resolve) => {
          answer = () => resolve(old);
        });
  const late = pleg.relist();
  runtime.exit(web.container, 1);
  pleg.look(web.uid);
  await settle();
  assert.deepEqual(took(), ['uid-web ContainerDied']);
  answer();
  await late;
  assert.deepEqual(took(), []);
  assert.equal(cache.get(web.uid)?.containers[0]?.state, 'exited');
});

test('looks at one pod never overlap, and any number of requests during one make one more', async () => {
  const { pleg, clock, calls, runPod, runtime } = world({ latencyMs: 10 });
  const made = runPod('web');
  await clock.advance(100);
  const web = await made;
  runtime.calls.splice(0);
  for (let i = 0; i < 5; i++) pleg.look(web.uid);
  await clock.advance(5);
  for (let i = 0; i < 5; i++) pleg.look(web.uid);
  await clock.advance(100);
  assert.deepEqual(
    calls().filter((m) => m === 'listSandboxes'),
    ['listSandboxes', 'listSandboxes'],
  );
});

test('two lists of all at once are one after the other, and any number of requests share the second', async () => {
  const { pleg, clock, calls } = world({ latencyMs: 10 });
  const all = Promise.all([pleg.relist(), pleg.relist(), pleg.relist()]);
  await clock.advance(100);
  await all;
  assert.equal(calls().length, 4);
});

test('a runtime event makes PLEG look at its pod; an id nobody knows makes it list all, once for many', async () => {
  const { pleg, clock, calls, took, runPod, connect, runtime, stop } = world();
  connect();
  const running = pleg.run(stop.signal);
  await clock.advance(10);
  calls();
  const web = await runPod('web');
  await clock.advance(100);
  assert.deepEqual(took(), ['uid-web ContainerStarted', 'uid-web ContainerStarted']);
  assert.equal(calls().filter((m) => m === 'listSandboxes').length, 1);
  runtime.exit(web.container, 1);
  await clock.advance(1);
  assert.deepEqual(took(), ['uid-web ContainerDied']);
  await runPod('theirs', {});
  await clock.advance(100);
  calls();
  const theirs = runtime.find('theirs', 'app');
  if (theirs !== undefined) runtime.exit(theirs.id, 0);
  await clock.advance(1000);
  assert.deepEqual(calls(), [], 'events of what is known to be foreign cost nothing');
  stop.abort();
  await running;
  assert.equal(clock.sleeping, 0);
});

test('an id told by its maker needs no list of all: its pod is looked at, also when the event came first', async () => {
  const { pleg, runtime, clock, calls, took, connect, stop } = world();
  connect();
  const running = pleg.run(stop.signal);
  await clock.advance(10);
  calls();
  const config = sandboxConfig('web', { labels: ours });
  const sandbox = await runtime.runSandbox(config, '');
  await settle();
  pleg.expectEvent(sandbox, config.uid);
  await clock.advance(1);
  assert.deepEqual(took(), ['uid-web ContainerStarted']);
  assert.deepEqual(calls(), ['runSandbox', 'listSandboxes', 'listContainers', 'sandboxStatus']);
  await clock.advance(1000);
  assert.deepEqual(calls(), []);
  stop.abort();
  await running;
});

test('all pods are listed every 60 s while events flow, and every second while they do not', async () => {
  const { pleg, runtime, clock, calls, connect, stop } = world();
  const running = pleg.run(stop.signal);
  const lists = () => calls().filter((m) => m === 'listSandboxes').length;
  await clock.advance(5500);
  assert.equal(lists(), 6);
  connect();
  await clock.advance(100);
  assert.equal(lists(), 1, 'what happened while nobody listened is in the list only');
  await clock.advance(600_000);
  assert.equal(lists(), 10);
  runtime.breakEvents();
  await clock.advance(5100);
  assert.equal(lists(), 5);
  stop.abort();
  await running;
});

test('an act of ours that comes back as no event makes the stream unhealthy, until an event comes', async () => {
  const { pleg, runtime, clock, calls, runPod, connect, stop } = world();
  connect();
  const running = pleg.run(stop.signal);
  const web = await runPod('web');
  await clock.advance(1000);
  runtime.loseEvents(1);
  runtime.exit(web.container, 0);
  await clock.advance(10_000);
  calls();
  pleg.expectEvent(web.container, web.uid);
  const lists = () => calls().filter((m) => m === 'listSandboxes').length;
  await clock.advance(13_100);
  assert.equal(lists(), 10);
  await runPod('db');
  await clock.advance(200);
  lists();
  await clock.advance(59_000);
  assert.equal(lists(), 0);
  stop.abort();
  await running;
});

test('an echo that came before the call answered counts', async () => {
  const { pleg, clock, calls, runPod, connect, stop } = world();
  connect();
  const running = pleg.run(stop.signal);
  const web = await runPod('web');
  await clock.advance(500);
  pleg.expectEvent(web.container, web.uid);
  calls();
  await clock.advance(30_000);
  assert.deepEqual(calls(), []);
  stop.abort();
  await running;
});

test('without a runtime PLEG asks on, and those who wait are answered when it is back', async () => {
  const { pleg, runtime, cache, clock, runPod, stop } = world();
  const web = await runPod('web');
  runtime.setDown(true);
  const running = pleg.run(stop.signal);
  await assert.rejects(pleg.relist(), /ENOENT/);
  const known = cache.getNewerThan(web.uid, cache.stamp(), stop.signal);
  const unknown = cache.getNewerThan('uid-new' as PodUid, cache.stamp(), stop.signal);
  await clock.advance(30_000);
  assert.equal(pleg.listed(), false);
  runtime.setDown(false);
  await clock.advance(1100);
  assert.equal((await known).containers.length, 1);
  assert.deepEqual((await unknown).sandboxes, []);
  stop.abort();
  await running;
});

test('an exit is dated by when this agent first saw it, on the monotonic clock, and forgotten with the container', async () => {
  const { pleg, runtime, clock, runPod } = world();
  const web = await runPod('web');
  await pleg.relist();
  assert.equal(pleg.exitSeenAt(web.container), clock.monotonic(), 'one that has not exited: now');
  runtime.exit(web.container, 1);
  await clock.advance(5000);
  const seen = clock.monotonic();
  runtime.failNext('containerStatus', new RuntimeError('unknown', 'broken pipe'));
  await pleg.relist();
  clock.setWall(0);
  await clock.advance(5000);
  await pleg.relist();
  assert.equal(pleg.exitSeenAt(web.container), seen);
  await runtime.removeContainer(web.container);
  await pleg.relist();
  assert.equal(pleg.exitSeenAt(web.container), clock.monotonic());
});

test('a container whose state the runtime has lost is told; one only created is not', async () => {
  const { pleg, runtime, took, calls, runPod } = world();
  const web = await runPod('web');
  const next = await runtime.createContainer(web.sandbox, containerConfig(web.config, 'side', { labels: ours }), web.config);
  await pleg.relist();
  assert.deepEqual(took(), ['uid-web ContainerStarted', 'uid-web ContainerStarted']);
  const record = runtime.containers.get(web.container);
  if (record !== undefined) record.state = 'unknown';
  await pleg.relist();
  assert.deepEqual(took(), ['uid-web ContainerChanged']);
  calls();
  await pleg.relist();
  assert.deepEqual(calls(), ['listSandboxes', 'listContainers', 'containerStatus'], 'asked again until it is known');
  assert.equal(runtime.containers.get(next)?.state, 'created');
});

test('newest first: by attempt, not by time', async () => {
  const { pleg, runtime, cache, clock, runPod } = world();
  const web = await runPod('web');
  runtime.exit(web.container, 1);
  clock.setWall(0);
  const second: ContainerId = await runtime.createContainer(
    web.sandbox,
    containerConfig(web.config, 'app', { attempt: 1, labels: ours }),
    web.config,
  );
  await pleg.relist();
  assert.deepEqual(
    cache.get(web.uid)?.containers.map((c) => c.id),
    [second, web.container],
  );
  const ids: readonly SandboxId[] = cache.get(web.uid)?.sandboxes.map((s) => s.id) ?? [];
  assert.deepEqual(ids, [web.sandbox]);
});
