import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodSpec } from '../../src/api/v1.ts';
import { jsonBytes } from '../../src/status/cut.ts';
import { capPod, tellableStatus, toldPod } from '../../src/status/told.ts';
import { illegalReturn, terminatedPodStatus } from '../../src/status/transitions.ts';
import { desiredPod, generate, record, runtimePod, simple } from './build.ts';

const running = generate(desiredPod(simple()), runtimePod([record('c', 'running')]));

test('the told pod has names, images, ports and resources, and never env, commands, volumes or what kubectl left', () => {
  const spec: PodSpec = {
    restartPolicy: 'Always',
    nodeName: 'pi-07',
    hostNetwork: true,
    volumes: [{ name: 'v', hostPath: { path: '/secret' } }],
    initContainers: [{ name: 's', image: 'side', restartPolicy: 'Always', env: [{ name: 'TOKEN', value: 'secret' }] }],
    containers: [
      {
        name: 'c',
        image: 'busybox',
        command: ['secret'],
        args: ['secret'],
        env: [{ name: 'TOKEN', value: 'secret' }],
        ports: [{ containerPort: 80 }],
        resources: { limits: { memory: '64Mi' } },
        volumeMounts: [{ name: 'v', mountPath: '/secret' }],
      },
    ],
  };
  const annotations = {
    'kubectl.kubernetes.io/last-applied-configuration': '{"secret":1}',
    short: 'kept',
    long: 'x'.repeat(257),
    'podsched.dev/boot': '99',
  };
  const told = toldPod(desiredPod(spec, { labels: { app: 'web' }, annotations }), running, undefined);
  assert.doesNotMatch(JSON.stringify(told), /secret|TOKEN/);
  assert.deepEqual(told.spec, {
    initContainers: [{ name: 's', image: 'side', restartPolicy: 'Always' }],
    containers: [{ name: 'c', image: 'busybox', ports: [{ containerPort: 80 }], resources: { limits: { memory: '64Mi' } } }],
    restartPolicy: 'Always',
    nodeName: 'pi-07',
    hostNetwork: true,
  });
  assert.deepEqual(told.metadata, {
    name: 'web',
    namespace: 'default',
    uid: 'uid-1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { app: 'web' },
    annotations: {
      short: 'kept',
      'podsched.dev/boot': '99',
      'podsched.dev/source': 'file:web.yaml',
      'podsched.dev/revision': 'abcdef012345',
    },
  });
  assert.equal(told.status, running);
});

test('a pod that ends says so with its grace', () => {
  const { metadata } = toldPod(desiredPod(simple()), running, { deletionTimestamp: '2026-01-01T00:00:30Z', graceSeconds: 30 });
  assert.deepEqual([metadata.deletionTimestamp, metadata.deletionGracePeriodSeconds], ['2026-01-01T00:00:30Z', 30]);
});

test('a small pod is told whole; a large one loses the least telling first, says so, and fits', () => {
  const small = toldPod(desiredPod(simple()), running, undefined);
  assert.equal(capPod(small, 60 * 1024), small);

  const big = (containers: number, messageBytes: number) => {
    const names = Array.from({ length: containers }, (_, i) => `container-${i}`);
    const desired = desiredPod(
      {
        containers: names.map((name) => ({
          name,
          image: 'registry.example/x',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '1' } },
        })),
      },
      {
        labels: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`l${i}`, 'x'.repeat(60)])),
        annotations: { note: 'x'.repeat(200) },
      },
    );
    const status = generate(desired, runtimePod(names.map((name) => record(name, 'exited', { exitCode: 1 }))));
    // as an earlier release stored them: this one cuts what containers say at their end itself
    const message = 'ü'.repeat(messageBytes / 2);
    const longer = (status.containerStatuses ?? []).map((s) => ({
      ...s,
      ...(s.state.terminated && { state: { terminated: { ...s.state.terminated, message } } }),
    }));
    return toldPod(desired, { ...status, containerStatuses: longer }, undefined);
  };
  const table: readonly (readonly [number, number, string])[] = [
    [10, 12_000, 'messages'],
    [90, 600, 'messages,annotations'],
    [115, 600, 'messages,annotations,ports,resources'],
    [600, 4000, 'messages,annotations,ports,resources,lastState,labels,conditions,spec,containerStatuses'],
  ];
  for (const [containers, messageBytes, cut] of table) {
    const capped = capPod(big(containers, messageBytes), 60 * 1024);
    assert.ok(jsonBytes(capped) <= 60 * 1024, `${containers}: ${jsonBytes(capped)}`);
    assert.equal(capped.metadata.annotations?.['podsched.dev/truncated'], cut);
    assert.equal(capped.metadata.annotations?.['podsched.dev/source'], 'file:web.yaml');
    assert.ok(capped.status.phase);
  }
  assert.ok(jsonBytes(capPod(big(600, 4000), 12_000)) <= 12_000, 'a broker that takes little');
});

