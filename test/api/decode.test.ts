import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeObject, readKey } from '../../src/api/decode.ts';
import { decode, only, paths, pod, rawPod, told } from './objects.ts';

test('a right pod comes back typed, without defaults, and says nothing', () => {
  const raw = rawPod({ terminationGracePeriodSeconds: 1, volumes: [], nodeSelector: null }, { command: ['sleep', '1'] });
  const { object, problems, warnings } = decode(raw, true);
  assert.deepEqual(problems, []);
  assert.deepEqual(warnings, []);
  assert.deepEqual(object, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { terminationGracePeriodSeconds: 1, volumes: [], containers: [{ name: 'app', image: 'busybox:1', command: ['sleep', '1'] }] },
  });
});

test('what is no object, and kinds nobody runs, are refused by name with the kind that was meant', () => {
  for (const raw of [null, undefined, 3, 'Pod', [], true, new Date(0), new Map()]) assert.deepEqual(paths(decode(raw).problems), ['']);
  const table: readonly (readonly [unknown, string | undefined])[] = [
    ['Pdo', 'Pod'],
    ['pod', 'Pod'],
    ['DaemonSet', 'Pod'],
    ['Deployment', 'Pod'],
    ['Configmap', 'ConfigMap'],
    ['Service', undefined],
    [undefined, undefined],
    [7, undefined],
  ];
  for (const [kind, meant] of table) {
    const problem = only(decode({ ...rawPod(), kind }), 'kind');
    assert.equal(problem.nearest, meant, String(kind));
    assert.equal(problem.expected, 'one of Pod, ConfigMap, Secret');
  }
  assert.equal(only(decode({ ...rawPod(), apiVersion: 'apps/v1' }), 'apiVersion').nearest, 'v1');
  const { apiVersion: _, ...without } = rawPod();
  only(decode(without), 'apiVersion');
});

test('B2: a bare boolean or number where a text belongs is refused with "quote it"', () => {
  const container = {
    env: [
      { name: 'LANG2', value: false },
      { name: true, value: '1' },
      { name: 'PORT', value: 8080 },
    ],
    args: [true, 8, 1000, '12:30'],
  };
  const { problems } = decode(rawPod({}, container, { labels: { v: 1.1, ok: 'yes' }, annotations: { build: 42, on: true } }));
  assert.deepEqual(told(problems), [
    'metadata.labels[v]: a string, quote it',
    'metadata.annotations[build]: a string, quote it',
    'metadata.annotations[on]: a string, quote it',
    'spec.containers[0].env[0].value: a string, quote it',
    'spec.containers[0].env[1].name: a string, quote it',
    'spec.containers[0].env[2].value: a string, quote it',
    'spec.containers[0].args[0]: a string, quote it',
    'spec.containers[0].args[1]: a string, quote it',
    'spec.containers[0].args[2]: a string, quote it',
  ]);
  assert.equal(pod(rawPod({ hostNetwork: true })).spec.hostNetwork, true);
});

test('B2: a quoted boolean is no boolean', () => {
  assert.equal(only(decode(rawPod({ hostNetwork: 'yes' })), 'spec.hostNetwork').expected, 'true or false, without quotes');
  assert.equal(only(decode(rawPod({ hostPID: 'maybe' })), 'spec.hostPID').expected, 'true or false');
  assert.equal(only(decode(rawPod({ hostIPC: 1 })), 'spec.hostIPC').expected, 'true or false');
});

test('B4: unknown and misplaced fields are warnings with the nearest known path, problems when strict', () => {
  const raw = rawPod(
    { livenessProbe: {} },
    { resource: {}, livenesProbe: {}, image_pull_policy: 'Always', hostNetwork: true },
    { restartPolicy: 'Never' },
  );
  const lax = decode(raw);
  assert.deepEqual(lax.problems, []);
  assert.deepEqual(
    lax.warnings.map((p) => [p.path, p.nearest]),
    [
      ['metadata.restartPolicy', 'spec.restartPolicy'],
      ['spec.containers[0].resource', 'resources'],
      ['spec.containers[0].livenesProbe', 'livenessProbe'],
      ['spec.containers[0].image_pull_policy', 'imagePullPolicy'],
      ['spec.containers[0].hostNetwork', 'spec.hostNetwork'],
      ['spec.livenessProbe', 'spec.containers[].livenessProbe'],
    ],
  );
  const strict = decode(raw, true);
  assert.equal(strict.object, undefined);
  assert.deepEqual(paths(strict.problems), paths(lax.warnings));
});

