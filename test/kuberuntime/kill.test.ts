import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../src/api/v1.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { graceSeconds } from '../../src/kuberuntime/kill.ts';
import type { KillReason } from '../../src/kuberuntime/records.ts';
import { container, desiredPod, House } from './house.ts';

const sidecar = (name: string) => container(name, { restartPolicy: 'Always' });

test('the grace of a container: override, deletion, the failed probe, the pod, two seconds', () => {
  const probes = {
    livenessProbe: { terminationGracePeriodSeconds: 7 },
    startupProbe: { terminationGracePeriodSeconds: 90 },
  };
  const pod = (spec: object, metadata: object = {}): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', ...metadata },
    spec: { containers: [container('c', probes)], ...spec },
  });
  const marks = (termination?: string, deletion?: string) => ({
    ...(termination !== undefined && { 'io.kubernetes.pod.terminationGracePeriod': termination }),
    ...(deletion !== undefined && { 'io.kubernetes.pod.deletionGracePeriod': deletion }),
  });
  const table: [Pod | undefined, Record<string, string>, KillReason, number | undefined, number][] = [
    [pod({ terminationGracePeriodSeconds: 30 }), {}, '', undefined, 30],
    [pod({ terminationGracePeriodSeconds: 0 }), {}, '', undefined, 0],
    [pod({ terminationGracePeriodSeconds: 30 }), {}, '', 3, 3],
    [pod({ terminationGracePeriodSeconds: 30 }), {}, '', 0, 0],
    [pod({ terminationGracePeriodSeconds: 30 }, { deletionGracePeriodSeconds: 12 }), {}, 'LivenessProbe', undefined, 12],
    [pod({ terminationGracePeriodSeconds: 30 }), {}, 'LivenessProbe', undefined, 7],
    [pod({ terminationGracePeriodSeconds: 30 }), {}, 'StartupProbe', undefined, 90],
    [pod({ terminationGracePeriodSeconds: 30 }), {}, 'Unknown', undefined, 30],
    [pod({}), {}, 'LivenessProbe', undefined, 2],
    [undefined, marks('45'), '', undefined, 45],
    [undefined, marks('45', '9'), '', undefined, 9],
    [undefined, marks('nonsense'), '', undefined, 2],
    [undefined, {}, '', undefined, 2],
    [undefined, marks('45'), '', 1, 1],
  ];
  for (const [spec, annotations, reason, override, expected] of table) {
    assert.equal(graceSeconds(spec, { name: 'c', annotations }, reason, override), expected);
  }
});

test('a pod ends: its running containers at once, then every sandbox', async () => {
  const house = new House();
  const pod = desiredPod({ containers: [container('a'), container('b'), container('gone')], terminationGracePeriodSeconds: 20 });
  await house.sync(pod);
  house.runtime.exit(house.id('gone'), 0);
  house.runtime.onStart(() => undefined);
  house.deeds();
  house.events.length = 0;
  const results = await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(house.deeds(), ['stopContainer a#0 20s', 'stopContainer b#0 20s', 'stopSandbox sandbox#0']);
  assert.deepEqual(house.events, ['a Normal Killing: Stopping container a', 'b Normal Killing: Stopping container b']);
  assert.deepEqual(
    results.map((r) => [r.action, r.target]),
    [
      ['KillContainer', 'a'],
      ['KillContainer', 'b'],
      ['KillPodSandbox', 'web'],
    ],
  );
  assert.deepEqual(house.runtime.running(), []);
});

test('never less than two seconds, and a shorter grace is taken as it is', async () => {
  const house = new House();
  const pod = desiredPod({ terminationGracePeriodSeconds: 30 });
  await house.sync(pod);
  house.deeds();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), 0, 'Preempted'));
  assert.equal(house.deeds()[0], 'stopContainer c#0 2s');
  assert.ok(house.events.includes('c Normal Killing: Preempted'));
});

test('sidecars end after the app containers, in reverse order, within what is left of the grace', async () => {
  const house = new House();
  house.runtime.onStart((name) => ({ stopDelayMs: name === 'app' ? 3500 : 1000 }));
  const pod = desiredPod({
    initContainers: [sidecar('s1'), sidecar('s2')],
    containers: [container('app')],
    terminationGracePeriodSeconds: 10,
  });
  await house.sync(pod);
  await house.sync(pod);
  await house.sync(pod);
  assert.deepEqual(house.runtime.running(), ['web/app', 'web/s1', 'web/s2']);
  house.deeds();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(house.deeds(), ['stopContainer app#0 10s', 'stopContainer s2#0 7s', 'stopContainer s1#0 6s', 'stopSandbox sandbox#0']);
});

test('when the grace runs out every sidecar goes on with two seconds', async () => {
  const house = new House();
  house.runtime.onStart((name) => (name === 'app' ? { ignoresTerm: true } : {}));
  const pod = desiredPod({
    initContainers: [sidecar('s1'), sidecar('s2')],
    containers: [container('app')],
    terminationGracePeriodSeconds: 5,
  });
  await house.sync(pod);
  await house.sync(pod);
  await house.sync(pod);
  house.deeds();
  const began = house.clock.monotonic();
  await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(
    house
      .deeds()
      .filter((d) => d.includes(' s'))
      .sort(),
    ['stopContainer s1#0 2s', 'stopContainer s2#0 2s', 'stopSandbox sandbox#0'],
  );
  assert.ok(house.clock.monotonic() - began <= 7000);
});

test('an orphan ends by the grace its annotations promise', async () => {
  const house = new House();
  const pod = desiredPod({ terminationGracePeriodSeconds: 33 });
  await house.sync(pod);
  house.deeds();
  await house.drive(house.kube.killPod(undefined, await house.inspect(pod), undefined));
  assert.deepEqual(house.deeds(), ['stopContainer c#0 33s', 'stopSandbox sandbox#0']);
});

test('a container that does not stop does not keep the others and the sandbox; the result says so', async () => {
  const house = new House();
  const pod = desiredPod({ containers: [container('a'), container('b')] });
  await house.sync(pod);
  house.deeds();
  house.runtime.failNext('stopContainer', new RuntimeError('unavailable', 'gone'));
  house.runtime.failNext('stopSandbox', new RuntimeError('unknown', 'busy'));
  const results = await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.deepEqual(house.deeds(), ['stopContainer a#0 30s', 'stopContainer b#0 30s', 'stopSandbox sandbox#0']);
  assert.deepEqual(
    results.map((r) => r.error),
    [{ reason: 'KillContainerError', message: 'gone' }, undefined, { reason: 'KillPodSandboxError', message: 'busy' }],
  );
  // what was interrupted is simply done again
  const again = await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.ok(again.every((r) => r.error === undefined));
});

test('stopping what is gone is success', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.sync(pod);
  house.runtime.failNext('stopContainer', new RuntimeError('notFound', 'no such container'));
  house.runtime.failNext('stopSandbox', new RuntimeError('notFound', 'no such sandbox'));
  const results = await house.drive(house.kube.killPod(pod, await house.inspect(pod), undefined));
  assert.ok(results.every((r) => r.error === undefined));
});
