import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import { annotations } from '../../src/container/words.ts';
import { container, desiredPod, House } from './house.ts';

const reserved = (name: string) => new RuntimeError('unknown', `failed to reserve name "${name}": name "${name}" is reserved for "abc"`);

test('a new pod: log folder, sandbox, then its containers in order, each with its events', async () => {
  const house = new House();
  const pod = desiredPod({ containers: [container('a'), container('b')] });
  const { results, acted } = await house.sync(pod);
  assert.deepEqual(house.deeds(), [
    'runSandbox sandbox#0',
    'createContainer a#0',
    'startContainer a#0',
    'createContainer b#0',
    'startContainer b#0',
  ]);
  assert.deepEqual(house.events, [
    'a Normal Created: Created container: a',
    'a Normal Started: Started container a',
    'b Normal Created: Created container: b',
    'b Normal Started: Started container b',
  ]);
  assert.equal(acted, true);
  assert.ok(results.every((r) => r.error === undefined));
  assert.deepEqual([...house.logs.folders.keys()], ['default_web_uid-1']);
});

test('a running pod met again is left alone', async () => {
  const house = new House();
  const pod = desiredPod({ containers: [container('a'), container('b')] });
  await house.sync(pod);
  house.deeds();
  assert.deepEqual(await house.sync(pod), { results: [], acted: false });
  assert.deepEqual(house.deeds(), []);
});

test('what belongs to podsched is written on sandbox and containers', async () => {
  const house = new House();
  const pod = desiredPod({}, { metadata: { labels: { app: 'x' } } });
  await house.sync(pod);
  const [sandbox] = await house.runtime.listSandboxes();
  const [record] = await house.runtime.listContainers();
  assert.equal(sandbox?.labels['podsched.dev/managed'], 'pi');
  assert.equal(sandbox?.labels.app, 'x');
  assert.equal(sandbox?.annotations[annotations.podHash], pod.podHash);
  assert.equal(sandbox?.annotations[annotations.source], 'file:web.yaml');
  assert.equal(sandbox?.annotations[annotations.started], 'boot-1/1000000');
  assert.equal(sandbox?.annotations['kubernetes.io/config.hash'], pod.revision);
  assert.equal(record?.labels['podsched.dev/managed'], 'pi');
  assert.equal(record?.labels.app, undefined);
  assert.equal(record?.annotations[annotations.ourContainerHash], pod.containerHashes.c);
});