test('B4: annotations and labels of podsched that it does not know are unknown fields too', () => {
  const raw = rawPod({}, {}, { annotations: { 'podsched.dev/crash-backof': '1s,2s' }, labels: { 'podsched.dev/hold': 'true' } });
  assert.deepEqual(
    decode(raw).warnings.map((p) => p.nearest),
    ['podsched.dev/crash-backoff', 'metadata.annotations[podsched.dev/hold]'],
  );
  assert.equal(decode(raw, true).problems.length, 2);
});

test('each wrong type is told with what was expected', () => {
  const table: readonly (readonly [unknown, string, string])[] = [
    [rawPod({ containers: 'x' }), 'spec.containers', 'a list'],
    [rawPod({ containers: [7] }), 'spec.containers[0]', 'a mapping'],
    [rawPod({ containers: [null] }), 'spec.containers[0]', 'a mapping'],
    [rawPod({}, { command: 'sleep 1' }), 'spec.containers[0].command', 'a list of strings'],
    [rawPod({}, { args: [null] }), 'spec.containers[0].args[0]', 'a string'],
    [rawPod({}, { ports: [{ containerPort: '80' }] }), 'spec.containers[0].ports[0].containerPort', 'a whole number, without quotes'],
    [rawPod({}, { ports: [{ containerPort: 80.5 }] }), 'spec.containers[0].ports[0].containerPort', 'a whole number'],
    [
      rawPod({}, { ports: [{ containerPort: 2 ** 40 }] }),
      'spec.containers[0].ports[0].containerPort',
      'a whole number from -2147483648 to 2147483647',
    ],
    [rawPod({}, { ports: [{}] }), 'spec.containers[0].ports[0].containerPort', 'a value (it is required)'],
    [rawPod({ terminationGracePeriodSeconds: Number.NaN }), 'spec.terminationGracePeriodSeconds', 'a whole number'],
    [rawPod({ securityContext: [] }), 'spec.securityContext', 'a mapping'],
    [rawPod({}, {}, { labels: ['a'] }), 'metadata.labels', 'a mapping'],
    [rawPod({}, { image: undefined }), 'spec.containers[0].image', 'a value (it is required)'],
    [rawPod({}, { image: null }), 'spec.containers[0].image', 'a value (it is required)'],
    [rawPod({}, {}, { name: null }), 'metadata.name', 'a value (it is required)'],
    [rawPod({ restartPolicy: 'never' }), 'spec.restartPolicy', 'one of Always, OnFailure, Never'],
    [rawPod({}, { imagePullPolicy: 7 }), 'spec.containers[0].imagePullPolicy', 'one of Always, Never, IfNotPresent'],
    [
      rawPod({}, { resources: { limits: { cpu: '1 core' } } }),
      'spec.containers[0].resources.limits[cpu]',
      'a quantity such as 100m, 0.5 or 64Mi',
    ],
    [
      rawPod({}, { resources: { limits: { cpu: null } } }),
      'spec.containers[0].resources.limits[cpu]',
      'a quantity such as 100m, 0.5 or 64Mi',
    ],
    [{ ...rawPod(), spec: undefined }, 'spec', 'a value (it is required)'],
    [{ ...rawPod(), metadata: undefined }, 'metadata', 'a value (it is required)'],
  ];
  for (const [raw, path, expected] of table) assert.equal(only(decode(raw), path).expected, expected, path);
});

test('quantities written another way are told the right one', () => {
  const table: readonly (readonly [string, string | undefined])[] = [
    ['64MB', '64M'],
    ['64MiB', '64Mi'],
    ['512mi', '512Mi'],
    ['1gi', '1Gi'],
    ['512 Mi', '512Mi'],
    ['1K', '1k'],
    ['lots', undefined],
  ];
  for (const [written, meant] of table) {
    const problem = only(
      decode(rawPod({}, { resources: { requests: { memory: written } } })),
      'spec.containers[0].resources.requests[memory]',
    );
    assert.equal(problem.nearest, meant, written);
  }
});

test('quantities come back in one spelling per family', () => {
  const { resources } = pod(rawPod({}, { resources: { limits: { cpu: 0.5, memory: '1.5Gi' } } })).spec.containers[0] ?? {};
  assert.deepEqual(resources, { limits: { cpu: '500m', memory: '1536Mi' } });
});

test('all mistakes of an object are told at once, once each', () => {
  const { problems } = decode(
    rawPod({ hostNetwork: 'x', hostname: 'UP' }, { name: 'Bad', image: 3, env: [{ value: 'x' }, { name: 'A=B' }] }, { name: 'Web' }),
  );
  assert.deepEqual(paths(problems), [
    'spec.containers[0].image',
    'spec.containers[0].env[0].name',
    'spec.hostNetwork',
    'metadata.name',
    'spec.containers[0].name',
    'spec.containers[0].env[1].name',
    'spec.hostname',
  ]);
});

