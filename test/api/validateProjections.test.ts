import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cleanFilePath, fileAndFolder, wrongFilePath } from '../../src/api/filePaths.ts';
import { decodeScalar } from '../../src/api/scalars.ts';
import type { Volume } from '../../src/api/v1.ts';
import { parseDocuments } from '../../src/config/yaml.ts';
import { decode, only, paths, pod, type Raw, rawPod } from './objects.ts';

/** As the manifest reader has it. */
const readYaml = (text: string): unknown => (parseDocuments(`v: ${text}`).documents[0]?.value as { v?: unknown } | undefined)?.v;
const at = 'spec.volumes[0]';
const volume = (source: Raw) => decode(rawPod({ volumes: [{ name: 'v', ...source }] }));
const accepted = (source: Raw): Volume | undefined => pod(rawPod({ volumes: [{ name: 'v', ...source }] })).spec.volumes?.[0];
const field = (fieldPath: string, path = 'f') => ({ path, fieldRef: { fieldPath } });
const resource = (o: Raw = {}) => ({ path: 'r', resourceFieldRef: { containerName: 'app', resource: 'limits.memory', ...o } });

test('volumes of files are taken as they are written', () => {
  const right: readonly Raw[] = [
    { configMap: { name: 'c' } },
    { configMap: { name: 'c', optional: true, defaultMode: 0o400, items: [{ key: 'a.conf', path: 'etc/a.conf', mode: 0 }] } },
    { secret: { secretName: 's' } },
    { secret: { secretName: 's', optional: false, items: [{ key: 'k', path: './a//b' }] } },
    { downwardAPI: {} },
    { downwardAPI: { items: [field('metadata.labels'), field("metadata.annotations['a/b']", 'g'), resource({ divisor: '1Mi' })] } },
    { projected: { sources: [] } },
    {
      projected: {
        defaultMode: 0o440,
        sources: [
          { configMap: { name: 'c', items: [{ key: 'a', path: 'a' }] } },
          { secret: { name: 's', optional: true } },
          { downwardAPI: { items: [field('metadata.uid', 'sub/uid')] } },
        ],
      },
    },
  ];
  for (const source of right) assert.deepEqual(accepted(source), { name: 'v', ...JSON.parse(JSON.stringify(source)) });
});

test('names, keys and paths of items are told where they are wrong', () => {
  const item = (o: Raw): Raw => ({ configMap: { name: 'c', items: [{ key: 'k', path: 'p', ...o }] } });
  const table: readonly (readonly [Raw, string])[] = [
    [{ configMap: {} }, 'configMap.name'],
    [{ configMap: { name: '' } }, 'configMap.name'],
    [{ configMap: { name: 'C' } }, 'configMap.name'],
    [{ secret: {} }, 'secret.secretName'],
    [{ secret: { secretName: 'a_b' } }, 'secret.secretName'],
    [{ projected: { sources: [{ secret: {} }] } }, 'projected.sources[0].secret.name'],
    [{ projected: { sources: [{ configMap: { name: '-' } }] } }, 'projected.sources[0].configMap.name'],
    [{ projected: {} }, 'projected.sources'],
    [{ projected: { sources: [{}] } }, 'projected.sources[0]'],
    [{ projected: { sources: [{ configMap: { name: 'c' }, secret: { name: 's' } }] } }, 'projected.sources[0]'],
    [{ projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }, 'projected.sources[0].serviceAccountToken'],
    [{ projected: { sources: [{ clusterTrustBundle: { path: 't' } }] } }, 'projected.sources[0].clusterTrustBundle'],
    [item({ key: '' }), 'configMap.items[0].key'],
    [item({ key: '..data' }), 'configMap.items[0].key'],
    [item({ key: 'a/b' }), 'configMap.items[0].key'],
    ...['', '/etc', '..', '../x', 'a/../x', '..data', './..data/x', '.', 'a\0b', 'x'.repeat(256), 'a/'.repeat(70)].map(
      (path): readonly [Raw, string] => [item({ path }), 'configMap.items[0].path'],
    ),
    [{ downwardAPI: { items: [field('metadata.name', '../x')] } }, 'downwardAPI.items[0].path'],
    [item({ mode: 0o1000 }), 'configMap.items[0].mode'],
    [item({ mode: -1 }), 'configMap.items[0].mode'],
    [{ secret: { secretName: 's', defaultMode: 0o1777 } }, 'secret.defaultMode'],
    [{ projected: { sources: [], defaultMode: 999 } }, 'projected.defaultMode'],
    [{ configMap: { name: 'c', optional: 'yes' } }, 'configMap.optional'],
  ];
  for (const [source, path] of table) only(volume(source), `${at}.${path}`);
  assert.equal(volume({ configMap: { name: 'c', item: [] } }).warnings[0]?.nearest, 'items');
  only(volume({ configMap: { name: 'c' }, secret: { secretName: 's' } }), at);
});

