import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultPod } from '../../src/api/defaults.ts';
import { podHash } from '../../src/api/hash.ts';
import { decode, only, paths, pod, type Raw, rawPod } from './objects.ts';

const disk = { name: 'data', emptyDir: {} };
const mounted = (mount: Raw, container: Raw = {}, volumes: readonly unknown[] = [disk]) =>
  decode(rawPod({ volumes }, { volumeMounts: [{ name: 'data', mountPath: '/data', ...mount }], ...container }));
const at = 'spec.containers[0].volumeMounts[0]';

test('volumes with one source or none are right, and none is an emptyDir', () => {
  const right = pod(
    rawPod({
      volumes: [
        { name: 'none' },
        { name: 'disk', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
        { name: 'huge', emptyDir: { medium: 'HugePages-2Mi' } },
        { name: 'host', hostPath: { path: '/etc/hostname', type: 'File' } },
        { name: 'plain', hostPath: { path: '/srv' } },
      ],
    }),
  );
  const { volumes = [] } = defaultPod(right, 'pi').spec;
  assert.deepEqual(volumes[0], { name: 'none', emptyDir: {} });
  assert.deepEqual(volumes[5], { name: 'plain', hostPath: { path: '/srv', type: '' } });
  assert.equal(podHash({ ...right, spec: { ...right.spec, volumes } }), podHash(right), 'a default is no edit');
});

test('a volume is refused for its name, its second source, its medium, its limit and its path', () => {
  const table: readonly (readonly [Raw, string])[] = [
    [{ name: 'Data', emptyDir: {} }, 'spec.volumes[0].name'],
    [{ name: '../x', emptyDir: {} }, 'spec.volumes[0].name'],
    [{ name: 'data', emptyDir: {}, hostPath: { path: '/x' } }, 'spec.volumes[0]'],
    [{ name: 'data', emptyDir: { medium: 'memory' } }, 'spec.volumes[0].emptyDir.medium'],
    [{ name: 'data', emptyDir: { medium: 'Memory', sizeLimit: '-1' } }, 'spec.volumes[0].emptyDir.sizeLimit'],
    [{ name: 'data', hostPath: { path: 'srv' } }, 'spec.volumes[0].hostPath.path'],
    [{ name: 'data', hostPath: { path: '' } }, 'spec.volumes[0].hostPath.path'],
    [{ name: 'data', hostPath: { path: '/srv/../etc' } }, 'spec.volumes[0].hostPath.path'],
    [{ name: 'data', hostPath: { path: '/srv', type: 'Folder' } }, 'spec.volumes[0].hostPath.type'],
  ];
  for (const [volume, path] of table) only(decode(rawPod({ volumes: [volume] })), path);
  assert.equal(
    only(decode(rawPod({ volumes: [{ name: 'd', emptyDir: { medium: 'memory' } }] })), 'spec.volumes[0].emptyDir.medium').nearest,
    'Memory',
  );
  only(decode(rawPod({ volumes: [disk, { name: 'data', hostPath: { path: '/x' } }] })), 'spec.volumes[1].name');
});

test('volumes of other kinds are refused by path', () => {
  const kinds = {
    iscsi: { targetPortal: 'x', iqn: 'y', lun: 0 },
    nfs: { server: 'x', path: '/' },
  };
  for (const [kind, source] of Object.entries(kinds))
    only(decode(rawPod({ volumes: [{ name: 'v', [kind]: source }] })), `spec.volumes[0].${kind}`);
});

test('a size limit holds on disk and in memory: nothing is told of it', () => {
  const volumes = [
    { name: 'data', emptyDir: { sizeLimit: '1Gi' } },
    { name: 'mem', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
  ];
  assert.deepEqual(paths(decode(rawPod({ volumes })).warnings), []);
});

test('a mount names a volume of the pod, and the nearest one is told', () => {
  assert.equal(only(mounted({ name: 'dat' }), `${at}.name`).nearest, 'data');
  only(mounted({}, {}, []), `${at}.name`);
  const init = rawPod({
    volumes: [disk],
    initContainers: [{ name: 'init', image: 'x:1', volumeMounts: [{ name: 'other', mountPath: '/o' }] }],
  });
  only(decode(init), 'spec.initContainers[0].volumeMounts[0].name');
});

test('where a volume is mounted, and what of it, stays inside', () => {
  const table: readonly (readonly [Raw, string])[] = [
    [{ mountPath: '' }, 'mountPath'],
    [{ mountPath: '/a:b' }, 'mountPath'],
    [{ mountPath: '/' }, 'mountPath'],
    [{ mountPath: '/./' }, 'mountPath'],
    [{ subPath: '/etc' }, 'subPath'],
    [{ subPath: 'a/../../etc' }, 'subPath'],
    [{ subPath: '..' }, 'subPath'],
    [{ subPathExpr: '/$(NAME)' }, 'subPathExpr'],
    [{ subPathExpr: '$(NAME)/../x' }, 'subPathExpr'],
    [{ subPath: 'a', subPathExpr: '$(NAME)' }, 'subPathExpr'],
    [{ mountPropagation: 'Bidirectional' }, 'mountPropagation'],
    [{ mountPropagation: 'Both' }, 'mountPropagation'],
    [{ recursiveReadOnly: 'Enabled' }, 'recursiveReadOnly'],
    [{ recursiveReadOnly: 'IfPossible', readOnly: false }, 'recursiveReadOnly'],
    [{ recursiveReadOnly: 'Enabled', readOnly: true, mountPropagation: 'HostToContainer' }, 'recursiveReadOnly'],
  ];
  for (const [mount, field] of table) only(mounted(mount), `${at}.${field}`);
  for (const right of [
    { subPath: 'a/b..c/d' },
    { subPathExpr: '$(NAME)/log' },
    { mountPath: 'relative' },
    { mountPropagation: 'HostToContainer' },
    { recursiveReadOnly: 'IfPossible', readOnly: true },
    { recursiveReadOnly: 'Enabled', readOnly: true, mountPropagation: 'None' },
    { recursiveReadOnly: 'Disabled' },
  ])
    assert.deepEqual(paths(mounted(right).problems), [], JSON.stringify(right));
  assert.deepEqual(paths(mounted({ mountPropagation: 'Bidirectional' }, { securityContext: { privileged: true } }).problems), []);
});

test('a volume of an image names one, and nothing less than all of it is mounted', () => {
  const image = (source: Raw, mount: Raw = {}) => mounted(mount, {}, [{ name: 'data', image: source }]);
  const right = pod(rawPod({ volumes: [{ name: 'data', image: { reference: 'localhost/files:1' } }] }));
  const [volume] = defaultPod(right, 'pi').spec.volumes ?? [];
  assert.deepEqual(volume?.image, { reference: 'localhost/files:1', pullPolicy: 'IfNotPresent' });
  only(image({}), 'spec.volumes[0].image.reference');
  only(image({ reference: 'x', pullPolicy: 'Sometimes' }), 'spec.volumes[0].image.pullPolicy');
  only(image({ reference: 'x' }, { subPath: 'a' }), `${at}.subPath`);
  only(image({ reference: 'x' }, { subPathExpr: '$(A)' }), `${at}.subPathExpr`);
});

test('two mounts of a container at one place are told, however it is spelled', () => {
  const twice = (second: string) =>
    mounted(
      {},
      {
        volumeMounts: [
          { name: 'data', mountPath: '/data' },
          { name: 'data', mountPath: second },
        ],
      },
    );
  for (const path of ['/data', '/data/', '//data', '/./data', 'data']) only(twice(path), 'spec.containers[0].volumeMounts[1].mountPath');
  assert.deepEqual(paths(twice('/data/inner').problems), []);
});

test('hostAliases have an address and names', () => {
  pod(rawPod({ hostAliases: [{ ip: '192.0.2.10', hostnames: ['nas', 'nas.home.example'] }, { ip: '::1' }] }));
  only(decode(rawPod({ hostAliases: [{ ip: '192.0.2.300', hostnames: ['nas'] }] })), 'spec.hostAliases[0].ip');
  only(decode(rawPod({ hostAliases: [{ ip: '192.0.2.1\n6.6.6.6 bank.example', hostnames: [] }] })), 'spec.hostAliases[0].ip');
  only(decode(rawPod({ hostAliases: [{ ip: '192.0.2.10', hostnames: ['nas', 'two words'] }] })), 'spec.hostAliases[0].hostnames[1]');
});

test('a mount without its volume names the first of many volumes, not thousands', () => {
  const volumes = Array.from({ length: 500 }, (_, i) => ({ name: `v${i}`, emptyDir: {} }));
  const [problem] = mounted({}, {}, volumes).problems;
  assert.match(problem?.expected ?? '', /^one of spec\.volumes: v0, .*, v19 and 480 more$/);
});
