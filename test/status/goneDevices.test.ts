import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainReason } from '../../src/api/reasons.ts';
import { computeSyncStatus } from '../../src/status/sync.ts';
import { desiredPod, generate, record, runtimePod, simple, view } from './build.ts';

const goneDevices = [{ container: 'c', deviceClass: 'serial', paths: ['/dev/serial/by-id/x', '/dev/ttyUSB0'] }];

test('a device that is gone is a condition of the pod and the answer to "why", until it is back', () => {
  const desired = desiredPod(simple());
  const status = generate(desired, runtimePod([record('c', 'running')]), { goneDevices });
  const gone = status.conditions?.find((c) => c.type === 'podsched.dev/DeviceGone');
  const message = 'gone: container c: /dev/serial/by-id/x, /dev/ttyUSB0 (class serial)';
  assert.deepEqual([gone?.status, gone?.reason, gone?.message], ['True', 'DeviceGone', message]);
  assert.equal(status.conditions?.find((c) => c.type === 'Ready')?.status, 'True', 'it runs on');
  const told = computeSyncStatus(view(), { state: 'sync', status });
  assert.deepEqual([told.phase, told.reason, told.message], ['Running', 'DeviceGone', message]);
  assert.notEqual(explainReason(told.reason), undefined);
  const back = generate(desired, runtimePod([record('c', 'running')]), { old: status });
  assert.equal(
    back.conditions?.find((c) => c.type === 'podsched.dev/DeviceGone'),
    undefined,
  );
});
