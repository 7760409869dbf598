import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import type { KeyText, Problem } from '../../src/api/objects.ts';
import { FileStatusSchema, type SyncBody, SyncStatusSchema } from '../../src/api/payloads.ts';
import { explainReason } from '../../src/api/reasons.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import type { ContainerStatus } from '../../src/container/words.ts';
import { jsonBytes } from '../../src/status/cut.ts';
import type { StatusInputs } from '../../src/status/generate.ts';
import { capFile, capSync } from '../../src/status/problems.ts';
import { computeFileStatus, computeSyncStatus, type LivePod, type SyncView } from '../../src/status/sync.ts';
import { desiredPod, generate, record, runtimePod, simple, source, view } from './build.ts';

const without = ({ winner: _, ...rest }: SyncView): SyncView => rest;
const problem = (o: Partial<Problem> = {}): Problem => ({
  path: 'spec.containers[0].image',
  expected: 'text',
  got: 'the number 5',
  file: 'web.yaml',
  line: 3,
  column: 7,
  ...o,
});

const status = (records: readonly ContainerStatus[], o: Partial<StatusInputs> = {}, spec: Partial<PodSpec> = {}) =>
  generate(desiredPod(simple(spec)), runtimePod(records), o);
const because = (reason: string, message = 'm') => ({ reasons: new Map([['c', { reason, message }]]) });
const up = status([record('c', 'running')]);
const refused = source({ phase: 'Refused', reason: 'Invalid', problems: [problem()] });