test('a terminal phase is held back while a container runs, and told when none does', () => {
  const failed = { reason: 'DeadlineExceeded', message: 'too long' };
  const desired = desiredPod(simple());
  const ending = generate(desired, runtimePod([record('c', 'running')]), { failed });
  const held = tellableStatus(ending, 'Running');
  assert.deepEqual([held.phase, held.reason, held.message], ['Running', undefined, undefined]);
  assert.equal(held.conditions?.find((c) => c.type === 'Ready')?.reason, 'PodFailed', 'not ready all the same');
  assert.equal(tellableStatus(ending, 'Failed'), ending, 'told before, never taken back');
  const ended = generate(desired, runtimePod([record('c', 'exited', { exitCode: 137 })]), { failed });
  assert.equal(tellableStatus(ended, 'Running'), ended);
});

test('a container that ended for good does not come back', () => {
  const status = (spec: PodSpec, r: Parameters<typeof record>) => generate(desiredPod(spec), runtimePod([record(...r)]));
  const back = (policy: 'Always' | 'OnFailure' | 'Never', exitCode: number) => {
    const spec = simple({ restartPolicy: policy });
    return illegalReturn(spec, status(spec, ['c', 'exited', { exitCode }]), status(spec, ['c', 'running', { attempt: 1 }]));
  };
  assert.equal(back('Always', 0), undefined);
  assert.equal(back('OnFailure', 1), undefined);
  assert.equal(back('OnFailure', 0), 'c');
  assert.equal(back('Never', 0), 'c');
  assert.equal(back('Never', 1), 'c');

  const init = (sidecar: boolean) =>
    simple({
      restartPolicy: 'OnFailure',
      initContainers: [{ name: 'i', image: 'x', ...(sidecar && { restartPolicy: 'Always' as const }) }],
    });
  const plain = init(false);
  const done = status(plain, ['i', 'exited']);
  const lost = { ...done, initContainerStatuses: done.initContainerStatuses?.map((s) => ({ ...s, state: { waiting: {} } })) ?? [] };
  assert.equal(illegalReturn(plain, done, lost), 'i');
  assert.equal(illegalReturn(init(true), done, lost), undefined, 'a sidecar may');
  assert.equal(
    illegalReturn(plain, done, status(plain, ['i', 'running', { attempt: 1 }])),
    undefined,
    'a new container after a new sandbox',
  );
});

test('the last words on a pod: what never showed its end is told ended, if its turn had come', () => {
  const spec = simple({ initContainers: [{ name: 'i', image: 'x' }] });
  const words = (records: Parameters<typeof runtimePod>[0]) => {
    const s = terminatedPodStatus(spec, generate(desiredPod(spec), runtimePod(records)));
    return [s.initContainerStatuses?.[0]?.state.terminated?.reason, s.containerStatuses?.[0]?.state.terminated?.reason];
  };
  assert.deepEqual(words([]), [undefined, undefined]);
  assert.deepEqual(words([record('i', 'running')]), ['ContainerStatusUnknown', undefined]);
  assert.deepEqual(words([record('i', 'exited')]), ['Completed', 'ContainerStatusUnknown']);
  assert.deepEqual(words([record('i', 'exited'), record('c', 'running')]), ['Completed', 'ContainerStatusUnknown']);
  assert.deepEqual(words([record('i', 'exited'), record('c', 'exited', { exitCode: 1 })]), ['Completed', 'Error']);
});
