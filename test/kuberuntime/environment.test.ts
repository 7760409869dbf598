import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, Container, Secret } from '../../src/api/v1.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { containerEnvironment } from '../../src/kuberuntime/environment.ts';
import {
  type EnvironmentSources,
  environmentSources,
  noSources,
  statusWithoutSecrets,
  withoutSecrets,
} from '../../src/kuberuntime/envObjects.ts';
import { container, desiredPod, House } from './house.ts';

const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');
const configMap = (name: string, data: Record<string, string>, more: Partial<ConfigMap> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
  ...more,
});
const secret = (name: string, data: Record<string, string | Uint8Array>, more: Partial<Secret> = {}): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
  ...more,
});
const sourcesOf = (...objects: (ConfigMap | Secret)[]): EnvironmentSources => ({
  configMaps: new Map(objects.flatMap((o) => (o.kind === 'ConfigMap' ? [[o.metadata.name, o]] : []))),
  secrets: new Map(objects.flatMap((o) => (o.kind === 'Secret' ? [[o.metadata.name, o]] : []))),
});

const pod = desiredPod({}).pod;
const envOf = (c: Partial<Container>, sources: EnvironmentSources = noSources): Record<string, string> =>
  Object.fromEntries(containerEnvironment(pod, container('c', c), { nodeName: 'pi', nodeMemoryBytes: 1e9, sources }));
const fromMap = (name: string, key: string, optional?: boolean) => ({
  configMapKeyRef: { name, key, ...(optional !== undefined && { optional }) },
});
const fromSecret = (name: string, key: string, optional?: boolean) => ({
  secretKeyRef: { name, key, ...(optional !== undefined && { optional }) },
});

const site = configMap('site', { PLACE: 'attic', LEVEL: 'info', 'app.port': '80' });
const db = secret('db', { USER: 'pi', PASSWORD: 'hunter22' });

test('envFrom comes first, in order, each entry over the one before it, and env over all of them', () => {
  const table: readonly (readonly [string, Partial<Container>, Record<string, string>])[] = [
    ['all of a map', { envFrom: [{ configMapRef: { name: 'site' } }] }, { PLACE: 'attic', LEVEL: 'info', 'app.port': '80' }],
    ['all of a Secret', { envFrom: [{ secretRef: { name: 'db' } }] }, { USER: 'pi', PASSWORD: 'hunter22' }],
    [
      'a prefix',
      { envFrom: [{ prefix: 'SITE_', configMapRef: { name: 'site' } }] },
      { SITE_PLACE: 'attic', SITE_LEVEL: 'info', 'SITE_app.port': '80' },
    ],
    [
      'the later entry wins',
      { envFrom: [{ configMapRef: { name: 'site' } }, { configMapRef: { name: 'more' } }] },
      { PLACE: 'cellar', LEVEL: 'info', 'app.port': '80' },
    ],
    [
      'env wins and may use what envFrom brought; what was put in is not expanded again',
      {
        envFrom: [{ configMapRef: { name: 'more' } }, { configMapRef: { name: 'dollar' } }],
        env: [
          { name: 'WHERE', value: '$(PLACE) $(RAW) $$(PLACE)' },
          { name: 'PLACE', value: 'garden' },
          { name: 'LATER', value: '$(PLACE)' },
        ],
      },
      { PLACE: 'garden', RAW: '$(PLACE)', WHERE: 'cellar $(PLACE) $(PLACE)', LATER: 'garden' },
    ],
    [
      'single keys',
      {
        env: [
          { name: 'P', valueFrom: fromMap('site', 'app.port') },
          { name: 'PW', value: '', valueFrom: fromSecret('db', 'PASSWORD') },
        ],
      },
      { P: '80', PW: 'hunter22' },
    ],
    ['stringData of a Secret wins over its data', { envFrom: [{ secretRef: { name: 'both' } }] }, { A: 'new', B: 'only here', C: 'old' }],
    ['binaryData is no part of it', { envFrom: [{ configMapRef: { name: 'binary' } }] }, { TEXT: 'x' }],
    ['a key called __proto__ is a key', { envFrom: [{ configMapRef: { name: 'odd' } }] }, JSON.parse('{"__proto__": "p"}')],
  ];
  const sources = sourcesOf(
    site,
    db,
    configMap('more', { PLACE: 'cellar' }),
    configMap('dollar', { RAW: '$(PLACE)' }),
    secret('both', { A: 'old', C: 'old' }, { stringData: { A: 'new', B: 'only here' } }),
    configMap('binary', { TEXT: 'x' }, { binaryData: { BYTES: base64('y') } }),
    configMap('odd', JSON.parse('{"__proto__": "p"}')),
  );
  for (const [what, c, expected] of table) assert.deepEqual(envOf(c, sources), expected, what);
});

