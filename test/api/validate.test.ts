import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, only, paths, pod, type Raw, rawPod } from './objects.ts';

const long = (n: number): string => 'a'.repeat(n);
const container = (name: string, more: Raw = {}): Raw => ({ name, image: 'x:1', ...more });

test('names have the form Kubernetes asks for', () => {
  const table: readonly (readonly [unknown, string])[] = [
    [rawPod({}, {}, { name: 'Web' }), 'metadata.name'],
    [rawPod({}, {}, { name: 'a..b' }), 'metadata.name'],
    [rawPod({}, {}, { name: '-a' }), 'metadata.name'],
    [rawPod({}, {}, { name: long(254) }), 'metadata.name'],
    [rawPod({}, {}, { name: '' }), 'metadata.name'],
    // with its namespace it names the folder of its logs
    [rawPod({}, {}, { name: [long(60), long(60), long(60), long(30)].join('.') }), 'metadata.name'],
    [rawPod({}, {}, { namespace: 'a.b' }), 'metadata.namespace'],
    [rawPod({}, {}, { namespace: long(64) }), 'metadata.namespace'],
    [rawPod({}, { name: 'a.b' }), 'spec.containers[0].name'],
    [rawPod({}, { name: '' }), 'spec.containers[0].name'],
    [rawPod({ hostname: 'a.b' }), 'spec.hostname'],
    [rawPod({}, {}, { labels: { 'a/b/c': 'x' } }), 'metadata.labels[a/b/c]'],
    [rawPod({}, {}, { labels: { a: 'ü' } }), 'metadata.labels[a]'],
    [rawPod({}, {}, { labels: { a: long(64) } }), 'metadata.labels[a]'],
    [rawPod({}, {}, { labels: { a: '-x' } }), 'metadata.labels[a]'],
    [rawPod({}, {}, { annotations: { 'a b': 'x' } }), 'metadata.annotations["a b"]'],
    [rawPod({}, {}, { annotations: { a: long(300_000) } }), 'metadata.annotations'],
    [rawPod({}, {}, { annotations: { 'podsched.dev/crash-backoff': '1m,1s' } }), 'metadata.annotations[podsched.dev/crash-backoff]'],
    [rawPod({}, {}, { annotations: { 'podsched.dev/rollback': '5' } }), 'metadata.annotations[podsched.dev/rollback]'],
    [rawPod({}, {}, { annotations: { 'podsched.dev/rollback': '100ms' } }), 'metadata.annotations[podsched.dev/rollback]'],
    [rawPod({}, {}, { annotations: { 'podsched.dev/rollback': 'never' } }), 'metadata.annotations[podsched.dev/rollback]'],
    [rawPod({}, {}, { annotations: { 'podsched.dev/hold': 'yes' } }), 'metadata.annotations[podsched.dev/hold]'],
  ];
  for (const [raw, path] of table) only(decode(raw), path);
  pod(rawPod({}, {}, { name: [long(60), long(60), long(60), long(27)].join('.') }));
  pod(
    rawPod(
      { hostname: 'gw' },
      {},
      { name: 'a.b-1', namespace: 'lab', labels: { 'example.com/A_b.c': 'X-1', e: '' }, annotations: { 'Example.com/any': 'ü \n' } },
    ),
  );
});

test('containers: at least one, an image each, no name twice', () => {
  only(decode(rawPod({ containers: [] })), 'spec.containers');
  only(decode(rawPod({}, { image: '' })), 'spec.containers[0].image');
  only(decode(rawPod({}, { image: ' x:1' })), 'spec.containers[0].image');
  only(decode(rawPod({ containers: [container('a'), container('b'), container('a')] })), 'spec.containers[2].name');
  const both = only(decode(rawPod({ initContainers: [container('app')] })), 'spec.containers[0].name');
  assert.match(both.expected, /spec\.initContainers\[0\]\.name/);
});

test('a restart policy of its own is for init containers, and only Always', () => {
  pod(rawPod({ initContainers: [container('side', { restartPolicy: 'Always' })] }));
  only(decode(rawPod({ initContainers: [container('side', { restartPolicy: 'Never' })] })), 'spec.initContainers[0].restartPolicy');
  only(decode(rawPod({ initContainers: [container('side', { restartPolicy: '' })] })), 'spec.initContainers[0].restartPolicy');
  only(decode(rawPod({}, { restartPolicy: 'Always' })), 'spec.containers[0].restartPolicy');
});

