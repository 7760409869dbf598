import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { settle } from '../fakes/fakeClock.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';
import { container, desiredPod, House } from './house.ts';

const forEver = ['sleep', '10000000'];
const hooked = (name: string, command: readonly string[] = forEver, o: object = {}) =>
  container(name, { lifecycle: { preStop: { exec: { command } } }, ...o });
const exec =
  (of: Readonly<Record<string, { takesMs?: number; exitCode?: number }>>, more: ProcessBehaviour = {}) =>
  (name: string): ProcessBehaviour => ({ ...more, exec: () => of[name] });

/** A house with the pod running, and nothing told yet. */
async function running(pod: DesiredPod, behaviour: (name: string) => ProcessBehaviour): Promise<House> {
  const house = new House();
  house.runtime.onStart(behaviour);
  await house.settle(pod);
  house.deeds();
  house.events.length = 0;
  return house;
}

const execs = (house: House) => house.runtime.calls.filter((c) => c.method === 'execSync');
const told = (house: House) => house.events.filter((e) => !e.includes('Killing'));
const overran = (name: string, grace: number) =>
  `${name} Warning PreStopHookOverran: the preStop hook had not ended when the grace of ${grace} s was over, and was cut off`;

test('D1: a preStop that hangs is cut at the end of the grace, the container is gone two seconds later, and it is told', async () => {
  const table: [grace: number, runs: boolean, goneAfterMs: number][] = [
    [10, true, 12_000],
    [1, true, 3_000],
    [0, false, 2_000],
  ];
  for (const [grace, runs, goneAfterMs] of table) {
    const pod = desiredPod({ containers: [hooked('c')], terminationGracePeriodSeconds: 30 });
    const house = await running(pod, exec({ c: { takesMs: 10_000_000_000 } }, { ignoresTerm: true }));
    const began = house.clock.monotonic();
    await house.drive(house.kube.killPod(pod, await house.inspect(pod), grace));
    assert.equal(execs(house).length, runs ? 1 : 0, `grace ${grace}`);
    assert.deepEqual(told(house), runs ? [overran('c', grace)] : []);
    assert.deepEqual(house.deeds(), ['stopContainer c#0 2s', 'stopSandbox sandbox#0']);
    assert.equal(house.clock.monotonic() - began, goneAfterMs);
    assert.equal(house.clock.sleeping, 0, 'nothing goes on in the background');
  }
});

test('what the hook uses is taken from the grace in whole seconds, and the command has no time-out of its own', async () => {
  const table: [takesMs: number, stop: string][] = [
    [0, '10s'],
    [999, '10s'],
    [1000, '9s'],
    [4500, '6s'],
    [9000, '2s'],
  ];
  for (const [takesMs, stop] of table) {
    const pod = desiredPod({ containers: [hooked('c', ['stop', '$(X)'])], terminationGracePeriodSeconds: 10 });
    const house = await running(pod, exec({ c: { takesMs } }));
    await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
    assert.deepEqual(execs(house)[0]?.args.slice(1), [['stop', '$(X)'], 0]);
    assert.deepEqual(house.deeds()[0], `stopContainer c#0 ${stop}`);
    assert.deepEqual(told(house), []);
  }
});

test('a hook that fails is told without its words, and keeps nothing from ending', async () => {
  const pod = desiredPod({ containers: [hooked('c', ['echo', 'secret'])] });
  const house = await running(pod, exec({ c: { exitCode: 3 } }));
  const results = await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(house.events, ['c Normal Killing: Stopping container c', 'c Warning FailedPreStopHook: PreStopHook failed']);
  assert.deepEqual(house.deeds(), ['stopContainer c#0 30s', 'stopSandbox sandbox#0']);
  assert.ok(results.every((r) => r.error === undefined));
  assert.ok(!house.logged.join().includes('secret'));
});

test('the hooks of two containers run side by side', async () => {
  const pod = desiredPod({ containers: [hooked('a'), hooked('b')], terminationGracePeriodSeconds: 10 });
  const house = await running(pod, exec({ a: { takesMs: 4000 }, b: { takesMs: 4000 } }));
  const began = house.clock.monotonic();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(house.deeds(), ['stopContainer a#0 6s', 'stopContainer b#0 6s', 'stopSandbox sandbox#0']);
  assert.equal(house.clock.monotonic() - began, 4000);
});

