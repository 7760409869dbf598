import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle } from '../fakes/fakeClock.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';
import { container, desiredPod, House } from './house.ts';

const hooked = (name: string, o: object = {}) => container(name, { lifecycle: { postStart: { exec: { command: ['warm', 'up'] } } }, ...o });
const exec =
  (of: Readonly<Record<string, { takesMs?: number; exitCode?: number }>>) =>
  (name: string): ProcessBehaviour => ({ exec: () => of[name] });
const execs = (house: House) => house.runtime.calls.filter((c) => c.method === 'execSync');

test('postStart runs right after the start and holds up the containers after it', async () => {
  const house = new House();
  house.runtime.onStart(exec({ a: { takesMs: 4000 } }));
  const pod = desiredPod({ containers: [hooked('a'), container('b')] });
  const began = house.clock.monotonic();
  const { results } = await house.sync(pod);
  assert.deepEqual(execs(house)[0]?.args, [house.id('a'), ['warm', 'up'], 0]);
  const starts = house.runtime.calls.filter((c) => c.method === 'startContainer').map((c) => c.at - began);
  assert.deepEqual(starts, [0, 4000]);
  assert.ok(results.every((r) => r.error === undefined));
  assert.deepEqual(house.events.slice(0, 3), [
    'a Normal Created: Created container: a',
    'a Normal Started: Started container a',
    'b Normal Created: Created container: b',
  ]);
});

test('a container counts as starting from its start to the end of its hook, which is said; one that did not start never does', async () => {
  const house = new House();
  const pending: boolean[] = [];
  house.runtime.onStart((name) => {
    const id = house.id(name);
    pending.push(house.kube.isStarting(id));
    return name === 'b' ? { startError: 'no such file' } : { exec: () => ({ takesMs: 4000 }) };
  });
  const pod = desiredPod({ containers: [hooked('a'), hooked('b'), container('c')] });
  const done = house.sync(pod);
  await settle();
  assert.deepEqual([house.kube.isStarting(house.id('a')), house.hooksEnded], [true, []]);
  await done;
  assert.deepEqual(pending, [true, true, false]);
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => house.kube.isStarting(house.id(name))),
    [false, false, false],
  );
  assert.deepEqual(house.hooksEnded, [pod.uid]);
});

test('a postStart that fails kills its container in the kubelet’s words; its siblings start', async () => {
  const house = new House();
  house.runtime.onStart(exec({ a: { exitCode: 1 } }));
  const pod = desiredPod({ containers: [hooked('a'), container('b')], terminationGracePeriodSeconds: 5 });
  const { results } = await house.sync(pod);
  assert.deepEqual(results.find((r) => r.target === 'a')?.error, {
    reason: 'PostStartHookError',
    message: 'the command of the hook ended with exit code 1',
  });
  assert.deepEqual(house.events.slice(2, 4), [
    'a Warning FailedPostStartHook: PostStartHook failed',
    'a Normal Killing: FailedPostStartHook',
  ]);
  assert.deepEqual(house.deeds().slice(1), [
    'createContainer a#0',
    'startContainer a#0',
    'stopContainer a#0 5s',
    'createContainer b#0',
    'startContainer b#0',
  ]);
  assert.deepEqual(house.runtime.running(), ['web/b']);
});

test('after a failed postStart the container restarts by its policy, with back-off', async () => {
  const house = new House();
  house.runtime.onStart(exec({ c: { exitCode: 1 } }));
  const pod = desiredPod({ containers: [hooked('c')] });
  await house.sync(pod);
  const again = await house.sync(pod);
  assert.equal(again.results[0]?.error?.reason, 'PostStartHookError', 'the first restart comes at once');
  const waits = await house.sync(pod);
  assert.equal(waits.results[0]?.error?.reason, 'CrashLoopBackOff');
  assert.equal(waits.nextWaitMs, 10_000);

  const never = new House();
  never.runtime.onStart(exec({ c: { exitCode: 1 } }));
  const once = desiredPod({ containers: [hooked('c')], restartPolicy: 'Never' });
  await never.sync(once);
  never.deeds();
  await never.sync(once);
  assert.deepEqual(never.deeds(), ['stopSandbox sandbox#0']);
});

