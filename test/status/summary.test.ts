import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { NodeSummarySchema } from '../../src/api/messages.ts';
import type { SyncPhase, SyncStatus } from '../../src/api/payloads.ts';
import type { ToldPod } from '../../src/api/status.ts';
import { jsonBytes } from '../../src/status/cut.ts';
import { nodeSummary, type SummaryFacts, summaryNews } from '../../src/status/summary.ts';
import { toldPod } from '../../src/status/told.ts';
import { desiredPod, generate, record, runtimePod, simple } from './build.ts';

function sync(name: string, phase: SyncPhase, reason: string, o: { kind?: string; desired?: boolean } = {}): SyncStatus {
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'SyncStatus',
    object: { kind: o.kind ?? 'Pod', namespace: 'default', name },
    phase,
    reason,
    message: '',
    ...(o.desired !== false && { desired: { source: 'file:a.yaml', revision: 'r' } }),
    sources: [],
    boot: 1,
    seq: 1,
  };
}

const pod = (name: string, state: 'running' | 'exited'): ToldPod => {
  const desired = desiredPod(simple(), { name, uid: name });
  return toldPod(desired, generate(desired, runtimePod([record('c', state, state === 'exited' ? { exitCode: 1 } : {})])), undefined);
};

const facts = (more: Partial<SummaryFacts> = {}): SummaryFacts => ({
  node: 'pi-07',
  uptimeSeconds: 12.9,
  pods: [],
  sync: [],
  conditions: [{ type: 'Ready', status: 'True' }],
  restartsLastHour: 0,
  use: {},
  ...more,
});

test('a calm node: counts, no alert, figures in few digits; and it fits its schema', () => {
  const body = nodeSummary(
    facts({
      pods: [pod('web', 'running'), pod('job', 'exited')],
      sync: [
        sync('web', 'Running', 'Ready'),
        sync('job', 'Completed', 'Succeeded'),
        sync('app', 'Accepted', 'Accepted', { kind: 'ConfigMap' }),
      ],
      restartsLastHour: 3,
      use: { cpuPercent: 12.345, memoryBytes: 1e8, memoryTotalBytes: 4e9, temperatureCelsius: 51.87, diskWrittenBytes: 512 },
    }),
  );
  assert.deepEqual(body, {
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeSummary',
    node: 'pi-07',
    uptimeSeconds: 12,
    pods: { desired: 2, running: 2, ready: 1 },
    restartsLastHour: 3,
    alerts: [],
    cpuPercent: 12.3,
    memoryBytes: 1e8,
    memoryTotalBytes: 4e9,
    temperatureCelsius: 51.9,
    diskWrittenBytes: 512,
  });
  assert.deepEqual([...Value.Errors(NodeSummarySchema, { ...body, boot: 1, seq: 1 })], []);
});

test('what is an alert, and what is only on its way', () => {
  const table: readonly (readonly [SyncPhase, string, boolean])[] = [
    ['Accepted', 'Accepted', false],
    ['Accepted', 'EditRefused', true],
    ['Waiting', 'ContainerCreating', false],
    ['Waiting', 'PodInitializing', false],
    ['Waiting', 'ContainersNotReady', false],
    ['Waiting', 'WaitingForPredecessor', false],
    ['Waiting', 'Rollout', false],
    ['Waiting', 'ImagePullBackOff', true],
    ['Waiting', 'WaitingForDevice', true],
    ['Waiting', 'RuntimeDown', true],
    ['Waiting', 'Missing', true],
    ['Running', 'Ready', false],
    ['Running', 'ImageStale', false],
    ['Running', 'CrashLoopBackOff', true],
    ['Running', 'ContainersNotReady', true],
    ['Running', 'EditRefused', true],
    ['Completed', 'Succeeded', false],
    ['Completed', 'EditRefused', true],
    ['Waiting', 'GenerationConflict', true],
    ['Failed', 'ContainersFailed', true],
    ['Refused', 'Invalid', true],
    ['UpdateBlocked', 'ImagePullBackOff', true],
    ['RolledBack', 'RolledBack', true],
    ['Held', 'Held', false],
    ['Stopped', 'Stopped', false],
    ['Terminating', 'Removed', false],
    ['SourceGone', 'SourceGone', true],
  ];
  for (const [phase, reason, alert] of table) {
    const { alerts } = nodeSummary(facts({ sync: [sync('web', phase, reason)] }));
    assert.deepEqual(alerts, alert ? [`default/web: ${reason}`] : [], `${phase} ${reason}`);
  }
  assert.deepEqual(nodeSummary(facts({ sync: [sync('app', 'Refused', 'Denied', { kind: 'Secret' })] })).alerts, [
    'secret:default/app: Denied',
  ]);
});

test('conditions of the node come first, by type; Ready is the one that should be True', () => {
  const { alerts } = nodeSummary(
    facts({
      conditions: [
        { type: 'NetworkUnavailable', status: 'False' },
        { type: 'MemoryPressure', status: 'True' },
        { type: 'Ready', status: 'False' },
        { type: 'UnderVoltage', status: 'True' },
      ],
      sync: [sync('web', 'Failed', 'Evicted')],
    }),
  );
  assert.deepEqual(alerts, ['MemoryPressure', 'Ready', 'UnderVoltage', 'default/web: Evicted']);
});

test('what ends, is stopped or has no accepted source is not desired', () => {
  const { pods } = nodeSummary(
    facts({
      sync: [
        sync('a', 'Terminating', 'Removed'),
        sync('b', 'Stopped', 'Stopped'),
        sync('c', 'Refused', 'Invalid', { desired: false }),
        sync('d', 'Waiting', 'ImagePullBackOff'),
      ],
    }),
  );
  assert.equal(pods.desired, 1);
});

test('however much is wrong, it has at most 20 alerts and 2 KiB, and the last alert counts the rest', () => {
  for (const [count, length] of [
    [19, 5],
    [20, 5],
    [21, 5],
    [500, 5],
    [60, 250],
    [40, 63],
  ] as const) {
    const all = Array.from({ length: count }, (_, i) => sync(`${'ü'.repeat(length)}${i}`, 'Failed', 'ContainersFailed'));
    const body = nodeSummary(facts({ node: 'n'.repeat(63), sync: all, use: { cpuPercent: 1, memoryBytes: 1, memoryTotalBytes: 1 } }));
    const whole = { ...body, boot: 4_000_000_000, seq: Number.MAX_SAFE_INTEGER };
    assert.ok(jsonBytes(whole) <= 2048, `${count}×${length}: ${jsonBytes(whole)}`);
    assert.ok(body.alerts.length <= 20 && body.alerts.length > 5);
    assert.deepEqual([...Value.Errors(NodeSummarySchema, whole)], []);
    const shown = count <= 20 && body.alerts.length === count ? count : body.alerts.length - 1;
    if (shown < count) assert.equal(body.alerts.at(-1), `and ${count - shown} more`);
  }
});

test('figures of use are no news; counts and alerts are', () => {
  const calm = nodeSummary(facts());
  assert.equal(summaryNews(calm), summaryNews(nodeSummary(facts({ uptimeSeconds: 99, restartsLastHour: 4, use: { cpuPercent: 50 } }))));
  assert.notEqual(summaryNews(calm), summaryNews(nodeSummary(facts({ pods: [pod('web', 'running')] }))));
  assert.notEqual(summaryNews(calm), summaryNews(nodeSummary(facts({ conditions: [{ type: 'Throttled', status: 'True' }] }))));
});
