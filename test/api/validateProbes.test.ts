import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Problem } from '../../src/api/objects.ts';
import { decode, type Raw, rawPod } from './objects.ts';

const exec = { exec: { command: ['true'] } };
const named = { ports: [{ name: 'http', containerPort: 80 }, { containerPort: 81 }] };
const at = 'spec.containers[0]';

const problems = (container: Raw, spec: Raw = {}): readonly Problem[] => decode(rawPod(spec, container)).problems;
/** `path: expected` of the only problem; undefined: there is none. */
function said(container: Raw, spec: Raw = {}): string | undefined {
  const [first, ...more] = problems(container, spec);
  assert.deepEqual(more, []);
  return first && `${first.path.replace(`${at}.`, '')}: ${first.expected}`;
}

test('each field of a probe stays in its bounds; 0 is the default', () => {
  const table: readonly (readonly [probe: string, fields: Raw, expected: string | undefined])[] = [
    ['livenessProbe', { timeoutSeconds: 0, periodSeconds: 0, successThreshold: 0, failureThreshold: 0, initialDelaySeconds: 0 }, undefined],
    ['livenessProbe', { timeoutSeconds: -1 }, 'livenessProbe.timeoutSeconds: 0 or more'],
    ['livenessProbe', { periodSeconds: -1 }, 'livenessProbe.periodSeconds: 0 or more'],
    ['livenessProbe', { failureThreshold: -1 }, 'livenessProbe.failureThreshold: 0 or more'],
    ['livenessProbe', { initialDelaySeconds: -1 }, 'livenessProbe.initialDelaySeconds: 0 or more'],
    ['readinessProbe', { successThreshold: -1 }, 'readinessProbe.successThreshold: 0 or more'],
    ['readinessProbe', { successThreshold: 3 }, undefined],
    ['livenessProbe', { successThreshold: 1 }, undefined],
    ['livenessProbe', { successThreshold: 2 }, 'livenessProbe.successThreshold: 1, for a livenessProbe'],
    ['startupProbe', { successThreshold: 2 }, 'startupProbe.successThreshold: 1, for a startupProbe'],
    ['livenessProbe', { terminationGracePeriodSeconds: 1 }, undefined],
    ['startupProbe', { terminationGracePeriodSeconds: 900 }, undefined],
    ['livenessProbe', { terminationGracePeriodSeconds: 0 }, 'livenessProbe.terminationGracePeriodSeconds: 1 or more'],
    [
      'readinessProbe',
      { terminationGracePeriodSeconds: 5 },
      'readinessProbe.terminationGracePeriodSeconds: absent: a readiness probe ends nothing',
    ],
  ];
  for (const [probe, fields, expected] of table) assert.equal(said({ [probe]: { ...exec, ...fields } }), expected);
});

test('a probe and a hook do exactly one thing', () => {
  const probe = 'livenessProbe: exactly one of exec, httpGet, tcpSocket and grpc';
  const hook = 'lifecycle.preStop: exactly one of exec, httpGet, tcpSocket and sleep';
  const table: readonly (readonly [container: Raw, expected: string | undefined])[] = [
    [{ livenessProbe: {} }, probe],
    [{ livenessProbe: { ...exec, tcpSocket: { port: 80 } } }, probe],
    [{ livenessProbe: { grpc: { port: 80 } } }, undefined],
    [{ lifecycle: { preStop: {} } }, hook],
    [{ lifecycle: { preStop: { ...exec, sleep: { seconds: 1 } } } }, hook],
    [{ lifecycle: {} }, undefined],
    [{ lifecycle: { postStart: exec, preStop: { tcpSocket: { port: 80 } } } }, undefined],
    [{ livenessProbe: { exec: {} } }, 'livenessProbe.exec.command: a command'],
    [{ lifecycle: { postStart: { exec: { command: [] } } } }, 'lifecycle.postStart.exec.command: a command'],
  ];
  for (const [container, expected] of table) assert.equal(said(container), expected);
});

test('a port is a number from 1 to 65535, also as text, or the name of one of the container’s own', () => {
  const range = 'a port from 1 to 65535';
  const table: readonly (readonly [port: number | string, expected: string | undefined, nearest?: string])[] = [
    [1, undefined],
    [65535, undefined],
    ['8080', undefined],
    ['http', undefined],
    [0, range],
    [65536, range],
    ['0', range],
    ['70000', range],
    ['htpp', 'the name of a port of this container, which has http', 'http'],
    ['metrics', 'the name of a port of this container, which has http'],
    ['Not_A_Name', `${range} or the name of one: at most 15 of a-z, 0-9 and single -, with at least one letter`],
  ];
  for (const [port, expected, nearest] of table) {
    for (const [container, path] of [
      [{ readinessProbe: { httpGet: { port } } }, 'readinessProbe.httpGet.port'],
      [{ livenessProbe: { tcpSocket: { port } } }, 'livenessProbe.tcpSocket.port'],
      [{ lifecycle: { preStop: { httpGet: { port } } } }, 'lifecycle.preStop.httpGet.port'],
    ] as const) {
      const found = problems({ ...named, ...container });
      assert.deepEqual(
        found.map((p) => [p.path, p.expected, p.nearest]),
        expected === undefined ? [] : [[`${at}.${path}`, expected, nearest]],
      );
    }
  }
  assert.match(said({ livenessProbe: { tcpSocket: { port: 'http' } } }) ?? '', /whose ports have no names/);
  assert.equal(said({ livenessProbe: { grpc: { port: 0 } } }), `livenessProbe.grpc.port: ${range}`);
  assert.equal(said({ livenessProbe: { grpc: { port: 9000, service: 'web' } } }), undefined);
});