test('hooks of sidecars run at once, and the sidecars still end after the app, in reverse order', async () => {
  const side = (name: string) => hooked(name, forEver, { restartPolicy: 'Always' });
  const pod = desiredPod({
    initContainers: [side('s1'), side('s2')],
    containers: [hooked('app')],
    terminationGracePeriodSeconds: 20,
  });
  const house = await running(pod, (name) => ({
    ...exec({ s1: { takesMs: 1000 }, s2: { takesMs: 1000 }, app: { takesMs: 3000 } })(name),
    stopDelayMs: 1000,
  }));
  const began = house.clock.monotonic();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(
    execs(house).map((c) => c.at - began),
    [0, 0, 0],
  );
  assert.deepEqual(house.deeds(), ['stopContainer app#0 17s', 'stopContainer s2#0 16s', 'stopContainer s1#0 15s', 'stopSandbox sandbox#0']);
});

test('a shorter grace while the hook runs shortens it, and the hook does not run a second time', async () => {
  const pod = desiredPod({ containers: [hooked('c')], terminationGracePeriodSeconds: 600 });
  const house = await running(pod, exec({ c: { takesMs: 10_000_000_000 } }, { ignoresTerm: true }));
  const status = await house.inspect(pod);
  const first = house.kube.killPod(pod, status, 600);
  await house.clock.advance(20_000);
  const began = house.clock.monotonic();
  const second = await house.drive(house.kube.killPod(pod, status, 5));
  assert.equal(house.clock.monotonic() - began, 7000);
  assert.ok(second.every((r) => r.error === undefined));
  assert.equal(execs(house).length, 1);
  assert.deepEqual(told(house), [overran('c', 5)]);
  assert.deepEqual(
    house.deeds().filter((d) => d.startsWith('stopContainer')),
    ['stopContainer c#0 2s'],
  );
  await house.drive(first);
  assert.equal(house.clock.sleeping, 0);
});

test('a longer grace asked for later changes nothing', async () => {
  const pod = desiredPod({ containers: [hooked('c')] });
  const house = await running(pod, exec({ c: { takesMs: 10_000_000_000 } }));
  const status = await house.inspect(pod);
  const first = house.kube.killPod(pod, status, 5);
  await house.clock.advance(1000);
  const began = house.clock.monotonic();
  await house.drive(house.kube.killPod(pod, status, 60));
  assert.equal(house.clock.monotonic() - began, 4000);
  await house.drive(first);
});

test('a shorter grace during the stop itself is a second stop, without the hook', async () => {
  const pod = desiredPod({ containers: [hooked('c')] });
  const house = await running(pod, exec({ c: { takesMs: 0 } }, { ignoresTerm: true }));
  const status = await house.inspect(pod);
  const first = house.kube.killPod(pod, status, 60);
  await house.clock.advance(1000);
  await house.drive(house.kube.killPod(pod, status, 4));
  await house.drive(first);
  assert.equal(execs(house).length, 1);
  assert.deepEqual(
    house.deeds().filter((d) => d.startsWith('stopContainer')),
    ['stopContainer c#0 60s', 'stopContainer c#0 4s'],
  );
});

test('a stop that failed is asked for again without its hook', async () => {
  const pod = desiredPod({ containers: [hooked('c')] });
  const house = await running(pod, exec({ c: { takesMs: 1000 } }));
  house.runtime.failNext('stopContainer', new RuntimeError('unavailable', 'gone'));
  const results = await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.equal(results[0]?.error?.reason, 'KillContainerError');
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.equal(execs(house).length, 1);
  assert.deepEqual(house.runtime.running(), []);
});

test('what has exited runs no hook', async () => {
  const pod = desiredPod({ containers: [hooked('a'), hooked('b')], restartPolicy: 'Never' });
  const house = await running(pod, () => ({}));
  house.runtime.exit(house.id('a'), 0);
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(
    execs(house).map((c) => c.args[0]),
    [house.id('b')],
  );
});

