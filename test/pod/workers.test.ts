import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { desiredPod } from './desiredPod.ts';
import { World } from './world.ts';

const web = desiredPod('web', 'u1');

test('a pod runs, is looked at again when the runtime says so, and then once a minute', async () => {
  const w = new World();
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  // once to start it, once for the sandbox seen, once for the container seen
  assert.deepEqual(w.took(), ['sync u1', 'sync u1', 'sync u1']);
  assert.equal(w.workers.state(web.uid), 'sync');
  assert.equal(w.workers.idle(), true);
  await w.clock.advance(600_000);
  assert.equal(w.took().length, 10);
  assert.deepEqual(w.runtime.violations, []);
  await w.end();
  assert.equal(w.clock.sleeping, 0);
});

test('a removed pod is ended by its grace, told finished, and forgotten', async () => {
  const w = new World();
  w.runtime.onStart(() => ({ ignoresTerm: true }));
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  w.took();
  w.remove(web);
  await w.clock.advance(29_000);
  assert.equal(w.workers.state(web.uid), 'terminating');
  assert.deepEqual(w.runtime.running(), ['web/app']);
  await w.clock.advance(1500);
  assert.deepEqual(w.took(), ['kill u1 30', 'terminated u1', 'gone u1']);
  assert.equal(w.workers.state(web.uid), undefined);
  assert.deepEqual(w.runtime.running(), []);
  await w.end();
});

test('create, kill and update in a burst never lose the kill (facts 3.11)', async () => {
  const w = new World();
  await w.run();
  w.add(web);
  w.remove(web);
  w.workers.updatePod({ type: 'update', pod: web });
  await w.clock.advance(1000);
  const log = w.took();
  assert.deepEqual(log.slice(-3), ['kill u1 30', 'terminated u1', 'gone u1']);
  assert.deepEqual(w.runtime.running(), []);
  await w.end();
});

test('a shorter grace cancels the running kill and begins it anew; a longer one changes nothing', async () => {
  const w = new World();
  w.runtime.onStart(() => ({ ignoresTerm: true }));
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  w.took();
  w.remove(web);
  await w.clock.advance(2000);
  w.workers.updatePod({ type: 'kill', pod: web, killGraceSeconds: 60 });
  await w.clock.advance(1000);
  assert.deepEqual(w.took(), ['kill u1 30']);
  w.workers.updatePod({ type: 'kill', pod: web, killGraceSeconds: 4 });
  await w.clock.advance(4200);
  assert.deepEqual(w.took(), ['kill u1 4', 'terminated u1', 'gone u1']);
  await w.end();
});

test('an instance that waits for its predecessor and is removed just vanishes', async () => {
  const w = new World();
  w.runtime.onStart(() => ({ ignoresTerm: true }));
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  w.remove(web);
  const next = desiredPod('web', 'u2');
  w.add(next);
  await w.clock.advance(100);
  assert.equal(w.workers.state(next.uid), 'waiting');
  w.took();
  w.remove(next);
  assert.deepEqual(w.took(), ['gone u2']);
  assert.equal(w.workers.state(next.uid), undefined);
  await w.end();
});

test('the end of a predecessor wakes the successor at once, not at some tick', async () => {
  const w = new World();
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  w.took();
  w.remove(web);
  w.add(desiredPod('web', 'u2'));
  await w.clock.advance(150);
  assert.deepEqual(w.took().slice(0, 4), ['kill u1 30', 'terminated u1', 'gone u1', 'sync u2']);
  assert.deepEqual(w.runtime.violations, []);
  await w.end();
});

test('pods of other names wait for nobody, also while one hangs', async () => {
  const w = new World();
  await w.run();
  w.runtime.hang('runSandbox', ([config]) => (config as { name: string }).name === 'web');
  w.add(web);
  w.add(desiredPod('db', 'u2'));
  await w.clock.advance(200);
  assert.deepEqual(w.runtime.running(), ['db/app']);
  await w.end();
});

