/** A pod whose limits the node cannot keep says so (behaviour 5, 24). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainReason } from '../../src/api/reasons.ts';
import type { PodStatus } from '../../src/api/status.ts';
import { computeSyncStatus } from '../../src/status/sync.ts';
import { desiredPod, generate, record, runtimePod, simple, view } from './build.ts';

const condition = (s: PodStatus) => s.conditions?.find((c) => c.type === 'podsched.dev/LimitsNotEnforced');
const runs = runtimePod([record('c', 'running')]);

test('what is not enforced is a condition of the pod, and goes with the cause', () => {
  const desired = desiredPod(simple());
  const first = generate(desired, runs, { unenforced: 'pod level' });
  assert.deepEqual(condition(first), {
    type: 'podsched.dev/LimitsNotEnforced',
    status: 'True',
    lastTransitionTime: '2026-01-01T01:00:00Z',
    reason: 'LimitsNotEnforced',
    message: 'pod level',
  });
  const later = generate(desired, runs, { unenforced: 'memory', old: first, now: '2026-01-01T02:00:00Z' });
  assert.deepEqual(condition(later), { ...condition(first), message: 'memory' });
  assert.equal(condition(generate(desired, runs, { old: later })), undefined);
});

test('a pod that is ready stays so, and says what is not enforced', () => {
  const status = generate(desiredPod(simple()), runs, { unenforced: 'cgroup differs' });
  const { phase, reason, message } = computeSyncStatus(view(), { state: 'sync', status });
  assert.deepEqual([phase, reason, message], ['Running', 'Ready', 'all containers run and are ready; limits not enforced: cgroup differs']);
});

test('every reason of cgroups has words for a person', () => {
  for (const reason of [
    'LimitsNotEnforced',
    'MemoryCgroupOff',
    'CgroupControllerMissing',
    'CgroupV1',
    'CgroupsNotWritable',
    'FailedCreatePodContainer',
    'NodeAllocatableEnforced',
    'FailedNodeAllocatableEnforcement',
  ])
    assert.notEqual(explainReason(reason), undefined, reason);
});
