import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodStatus, V1ContainerStatus } from '../../src/api/status.ts';
import type { ContainerStatus } from '../../src/container/words.ts';
import { rejectedPodStatus } from '../../src/status/generate.ts';
import type { WallTime } from '../../src/world/clock.ts';
import { desiredPod, generate, record, runtimePod, sandbox, simple, start } from './build.ts';

const only = (s: PodStatus): V1ContainerStatus => {
  const [c] = s.containerStatuses ?? [];
  assert.ok(c);
  return c;
};
const pod = desiredPod(simple());
const running = generate(pod, runtimePod([record('c', 'running')]));
const iso = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z');
const at = (s: string) => Date.parse(s) as WallTime;

test('a new pod is Pending, its containers being created, or waiting for the init containers', () => {
  const fresh = generate(pod, runtimePod([], [], []));
  assert.equal(fresh.phase, 'Pending');
  assert.deepEqual(only(fresh).state, { waiting: { reason: 'ContainerCreating' } });
  const withInit = generate(desiredPod(simple({ initContainers: [{ name: 'i', image: 'x' }] })), runtimePod([], [], []));
  assert.deepEqual(only(withInit).state, { waiting: { reason: 'PodInitializing' } });
  assert.deepEqual(withInit.initContainerStatuses?.[0]?.state, { waiting: { reason: 'PodInitializing' } });
});

test('the newest record by attempt is the state, the one before it the last state, whatever the clock said', () => {
  const s = only(
    generate(
      pod,
      runtimePod([
        record('c', 'exited', { attempt: 1, exitCode: 2, createdAt: (start + 9_000_000) as WallTime }),
        record('c', 'running', { attempt: 2, createdAt: start as WallTime }),
        record('c', 'exited', { attempt: 0, exitCode: 1 }),
      ]),
    ),
  );
  assert.ok(s.state.running);
  assert.equal(s.lastState.terminated?.exitCode, 2);
  assert.equal(s.restartCount, 2);
});

// state of the runtime and what was told before → what is told now
const oldRunning = { old: running } as const;
const cases: readonly (readonly [string, readonly ContainerStatus[], Parameters<typeof generate>[2], Partial<V1ContainerStatus>])[] = [
  ['created: waiting without a reason', [record('c', 'created')], {}, { state: { waiting: {} }, started: false, ready: false }],
  ['unknown, never seen running: waiting', [record('c', 'unknown')], {}, { state: { waiting: {} } }],
  [
    'unknown, told as running before: ended, cause unknown',
    [record('c', 'unknown')],
    oldRunning,
    {
      state: {
        terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'the runtime no longer knows the state of this container' },
      },
      restartCount: 1,
    },
  ],
  [
    'the record of a running container is lost: its end goes to the last state',
    [],
    oldRunning,
    {
      state: { waiting: { reason: 'ContainerCreating' } },
      restartCount: 1,
      lastState: {
        terminated: {
          exitCode: 137,
          reason: 'ContainerStatusUnknown',
          message: 'the container could not be found in the runtime; it was running when last seen',
        },
      },
    },
  ],
  ['… and counts no restart when the pod ends', [], { old: running, deleting: true }, { restartCount: 0 }],
  ['no probes: running is started and ready', [record('c', 'running')], {}, { started: true, ready: true }],
  [
    'a startup probe that has not succeeded: neither started nor ready',
    [record('c', 'running')],
    { probes: { started: () => false, ready: () => true } },
    { started: false, ready: false },
  ],
  [
    'a readiness probe that failed: started, not ready',
    [record('c', 'running')],
    { probes: { started: () => undefined, ready: () => false } },
    { started: true, ready: false },
  ],
  [
    'probes are asked by the container and the id of its newest record',
    [record('c', 'running', { attempt: 1 }), record('c', 'exited')],
    { probes: { started: (name, id) => name === 'c' && id === 'c-1', ready: (name, id) => name === 'c' && id === 'c-1' } },
    { started: true, ready: true },
  ],
];

for (const [title, records, inputs, expected] of cases) {
  test(`container status: ${title}`, () => {
    const s = only(generate(pod, runtimePod(records), inputs));
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(s[key as keyof V1ContainerStatus], value, key);
  });
}

test('a container whose record was removed keeps its told end', () => {
  const never = desiredPod(simple({ restartPolicy: 'Never' }));
  const ended = generate(never, runtimePod([record('c', 'exited', { exitCode: 3 })]));
  const after = generate(never, runtimePod([]), { old: ended });
  assert.deepEqual(only(after).state, only(ended).state);
  assert.equal(after.phase, 'Failed');
});