// what is known → phase, reason, a part of the message
const table: readonly (readonly [string, SyncView, LivePod, string, string, RegExp?])[] = [
  ['accepted, no worker yet', view(), {}, 'Accepted', 'Accepted'],
  [
    'held back before a worker sees it',
    view({ pending: { reason: 'CheckpointLost', message: 'left running' } }),
    {},
    'Waiting',
    'CheckpointLost',
  ],
  ['a predecessor ends', view(), { state: 'waiting' }, 'Waiting', 'WaitingForPredecessor'],
  ['no runtime, so no knowledge of predecessors', view(), { state: 'waiting', runtimeDown: 'x' }, 'Waiting', 'RuntimeDown'],
  ['no runtime after an agent restart', view(), { state: 'waiting', status: up, runtimeDown: 'x' }, 'Running', 'RuntimeDown'],
  ['no runtime, nothing known', view(), { state: 'sync', runtimeDown: 'connect: no such file' }, 'Waiting', 'RuntimeDown', /no such file/],
  ['no runtime, last seen running', view(), { state: 'sync', status: up, runtimeDown: 'x' }, 'Running', 'RuntimeDown'],
  ['no pod network', view(), { state: 'sync', status: status([]), networkNotReady: 'cni' }, 'Waiting', 'NetworkNotReady', /cni/],
  ['a lost network stops no running pod', view(), { state: 'sync', status: up, networkNotReady: 'cni' }, 'Running', 'Ready'],
  [
    'the sandbox cannot be made',
    view(),
    { state: 'sync', status: status([]), blocked: { reason: 'CreatePodSandboxError', message: 'x' } },
    'Waiting',
    'CreatePodSandboxError',
  ],
  ['on its way', view(), { state: 'sync', status: status([]) }, 'Waiting', 'ContainerCreating', /container c/],
  ['no image', view(), { state: 'sync', status: status([], because('ErrImagePull')) }, 'Waiting', 'ErrImagePull', /container c: m/],
  [
    'crash loop',
    view(),
    { state: 'sync', status: status([record('c', 'exited', { exitCode: 7 })], because('CrashLoopBackOff', 'back-off 10s')) },
    'Waiting',
    'CrashLoopBackOff',
    /container c: back-off 10s; it last ended with exit code 7 \(Error\)/,
  ],
  [
    'one of two in a crash loop',
    view(),
    {
      state: 'sync',
      status: status([record('c', 'exited', { exitCode: 7 }), record('d', 'running')], because('CrashLoopBackOff'), {
        containers: [
          { name: 'c', image: 'x' },
          { name: 'd', image: 'x' },
        ],
      }),
    },
    'Running',
    'CrashLoopBackOff',
  ],
  [
    'an init container blocks',
    view(),
    { state: 'sync', status: status([record('i', 'running')], {}, { initContainers: [{ name: 'i', image: 'x' }] }) },
    'Waiting',
    'PodInitializing',
  ],
  ['runs and is ready', view(), { state: 'sync', status: up }, 'Running', 'Ready'],
  [
    'runs, and the broker has lost its object',
    view({ sources: [source({ reason: 'SourceGone', message: 'the broker does not have it' })] }),
    { state: 'sync', status: up },
    'SourceGone',
    'SourceGone',
    /^the broker does not have it$/,
  ],
  [
    'does not run well, and the broker has lost its object',
    view({ sources: [source({ reason: 'SourceGone', message: 'the broker does not have it' })] }),
    { state: 'sync', status: status([record('c', 'exited', { exitCode: 7 })], because('CrashLoopBackOff', 'back-off 10s')) },
    'Waiting',
    'CrashLoopBackOff',
    /back-off 10s.*; SourceGone: the broker does not have it$/,
  ],
  [
    'runs, and its newer revision waits for a rollout',
    view({ sources: [source({ phase: 'Waiting', reason: 'Rollout', message: 'wave 2' })] }),
    { state: 'sync', status: up },
    'Waiting',
    'Rollout',
    /^revision r1 goes on: wave 2$/,
  ],
  [
    'runs, and its newer revision did not come',
    view({ sources: [source({ phase: 'Waiting', reason: 'Missing', message: 'listed' })] }),
    { state: 'sync', status: up },
    'Waiting',
    'Missing',
    /^revision r1 goes on: listed$/,
  ],
  [
    'has not begun, and did not come',
    without(view({ sources: [source({ phase: 'Waiting', reason: 'Missing', message: 'listed' })] })),
    {},
    'Waiting',
    'Missing',
    /^listed$/,
  ],
  [
    'another source of it waits for a rollout: nothing of that runs',
    view({ sources: [source(), source({ source: 'mqtt:all', phase: 'Waiting', reason: 'Rollout', message: 'wave 2' })] }),
    { state: 'sync', status: up },
    'Running',
    'Ready',
  ],
  [
    'uses a Secret that cannot be opened',
    view({ unopened: { reason: 'CannotUnseal', message: 'Secret tls: sealed for another node' } }),
    { state: 'sync', status: status([], because('CreateContainerConfigError', 'secret "tls" not found')) },
    'Waiting',
    'CannotUnseal',
    /^Secret tls: sealed for another node; container c: secret "tls" not found$/,
  ],
  [
    'runs still, and its Secret cannot be opened any more',
    view({ unopened: { reason: 'CannotUnseal', message: 'Secret tls: sealed for another node' } }),
    { state: 'sync', status: up },
    'Running',
    'Ready',
  ],
  [
    'runs, and its edit has no room',
    view({ blockedEdit: { reason: 'OutOfcpu', message: 'no room' } }),
    { state: 'sync', status: up, running: { revision: 'old', uid: 'u' } },
    'UpdateBlocked',
    'OutOfcpu',
    /^revision old stays: no room$/,
  ],
  [
    'does not run well, and its edit has no room',
    view({ blockedEdit: { reason: 'OutOfcpu', message: 'no room' } }),
    { state: 'sync', status: status([record('c', 'exited', { exitCode: 7 })], because('CrashLoopBackOff', 'back-off 10s')) },
    'Waiting',
    'CrashLoopBackOff',
    /back-off 10s.*; its update is blocked \(OutOfcpu\): no room$/,
  ],
  [
    'runs, and the image of its edit is on its way',
    view({ blockedEdit: { reason: 'PullingImage', message: 'image "x:2" of c is being pulled' } }),
    { state: 'sync', status: up, running: { revision: 'old', uid: 'u' } },
    'UpdateBlocked',
    'PullingImage',
    /^revision old stays: image "x:2" of c is being pulled$/,
  ],
  [
    'went back to its last good revision',
    view({ blockedEdit: { reason: 'RolledBack', message: 'revision b was not Ready in 5m0s: x; revision a runs again' } }),
    { state: 'sync', status: up, running: { revision: 'a', uid: 'u' } },
    'RolledBack',
    'RolledBack',
    /^revision b was not Ready in 5m0s: x; revision a runs again$/,
  ],
  [
    'went back, and does not run well either',
    view({ blockedEdit: { reason: 'RolledBack', message: 'revision b was not Ready' } }),
    { state: 'sync', status: status([record('c', 'exited', { exitCode: 7 })], because('CrashLoopBackOff', 'back-off 10s')) },
    'Waiting',
    'CrashLoopBackOff',
    /back-off 10s.*; rolled back: revision b was not Ready$/,
  ],
  [
    'held, with an edit that waits',
    view({ heldBy: 'held by somebody', blockedEdit: { reason: 'Held', message: 'held by somebody' } }),
    { state: 'sync', status: up, running: { revision: 'old', uid: 'u' } },
    'Held',
    'Held',
    /^revision old stays: held by somebody$/,
  ],
  [
    'held, not well, with an edit that waits',
    view({ heldBy: 'held by somebody', blockedEdit: { reason: 'Held', message: 'held by somebody' } }),
    { state: 'sync', status: status([record('c', 'exited', { exitCode: 7 })], because('CrashLoopBackOff', 'back-off 10s')) },
    'Waiting',
    'CrashLoopBackOff',
    /; its update waits: held by somebody$/,
  ],
  [
    'held, and nothing waits',
    view({ heldBy: 'held by somebody' }),
    { state: 'sync', status: up },
    'Running',
    'Ready',
    /^all containers run and are ready; held by somebody: edits wait$/,
  ],
  [
    'refused by admission',
    view(),
    { status: { phase: 'Failed', reason: 'NodeAffinity', message: 'Pod was rejected: x', startTime: 't', qosClass: 'BestEffort' } },
    'Failed',
    'NodeAffinity',
  ],
  [
    'runs, not ready',
    view(),
    { state: 'sync', status: status([record('c', 'running')], { probes: { started: () => undefined, ready: () => false } }) },
    'Running',
    'ContainersNotReady',
    /unready status: \[c\]/,
  ],
  [
    'succeeded',
    view(),
    { state: 'finished', status: status([record('c', 'exited')], {}, { restartPolicy: 'Never' }) },
    'Completed',
    'Succeeded',
  ],
  [
    'failed',
    view(),
    { state: 'finished', status: status([record('c', 'exited', { exitCode: 3 })], {}, { restartPolicy: 'Never' }) },
    'Failed',
    'ContainersFailed',
    /container c ended with exit code 3 \(Error\)/,
  ],
  [
    'a deadline that is being carried out',
    view(),
    { state: 'terminating', status: status([record('c', 'running')], { failed: { reason: 'DeadlineExceeded', message: 'm' } }) },
    'Terminating',
    'DeadlineExceeded',
  ],
  [
    'a deadline that is over',
    view(),
    {
      state: 'finished',
      status: status([record('c', 'exited', { exitCode: 137 })], { failed: { reason: 'DeadlineExceeded', message: 'm' } }),
    },
    'Failed',
    'DeadlineExceeded',
  ],
  [
    'a one-shot pod ending by itself is no termination',
    view(),
    { state: 'terminating', status: status([record('c', 'exited')], {}, { restartPolicy: 'Never' }) },
    'Completed',
    'Succeeded',
  ],
  ['removed, still ending', without(view({ sources: [] })), { state: 'terminating', status: up }, 'Terminating', 'Removed'],
  [
    'refused, nothing accepted before',
    without(view({ sources: [refused] })),
    {},
    'Refused',
    'Invalid',
    /web.yaml:3:7: spec.containers\[0\].image: expected text, got the number 5/,
  ],
  [
    'refused, and what ran of it ends',
    without(view({ sources: [refused] })),
    { state: 'terminating', status: up },
    'Terminating',
    'Invalid',
  ],
  [
    'a broken edit: the last good goes on',
    view({ sources: [refused] }),
    { state: 'sync', status: up },
    'Running',
    'EditRefused',
    /revision r1 stays/,
  ],
  [
    'a broken edit of a crash-looping pod: the crash is said',
    view({ sources: [refused] }),
    { state: 'sync', status: status([], because('ErrImagePull')) },
    'Waiting',
    'ErrImagePull',
  ],
  [
    'a broken object of a losing source changes nothing',
    view({ sources: [source(), { ...refused, source: 'file:z.yaml' }] }),
    { state: 'sync', status: up },
    'Running',
    'Ready',
  ],
  ['a ConfigMap', view({ kind: 'ConfigMap' }), {}, 'Accepted', 'Accepted'],
  ['a broken edit of a ConfigMap', view({ kind: 'ConfigMap', sources: [refused] }), {}, 'Accepted', 'EditRefused'],
  ['a refused Secret', without(view({ kind: 'Secret', sources: [refused] })), {}, 'Refused', 'Invalid'],
];