test('ports are numbers and names of ports, and no port of the host is given twice', () => {
  const ports = (...list: readonly Raw[]) => rawPod({}, { ports: list });
  const at = 'spec.containers[0].ports';
  const table: readonly (readonly [unknown, string])[] = [
    [ports({ containerPort: 0 }), `${at}[0].containerPort`],
    [ports({ containerPort: 65_536 }), `${at}[0].containerPort`],
    [ports({ containerPort: 80, hostPort: -1 }), `${at}[0].hostPort`],
    [ports({ containerPort: 80, name: 'UPPER' }), `${at}[0].name`],
    [ports({ containerPort: 80, name: '8080' }), `${at}[0].name`],
    [ports({ containerPort: 80, name: 'a--b' }), `${at}[0].name`],
    [ports({ containerPort: 80, name: long(16) }), `${at}[0].name`],
    [ports({ containerPort: 80, hostPort: 80, hostIP: '1.2.3' }), `${at}[0].hostIP`],
    [ports({ containerPort: 80, protocol: 'tcp' }), `${at}[0].protocol`],
    [ports({ containerPort: 80, name: 'a' }, { containerPort: 81, name: 'a' }), `${at}[1].name`],
    [ports({ containerPort: 80, hostPort: 80 }, { containerPort: 81, hostPort: 80 }), `${at}[1].hostPort`],
    [
      rawPod({
        containers: [
          container('a', { ports: [{ containerPort: 1, hostPort: 9 }] }),
          container('b', { ports: [{ containerPort: 2, hostPort: 9 }] }),
        ],
      }),
      'spec.containers[1].ports[0].hostPort',
    ],
    [rawPod({ hostNetwork: true }, { ports: [{ containerPort: 80, hostPort: 81 }] }), `${at}[0].hostPort`],
    [
      rawPod({
        hostNetwork: true,
        containers: [container('a', { ports: [{ containerPort: 1 }] }), container('b', { ports: [{ containerPort: 1 }] })],
      }),
      'spec.containers[1].ports[0].containerPort',
    ],
  ];
  for (const [raw, path] of table) only(decode(raw), path);
  pod(
    ports(
      { containerPort: 80, hostPort: 80, hostIP: '127.0.0.1', name: 'http' },
      { containerPort: 80, hostPort: 80, hostIP: '::1' },
      { containerPort: 80, hostPort: 80, protocol: 'UDP' },
    ),
  );
  pod(rawPod({ hostNetwork: true }, { ports: [{ containerPort: 80, hostPort: 80 }] }));
  // plain init containers have ended when the others begin
  pod(
    rawPod(
      { initContainers: [container('i', { ports: [{ containerPort: 1, hostPort: 9 }] })] },
      { ports: [{ containerPort: 1, hostPort: 9 }] },
    ),
  );
});

test('environment names are any printable ASCII but =', () => {
  for (const name of ['A=B', 'ü', 'a\tb', '']) only(decode(rawPod({}, { env: [{ name, value: '' }] })), 'spec.containers[0].env[0].name');
  pod(rawPod({}, { env: [{ name: 'my.var-1 x', value: 'anything ü' }, { name: 'A' }] }));
});

test('durations and ids stay in their bounds', () => {
  const table: readonly (readonly [unknown, string])[] = [
    [rawPod({ terminationGracePeriodSeconds: -1 }), 'spec.terminationGracePeriodSeconds'],
    [rawPod({ activeDeadlineSeconds: 0 }), 'spec.activeDeadlineSeconds'],
    [rawPod({ activeDeadlineSeconds: 2 ** 31 }), 'spec.activeDeadlineSeconds'],
    [rawPod({}, { securityContext: { runAsUser: -1 } }), 'spec.containers[0].securityContext.runAsUser'],
    [rawPod({}, { securityContext: { runAsGroup: 2 ** 31 } }), 'spec.containers[0].securityContext.runAsGroup'],
    [rawPod({ hostPID: true, shareProcessNamespace: true }), 'spec.shareProcessNamespace'],
  ];
  for (const [raw, path] of table) only(decode(raw), path);
  pod(
    rawPod(
      { terminationGracePeriodSeconds: 0, activeDeadlineSeconds: 1 },
      { securityContext: { runAsUser: 0, runAsGroup: 0, privileged: true } },
    ),
  );
});

test('a request is never above its limit, and no amount is negative', () => {
  const resources = (value: Raw) => rawPod({}, { resources: value });
  const at = 'spec.containers[0].resources';
  only(decode(resources({ requests: { cpu: '501m' }, limits: { cpu: 0.5 } })), `${at}.requests[cpu]`);
  only(decode(resources({ requests: { memory: '65Mi' }, limits: { memory: '64Mi' } })), `${at}.requests[memory]`);
  only(decode(resources({ requests: { cpu: '-1' } })), `${at}.requests[cpu]`);
  pod(resources({ requests: { cpu: '500m', memory: '64Mi' }, limits: { cpu: 0.5, memory: '65536Ki' } }));
});

