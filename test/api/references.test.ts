import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import { environmentReferences, podReferences, usersOf, volumeReferences } from '../../src/api/references.ts';
import type { Container, PodSpec, Volume } from '../../src/api/v1.ts';

const refs = (map: string, secret: string): Partial<Container> => ({
  envFrom: [{ configMapRef: { name: map } }, { secretRef: { name: secret } }],
  env: [
    { name: 'A', valueFrom: { configMapKeyRef: { name: `${map}-key`, key: 'k' } } },
    { name: 'B', valueFrom: { secretKeyRef: { name: `${secret}-key`, key: 'k', optional: true } } },
    { name: 'C', valueFrom: { configMapKeyRef: { name: map, key: 'k' } } },
    { name: 'D', value: 'ConfigMap' },
  ],
});
const container = (name: string, o: Partial<Container> = {}): Container => ({ name, image: 'x:1', ...o });
const desired = (name: string, spec: Partial<PodSpec>, namespace = 'default') =>
  toDesiredPod(
    { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: { containers: [container('c')], ...spec } },
    { uid: `uid-${name}` as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '2026-01-01T00:00:00Z' },
  );

test('each object that an environment names is named once, optional ones too', () => {
  assert.deepEqual(
    environmentReferences(refs('m', 's')).map((r) => `${r.kind}/${r.name}`),
    ['ConfigMap/m', 'Secret/s', 'ConfigMap/m-key', 'Secret/s-key'],
  );
  assert.deepEqual(environmentReferences({}), []);
});

test('each object that a volume takes files from is named once, optional ones too', () => {
  const names = (volume: Omit<Volume, 'name'>): string[] => volumeReferences({ name: 'v', ...volume }).map((r) => `${r.kind}/${r.name}`);
  assert.deepEqual(names({ configMap: { name: 'm', optional: true } }), ['ConfigMap/m']);
  assert.deepEqual(names({ secret: { secretName: 's' } }), ['Secret/s']);
  const sources = [{ configMap: { name: 'm' } }, { secret: { name: 's' } }, { downwardAPI: {} }, { configMap: { name: 'm', items: [] } }];
  assert.deepEqual(names({ projected: { sources } }), ['ConfigMap/m', 'Secret/s']);
  assert.deepEqual(names({ emptyDir: {} }), []);
});

test('a pod names what its environments, its volumes and its imagePullSecrets name', () => {
  const spec = {
    containers: [container('c', { envFrom: [{ configMapRef: { name: 'm' } }] })],
    volumes: [
      { name: 'a', configMap: { name: 'm' } },
      { name: 'b', secret: { secretName: 's' } },
    ],
    imagePullSecrets: [{ name: 'pull' }, { name: 's' }],
  };
  assert.deepEqual(
    podReferences(spec).map((r) => `${r.kind}/${r.name}`),
    ['ConfigMap/m', 'Secret/s', 'Secret/pull'],
  );
  const pods = [desired('app', spec), desired('none', {})];
  for (const key of ['Secret/default/s', 'Secret/default/pull', 'ConfigMap/default/m'])
    assert.deepEqual(usersOf([key as KeyText], pods), ['uid-app'], key);
});

test('a pod uses what any of its containers names, in its own namespace and of that kind only', () => {
  const pods = [
    desired('app', { containers: [container('c', refs('m', 's'))] }),
    desired('init', { initContainers: [container('i', refs('m', 'other'))] }),
    desired('debug', { ephemeralContainers: [container('d', refs('m', 'other'))] }),
    desired('elsewhere', { containers: [container('c', refs('m', 's'))] }, 'kitchen'),
    desired('none', {}),
  ];
  const users = (...keys: string[]) => usersOf(keys as KeyText[], pods);
  assert.deepEqual(users('ConfigMap/default/m'), ['uid-app', 'uid-init', 'uid-debug']);
  assert.deepEqual(users('Secret/default/s', 'Secret/default/s-key'), ['uid-app']);
  assert.deepEqual(users('Secret/default/m', 'ConfigMap/other/m', 'Pod/default/m', 'Pod/default/app'), []);
  assert.deepEqual(users('Pod/default/app', 'ConfigMap/kitchen/m'), ['uid-elsewhere']);
  assert.deepEqual(users(), []);
});
