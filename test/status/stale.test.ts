import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainReason } from '../../src/api/reasons.ts';
import type { PodStatus } from '../../src/api/status.ts';
import { computeSyncStatus } from '../../src/status/sync.ts';
import { desiredPod, generate, record, runtimePod, simple, source, view } from './build.ts';

const staleImages = [{ container: 'c', image: 'busybox:latest', why: 'no answer in 10s' }];
const stale = (s: PodStatus) => s.conditions?.find((c) => c.type === 'podsched.dev/ImageStale');

test('a container that runs an image of before is a condition of its pod, and goes with the cause', () => {
  const desired = desiredPod(simple());
  const first = generate(desired, runtimePod([record('c', 'running')]), { staleImages });
  assert.deepEqual(stale(first), {
    type: 'podsched.dev/ImageStale',
    status: 'True',
    lastTransitionTime: '2026-01-01T01:00:00Z',
    reason: 'ImageStale',
    message: 'container c: image "busybox:latest" could not be refreshed: no answer in 10s',
  });
  const later = generate(desired, runtimePod([record('c', 'running')]), { staleImages, old: first, now: '2026-01-01T02:00:00Z' });
  assert.deepEqual(stale(later), stale(first));
  assert.equal(stale(generate(desired, runtimePod([record('c', 'running')]), { old: later })), undefined);
});

test('the answer to "why" is ImageStale while the pod runs well, and what is worse when it does not', () => {
  const desired = desiredPod(simple());
  const answer = (state: 'running' | 'exited', of = view()) => {
    const status = generate(desired, runtimePod([record('c', state)]), { staleImages });
    const { phase, reason } = computeSyncStatus(of, { state: 'sync', status });
    assert.notEqual(explainReason(reason), undefined);
    return `${phase} ${reason}`;
  };
  assert.equal(answer('running'), 'Running ImageStale');
  assert.equal(answer('exited'), 'Waiting ContainersNotReady');
  const problem = { path: 'spec', expected: 'a map', got: 'text' };
  const refused = source({ phase: 'Refused', reason: 'Invalid', problems: [problem] });
  assert.equal(answer('running', view({ sources: [refused] })), 'Running EditRefused');
});
