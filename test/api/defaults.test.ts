import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultPod, defaultPullPolicy } from '../../src/api/defaults.ts';
import { pod, rawPod } from './objects.ts';

test('the pull policy follows the tag', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  const table: readonly (readonly [string, string])[] = [
    ['nginx', 'Always'],
    ['nginx:latest', 'Always'],
    ['nginx:1', 'IfNotPresent'],
    ['localhost:5000/nginx', 'Always'],
    ['localhost:5000/nginx:1', 'IfNotPresent'],
    [`nginx@${digest}`, 'IfNotPresent'],
    [`nginx:latest@${digest}`, 'Always'],
    [`nginx:1@${digest}`, 'IfNotPresent'],
  ];
  for (const [image, policy] of table) assert.equal(defaultPullPolicy(image), policy, image);
});

test('what is written stays as it is', () => {
  const written = pod(
    rawPod(
      {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 0,
        dnsPolicy: 'Default',
        enableServiceLinks: false,
        schedulerName: 'mine',
        priority: 3,
      },
      {
        imagePullPolicy: 'Never',
        ports: [{ containerPort: 80, protocol: 'UDP' }],
        resources: { limits: { cpu: 1 }, requests: { cpu: 0 } },
      },
      { namespace: 'lab' },
    ),
  );
  const { spec, metadata } = defaultPod(written, 'pi-07');
  assert.equal(metadata.namespace, 'lab');
  assert.deepEqual(
    [spec.restartPolicy, spec.terminationGracePeriodSeconds, spec.dnsPolicy, spec.enableServiceLinks, spec.schedulerName, spec.priority],
    ['Never', 0, 'Default', false, 'mine', 3],
  );
  assert.deepEqual(spec.containers[0]?.ports, [{ containerPort: 80, protocol: 'UDP' }]);
  assert.deepEqual(spec.containers[0]?.resources, { limits: { cpu: '1' }, requests: { cpu: '0' } });
  assert.equal(spec.containers[0]?.imagePullPolicy, 'Never');
});

test('the node is this one, and a system class brings its priority', () => {
  const { spec } = defaultPod(pod(rawPod({ nodeName: 'elsewhere', priorityClassName: 'system-cluster-critical' })), 'pi-07');
  assert.equal(spec.nodeName, 'pi-07');
  assert.equal(spec.priority, 2_000_000_000);
});