test('an orphan’s hook runs by its annotations, within the grace they promise', async () => {
  const pod = desiredPod({ containers: [hooked('c', ['flush', 'a<b && c'])], terminationGracePeriodSeconds: 7 });
  const house = await running(pod, exec({ c: { takesMs: 2000 } }));
  await house.drive(house.kube.killPod(undefined, await house.inspect(pod), undefined));
  assert.deepEqual(execs(house)[0]?.args.slice(1), [['flush', 'a<b && c'], 0]);
  assert.deepEqual(house.deeds(), ['stopContainer c#0 5s', 'stopSandbox sandbox#0']);
  assert.equal(
    [...house.runtime.containers.values()][0]?.config.annotations['io.kubernetes.container.preStopHandler'],
    '{"exec":{"command":["flush","a\\u003cb \\u0026\\u0026 c"]}}',
  );
});

test('an edited container ends by the hook it was made with', async () => {
  const pod = desiredPod({ containers: [hooked('c', ['old'])] });
  const house = await running(pod, () => ({}));
  await house.sync(desiredPod({ containers: [hooked('c', ['new'])] }));
  assert.deepEqual(
    execs(house).map((c) => c.args[1]),
    [['old']],
  );
});

test('a hook that sleeps waits its seconds, on the pod’s own clock', async () => {
  const pod = desiredPod({ containers: [container('c', { lifecycle: { preStop: { sleep: { seconds: 3 } } } })] });
  const house = await running(pod, () => ({}));
  const work = house.kube.killPod(pod, await house.inspect(pod), undefined);
  await settle();
  assert.deepEqual(house.runtime.running(), ['web/c']);
  await house.drive(work);
  assert.equal(house.deeds()[0], 'stopContainer c#0 27s');
});

test('the end of a pod does not wait for a liveness kill whose hook hangs: it joins it with its own grace', async () => {
  const pod = desiredPod({ containers: [hooked('c')], terminationGracePeriodSeconds: 600 });
  const house = await running(pod, exec({ c: { takesMs: 10_000_000_000 } }));
  house.probes.set(house.id('c'), { liveness: 'failure' });
  const step = new AbortController();
  const sync = house.kube.syncPod(pod, await house.inspect(pod), step.signal);
  await house.clock.advance(1000);
  step.abort();
  const { acted, results } = await sync;
  assert.deepEqual([acted, results], [true, []]);
  const began = house.clock.monotonic();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), 3));
  assert.equal(house.clock.monotonic() - began, 3000);
  assert.equal(execs(house).length, 1);
  assert.deepEqual(house.runtime.running(), []);
  assert.equal(house.clock.sleeping, 0);
});

test('asked again with no shorter grace, the stop under way is the one stop', async () => {
  const pod = desiredPod({ containers: [hooked('c')], terminationGracePeriodSeconds: 30 });
  const house = await running(pod, exec({ c: { takesMs: 0 } }, { ignoresTerm: true }));
  const status = await house.inspect(pod);
  const first = house.kube.killPod(pod, status, undefined);
  await house.clock.advance(5000);
  await house.drive(house.kube.killPod(pod, status, 60));
  await house.drive(first);
  assert.deepEqual(
    house.deeds().filter((d) => d.startsWith('stopContainer')),
    ['stopContainer c#0 30s'],
  );
  assert.equal(house.events.filter((e) => e.includes('Killing')).length, 1);
});

test('when the app’s hook has used up the grace, sidecars do not wait for the app any longer', async () => {
  const pod = desiredPod({
    initContainers: [container('s1', { restartPolicy: 'Always' })],
    containers: [hooked('app')],
    terminationGracePeriodSeconds: 5,
  });
  const house = await running(pod, exec({ app: { takesMs: 10_000_000_000 } }, { ignoresTerm: true }));
  const began = house.clock.monotonic();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  const stops = house.runtime.calls.filter((c) => c.method === 'stopContainer');
  assert.deepEqual(
    stops.map((c) => [c.at - began, c.args[1]]),
    [
      [5000, 2],
      [5000, 2],
    ],
  );
});