test('crash loop: the first restart comes at once, then 10 s doubling to 5 min, each counted from the exit', async () => {
  const house = new House();
  const pod = desiredPod({});
  house.runtime.onStart(() => ({ exitAfterMs: 1000, exitCode: 7 }));
  await house.sync(pod);
  await house.clock.advance(1000);
  await house.sync(pod);
  assert.equal(house.runtime.find('web', 'c')?.config.attempt, 1);
  const waits: number[] = [];
  for (let i = 0; i < 7; i++) {
    await house.clock.advance(1000);
    const { results, nextWaitMs = -1 } = await house.sync(pod);
    waits.push(nextWaitMs);
    assert.equal(results[0]?.waitMs, nextWaitMs);
    assert.equal(results[0]?.error?.reason, 'CrashLoopBackOff');
    if (i === 3) {
      assert.equal(results[0]?.error?.message, 'back-off 1m20s restarting failed container=c pod=web_default(uid-1)');
      assert.ok(house.events.includes('c Warning BackOff: Back-off restarting failed container c in pod web_default(uid-1)'));
    }
    await house.clock.advance(nextWaitMs - 1);
    assert.equal((await house.sync(pod)).nextWaitMs, 1, 'not a moment too early');
    await house.clock.advance(1);
    assert.equal((await house.sync(pod)).results[0]?.error, undefined);
  }
  assert.deepEqual(waits, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  assert.deepEqual(house.runtime.violations, []);
});

test('a run longer than ten minutes wipes the back-off', async () => {
  const house = new House();
  const pod = desiredPod({});
  house.runtime.onStart(() => ({ exitAfterMs: 700_000, exitCode: 0 }));
  for (let attempt = 0; attempt < 4; attempt++) {
    const { results } = await house.sync(pod);
    assert.equal(results.at(-1)?.error, undefined);
    assert.equal(house.runtime.find('web', 'c')?.config.attempt, attempt);
    await house.clock.advance(700_000);
  }
});

test('an edited container is killed by its grace and starts afresh, its siblings run on', async () => {
  const house = new House();
  await house.sync(desiredPod({ containers: [container('a'), container('b')], terminationGracePeriodSeconds: 20 }));
  house.deeds();
  house.events.length = 0;
  const edited = desiredPod({ containers: [container('a'), container('b', { command: ['new'] })], terminationGracePeriodSeconds: 20 });
  await house.sync(edited);
  assert.deepEqual(house.deeds(), ['stopContainer b#0 20s', 'createContainer b#1', 'startContainer b#1']);
  assert.equal(house.events[0], 'b Normal Killing: Container b definition changed, will be restarted');
});

test('a container that cannot be stopped ends the sync: nothing is started beside it', async () => {
  const house = new House();
  await house.sync(desiredPod({}));
  house.deeds();
  house.runtime.failNext('stopContainer', new RuntimeError('deadlineExceeded', 'stop: deadline exceeded'));
  const { results, acted } = await house.sync(desiredPod({ containers: [container('c', { args: ['x'] })] }));
  assert.deepEqual(house.deeds(), ['stopContainer c#0 30s']);
  assert.deepEqual(results, [
    { action: 'KillContainer', target: 'c', error: { reason: 'KillContainerError', message: 'stop: deadline exceeded' } },
  ]);
  assert.equal(acted, true);
});

test('init containers run one after the other, then the app containers', async () => {
  const house = new House();
  const pod = desiredPod({ initContainers: [container('i1'), container('i2')], containers: [container('a')] });
  house.runtime.onStart((name) => (name.startsWith('i') ? { exitAfterMs: 10 } : undefined));
  for (let i = 0; i < 3; i++) {
    await house.sync(pod);
    await house.clock.advance(10);
  }
  assert.deepEqual(
    house.deeds().filter((d) => d.startsWith('start')),
    ['startContainer i1#0', 'startContainer i2#0', 'startContainer a#0'],
  );
});

test('a sidecar that does not start is passed over, a plain init container is not', async () => {
  const house = new House();
  const initContainers = [container('s1', { restartPolicy: 'Always' }), container('i2'), container('s3', { restartPolicy: 'Always' })];
  const pod = desiredPod({ initContainers, containers: [container('a')] });
  await house.sync(pod); // s1
  house.runtime.onStart((name) => (name === 'i2' ? { exitAfterMs: 10 } : undefined));
  await house.sync(pod); // i2
  await house.clock.advance(10);
  house.runtime.exit(house.id('s1'), 1);
  house.deeds();
  house.image = (name) =>
    name === 's1'
      ? { ok: false, reason: 'ErrImagePull', message: 'no', waitMs: 10_000 }
      : { ok: true, image: { id: 'localhost/busybox:1', username: '' } };
  const { results } = await house.sync(pod);
  assert.deepEqual(
    results.map((r) => [r.target, r.error?.reason]),
    [
      ['s1', 'ErrImagePull'],
      ['s3', undefined],
    ],
  );

  const plain = new House();
  plain.image = () => ({ ok: false, reason: 'ErrImagePull', message: 'no' });
  const stuck = await plain.sync(desiredPod({ initContainers: [container('i')], containers: [container('a')] }));
  assert.deepEqual(
    stuck.results.map((r) => r.target),
    ['web', 'i'],
  );
});

test('after a reboot: SandboxChanged, a new sandbox, init containers again, counts go on', async () => {
  const house = new House();
  const pod = desiredPod({ initContainers: [container('i')], containers: [container('a')] });
  house.runtime.onStart((name) => (name === 'i' ? { exitAfterMs: 10 } : undefined));
  await house.sync(pod);
  await house.clock.advance(10);
  await house.sync(pod);
  house.runtime.reboot();
  house.deeds();
  house.events.length = 0;
  await house.sync(pod);
  assert.deepEqual(house.deeds(), [
    'stopSandbox sandbox#0',
    'removeContainer i#0',
    'runSandbox sandbox#1',
    'createContainer i#1',
    'startContainer i#1',
  ]);
  assert.equal(house.events[0], '- Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.');
  await house.clock.advance(10);
  await house.sync(pod);
  assert.equal(house.runtime.find('web', 'a')?.config.attempt, 1);
  assert.deepEqual(house.runtime.violations, []);
});

test('the start of an instance is copied to later sandboxes of the same boot', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  const [first] = await house.runtime.listSandboxes();
  assert.ok(first);
  await house.clock.advance(5000);
  house.runtime.killSandbox(first.id);
  await house.sync(pod);
  const second = (await house.runtime.listSandboxes()).find((s) => s.attempt === 1);
  assert.equal(second?.annotations[annotations.started], 'boot-1/1000000');
});