test('what is missing and optional changes nothing, not even a value that was there before', () => {
  const gone = { name: 'gone', optional: true };
  assert.deepEqual(envOf({ envFrom: [{ configMapRef: gone }, { secretRef: gone }] }), {});
  const env = [
    { name: 'A', valueFrom: fromMap('gone', 'k', true) },
    { name: 'B', valueFrom: fromSecret('gone', 'k', true) },
    { name: 'PLACE', valueFrom: fromMap('site', 'gone', true) },
    { name: 'C', valueFrom: fromSecret('db', 'gone', true) },
    { name: 'D', value: '$(A)' },
  ];
  assert.deepEqual(envOf({ envFrom: [{ configMapRef: { name: 'site' } }], env }, sourcesOf(site, db)), {
    PLACE: 'attic',
    LEVEL: 'info',
    'app.port': '80',
    D: '$(A)',
  });
});

test('what is missing and not optional is told in the words of the kubelet', () => {
  const table: readonly (readonly [Partial<Container>, string])[] = [
    [{ envFrom: [{ configMapRef: { name: 'x' } }] }, 'configmap "x" not found'],
    [{ envFrom: [{ secretRef: { name: 'x', optional: false } }] }, 'secret "x" not found'],
    [{ env: [{ name: 'A', valueFrom: fromMap('x', 'k') }] }, 'configmap "x" not found'],
    [{ env: [{ name: 'A', valueFrom: fromSecret('x', 'k') }] }, 'secret "x" not found'],
    [{ env: [{ name: 'A', valueFrom: fromMap('site', 'k') }] }, "couldn't find key k in ConfigMap default/site"],
    [{ env: [{ name: 'A', valueFrom: fromSecret('db', 'k') }] }, "couldn't find key k in Secret default/db"],
    [{ env: [{ name: 'A', valueFrom: fromMap('binary', 'BYTES') }] }, "couldn't find key BYTES in ConfigMap default/binary"],
  ];
  const sources = sourcesOf(site, db, configMap('binary', {}, { binaryData: { BYTES: base64('y') } }));
  for (const [c, text] of table) assert.throws(() => envOf(c, sources), { message: text });
});

test('a Secret that is no text is named by its key; its other keys are good', () => {
  const bytes = secret('keys', { DER: new Uint8Array([0x30, 0x82, 0xff]), NUL: 'a\0b', PEM: 'text', EMPTY: '' });
  for (const key of ['DER', 'NUL']) {
    assert.throws(() => envOf({ env: [{ name: 'A', valueFrom: fromSecret('keys', key) }] }, sourcesOf(bytes)), {
      message: `the value of key ${key} in Secret default/keys is no text, so it cannot be in an environment`,
    });
  }
  const env = [
    { name: 'A', valueFrom: fromSecret('keys', 'PEM') },
    { name: 'B', valueFrom: fromSecret('keys', 'EMPTY') },
  ];
  assert.deepEqual(envOf({ env }, sourcesOf(bytes)), { A: 'text', B: '' });
  assert.throws(() => envOf({ envFrom: [{ secretRef: { name: 'keys' } }] }, sourcesOf(bytes)), /is no text/);
});

test('names that no environment can have are left out, as an object of another version may bring them', () => {
  assert.deepEqual(
    envOf({ envFrom: [{ configMapRef: { name: 'odd' } }] }, sourcesOf(configMap('odd', { 'A=B': '1', é: '2', 'a b': '3' }))),
    {
      'a b': '3',
    },
  );
});