test('B5: a memory limit under 4 Mi is refused with what was meant', () => {
  const table: readonly (readonly [unknown, string | undefined])[] = [
    ['300m', '300Mi'],
    ['1e3', '1000Mi'],
    ['1Ki', undefined],
    [128, '128Mi'],
    ['512k', '512Mi'],
    ['512Ki', '512Mi'],
    ['4194303', '4194303Mi'],
    ['0', undefined],
    ['Mi', undefined],
  ];
  for (const [memory, meant] of table) {
    const problem = only(decode(rawPod({}, { resources: { limits: { memory } } })), 'spec.containers[0].resources.limits[memory]');
    assert.equal(problem.nearest, meant, String(memory));
    if (meant !== undefined) assert.match(problem.expected, new RegExp(`did you mean ${meant}\\?`));
  }
  for (const memory of ['128974848000m', '0.5Gi', '129e6', '4Mi', 4_194_304]) pod(rawPod({}, { resources: { limits: { memory } } }));
  pod(rawPod({}, { resources: { requests: { memory: '1Ki' } } }));
});

test('only the two system priority classes can be resolved, and they have their priority', () => {
  only(decode(rawPod({ priorityClassName: 'high' })), 'spec.priorityClassName');
  only(decode(rawPod({ priorityClassName: 'system-node-critical', priority: 5 })), 'spec.priority');
  pod(rawPod({ priorityClassName: 'system-node-critical', priority: 2_000_001_000 }));
  pod(rawPod({ priorityClassName: 'system-cluster-critical' }));
  pod(rawPod({ priority: 2_000_000_000 }));
});

const configMap = (more: Raw): Raw => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, ...more });
const secret = (more: Raw): Raw => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, ...more });

test('keys of ConfigMaps and Secrets may become file names', () => {
  for (const key of ['a/b', '..', '.', '..data', '', 'ü', long(254)]) {
    const shownKey = decode(configMap({ data: { [key]: 'x' } }));
    assert.equal(shownKey.problems.length, 1, key);
    assert.equal(decode(secret({ stringData: { [key]: 'x' } })).problems.length, 1, key);
  }
  assert.ok(decode(configMap({ data: { 'app.conf': 'x', '.hidden': '', _a: '' }, binaryData: { b: 'AAEC' }, immutable: true })).object);
  only(decode(configMap({ data: { a: 'x' }, binaryData: { a: 'AA==' } })), 'binaryData[a]');
  only(decode(configMap({ binaryData: { a: 'not base64' } })), 'binaryData[a]');
  only(decode(configMap({ data: { a: 1 } })), 'data[a]');
  only(decode(configMap({ immutable: 'yes' })), 'immutable');
});

test('a ConfigMap or Secret holds at most 1 MiB, counted as bytes', () => {
  assert.ok(decode(configMap({ data: { a: long(2 ** 20) } })).object);
  only(decode(configMap({ data: { a: long(2 ** 20), b: 'x' } })), 'data');
  only(decode(configMap({ data: { a: 'ü'.repeat(2 ** 19 + 1) } })), 'data');
  const base64 = Buffer.alloc(2 ** 20).toString('base64');
  assert.ok(decode(secret({ data: { a: base64 } })).object);
  only(decode(secret({ data: { a: base64 }, stringData: { b: 'x' } })), 'data');
  // stringData wins over data, so the overwritten value does not count
  assert.ok(decode(secret({ data: { a: base64 }, stringData: { a: 'x' } })).object);
});

test('a Secret holds what its type promises', () => {
  const b64 = (text: string): string => Buffer.from(text).toString('base64');
  const wrong: readonly (readonly [Raw, string])[] = [
    [{ type: 'kubernetes.io/tls', data: { 'tls.crt': '' } }, 'data'],
    [{ type: 'kubernetes.io/ssh-auth', data: {} }, 'data'],
    [{ type: 'kubernetes.io/basic-auth' }, 'data'],
    [{ type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': b64('{') } }, 'data[.dockerconfigjson]'],
    [{ type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': 'x' } }, 'stringData[.dockercfg]'],
  ];
  for (const [more, path] of wrong) only(decode(secret(more)), path);
  const right: readonly Raw[] = [
    {},
    { type: 'Opaque', data: { any: b64('x') } },
    { type: 'example.com/own' },
    { type: 'constructor' },
    { type: 'kubernetes.io/tls', data: { 'tls.crt': '' }, stringData: { 'tls.key': '' } },
    { type: 'kubernetes.io/basic-auth', stringData: { username: 'u' } },
    { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': b64('{"auths":{}}') } },
  ];
  for (const more of right) assert.deepEqual(paths(decode(secret(more)).problems), []);
});