test('headers have names of headers, and values of one line that are never repeated', () => {
  const get = (name: string, value: string) => ({ livenessProbe: { httpGet: { port: 80, httpHeaders: [{ name, value }] } } });
  assert.equal(said(get('X-Token', 'a b;c=d')), undefined);
  assert.equal(said(get('X Token', 'x')), 'livenessProbe.httpGet.httpHeaders[0].name: the name of a header: letters, digits and -');
  const [broken] = problems(get('Authorization', 'secret\r\nHost: other'));
  assert.equal(broken?.path, `${at}.livenessProbe.httpGet.httpHeaders[0].value`);
  assert.ok(!JSON.stringify(broken).includes('secret'));
});

test('a hook sleeps from one second to the pod’s grace', () => {
  const table: readonly (readonly [seconds: number, grace: number | undefined, right: boolean])[] = [
    [1, undefined, true],
    [30, undefined, true],
    [31, undefined, false],
    [0, undefined, false],
    [5, 5, true],
    [6, 5, false],
    [1, 0, false],
  ];
  for (const [seconds, grace, right] of table) {
    const spec = grace === undefined ? {} : { terminationGracePeriodSeconds: grace };
    for (const name of ['postStart', 'preStop']) {
      const found = problems({ lifecycle: { [name]: { sleep: { seconds } } } }, spec);
      assert.deepEqual(
        found.map((p) => p.path),
        right ? [] : [`${at}.lifecycle.${name}.sleep.seconds`],
        `${seconds} of ${grace}`,
      );
    }
  }
});

test('an init container has probes and hooks only as a sidecar', () => {
  const fields = { livenessProbe: exec, readinessProbe: exec, startupProbe: exec, lifecycle: { postStart: exec } };
  const init = (o: Raw) => ({ initContainers: [{ name: 'init', image: 'x:1', ...o }] });
  for (const [field, value] of Object.entries(fields)) {
    const [first, ...more] = decode(rawPod(init({ [field]: value }))).problems;
    assert.equal(first?.path, `spec.initContainers[0].${field}`);
    assert.match(first?.expected ?? '', /^absent: .*sidecar/);
    assert.deepEqual(more, []);
    assert.deepEqual(decode(rawPod(init({ [field]: value, restartPolicy: 'Always' }))).problems, []);
  }
  assert.deepEqual(decode(rawPod(init({ lifecycle: {} }))).problems, []);
});

test('a broken handler is told once and breaks nothing else', () => {
  for (const probe of [{ httpGet: {} }, { grpc: {} }, { tcpSocket: {} }, { httpGet: { port: 80, httpHeaders: [{}] } }, { exec: 3 }]) {
    const found = problems({ livenessProbe: probe });
    assert.equal(new Set(found.map((p) => p.path)).size, found.length, JSON.stringify(found));
    assert.ok(found.length > 0);
  }
});

test('huge pages are a limit in whole pages that is the request, beside cpu or memory', () => {
  const size = 'hugepages-2Mi';
  const limitsAt = `${at}.resources.limits[${size}]`;
  const table: readonly (readonly [resources: Raw, path: string | undefined])[] = [
    [{ limits: { [size]: '4Mi', memory: '64Mi' } }, undefined],
    [{ limits: { [size]: '4Mi', memory: '64Mi' }, requests: { [size]: '4Mi' } }, undefined],
    [{ limits: { [size]: '4Mi' }, requests: { cpu: '1' } }, undefined],
    [{ limits: { [size]: '4Mi' } }, limitsAt],
    [{ limits: { [size]: '3Mi', cpu: '1' } }, limitsAt],
    [{ limits: { cpu: '1' }, requests: { [size]: '4Mi' } }, limitsAt],
    [{ limits: { [size]: '4Mi', cpu: '1' }, requests: { [size]: '2Mi' } }, `${at}.resources.requests[${size}]`],
    [{ limits: { 'hugepages-3Mi': '3Mi', cpu: '1' } }, `${at}.resources.limits[hugepages-3Mi]`],
    [{ limits: { 'hugepages-big': '3Mi', cpu: '1' } }, `${at}.resources.limits[hugepages-big]`],
  ];
  for (const [resources, path] of table) {
    assert.deepEqual(
      problems({ resources }).map((p) => p.path),
      path === undefined ? [] : [path],
      JSON.stringify(resources),
    );
  }
});

test('a runtime class is the name of a handler', () => {
  assert.deepEqual(problems({}, { runtimeClassName: 'kata-qemu' }), []);
  assert.deepEqual(
    problems({}, { runtimeClassName: 'Kata QEMU' }).map((p) => p.path),
    ['spec.runtimeClassName'],
  );
});

test('the AppArmor annotation names a container and a profile, and does not contradict the field', () => {
  const key = 'container.apparmor.security.beta.kubernetes.io/';
  const judged = (name: string, value: string, container: Raw = {}) =>
    decode(rawPod({}, { name: 'app', ...container }, { annotations: { [key + name]: value } })).problems;
  for (const value of ['runtime/default', 'unconfined', 'localhost/mine']) assert.deepEqual(judged('app', value), []);
  for (const value of ['', 'localhost/', 'RuntimeDefault']) assert.match(judged('app', value)[0]?.expected ?? '', /runtime\/default/);
  assert.equal(judged('ap', 'unconfined')[0]?.nearest, `${key}app`);
  const withField = { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'mine' } } };
  assert.deepEqual(judged('app', 'localhost/mine', withField), []);
  assert.match(judged('app', 'unconfined', withField)[0]?.expected ?? '', /the same profile/);
});
