/** The small pure decisions: expansion, names, ports, users, marks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerPort } from '../../src/api/v1.ts';
import { expand } from '../../src/container/expand.ts';
import { goDuration } from '../../src/container/goDuration.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { environment } from '../../src/kuberuntime/environment.ts';
import { containerAnnotations } from '../../src/kuberuntime/marks.ts';
import { hostname, restartBackoffKey, uidOfBackoffKey, uidOfLogFolder } from '../../src/kuberuntime/names.ts';
import { portMappings } from '../../src/kuberuntime/ports.ts';
import { isNameReserved, nextAttempt } from '../../src/kuberuntime/reserved.ts';
import { hiddenPaths, namespaceOptions, nonRootProblem, runAs } from '../../src/kuberuntime/security.ts';
import { container, desiredPod } from './house.ts';

test('expansion agrees with the kubelet’s table', () => {
  const values: Readonly<Record<string, string>> = { A: '1', B: '$(A)' };
  const table: [string, string][] = [
    ['$(A)', '1'],
    ['x$(A)y$(A)', 'x1y1'],
    ['$(MISSING)', '$(MISSING)'],
    ['$$', '$'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$1'],
    ['$$$$', '$$'],
    ['$X', '$X'],
    ['cost: 5$', 'cost: 5$'],
    ['$(A', '$(A'],
    ['$(A $$', '$(A $'],
    ['$()', '$()'],
    ['$( A)', '$( A)'],
    ['$(B)', '$(A)'],
    ['', ''],
    ['$', '$'],
    ['$($(A))', '$($(A))'],
    ['é$(A)', 'é1'],
  ];
  for (const [text, expected] of table)
    assert.equal(
      expand(text, (n) => values[n]),
      expected,
      text,
    );
});

test('an environment value sees the names before it, and the last of a name counts', () => {
  const env = environment(
    [
      { name: 'X', value: '1' },
      { name: 'Y', value: '$(X)-$(Z)' },
      { name: 'Z', value: 'z' },
      { name: 'X', value: '$(X)2' },
      { name: 'EMPTY' },
    ],
    () => '',
  );
  assert.deepEqual(Object.fromEntries(env), { X: '12', Y: '1-$(Z)', Z: 'z', EMPTY: '' });
});

test('host names are cut to 63 characters and end in no dash or dot', () => {
  const name = (spec: object, podName: string) => hostname(desiredPod(spec, { metadata: { name: podName } }).pod);
  assert.equal(name({}, 'web'), 'web');
  assert.equal(name({ hostname: 'gateway' }, 'web'), 'gateway');
  assert.equal(name({ hostNetwork: true }, 'web'), '');
  assert.equal(name({}, `${'a'.repeat(62)}-b`), 'a'.repeat(62));
  assert.equal(name({}, `${'a'.repeat(61)}.-b`), 'a'.repeat(61));
});

test('durations are spelled as Go spells them', () => {
  const table: [number, string][] = [
    [0, '0s'],
    [350, '350ms'],
    [1250, '1.25s'],
    [10_000, '10s'],
    [80_000, '1m20s'],
    [300_000, '5m0s'],
    [3_600_000, '1h0m0s'],
    [3_661_500, '1h1m1.5s'],
    [-5, '0s'],
  ];
  for (const [ms, text] of table) assert.equal(goDuration(ms), text);
});

test('the pod can be found from a back-off key and from a log folder', () => {
  const pod = desiredPod({});
  assert.equal(uidOfBackoffKey(restartBackoffKey(pod, 'c')), pod.uid);
  assert.notEqual(restartBackoffKey(pod, 'c'), restartBackoffKey(desiredPod({ containers: [container('c', { image: 'x:2' })] }), 'c'));
  assert.equal(uidOfLogFolder('default_web_uid-1'), 'uid-1');
  assert.equal(uidOfLogFolder('lost+found'), undefined);
});

test('ports: of app containers only, each once per container', () => {
  const ports: ContainerPort[] = [
    { name: 'http', containerPort: 80, hostPort: 8080 },
    { name: 'http', containerPort: 81 },
    { containerPort: 53, protocol: 'UDP' },
    { containerPort: 53, protocol: 'UDP' },
    { containerPort: 53, protocol: 'TCP' },
    { containerPort: 53, protocol: 'TCP', hostPort: 53, hostIP: '::1' },
  ];
  const pod = desiredPod({ initContainers: [container('i', { ports })], containers: [container('a', { ports }), container('b')] });
  assert.deepEqual(portMappings(pod.pod), [
    { protocol: 'TCP', containerPort: 80, hostPort: 8080, hostIp: '' },
    { protocol: 'UDP', containerPort: 53, hostPort: 0, hostIp: '' },
    { protocol: 'TCP', containerPort: 53, hostPort: 0, hostIp: '' },
    { protocol: 'TCP', containerPort: 53, hostPort: 53, hostIp: '::1' },
  ]);
});

test('the user is the manifest’s, else the image’s number, else its name, else root', () => {
  const { pod } = desiredPod({});
  const image = (o: object) => ({ id: 'i', username: '', ...o });
  const as = (user: object, img: object) => runAs(pod, container('c', { securityContext: user }), image(img));
  assert.deepEqual(as({ runAsUser: 5, runAsGroup: 6 }, { uid: 9 }), { runAsUser: 5, runAsGroup: 6 });
  assert.deepEqual(as({}, { uid: 9 }), { runAsUser: 9 });
  assert.deepEqual(as({}, { uid: 0 }), { runAsUser: 0 });
  assert.deepEqual(as({}, { username: 'nginx' }), { runAsUserName: 'nginx' });
  assert.deepEqual(as({ runAsGroup: 6 }, {}), { runAsUser: 0, runAsGroup: 6 });
});

test('runAsNonRoot: what is proven, what is refused, what cannot be verified', () => {
  const { pod } = desiredPod({});
  const problem = (user: number | undefined, image: object) => {
    const securityContext = { runAsNonRoot: true, ...(user !== undefined && { runAsUser: user }) };
    return nonRootProblem(pod, container('c', { securityContext }), { id: 'i', username: '', ...image }, 'p');
  };
  assert.equal(problem(5, {}), undefined);
  assert.equal(problem(undefined, { uid: 7 }), undefined);
  assert.match(problem(0, { uid: 7 }) ?? '', /breaks non-root policy/);
  assert.match(problem(undefined, {}) ?? '', /image will run as root/);
  assert.match(problem(undefined, { username: 'nginx' }) ?? '', /non-numeric user \(nginx\)/);
  assert.equal(nonRootProblem(pod, container('c'), { id: 'i', username: '' }, 'p'), undefined);
});

test('namespaces and hidden paths follow the pod', () => {
  const pod = (spec: object) => desiredPod(spec).pod;
  assert.deepEqual(namespaceOptions(pod({})), { network: 'POD', ipc: 'POD', pid: 'CONTAINER' });
  assert.deepEqual(namespaceOptions(pod({ hostNetwork: true, hostIPC: true, hostPID: true })), {
    network: 'NODE',
    ipc: 'NODE',
    pid: 'NODE',
  });
  assert.deepEqual(namespaceOptions(pod({ shareProcessNamespace: true })).pid, 'POD');
  assert.deepEqual(namespaceOptions(pod({}), 'x' as ContainerId), { network: 'POD', ipc: 'POD', pid: 'TARGET', targetId: 'x' });
  assert.deepEqual(hiddenPaths(container('c', { securityContext: { procMount: 'Unmasked' } }), []), { maskedPaths: [], readonlyPaths: [] });
  assert.equal(hiddenPaths(container('c'), ['/sys/x']).maskedPaths.at(-1), '/sys/x');
});

test('container annotations carry what an orphan’s end needs', () => {
  const preStop = { exec: { command: ['x'] } };
  const spec = container('c', { ports: [{ protocol: 'UDP', containerPort: 5 }], lifecycle: { preStop } });
  const marks = containerAnnotations(desiredPod({ containers: [spec], terminationGracePeriodSeconds: 9 }), spec, 4);
  assert.equal(marks['io.kubernetes.container.restartCount'], '4');
  assert.equal(marks['io.kubernetes.container.ports'], '[{"containerPort":5,"protocol":"UDP"}]');
  assert.equal(marks['io.kubernetes.container.preStopHandler'], '{"exec":{"command":["x"]}}');
  assert.equal(marks['io.kubernetes.pod.terminationGracePeriod'], '9');
  assert.equal(marks['io.kubernetes.pod.deletionGracePeriod'], undefined);
});

test('a reserved name is known by its words, and the next attempt lies above all', () => {
  const error = (text: string, code: 'unknown' | 'alreadyExists' = 'unknown') => isNameReserved(new RuntimeError(code, text));
  assert.equal(error('failed to reserve sandbox name "a_0": name "a_0" is reserved for "9f"'), true);
  assert.equal(error('x', 'alreadyExists'), true);
  assert.equal(error('the port is reserved for others'), false);
  assert.equal(isNameReserved(new Error('name "x" is reserved for "y"')), false);
  assert.equal(nextAttempt(0, []), 1);
  assert.equal(nextAttempt(0, [{ attempt: 4 }, { attempt: 2 }]), 5);
});
