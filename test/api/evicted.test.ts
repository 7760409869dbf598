import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evictedStatus, hasBegun, wasEvicted } from '../../src/api/evicted.ts';
import { isCriticalPod, podPriority } from '../../src/api/priority.ts';
import type { PodStatus } from '../../src/api/status.ts';

const now = '2026-01-01T00:00:00Z';
const running: PodStatus = {
  phase: 'Running',
  startTime: now,
  conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }],
  message: 'old',
};

test('an evicted pod is told Failed with reason and message, and DisruptionTarget first of its conditions', () => {
  const status = evictedStatus(running, { reason: 'Evicted', message: 'low', disrupts: true }, now);
  assert.deepEqual([status.phase, status.reason, status.message, status.startTime], ['Failed', 'Evicted', 'low', now]);
  assert.deepEqual(status.conditions, [
    { type: 'DisruptionTarget', status: 'True', lastTransitionTime: now, reason: 'TerminationByKubelet', message: 'low' },
    ...(running.conditions ?? []),
  ]);
  assert.equal(wasEvicted(status), true);
});

test('a pod that broke a limit of its own is no disruption', () => {
  const status = evictedStatus(running, { reason: 'Evicted', message: 'limit', disrupts: false }, now);
  assert.deepEqual(status.conditions, running.conditions);
  assert.equal(wasEvicted(status), true);
});

test('refused for a pressure, failed, or ended by itself is not evicted', () => {
  assert.equal(
    wasEvicted({ phase: 'Failed', reason: 'Evicted', message: 'Pod was rejected: The node had condition: [DiskPressure]. ' }),
    false,
  );
  assert.equal(wasEvicted({ phase: 'Failed', reason: 'DeadlineExceeded' }), false);
  assert.equal(wasEvicted({ phase: 'Succeeded' }), false);
  assert.equal(wasEvicted(undefined), false);
  assert.equal(wasEvicted({ phase: 'Failed', reason: 'Preempting', message: 'Preempted in order to admit critical pod' }), true);
});

test('it has begun when a container of it was made', () => {
  const c = { name: 'a', state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' };
  assert.equal(hasBegun(undefined), false);
  assert.equal(hasBegun({ phase: 'Pending', containerStatuses: [c] }), false);
  assert.equal(hasBegun({ phase: 'Pending', initContainerStatuses: [{ ...c, containerID: 'containerd://x' }] }), true);
});

test('critical are the two classes of the system and priorities from two thousand million on, and nobody for being static', () => {
  const spec = { containers: [] };
  assert.equal(isCriticalPod({ spec }), false);
  assert.equal(podPriority({ spec: { ...spec, priority: 7 } }), 7);
  assert.equal(isCriticalPod({ spec: { ...spec, priority: 1_999_999_999 } }), false);
  assert.equal(isCriticalPod({ spec: { ...spec, priority: 2_000_000_000 } }), true);
  assert.equal(podPriority({ spec: { ...spec, priorityClassName: 'system-node-critical' } }), 2_000_001_000);
});
