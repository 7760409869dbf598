import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, PodSpec, Secret, Volume } from '../../src/api/v1.ts';
import { fingerprint, largestVolumeBytes, nestedMounts, type ProjectedFiles, projectedFiles } from '../../src/volumes/projection.ts';
import { container, pod } from './house.ts';

const canary = 'c4n4ry-bytes';
const configMap: ConfigMap = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'app' },
  data: { 'a.conf': 'a = 1\n', empty: '' },
  binaryData: { bin: 'AAH/' },
};
const secret: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'key' },
  data: { pin: Buffer.from('old').toString('base64'), raw: 'gIE=' },
  stringData: { pin: canary },
};
const objects = (kind: string, name: string) =>
  kind === 'ConfigMap' && name === 'app' ? configMap : kind === 'Secret' && name === 'key' ? secret : undefined;
const node = { nodeMemoryBytes: 64 * 2 ** 20, nodeCpus: 4 };
const desired = pod(
  {
    containers: [container('c', { resources: { limits: { memory: '24Mi', cpu: '1500m' }, requests: { cpu: '100m' } } }), container('free')],
  },
  { metadata: { namespace: 'lab', labels: { tier: 'edge', app: 'cam' }, annotations: { note: 'say "hi"\n\tü\u200b\x01' } } },
);
const filesOf = (volume: Omit<Volume, 'name'>): ProjectedFiles => projectedFiles({ name: 'v', ...volume }, desired.pod, objects, node);
const shown = (files: ProjectedFiles): Record<string, string> =>
  Object.fromEntries([...files].map(([path, { bytes, mode }]) => [path, `${mode.toString(8)} ${Buffer.from(bytes).toString('latin1')}`]));

test('a ConfigMap or Secret is a file for each key, or for the listed ones at their paths, in their modes', () => {
  assert.deepEqual(shown(filesOf({ configMap: { name: 'app' } })), { 'a.conf': '644 a = 1\n', empty: '644 ', bin: '644 \0\x01\xff' });
  assert.deepEqual(shown(filesOf({ secret: { secretName: 'key', defaultMode: 0o400 } })), { pin: `400 ${canary}`, raw: '400 \x80\x81' });
  const items = [
    { key: 'a.conf', path: './etc//a', mode: 0o777 },
    { key: 'a.conf', path: 'again' },
  ];
  assert.deepEqual(shown(filesOf({ configMap: { name: 'app', items, defaultMode: 0 } })), { 'etc/a': '777 a = 1\n', again: '0 a = 1\n' });
});

test('what is missing is named as the kubelet names it, and skipped where it is optional', () => {
  const items = [{ key: 'none', path: 'x' }];
  const table: readonly (readonly [Omit<Volume, 'name'>, string])[] = [
    [{ configMap: { name: 'other' } }, 'configmap "other" not found'],
    [{ secret: { secretName: 'app' } }, 'secret "app" not found'],
    [{ configMap: { name: 'app', items } }, 'configmap references non-existent config key: none'],
    [{ secret: { secretName: 'key', items } }, 'references non-existent secret key: none'],
    [
      { projected: { sources: [{ secret: { name: 'gone' } }, { configMap: { name: 'app', items } }, { secret: { name: 'gone' } }] } },
      '[secret "gone" not found, configmap references non-existent config key: none]',
    ],
    [{ downwardAPI: { items: [{ path: 'x', fieldRef: { fieldPath: 'status.podIP' } }] } }, 'unsupported fieldPath: status.podIP'],
    [
      { downwardAPI: { items: [{ path: 'x', resourceFieldRef: { containerName: 'no', resource: 'limits.cpu' } }] } },
      'container no not found',
    ],
  ];
  for (const [volume, message] of table) {
    assert.throws(
      () => filesOf(volume),
      (e: Error) => e.message === message && !e.message.includes(canary),
    );
  }
  assert.equal(filesOf({ configMap: { name: 'other', optional: true } }).size, 0);
  assert.deepEqual(
    [...filesOf({ secret: { secretName: 'key', optional: true, items: [...items, { key: 'pin', path: 'p' }] } }).keys()],
    ['p'],
  );
});

test('a path that leads out, or would be a file and a folder, is no file, whoever let it through', () => {
  for (const path of ['../x', '/etc/x', '..data', 'a/../../x', './..data/x'])
    assert.throws(() => filesOf({ secret: { secretName: 'key', items: [{ key: 'pin', path }] } }), /^Error: invalid path/);
  const sources = [{ configMap: { name: 'app', items: [{ key: 'bin', path: 'empty/x' }] } }, { configMap: { name: 'app' } }];
  assert.throws(() => filesOf({ projected: { sources } }), /"empty" would be a file and a folder/);
});

test('of sources that have one path the later one wins; the mode is the item’s, else the volume’s', () => {
  const sources = [
    { configMap: { name: 'app' } },
    { secret: { name: 'key', items: [{ key: 'pin', path: 'a.conf', mode: 0o600 }] } },
    { downwardAPI: { items: [{ path: 'me/name', fieldRef: { fieldPath: 'metadata.name' } }] } },
  ];
  assert.deepEqual(shown(filesOf({ projected: { sources, defaultMode: 0o440 } })), {
    'a.conf': `600 ${canary}`,
    empty: '440 ',
    bin: '440 \0\x01\xff',
    'me/name': '440 web',
  });
});

