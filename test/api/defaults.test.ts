import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultPod, defaultPullPolicy } from '../../src/api/defaults.ts';
import { containerHashes } from '../../src/api/hash.ts';
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

test('volumes of files have their mode, and what they say of the pod its version and divisor', () => {
  const downwardAPI = {
    items: [
      { path: 'a', fieldRef: { fieldPath: 'metadata.name' } },
      { path: 'b', mode: 0o400, resourceFieldRef: { containerName: 'app', resource: 'limits.cpu' } },
    ],
  };
  const items = [
    { path: 'a', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } },
    { path: 'b', mode: 0o400, resourceFieldRef: { containerName: 'app', resource: 'limits.cpu', divisor: '0' } },
  ];
  const volumes = [
    { name: 'a', configMap: { name: 'c', items: [{ key: 'k', path: 'p' }] } },
    { name: 'b', secret: { secretName: 's', defaultMode: 0 } },
    { name: 'c', downwardAPI },
    { name: 'd', projected: { sources: [{ configMap: { name: 'c' } }, { downwardAPI }] } },
  ];
  assert.deepEqual(defaultPod(pod(rawPod({ volumes })), 'pi').spec.volumes, [
    { name: 'a', configMap: { name: 'c', items: [{ key: 'k', path: 'p' }], defaultMode: 0o644 } },
    { name: 'b', secret: { secretName: 's', defaultMode: 0 } },
    { name: 'c', downwardAPI: { items, defaultMode: 0o644 } },
    { name: 'd', projected: { sources: [{ configMap: { name: 'c' } }, { downwardAPI: { items } }], defaultMode: 0o644 } },
  ]);
});

test('probes and hooks are filled in; what is written stays', () => {
  const httpGet = { port: 80 };
  const written = pod(
    rawPod(
      {},
      {
        livenessProbe: { httpGet, timeoutSeconds: 0, periodSeconds: 5 },
        readinessProbe: { grpc: { port: 9000 }, failureThreshold: 7 },
        lifecycle: { postStart: { httpGet }, preStop: { httpGet: { ...httpGet, path: '/bye', scheme: 'HTTPS' } } },
      },
    ),
  );
  const [c] = defaultPod(written, 'pi-07').spec.containers;
  const rest = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  assert.deepEqual(c?.livenessProbe, { ...rest, periodSeconds: 5, httpGet: { port: 80, path: '/', scheme: 'HTTP' } });
  assert.deepEqual(c?.readinessProbe, { ...rest, failureThreshold: 7, grpc: { port: 9000, service: '' } });
  assert.deepEqual(c?.lifecycle, {
    postStart: { httpGet: { port: 80, path: '/', scheme: 'HTTP' } },
    preStop: { httpGet: { port: 80, path: '/bye', scheme: 'HTTPS' } },
  });
  assert.equal(c !== undefined && 'startupProbe' in c, false);
  assert.deepEqual(containerHashes(defaultPod(written, 'pi-07')), containerHashes(written));
});

test('the node is this one, and a system class brings its priority', () => {
  const { spec } = defaultPod(pod(rawPod({ nodeName: 'elsewhere', priorityClassName: 'system-cluster-critical' })), 'pi-07');
  assert.equal(spec.nodeName, 'pi-07');
  assert.equal(spec.priority, 2_000_000_000);
});