test('only what the environment names is looked up, in the namespace and by the source of the pod', () => {
  const asked: string[] = [];
  const c = container('c', {
    envFrom: [{ configMapRef: { name: 'site' } }, { secretRef: { name: 'db' } }],
    env: [
      { name: 'A', valueFrom: fromMap('site', 'k') },
      { name: 'B', valueFrom: fromSecret('other', 'k') },
      { name: 'C', value: 'x' },
    ],
  });
  const found = environmentSources(
    (kind, namespace, name, source) => {
      asked.push(`${kind}/${namespace}/${name} ${source}`);
      return name === 'site' ? site : undefined;
    },
    desiredPod({}),
    c,
  );
  assert.deepEqual(asked, [
    'ConfigMap/default/site file:web.yaml',
    'Secret/default/db file:web.yaml',
    'Secret/default/other file:web.yaml',
  ]);
  assert.deepEqual([...found.configMaps.keys(), ...found.secrets.keys()], ['site']);
});

test('a text is told without the values of Secrets, however the runtime spells them', () => {
  const sources = sourcesOf(
    secret('s', { LONG: 'hunter22', LONGER: 'hunter22!', QUOTED: 'two\n"lines"', TAB: ' padded\n', SHORT: '22', DOT: '.*', EMPTY: '' }),
  );
  const table: readonly (readonly [string, string])[] = [
    ['invalid environment variable "PW=hunter22"', 'invalid environment variable "PW=…"'],
    ['dsn postgres://u:hunter22!@h', 'dsn postgres://u:…@h'],
    [String.raw`bad "X=two\n\"lines\""`, 'bad "X=…"'],
    ['exec: "padded": not found', 'exec: "…": not found'],
    ['exit status 22, code 2222, x22', 'exit status …, code 2222, x22'],
    ['glob .* here', 'glob … here'],
    ['nothing', 'nothing'],
  ];
  for (const [text, expected] of table) assert.equal(withoutSecrets(text, sources), expected);
  assert.equal(withoutSecrets('configmap values are shown: attic', sourcesOf(site)), 'configmap values are shown: attic');
});

test('B8: arguments with blanks, quotes, dollars, newlines and nothing in them reach the runtime as they are', async () => {
  const house = new House();
  const args = ['-c', 'curl -f "x" \'y\'\n', '', '$HOME', '100%', '\\'];
  await house.settle(desiredPod({ containers: [container('c', { command: ['sh'], args })] }));
  const config = house.runtime.find('web', 'c')?.config;
  assert.deepEqual([config?.command, config?.args], [['sh'], args]);
});

test('a container waits for its ConfigMap without a look at the runtime, and starts with it in the next sync', async () => {
  const house = new House();
  const desired = desiredPod({ containers: [container('c', { envFrom: [{ configMapRef: { name: 'site' } }] }), container('other')] });
  const { results } = await house.settle(desired);
  const error = { reason: 'CreateContainerConfigError', message: 'configmap "site" not found' };
  assert.deepEqual(
    results.filter((r) => r.error !== undefined),
    [{ action: 'StartContainer', target: 'c', error }],
  );
  assert.ok(house.events.includes('c Warning Failed: Error: configmap "site" not found'));
  assert.deepEqual(house.deeds(), ['runSandbox sandbox#0', 'createContainer other#0', 'startContainer other#0']);
  house.objects.set('ConfigMap/default/site', site);
  await house.settle(desired);
  assert.deepEqual(house.deeds(), ['createContainer c#0', 'startContainer c#0']);
  assert.deepEqual(house.runtime.find('web', 'c')?.config.envs, [
    { key: 'PLACE', value: 'attic' },
    { key: 'LEVEL', value: 'info' },
    { key: 'app.port', value: '80' },
  ]);
  // what runs is not asked about its map again: it follows at its next start
  house.objects.set('ConfigMap/default/site', configMap('site', { PLACE: 'cellar' }));
  await house.settle(desired);
  assert.deepEqual(house.deeds(), []);
});