test('the downward API writes fields, sorted quoted lines of labels and annotations, and resources by their divisor', () => {
  const text = (item: object): string => {
    const [file] = filesOf({ downwardAPI: { items: [{ path: 'f', ...item }] } }).values();
    return Buffer.from(file?.bytes ?? []).toString();
  };
  const ofField = (fieldPath: string): string => text({ fieldRef: { fieldPath } });
  const ofResource = (resource: string, o: object = {}): string => text({ resourceFieldRef: { containerName: 'c', resource, ...o } });
  assert.deepEqual(
    ['name', 'namespace', 'uid'].map((f) => ofField(`metadata.${f}`)),
    ['web', 'lab', 'uid-1'],
  );
  assert.equal(ofField('metadata.labels'), 'app="cam"\ntier="edge"');
  assert.equal(ofField("metadata.labels['tier']"), 'edge');
  assert.equal(ofField("metadata.labels['none']"), '');
  assert.match(
    ofField('metadata.annotations'),
    /^kubernetes\.io\/config\.hash="[0-9a-f]{12}"\n[\s\S]*\nnote="say \\"hi\\"\\n\\tü\\u200b\\x01"$/,
  );
  assert.equal(ofResource('limits.memory', { divisor: '1Mi' }), '24');
  assert.equal(ofResource('limits.cpu', { divisor: '1m' }), '1500');
  assert.equal(ofResource('limits.cpu'), '2');
  assert.equal(ofResource('requests.cpu', { divisor: '0' }), '1');
  assert.equal(ofResource('limits.memory', { containerName: 'free' }), String(64 * 2 ** 20));
  assert.equal(ofResource('limits.cpu', { containerName: 'free' }), '4');
});

test('the fingerprint sees paths, bytes and modes, and no order', () => {
  const of = (files: Record<string, readonly [string, number]>): string =>
    fingerprint(new Map(Object.entries(files).map(([path, [text, mode]]) => [path, { bytes: Buffer.from(text), mode }])));
  const base = of({ a: ['x', 1], b: ['y', 1] });
  assert.equal(of({ b: ['y', 1], a: ['x', 1] }), base);
  for (const other of [
    of({ a: ['x', 1], b: ['z', 1] }),
    of({ a: ['x', 1], b: ['y', 2] }),
    of({ a: ['x', 1], c: ['y', 1] }),
    of({ a: ['x1 1 1 by', 1] }),
  ])
    assert.notEqual(other, base);
});

test('where another volume is mounted below, its folder is known; subPaths have none', () => {
  const nested = (...mounts: (readonly [name: string, path: string, subPath?: string])[]): readonly string[] => {
    const volumeMounts = mounts.map(([name, mountPath, subPath]) => ({ name, mountPath, ...(subPath && { subPath }) }));
    const spec: PodSpec = { containers: [container('c', { volumeMounts })] };
    return nestedMounts('v', pod(spec).pod);
  };
  assert.deepEqual(nested(['v', '/etc/app/'], ['x', '/etc/app/data'], ['y', '/etc/app//data/deep'], ['z', '/etc/application']), ['data']);
  const two = [
    container('a', {
      volumeMounts: [
        { name: 'v', mountPath: '/v' },
        { name: 'x', mountPath: '/v/data' },
      ],
    }),
    container('b', {
      volumeMounts: [
        { name: 'v', mountPath: '/w' },
        { name: 'x', mountPath: '/w/data/deep' },
      ],
    }),
  ];
  assert.deepEqual(nestedMounts('v', pod({ containers: two }).pod), ['data', 'data/deep']);
  assert.deepEqual(nested(['v', '/etc/app', 'a'], ['x', '/etc/app/data']), []);
  assert.deepEqual(nested(['x', '/etc'], ['v', '/etc/app']), []);
});

test('a key under thousands of paths is one piece of memory, and no volume grows beyond its bound', () => {
  const large: ConfigMap = { ...configMap, data: { k: 'x'.repeat(2 ** 20) } };
  const volume = (count: number): Volume => {
    const items = Array.from({ length: count }, (_, i) => ({ key: 'k', path: `f${i}` }));
    return { name: 'v', projected: { sources: [{ configMap: { name: 'app', items } }] } };
  };
  const files = (count: number) => projectedFiles(volume(count), desired.pod, () => large, node);
  const most = largestVolumeBytes / 2 ** 20;
  assert.equal(new Set([...files(most).values()].map(({ bytes }) => bytes)).size, 1);
  const before = process.memoryUsage().arrayBuffers;
  assert.throws(() => files(20_000), { message: `its files have more than ${largestVolumeBytes} bytes in all` });
  assert.ok(process.memoryUsage().arrayBuffers - before < 8 * 2 ** 20);
});