test('one path is one file: the second item for it, and one below a file, are told', () => {
  const items = (...all: string[]) => all.map((path) => ({ key: 'k', path }));
  const again = only(volume({ configMap: { name: 'c', items: items('a', 'b', './a') } }), `${at}.configMap.items[2].path`);
  assert.equal(again.expected, `another path than ${at}.configMap.items[0].path has`);
  only(volume({ secret: { secretName: 's', items: items('a/b', 'a', 'c/d') } }), `${at}.secret.items[1].path`);
  const sources = [{ configMap: { name: 'c', items: items('x', 'y') } }, { downwardAPI: { items: [field('metadata.name', 'y')] } }];
  only(volume({ projected: { sources } }), `${at}.projected.sources[1].downwardAPI.items[0].path`);
});

test('a file says of the pod what is known before it runs; what else is refused with what there is', () => {
  const fields = ['metadata.name', 'metadata.namespace', 'metadata.uid', 'metadata.labels', 'metadata.annotations', "metadata.labels['a']"];
  for (const path of fields) accepted({ downwardAPI: { items: [field(path)] } });
  const place = `${at}.downwardAPI.items[0].fieldRef.fieldPath`;
  for (const path of ['status.podIP', 'status.podIPs', 'status.hostIP', 'spec.nodeName', 'spec.serviceAccountName', 'spec.x']) {
    const { expected } = only(volume({ downwardAPI: { items: [field(path)] } }), place);
    for (const known of fields.slice(0, 5)) assert.ok(expected.includes(known), `${path}: ${expected}`);
  }
  assert.equal(only(volume({ downwardAPI: { items: [field('metadata.lables')] } }), place).nearest, 'metadata.labels');
  assert.equal(only(volume({ downwardAPI: { items: [field('metadata.labels[app]')] } }), place).nearest, "metadata.labels['app']");
  only(volume({ downwardAPI: { items: [{ path: 'x' }] } }), `${at}.downwardAPI.items[0]`);
  only(volume({ downwardAPI: { items: [{ ...field('metadata.name'), ...resource() }] } }), `${at}.downwardAPI.items[0]`);
});

test('a file of a resource names a container of the pod, a known resource and a divisor that fits', () => {
  const place = `${at}.downwardAPI.items[0].resourceFieldRef`;
  const of = (o: Raw) => volume({ downwardAPI: { items: [resource(o)] } });
  only(of({ containerName: undefined }), `${place}.containerName`);
  assert.equal(only(of({ containerName: 'apq' }), `${place}.containerName`).nearest, 'app');
  assert.equal(only(of({ resource: 'limit.memory' }), `${place}.resource`).nearest, 'limits.memory');
  only(of({ divisor: '2Mi' }), `${place}.divisor`);
  only(of({ resource: 'requests.cpu', divisor: '1Mi' }), `${place}.divisor`);
  const init = { initContainers: [{ name: 'init', image: 'x:1' }] };
  pod(rawPod({ ...init, volumes: [{ name: 'v', downwardAPI: { items: [resource({ containerName: 'init' })] } }] }));
});

test('B1: octal modes in both spellings are taken; decimal look-alikes and texts are refused with a hint', () => {
  const int32 = { kind: 'int', min: -(2 ** 31), max: 2 ** 31 - 1 } as const;
  for (const place of ['configMap.defaultMode', 'secret.defaultMode', 'projected.defaultMode', 'downwardAPI.items[0].mode']) {
    const read = (text: string) => decodeScalar(readYaml(text), int32, { path: `${at}.${place}` }, false);
    for (const [text, value] of [
      ['0644', 420],
      ['0o644', 420],
      ['420', 420],
      ['0', 0],
      ['0777', 511],
    ] as const)
      assert.deepEqual(read(text), { value }, text);
    for (const [text, hint] of [
      ['644', '0644'],
      ['755', '0755'],
      ['0999', undefined],
      ['"0644"', undefined],
      ['01777', undefined],
      ['-1', undefined],
    ] as const) {
      const result = read(text);
      assert.ok('problem' in result, text);
      assert.match(result.problem.expected, /^an octal mode from 0 to 0777/, text);
      assert.equal(result.problem.nearest, hint, text);
    }
  }
});

test('paths inside a volume: one spelling for one file, and nothing that leads out', () => {
  assert.equal(cleanFilePath('./a//b/./c/'), 'a/b/c');
  for (const right of ['a', '.a', 'a..b', 'a/..b/c']) assert.equal(wrongFilePath(right), undefined, right);
  for (const wrong of ['', '.', '..', '..a', '/a', 'a/..', './..a', '\0', 'é'.repeat(128)])
    assert.ok(wrongFilePath(wrong), JSON.stringify(wrong));
  assert.equal(fileAndFolder(['a/b', 'a/b/c', 'd']), 'a/b');
  assert.equal(fileAndFolder(['a/b', 'a/bc', 'ab']), undefined);
  assert.deepEqual(paths(volume({ downwardAPI: { items: [] } }).problems), []);
});
