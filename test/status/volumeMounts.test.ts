import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { volumeMountStatuses } from '../../src/status/volumeMounts.ts';

test('the recorded statuses are the kubelet’s', () => {
  for (const name of ['018-volumes', '019-mount-propagation', '042-hostpath-missing', '043-device-privileged', '001-minimal']) {
    const file = new URL(`../conformance/kubelet-1.32/recorded/${name}.json`, import.meta.url);
    const { spec, status } = JSON.parse(readFileSync(file, 'utf8'));
    assert.deepEqual(volumeMountStatuses(spec.containers[0], false), status.containerStatuses[0].volumeMounts, name);
  }
});

test('what is asked of recursive read-only is told as what became of it', () => {
  const told = (recursiveReadOnly: 'IfPossible' | 'Enabled' | 'Disabled', able: boolean) =>
    volumeMountStatuses({ volumeMounts: [{ name: 'v', mountPath: '/v', readOnly: true, recursiveReadOnly }] }, able)?.[0]
      ?.recursiveReadOnly;
  assert.deepEqual(
    [told('IfPossible', true), told('IfPossible', false), told('Enabled', true), told('Disabled', true)],
    ['Enabled', 'Disabled', 'Enabled', 'Disabled'],
  );
});