test('a pod that ended by itself stays known while it is desired, so that it does not run again, and goes when it is removed', async () => {
  const w = new World({ syncPod: async () => ({ terminal: true }) });
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  assert.deepEqual(w.took(), ['kill u1 own', 'terminated u1']);
  assert.equal(w.workers.state(web.uid), 'finished');
  w.workers.updatePod({ type: 'create', pod: web });
  w.workers.updatePod({ type: 'sync', pod: web });
  await w.clock.advance(200_000);
  assert.deepEqual(w.took(), []);
  w.remove(web);
  assert.deepEqual(w.took(), ['gone u1']);
  assert.equal(w.workers.state(web.uid), undefined);
  await w.end();
});

test('a finished pod leaves its name to a successor', async () => {
  let ended = true;
  const w = new World({ syncPod: (pod, status) => (ended ? Promise.resolve({ terminal: true }) : w.syncPod(pod, status)) });
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  ended = false;
  w.add(desiredPod('web', 'u2'));
  await w.clock.advance(200);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  await w.end();
});

test('errors are retried after 10 to 15 s, a network that is not ready after 1 to 1.5 s', async () => {
  const times: number[] = [];
  let error = new Error('CreateContainerError: no space left');
  const w = new World({
    random: () => 0.5,
    syncPod: async () => {
      times.push(w.at);
      return { terminal: false, error, acted: false };
    },
  });
  await w.run();
  const begun = w.at;
  w.add(web);
  await w.clock.advance(26_000);
  assert.deepEqual(
    times.map((t) => t - begun),
    [0, 12_500, 25_000],
  );
  error = new Error('network is not ready: cni plugin not initialized');
  await w.clock.advance(11_500);
  times.splice(0);
  await w.clock.advance(3900);
  assert.equal(times.length, 3);
  await w.end();
});

test('a step that throws is an error like any other, and the next sees news newer than it', async () => {
  let fail = true;
  const w = new World({
    syncPod: (pod, status) => {
      if (fail) return Promise.reject(new Error('broken world'));
      return w.syncPod(pod, status);
    },
  });
  await w.run();
  w.add(web);
  await w.clock.advance(100);
  fail = false;
  w.runtime.calls.splice(0);
  await w.clock.advance(10_100);
  assert.equal(w.runtime.calls[0]?.method, 'listSandboxes', 'nobody knows how far the failed step came');
  assert.deepEqual(w.runtime.running(), ['web/app']);
  await w.end();
});

test('an exact moment asked for by the step is kept', async () => {
  const times: number[] = [];
  const w = new World({
    random: () => 0.9,
    syncPod: async () => {
      times.push(w.at);
      return { terminal: false, acted: false, ...(times.length === 1 && { retryAfterMs: 3210 }) };
    },
  });
  await w.run();
  w.add(web);
  await w.clock.advance(5000);
  assert.equal((times[1] ?? 0) - (times[0] ?? 0), 3210);
  await w.end();
});

test('after a deed one more decision follows at once, on news newer than its end; after none, any will do', async () => {
  let acted = false;
  let steps = 0;
  const w = new World({
    syncPod: async () => {
      steps++;
      return { terminal: false, acted };
    },
  });
  await w.run();
  w.add(web);
  await w.clock.advance(100);
  const asked = () => w.runtime.calls.splice(0).filter((c) => c.method === 'listSandboxes').length;
  const step = async (acts: boolean) => {
    acted = acts;
    asked();
    steps = 0;
    w.workers.updatePod({ type: 'sync', pod: web });
    await w.clock.advance(100);
    return { steps, asked: asked() };
  };
  assert.deepEqual(await step(false), { steps: 1, asked: 0 });
  // the first on the news there are, the one that follows on newer ones; it says that it acted too, and no third follows by itself
  assert.deepEqual(await step(true), { steps: 2, asked: 1 });
  assert.deepEqual(await step(false), { steps: 1, asked: 1 });
  await w.end();
});