test('the reason of a failed start shows while the container should start, and only then', () => {
  const reasons = new Map([['c', { reason: 'CrashLoopBackOff', message: 'back-off 10s' }]]);
  const shows = (policy: 'Always' | 'OnFailure' | 'Never', r: ContainerStatus, deleting = false) =>
    only(generate(desiredPod(simple({ restartPolicy: policy })), runtimePod([r]), { reasons, deleting })).state.waiting?.reason;
  const bad = record('c', 'exited', { exitCode: 1 });
  const good = record('c', 'exited');
  assert.equal(shows('Always', bad), 'CrashLoopBackOff');
  assert.equal(shows('Always', good), 'CrashLoopBackOff');
  assert.equal(shows('OnFailure', bad), 'CrashLoopBackOff');
  assert.equal(shows('OnFailure', good), undefined);
  assert.equal(shows('Never', bad), undefined);
  assert.equal(shows('Always', record('c', 'running')), undefined);
  assert.equal(shows('Never', record('c', 'created')), 'CrashLoopBackOff');
  assert.equal(shows('Always', bad, true), undefined, 'a pod that ends starts nothing');
});

test('a sidecar in a crash loop says so in a Never pod too; an init container that succeeded never does', () => {
  const desired = desiredPod(
    simple({
      restartPolicy: 'Never',
      initContainers: [
        { name: 'i', image: 'x' },
        { name: 's', image: 'x', restartPolicy: 'Always' },
      ],
    }),
  );
  const why = { reason: 'CrashLoopBackOff', message: '' };
  const status = generate(desired, runtimePod([record('i', 'exited'), record('s', 'exited')]), {
    reasons: new Map([
      ['i', why],
      ['s', why],
    ]),
  });
  const [init, side] = status.initContainerStatuses ?? [];
  assert.equal(init?.state.terminated?.exitCode, 0);
  assert.equal(side?.state.waiting?.reason, 'CrashLoopBackOff');
});

test('app containers stand by name, init containers as they run', () => {
  const desired = desiredPod({
    containers: [
      { name: 'z', image: 'x' },
      { name: 'a', image: 'x' },
    ],
    initContainers: [
      { name: 'y', image: 'x' },
      { name: 'b', image: 'x' },
    ],
  });
  const s = generate(desired, runtimePod([]));
  assert.deepEqual(
    [s.containerStatuses?.map((c) => c.name), s.initContainerStatuses?.map((c) => c.name)],
    [
      ['a', 'z'],
      ['y', 'b'],
    ],
  );
});

test('a start in the future counts as now, and what was told of a container stays told', () => {
  const future = runtimePod([record('c', 'running', { startedAt: at('2027-06-01T00:00:00Z') })]);
  const first = generate(pod, future, { now: '2026-01-01T01:00:00Z' });
  assert.equal(only(first).state.running?.startedAt, '2026-01-01T01:00:00Z');
  const second = generate(pod, future, { now: '2026-01-01T01:00:30Z', old: first });
  assert.deepEqual(second, first, 'nothing changed, so nothing is different');
  const gone = runtimePod([
    record('c', 'exited', { startedAt: at('2027-06-01T00:00:00Z'), finishedAt: at('2027-06-01T00:01:00Z') }),
    record('c', 'exited', { attempt: -1 }),
  ]);
  const third = generate(pod, gone, { now: '2026-01-01T01:02:00Z', old: second });
  assert.deepEqual(
    [only(third).state.terminated?.startedAt, only(third).state.terminated?.finishedAt],
    ['2026-01-01T01:00:00Z', '2026-01-01T01:02:00Z'],
  );
});

test('last words and a kill for memory, once told, stay when the runtime and the folder no longer say them', () => {
  const said = { exitCode: 137, reason: 'OOMKilled', message: 'the cache is full' };
  const first = generate(pod, runtimePod([record('c', 'exited', said)]));
  const later = record('c', 'exited', { exitCode: 137, reason: 'Error' });
  const told = (s: PodStatus) => [only(s).state, only(s).lastState].map((x) => [x.terminated?.reason, x.terminated?.message]);
  assert.deepEqual(told(generate(pod, runtimePod([later]), { old: first }))[0], ['OOMKilled', 'the cache is full']);
  const next = runtimePod([record('c', 'running', { attempt: 1 }), later]);
  assert.deepEqual(told(generate(pod, next, { old: first }))[1], ['OOMKilled', 'the cache is full']);
  const another = runtimePod([record('c', 'exited', { attempt: 1, exitCode: 137, reason: 'Error' }), later]);
  assert.deepEqual(told(generate(pod, another, { old: first }))[0], ['Error', undefined]);
});