test('a name the runtime holds back is passed over by the next attempt', async () => {
  const house = new House();
  const pod = desiredPod({});
  house.runtime.failNext('runSandbox', reserved('web_default_uid-1_0'));
  house.runtime.failNext('createContainer', reserved('c_web_default_uid-1_0'), 2);
  const { results } = await house.sync(pod);
  assert.deepEqual(house.deeds(), [
    'runSandbox sandbox#0',
    'runSandbox sandbox#1',
    'createContainer c#0',
    'createContainer c#1',
    'createContainer c#2',
    'startContainer c#2',
  ]);
  assert.ok(results.every((r) => r.error === undefined));
});

test('a sandbox whose answer was lost is found, not made twice', async () => {
  const house = new House();
  const pod = desiredPod({});
  const status = await house.inspect(pod);
  house.runtime.failNext('runSandbox', new RuntimeError('deadlineExceeded', 'runSandbox: deadline exceeded'), 1, 'after');
  const lost = await house.kube.syncPod(pod, status, new AbortController().signal);
  assert.equal(lost.acted, true);
  assert.equal(lost.results[0]?.error?.reason, 'CreatePodSandboxError');
  assert.ok(house.events.includes('- Warning FailedCreatePodSandBox: Failed to create pod sandbox: runSandbox: deadline exceeded'));
  // the news is not in yet: asked once more, the name is taken, and the runtime shows why
  const again = await house.kube.syncPod(pod, status, new AbortController().signal);
  assert.equal(again.nextWaitMs, 1000);
  assert.equal(house.runtime.sandboxes.size, 1);
  await house.sync(pod);
  assert.deepEqual(house.runtime.running(), ['web/c']);
  assert.deepEqual(house.runtime.violations, []);
});

test('a container whose answer was lost is started by its next attempt', async () => {
  const house = new House();
  const pod = desiredPod({});
  house.runtime.failNext('createContainer', new RuntimeError('unavailable', 'gone'), 1, 'after');
  const { results } = await house.sync(pod);
  assert.deepEqual(results[1]?.error, { reason: 'CreateContainerError', message: 'gone' });
  assert.ok(house.events.includes('c Warning Failed: Error: gone'));
  await house.sync(pod);
  assert.equal(house.runtime.find('web', 'c')?.config.attempt, 1);
  assert.deepEqual(house.runtime.violations, []);
});

test('a container that does not start says RunContainerError, without its id in the event', async () => {
  const house = new House();
  house.runtime.failNext('startContainer', new RuntimeError('unknown', 'exec "/nope": no such file'));
  const { results } = await house.sync(desiredPod({}));
  assert.deepEqual(results[1]?.error, { reason: 'RunContainerError', message: 'exec "/nope": no such file' });
});