const stamped = (body: SyncBody) => ({ ...body, boot: 1, seq: 2 });

for (const [title, v, live, phase, reason, message] of table) {
  test(`sync: ${title} → ${phase} ${reason}`, () => {
    const body = computeSyncStatus(v, live);
    assert.deepEqual([body.phase, body.reason], [phase, reason]);
    if (message) assert.match(body.message, message);
    assert.ok(explainReason(body.reason), `${body.reason} has a remedy`);
    assert.deepEqual([...Value.Errors(SyncStatusSchema, stamped(body))], []);
  });
}

test('desired, running, generation and the next try stand in the answer', () => {
  const body = computeSyncStatus(view({ winner: { source: 'mqtt:group/attic', revision: 'r2', generation: 4 } }), {
    state: 'sync',
    status: status([], because('ErrImagePull')),
    running: { revision: 'r1', uid: 'u' },
    nextRetrySeconds: 9.2,
  });
  assert.deepEqual(body.desired, { source: 'mqtt:group/attic', revision: 'r2', generation: 4 });
  assert.deepEqual(body.running, { revision: 'r1', uid: 'u' });
  assert.equal(body.nextRetrySeconds, 10);
});

test('every source is listed with its problems and warnings', () => {
  const warning = problem({ path: 'spec.schedulerName', expected: 'nothing', got: 'x' });
  const [won, lost] = computeSyncStatus(
    view({
      sources: [
        source({ warnings: [warning], message: 'accepted' }),
        source({ source: 'mqtt:all', phase: 'Shadowed', reason: 'Shadowed', message: 'file:web.yaml wins' }),
      ],
    }),
    { state: 'sync', status: up },
  ).sources;
  assert.equal(won?.message, 'accepted; 1 warning: spec.schedulerName');
  assert.deepEqual(won?.problems, [{ path: 'spec.schedulerName', file: 'web.yaml', line: 3, column: 7, expected: 'nothing', got: 'x' }]);
  assert.deepEqual([lost?.phase, lost?.message], ['Shadowed', 'file:web.yaml wins']);
});