test('times are whole seconds', () => {
  const s = generate(pod, runtimePod([record('c', 'running', { startedAt: (start + 1999) as WallTime })]));
  assert.equal(only(s).state.running?.startedAt, iso(start + 1000));
});

test('a transition time moves only with its condition, startTime never', () => {
  const first = generate(pod, runtimePod([record('c', 'running')]), { now: '2026-01-01T01:00:00Z' });
  const second = generate(pod, runtimePod([record('c', 'exited', { exitCode: 1 })]), { now: '2026-01-01T02:00:00Z', old: first });
  const times = Object.fromEntries((second.conditions ?? []).map((c) => [c.type, c.lastTransitionTime]));
  assert.deepEqual(times, {
    PodReadyToStartContainers: '2026-01-01T01:00:00Z',
    Initialized: '2026-01-01T01:00:00Z',
    Ready: '2026-01-01T02:00:00Z',
    ContainersReady: '2026-01-01T02:00:00Z',
    PodScheduled: '2026-01-01T01:00:00Z',
  });
  assert.equal(second.startTime, '2026-01-01T01:00:00Z');
});

test('conditions of others come first and stay', () => {
  const evicted = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: '2026-01-01T00:30:00Z',
    reason: 'TerminationByKubelet',
  } as const;
  const s = generate(pod, runtimePod([record('c', 'running')]), {
    old: { ...running, conditions: [evicted, ...(running.conditions ?? [])] },
  });
  assert.deepEqual(
    s.conditions?.map((c) => c.type),
    ['DisruptionTarget', 'PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'],
  );
  assert.deepEqual(s.conditions?.[0], evicted);
});

test('PodReadyToStartContainers is True only with one ready sandbox of the wanted network and an address', () => {
  const holds = (sandboxes: Parameters<typeof runtimePod>[1], hostNetwork = false) =>
    generate(desiredPod(simple({ hostNetwork })), runtimePod([], sandboxes)).conditions?.find((c) => c.type === 'PodReadyToStartContainers')
      ?.status;
  const { network: _, ...noNetworkBlock } = sandbox();
  assert.equal(holds([]), 'False');
  assert.equal(holds([sandbox()]), 'True');
  assert.equal(holds([sandbox({ attempt: 1 }), sandbox()]), 'False', 'two ready ones');
  assert.equal(holds([sandbox({ attempt: 1, state: 'notready' }), sandbox()]), 'False', 'the newest is dead');
  assert.equal(holds([sandbox({ attempt: 1 }), sandbox({ state: 'notready' })]), 'True');
  assert.equal(holds([sandbox()], true), 'False', 'network of the other kind');
  assert.equal(holds([sandbox({ networkMode: 'NODE' })], true), 'True');
  assert.equal(holds([sandbox({ network: { ip: '', additionalIps: [] } })]), 'False', 'no address');
  assert.equal(holds([noNetworkBlock]), 'True', 'no network block at all');
});

test('Initialized names what is missing, and Ready what is unready', () => {
  const desired = desiredPod(
    simple({
      initContainers: [
        { name: 'i', image: 'x' },
        { name: 's', image: 'x', restartPolicy: 'Always' },
      ],
    }),
  );
  const [, initialized, ready] = generate(desired, runtimePod([record('i', 'running')])).conditions ?? [];
  assert.deepEqual([initialized?.reason, initialized?.message], ['ContainersNotInitialized', 'containers with incomplete status: [i s]']);
  assert.deepEqual([ready?.reason, ready?.message], ['ContainersNotReady', 'containers with unready status: [s c]']);
});

test('a pod fails by its own end whatever its containers do, and never comes back from it', () => {
  const failed = { reason: 'DeadlineExceeded', message: 'Pod was active on the node longer than the specified deadline' };
  const first = generate(pod, runtimePod([record('c', 'running')]), { failed });
  assert.deepEqual([first.phase, first.reason, first.message], ['Failed', failed.reason, failed.message]);
  const second = generate(pod, runtimePod([]), { old: first });
  assert.deepEqual([second.phase, second.reason, second.message], ['Failed', failed.reason, failed.message]);
  const succeeded = { ...running, phase: 'Succeeded' } as const;
  assert.equal(generate(pod, runtimePod([record('c', 'running')]), { old: succeeded, failed }).phase, 'Succeeded');
});

test('reason and message stay as long as the phase does', () => {
  const old = { ...running, reason: 'R', message: 'M' };
  assert.equal(generate(pod, runtimePod([record('c', 'running')]), { old }).reason, 'R');
  assert.equal(generate(pod, runtimePod([record('c', 'created')]), { old }).reason, undefined);
});