test('a sandbox made in a sync is never made twice, though events are lost and the wish comes again at once', async () => {
  const w = new World();
  await w.run();
  w.runtime.loseEvents(1000);
  w.add(web);
  for (let i = 0; i < 20; i++) {
    w.workers.updatePod({ type: 'update', pod: web });
    await w.clock.advance(3);
  }
  await w.clock.advance(5000);
  assert.deepEqual(w.runtime.violations, []);
  assert.equal(w.runtime.calls.filter((c) => c.method === 'runSandbox').length, 1);
  await w.end();
});

test('a pod whose state cannot be read is told, tried again, and touched by nothing meanwhile', async () => {
  const told: string[] = [];
  const w = new World({ unreadable: (pod, e) => told.push(`${pod.uid} ${(e as Error).message}`) });
  await w.run();
  await w.leftBehind('web', 'u1');
  const container = w.runtime.find('web', 'app');
  assert.ok(container);
  w.runtime.failNext('containerStatus', new RuntimeError('unknown', 'broken pipe'), 3);
  w.runtime.exit(container.id, 1);
  await w.clock.advance(20);
  w.add(web);
  await w.clock.advance(100);
  assert.deepEqual(told, ['u1 broken pipe']);
  assert.deepEqual(w.took(), []);
  await w.clock.advance(10_100);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  await w.end();
});

test('without a runtime a pod waits, can be removed meanwhile, and no step runs on old news', async () => {
  const w = new World();
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  w.took();
  w.runtime.setDown(true);
  w.remove(web);
  await w.clock.advance(60_000);
  w.runtime.setDown(false);
  await w.clock.advance(20_000);
  assert.deepEqual(w.took().slice(-2), ['terminated u1', 'gone u1']);
  assert.deepEqual(w.runtime.running(), []);
  await w.end();
});

test('an orphan in the runtime is ended by its own grace and leaves no worker behind', async () => {
  const w = new World();
  await w.leftBehind('old', 'u9');
  await w.run();
  const pod = w.pleg.pods()[0];
  assert.ok(pod);
  w.workers.updatePod({ type: 'kill', runtimePod: pod });
  await w.clock.advance(100);
  assert.deepEqual(w.took(), ['orphan u9', 'gone u9']);
  assert.equal(w.workers.state('u9' as PodUid), undefined);
  assert.deepEqual(w.runtime.running(), []);
  await w.end();
});

for (const sandboxDied of [false, true])
  test(`an orphan that the runtime still shows ${sandboxDied ? 'running' : 'ready'} has not ended`, async () => {
    let tries = 0;
    const w = new World({
      syncTerminatingRuntimePod: async (pod) => {
        tries += 1;
        if (tries > 1) await w.stopAll(pod, 1);
      },
    });
    await w.leftBehind('old', 'u9');
    for (const id of sandboxDied ? w.runtime.sandboxes.keys() : []) w.runtime.killSandbox(id);
    await w.run();
    const pod = w.pleg.pods()[0];
    assert.ok(pod);
    w.workers.updatePod({ type: 'kill', runtimePod: pod });
    await w.clock.advance(9000);
    assert.equal(w.workers.state('u9' as PodUid), 'terminating');
    await w.clock.advance(1500);
    assert.equal(w.workers.state('u9' as PodUid), undefined);
    await w.end();
  });

test('a predecessor that only the runtime knows is ended before its successor starts', async () => {
  const w = new World();
  await w.leftBehind('web', 'u0');
  await w.leftBehind('web', 'u00');
  w.runtime.violations.splice(0);
  await w.run();
  w.add(web);
  assert.equal(w.workers.state(web.uid), 'waiting');
  await w.clock.advance(500);
  assert.deepEqual(w.took().slice(0, 4).sort(), ['gone u0', 'gone u00', 'orphan u0', 'orphan u00']);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.equal(w.runtime.find('web', 'app')?.podUid, web.uid);
  assert.deepEqual(w.runtime.violations, []);
  await w.end();
});