test('values of env, of Secrets, and of data in a broken file are not told', () => {
  const secret = 'hunter2';
  const told = [
    computeSyncStatus(
      without(
        view({
          sources: [
            source({ phase: 'Refused', reason: 'Invalid', problems: [problem({ path: 'spec.containers[0].env[1].value', got: secret })] }),
          ],
        }),
      ),
    ),
    computeSyncStatus(
      without(
        view({
          kind: 'Secret',
          sources: [source({ phase: 'Refused', reason: 'Invalid', problems: [problem({ path: 'stringData.pw', got: secret })] })],
        }),
      ),
    ),
    computeFileStatus({ file: 'a.yaml', objects: [], warnings: [], problems: [problem({ path: 'items[0].data[pw]', got: secret })] }),
  ];
  assert.doesNotMatch(JSON.stringify(told), /hunter2/);
  const port = computeSyncStatus(without(view({ sources: [refused] })));
  assert.equal(port.sources[0]?.problems[0]?.got, 'the number 5', 'what is harmless is shown');
});

test('a file speaks while it has a problem, or a warning that is about the file itself', () => {
  const file = (problems: Problem[], warnings: Problem[]) =>
    computeFileStatus({ file: 'web.yaml', objects: ['Pod/default/web' as KeyText], problems, warnings });
  assert.equal(file([], []), undefined);
  assert.equal(file([], [problem()]), undefined, 'a warning of an object stands with the object');
  const told = file([problem()], [problem({ path: '', expected: 'a file only root may write', got: 'mode 0666' })]);
  assert.deepEqual(told?.objects, [{ kind: 'Pod', namespace: 'default', name: 'web' }]);
  assert.equal(told?.problems.length, 2);
  assert.deepEqual([...Value.Errors(FileStatusSchema, { ...told, boot: 1, seq: 2 })], []);
});

test('thousands of problems are cut to what a broker takes, and it is said', () => {
  const problems = Array.from({ length: 5000 }, (_, i) => problem({ path: `spec.containers[${i}].image` }));
  const sync = capSync(
    computeSyncStatus(view({ sources: [source({ phase: 'Refused', reason: 'Invalid', problems, message: 'x'.repeat(90_000) })] })),
    60 * 1024,
  );
  assert.ok(jsonBytes(sync) <= 60 * 1024);
  assert.equal(sync.truncated, 'problems');
  assert.ok((sync.sources[0]?.problems.length ?? 0) >= 16);
  const file = computeFileStatus({
    file: 'a.yaml',
    objects: problems.map((_, i) => `Pod/default/p${i}` as KeyText),
    problems,
    warnings: [],
  });
  assert.ok(file);
  assert.ok(jsonBytes(capFile(file, 60 * 1024)) <= 60 * 1024);
  assert.equal(capSync(computeSyncStatus(view()), 60 * 1024).truncated, undefined);
});