test('addresses: one of each family, the node’s family first, kept when the sandbox is gone', () => {
  const ips = (o: Parameters<typeof generate>[2], r = runtimePod([], [sandbox()], ['10.0.0.5', '10.0.0.6', 'fd00::5'])) =>
    generate(pod, r, o).podIPs?.map((p) => p.ip);
  assert.deepEqual(ips({}), ['10.0.0.5', 'fd00::5']);
  assert.deepEqual(ips({ hostIps: ['fd00::1'] }), ['fd00::5', '10.0.0.5']);
  assert.deepEqual(ips({ hostIps: [] }), ['10.0.0.5', 'fd00::5']);
  assert.deepEqual(ips({ old: running }, runtimePod([], [sandbox({ state: 'notready' })], [])), ['10.0.0.5']);
  assert.equal(ips({ old: running }, runtimePod([], [sandbox()], [])), undefined);
  const host = generate(desiredPod(simple({ hostNetwork: true })), runtimePod([], [], []), { hostIps: ['192.168.1.7', 'fd00::1'] });
  assert.deepEqual([host.podIP, host.hostIP, host.hostIPs?.length], ['192.168.1.7', '192.168.1.7', 2]);
});

test('a removed Always pod keeps the phase Running with all containers ended, as a static pod does', () => {
  assert.equal(
    generate(pod, runtimePod([record('c', 'exited', { exitCode: 137 })], [], []), { terminal: true, old: running }).phase,
    'Running',
  );
});

test('a pod that was not let in is told as the kubelet tells it', () => {
  assert.deepEqual(
    rejectedPodStatus(
      pod,
      { reason: 'NodeAffinity', message: "Predicate NodeAffinity failed: node(s) didn't match" },
      '2026-01-01T00:00:00Z',
    ),
    {
      phase: 'Failed',
      message: "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match",
      reason: 'NodeAffinity',
      startTime: '2026-01-01T00:00:00Z',
      qosClass: 'BestEffort',
    },
  );
});

test('why an ephemeral container could not start is told, and one that has ended is never told to wait again', () => {
  const pod = desiredPod(simple({ ephemeralContainers: [{ name: 'look', image: 'busybox' }] }));
  const reasons = new Map([['look', { reason: 'ErrImagePull', message: 'no such image' }]]);
  const state = (records: Parameters<typeof runtimePod>[0]) =>
    generate(pod, runtimePod(records), { reasons }).ephemeralContainerStatuses?.[0]?.state;
  assert.deepEqual(state([record('c', 'running')]), { waiting: { reason: 'ErrImagePull', message: 'no such image' } });
  assert.equal(state([record('c', 'running'), record('look', 'exited', { exitCode: 1 })])?.terminated?.exitCode, 1);
});

test('fields without effect are a condition of the pod, kept while nobody knows better and gone with the fields', () => {
  const desired = desiredPod(simple());
  const types = (s: PodStatus) => s.conditions?.find((c) => c.type === 'podsched.dev/FieldsIgnored')?.message;
  const first = generate(desired, runtimePod([]), { ignored: ['spec.tolerations', 'spec.nodeName'] });
  assert.equal(types(first), 'without effect: spec.tolerations, spec.nodeName');
  assert.equal(first.conditions?.at(-1)?.status, 'True');
  const unread = generate(desired, runtimePod([]), { old: first });
  assert.equal(types(unread), types(first));
  assert.equal(unread.conditions?.filter((c) => c.type === 'podsched.dev/FieldsIgnored').length, 1);
  assert.equal(types(generate(desired, runtimePod([]), { old: first, ignored: [] })), undefined);
  const many = Array.from({ length: 25 }, (_, i) => `spec.x${i}`);
  assert.match(types(generate(desired, runtimePod([]), { ignored: many })) ?? '', /spec\.x19 and 5 more$/);
});

test('what was told of a container’s last words stays, also when a later agent finds only its log', () => {
  const desired = desiredPod(simple());
  const ended = (message: string) => runtimePod([record('c', 'exited', { exitCode: 5, message })]);
  const words = (s: PodStatus) => s.containerStatuses?.[0]?.state.terminated?.message;
  const first = generate(desired, ended('chosen'));
  assert.equal(words(first), 'chosen');
  assert.equal(words(generate(desired, ended('in the log'), { old: first })), 'chosen');
  assert.equal(words(generate(desired, ended('late'), { old: generate(desired, ended('')) })), 'late');
});