test('values of environment variables and Secrets are never repeated', () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } };
  const raws = [
    rawPod({}, { env: [{ name: 'PIN', value: 482913 }] }),
    { ...secret, data: { pin: 482913, text: 'not base64 482913' } },
    { ...secret, stringData: { pin: 482913 } },
    { ...secret, type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '482913 {' } },
  ];
  for (const raw of raws) {
    const { problems } = decode(raw);
    assert.ok(problems.length > 0);
    assert.doesNotMatch(JSON.stringify(problems), /482913/);
  }
});

test('a key named __proto__ or constructor is a key like any other', () => {
  const raw = JSON.parse(
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","__proto__":{"name":"evil"}},"data":{"__proto__":"x","constructor":"y"}}',
  );
  const { object, warnings } = decode(raw);
  assert.deepEqual(paths(warnings), ['metadata.__proto__']);
  assert.equal(
    JSON.stringify(object),
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"__proto__":"x","constructor":"y"}}',
  );
  assert.equal(Object.getPrototypeOf(object?.kind === 'ConfigMap' ? object.data : undefined), Object.prototype);
  assert.equal(({} as Record<string, unknown>).name, undefined);
  const inherited = Object.assign(Object.create({ kind: 'Pod' }), { apiVersion: 'v1' });
  assert.deepEqual(paths(decode(inherited).problems), ['']);
});

test('more than 64 levels, and bombs of shared values, are refused quickly', () => {
  let deep: unknown = 'x';
  for (let i = 0; i < 70; i++) deep = { a: deep };
  assert.equal(decode({ ...rawPod(), status: deep }).problems[0]?.expected, 'at most 64 levels');
  let list: unknown[] = [];
  for (let i = 0; i < 70; i++) list = [list];
  assert.equal(decode(rawPod({ x: list })).problems[0]?.expected, 'at most 64 levels');
  let bomb: unknown = 'x';
  for (let i = 0; i < 9; i++) bomb = Array(9).fill(bomb);
  assert.equal(decode(rawPod({}, { args: bomb })).problems[0]?.expected, 'at most 200000 values');
  const ring: Record<string, unknown> = {};
  ring.a = ring;
  assert.equal(decode(rawPod({ ring })).problems[0]?.expected, 'at most 64 levels');
});

test('thousands of mistakes are cut to a hundred and a count', () => {
  const { problems } = decode(rawPod({}, { args: Array(5000).fill(1) }));
  assert.equal(problems.length, 101);
  assert.equal(problems.at(-1)?.got, '4900 more');
});

test('a label without a value is the empty text; a field without one is absent', () => {
  const { metadata, spec } = pod(
    rawPod({ hostname: null, restartPolicy: '' }, { workingDir: '' }, { labels: { 'node-role/worker': null }, namespace: '' }),
  );
  assert.deepEqual(metadata, { name: 'web', labels: { 'node-role/worker': '' } });
  assert.deepEqual(Object.keys(spec), ['containers']);
  assert.deepEqual(spec.containers, [{ name: 'app', image: 'busybox:1' }]);
});

test('the key of a broken object is read as far as it goes', () => {
  assert.deepEqual(readKey(rawPod({ hostNetwork: 'x' })), { kind: 'Pod', namespace: 'default', name: 'web' });
  assert.deepEqual(readKey({ kind: 'Secret', metadata: { name: 's', namespace: 'lab' } }), { kind: 'Secret', namespace: 'lab', name: 's' });
  for (const raw of [null, 'x', {}, { kind: 'Pod' }, { kind: 'Pod', metadata: { name: 3 } }, { kind: 'Job', metadata: { name: 'j' } }]) {
    assert.equal(readKey(raw), undefined);
  }
});

test('any plain value is judged without throwing', async () => {
  const { default: fc } = await import('fast-check');
  const keys = fc.constantFrom(
    'kind',
    'apiVersion',
    'metadata',
    'spec',
    'containers',
    'name',
    'image',
    'env',
    'ports',
    'labels',
    '__proto__',
    'data',
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('Pod', 'v1', null, true, 0, -1, 1.5, '', 'x', Number.NaN),
      fc.array(tie('any'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(keys, tie('any'), { maxKeys: 6 }),
  })).object;
  fc.assert(
    fc.property(value, fc.constantFrom('Pod', 'ConfigMap', 'Secret'), (raw, kind) => {
      const { object, problems } = decodeObject({ ...(raw as object), kind }, { strict: false });
      return (object === undefined) === problems.length > 0;
    }),
    { numRuns: 300, seed: 7 },
  );
});