test('a container that ended during its postStart is not ended again', async () => {
  const house = new House();
  house.runtime.onStart(() => ({ exitAfterMs: 100, exitCode: 9, exec: () => ({ takesMs: 1000 }) }));
  const pod = desiredPod({
    containers: [hooked('c', { lifecycle: { postStart: { exec: { command: ['x'] } }, preStop: { exec: { command: ['y'] } } } })],
  });
  const { results } = await house.sync(pod);
  assert.equal(results.at(-1)?.error?.reason, 'PostStartHookError');
  assert.equal(execs(house).length, 1);
  assert.ok(!house.events.some((e) => e.includes('Killing')));
});

test('a pod that is to end does not wait for a postStart that hangs: its end cuts the hook', async () => {
  const house = new House();
  house.runtime.onStart(exec({ c: { takesMs: 10_000_000_000 } }));
  const pod = desiredPod({ containers: [hooked('c'), container('later')] });
  const step = new AbortController();
  const sync = house.kube.syncPod(pod, await house.inspect(pod), step.signal);
  await house.clock.advance(1000);
  assert.deepEqual(house.runtime.running(), ['web/c']);
  step.abort();
  const { acted, results } = await sync;
  assert.equal(acted, true);
  assert.ok(results.every((r) => r.error === undefined));
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(house.runtime.running(), []);
  assert.ok(!house.events.some((e) => e.includes('FailedPostStartHook')));
  assert.equal(house.clock.sleeping, 0);
});

test('an edit of another container leaves a postStart under way alone, and what starts next waits for it', async () => {
  const house = new House();
  house.runtime.onStart(exec({ a: { takesMs: 10_000 } }));
  const step = new AbortController();
  const pod = desiredPod({ containers: [hooked('a'), container('b')] });
  const sync = house.kube.syncPod(pod, await house.inspect(pod), step.signal);
  await house.clock.advance(1000);
  step.abort();
  await sync;
  const edited = desiredPod({ containers: [hooked('a'), container('b', { args: ['new'] })] });
  const began = house.clock.monotonic();
  const { results } = await house.sync(edited);
  assert.equal(house.clock.monotonic() - began, 9000);
  assert.equal(execs(house).length, 1);
  assert.deepEqual(house.runtime.running(), ['web/a', 'web/b']);
  assert.ok(results.every((r) => r.error === undefined));
});

test('a postStart that fails after its sync was called off still ends its container, and the next sync says so', async () => {
  const house = new House();
  house.runtime.onStart(exec({ a: { takesMs: 10_000, exitCode: 2 } }));
  const step = new AbortController();
  const pod = desiredPod({ containers: [hooked('a'), container('b')] });
  const sync = house.kube.syncPod(pod, await house.inspect(pod), step.signal);
  await house.clock.advance(1000);
  step.abort();
  await sync;
  const { results } = await house.sync(pod);
  assert.equal(results.find((r) => r.target === 'a')?.error?.reason, 'PostStartHookError');
  assert.deepEqual(house.runtime.running(), ['web/b']);
});

test('an edit of the container itself cuts its postStart and starts it anew', async () => {
  const house = new House();
  house.runtime.onStart((_name, config) => ({ exec: () => ({ takesMs: config.args.length === 0 ? 10_000_000_000 : 0 }) }));
  const step = new AbortController();
  const pod = desiredPod({ containers: [hooked('a')] });
  const sync = house.kube.syncPod(pod, await house.inspect(pod), step.signal);
  await house.clock.advance(1000);
  step.abort();
  await sync;
  await settle();
  const { results } = await house.sync(desiredPod({ containers: [hooked('a', { args: ['new'] })] }));
  assert.ok(results.every((r) => r.error === undefined));
  assert.equal(execs(house).length, 2);
  assert.deepEqual(house.runtime.running(), ['web/a']);
});