test('a predecessor whose container the runtime cannot place any more is ended once and blocks nobody', async () => {
  const w = new World({ predecessors: (pod) => w.pleg.pods().filter((p) => p.uid !== pod.uid && p.name === pod.name) });
  await w.leftBehind('web', 'u0');
  const lost = w.runtime.find('web', 'app');
  assert.ok(lost);
  lost.state = 'unknown';
  await w.run();
  w.add(web);
  await w.clock.advance(500);
  assert.deepEqual(w.took().slice(0, 3), ['orphan u0', 'gone u0', 'sync u1']);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  await w.end();
});

test('housekeeping ends what nobody wants, drops what has finished, and keeps what is desired (facts 3.8)', async () => {
  const ends = new Set(['u3', 'u4']);
  const w = new World({ syncPod: (pod, status) => (ends.has(pod.uid) ? Promise.resolve({ terminal: true }) : w.syncPod(pod, status)) });
  await w.run();
  const unwanted = desiredPod('unwanted', 'u2');
  const finished = desiredPod('finished', 'u3');
  const over = desiredPod('over', 'u4');
  const waiting = desiredPod('unwanted', 'u5');
  for (const pod of [web, unwanted, finished, over, waiting]) w.add(pod);
  await w.clock.advance(300);
  w.took();
  for (const pod of [unwanted, over, waiting]) w.pods.remove(pod.uid);
  const views = w.workers.syncKnownPods(new Set([web.uid, finished.uid]));
  assert.deepEqual(
    [...views].sort().map(([uid, v]) => [uid, v.state, v.orphan]),
    [
      ['u1', 'sync', false],
      ['u2', 'terminating', true],
      ['u3', 'finished', false],
    ],
  );
  await w.clock.advance(300);
  assert.deepEqual(w.took().sort(), ['gone u2', 'gone u4', 'gone u5', 'kill u2 30', 'terminated u2']);
  assert.equal(w.workers.syncKnownPods(new Set([web.uid, finished.uid])).size, 2);
  await w.end();
});

test('what others ask: may it run, may its content go (facts 3.9)', async () => {
  const w = new World();
  w.runtime.onStart(() => ({ ignoresTerm: true }));
  await w.run();
  const unknown = 'u9' as PodUid;
  assert.deepEqual([w.workers.couldHaveRunningContainers(unknown), w.workers.shouldPodContentBeRemoved(unknown)], [true, false]);
  w.workers.syncKnownPods(new Set());
  assert.deepEqual([w.workers.couldHaveRunningContainers(unknown), w.workers.shouldPodContentBeRemoved(unknown)], [false, true]);
  w.add(web);
  await w.clock.advance(200);
  assert.deepEqual([w.workers.couldHaveRunningContainers(web.uid), w.workers.shouldPodContentBeRemoved(web.uid)], [true, false]);
  assert.equal(w.workers.isTerminationRequested(web.uid), false);
  w.workers.updatePod({ type: 'kill', pod: web, evict: true, killGraceSeconds: 1 });
  assert.equal(w.workers.isTerminationRequested(web.uid), true);
  assert.equal(w.workers.shouldPodContentBeRemoved(web.uid), true, 'an evicted pod gives its space back');
  await w.clock.advance(2000);
  assert.equal(w.workers.state(web.uid), 'finished', 'it is still desired: it must not run again under this UID');
  assert.equal(w.workers.couldHaveRunningContainers(web.uid), false);
  await w.end();
});

test('stop ends waits, takes no further step and touches no container', async () => {
  const w = new World();
  await w.run();
  w.add(web);
  await w.clock.advance(200);
  const deeds = w.runtime.deeds.length;
  await w.end();
  w.workers.updatePod({ type: 'kill', pod: web });
  await w.clock.advance(100_000);
  assert.equal(w.runtime.deeds.length, deeds);
  assert.deepEqual(w.runtime.running(), ['web/app']);
});