test('what is missing is named although a Secret has the same word in it', async () => {
  const house = new House();
  house.objects.set('Secret/default/db', secret('db', { USER: 'site' }));
  const envFrom = [{ secretRef: { name: 'db' } }, { configMapRef: { name: 'site' } }];
  const { results } = await house.settle(desiredPod({ containers: [container('c', { envFrom })] }));
  assert.deepEqual(
    results.map((r) => r.error?.message),
    ['configmap "site" not found'],
  );
});

test('a Secret in env is told once of a pod, not again with each container and each restart', async () => {
  const house = new House();
  house.objects.set('Secret/default/db', db);
  const withSecret = (name: string, more: Partial<Container> = {}) =>
    container(name, { env: [{ name: 'A', valueFrom: fromSecret('db', 'USER') }], ...more });
  const desired = desiredPod({ containers: [container('plain'), withSecret('a'), withSecret('b')] });
  const told = (): string[] => house.events.filter((e) => e.includes('SecretInEnv'));
  await house.settle(desired);
  const text = 'a Normal SecretInEnv: the environment takes values from Secret db, and containerd stores them as plain text';
  assert.deepEqual(told(), [text]);
  house.runtime.exit(house.id('a'), 1);
  await house.clock.advance(1);
  await house.sync(desired);
  await house.clock.advance(10_000);
  await house.settle(desired);
  assert.equal(house.runtime.find('web', 'a')?.config.attempt, 1);
  assert.deepEqual(told(), [text]);
});

test('no value of a Secret is in an event, a log line or a result of a start that fails with it in its words', async () => {
  const value = 'correct horse battery staple';
  for (const where of ['create', 'start'] as const) {
    const house = new House();
    house.objects.set('Secret/default/db', secret('db', { PASSWORD: value }));
    const c = container('c', { command: ['$(PW)'], env: [{ name: 'PW', valueFrom: fromSecret('db', 'PASSWORD') }] });
    const method = where === 'create' ? 'createContainer' : 'startContainer';
    const inner = house.runtime[method].bind(house.runtime) as (...args: unknown[]) => Promise<unknown>;
    let envs: unknown;
    Object.assign(house.runtime, {
      [method]: async (...args: unknown[]) => {
        envs ??= where === 'create' ? (args[1] as { envs: unknown }).envs : house.runtime.find('web', 'c')?.config.envs;
        await inner(...args);
        throw new RuntimeError('unknown', `runc: exec: "${value}": not found, env "PW=${value}"`);
      },
    });
    const result = await house.sync(desiredPod({ containers: [c] }));
    // the container would have had it
    assert.deepEqual(envs, [{ key: 'PW', value }], where);
    const [failed] = result.results.filter((r) => r.error !== undefined);
    assert.match(failed?.error?.message ?? '', /not found, env "PW=…"/, where);
    const said = JSON.stringify([house.events, house.logged, result]);
    assert.ok(house.events.some((e) => e.includes('Failed')) && house.logged.length > 0, where);
    assert.ok(!said.includes(value), said);
  }
});

test('what the runtime says of an end is shown without the values of the container’s own Secrets', async () => {
  const house = new House();
  house.objects.set('Secret/default/db', secret('db', { PASSWORD: 'hunter22' }));
  const lookup = (kind: string, namespace: string, name: string) => house.objects.get(`${kind}/${namespace}/${name}`);
  house.runtime.onStart((name) => (name === 'plain' ? {} : { startError: 'exec: "hunter22": not found' }));
  const env = [{ name: 'PW', valueFrom: fromSecret('db', 'PASSWORD') }];
  const desired = desiredPod({ containers: [container('c', { command: ['$(PW)'], env }), container('other'), container('plain')] });
  await house.settle(desired);
  const status = await house.inspect(desired);
  const messages = (s: typeof status) => Object.fromEntries(s.containers.map((c) => [c.name, c.message]));
  const shown = statusWithoutSecrets(lookup, desired, status);
  assert.match(messages(status).c ?? '', /hunter22/);
  assert.deepEqual(messages(shown), { c: 'exec: "…": not found', other: 'exec: "hunter22": not found', plain: '' });
  const plain = desiredPod({});
  assert.equal(statusWithoutSecrets(lookup, plain, status), status);
});