test('an image that is not here: its reason is the container’s, its siblings start', async () => {
  const house = new House();
  house.image = (name) =>
    name === 'a'
      ? { ok: false, reason: 'ImagePullBackOff', message: 'Back-off pulling image "x"', waitMs: 20_000 }
      : { ok: true, image: { id: 'localhost/busybox:1', username: '' } };
  const { results, nextWaitMs } = await house.sync(desiredPod({ containers: [container('a'), container('b')] }));
  assert.deepEqual(results.slice(1), [
    { action: 'StartContainer', target: 'a', error: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "x"' }, waitMs: 20_000 },
    { action: 'StartContainer', target: 'b' },
  ]);
  assert.equal(nextWaitMs, 20_000);
  assert.ok(house.events.includes('a Warning Failed: Error: ImagePullBackOff'));
});

test('without any record the count goes on from the log files', async () => {
  const house = new House();
  house.logs.files.add('default_web_uid-1/c/6.log');
  await house.sync(desiredPod({}));
  assert.equal(house.runtime.find('web', 'c')?.config.attempt, 7);
});

test('a log folder that cannot be made keeps the sandbox from being made', async () => {
  const house = new House();
  house.logs.fail = new Error('ENOSPC: no space left on device');
  const { results, acted } = await house.sync(desiredPod({}));
  assert.equal(results[0]?.error?.message, 'ENOSPC: no space left on device');
  assert.equal(acted, false);
});

test('a pod called off meanwhile starts nothing more', async () => {
  const house = new House();
  const stop = new AbortController();
  house.image = (name) => {
    if (name === 'b') stop.abort();
    return { ok: true, image: { id: 'localhost/busybox:1', username: '' } };
  };
  await house.sync(desiredPod({ containers: [container('a'), container('b'), container('z')] }), stop.signal);
  assert.ok(!house.deeds().some((d) => d.includes('z#0')));
});

test('a pod that must not run as root says so in the kubelet’s words', async () => {
  const house = new House();
  const { results } = await house.sync(desiredPod({ containers: [container('c', { securityContext: { runAsNonRoot: true } })] }));
  const message = 'container has runAsNonRoot and image will run as root (pod: "web_default(uid-1)", container: c)';
  assert.deepEqual(results[1]?.error, { reason: 'CreateContainerConfigError', message });
});

test('a failed liveness probe kills by the probe’s own grace and starts again', async () => {
  const house = new House();
  const livenessProbe = { exec: { command: ['x'] }, terminationGracePeriodSeconds: 5 };
  const pod = desiredPod({ containers: [container('c', { livenessProbe })] });
  await house.sync(pod);
  house.deeds();
  house.probes.set(house.id('c'), { liveness: 'failure' });
  await house.sync(pod);
  assert.deepEqual(house.deeds(), ['stopContainer c#0 5s', 'createContainer c#1', 'startContainer c#1']);
  assert.ok(house.events.includes('c Normal Killing: Container c failed liveness probe, will be restarted'));
});

test('a finished Never pod is only put away: its sandbox is stopped', async () => {
  const house = new House();
  house.runtime.onStart(() => ({ exitAfterMs: 10 }));
  const pod = desiredPod({ restartPolicy: 'Never' });
  await house.sync(pod);
  await house.clock.advance(10);
  house.deeds();
  await house.sync(pod);
  assert.deepEqual(house.deeds(), ['stopSandbox sandbox#0']);
});

test('of an init container that failed again and again one record is kept', async () => {
  const house = new House();
  const pod = desiredPod({ initContainers: [container('i')] });
  house.runtime.onStart(() => ({ exitAfterMs: 10, exitCode: 1 }));
  for (let i = 0; i < 4; i++) {
    await house.sync(pod);
    await house.clock.advance(500_000);
  }
  await house.sync(pod);
  const records = [...house.runtime.containers.values()].filter((c) => c.config.name === 'i');
  assert.deepEqual(
    records.map((c) => c.config.attempt),
    [2],
  );
});
