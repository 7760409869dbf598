import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid, Source } from '../../src/api/objects.ts';
import { listObjects } from '../../src/operations/objects.ts';
import { started } from '../config/builders.ts';

const objects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: site, labels: {a: b}, annotations: {last: "the-value"}}
data: {b: "the-value", a: "the-value"}
binaryData: {logo: dGhlLXZhbHVl}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: other}
immutable: true
data: {pw: dGhlLXZhbHVl}
stringData: {pw: the-value, user: the-value}
`;
/** It names `site` in a volume and an environment, and `db` to pull with. */
const user = (name: string, namespace: string, source: Source = 'file:web.yaml'): DesiredPod =>
  toDesiredPod(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: {
        volumes: [{ name: 'v', configMap: { name: 'site' } }],
        imagePullSecrets: [{ name: 'db' }],
        containers: [{ name: 'c', image: 'busybox:1', envFrom: [{ configMapRef: { name: 'site' } }] }],
      },
    },
    { uid: name as PodUid, source, nodeName: 'pi', firstSeen: '' },
  );

test('accepted ConfigMaps and Secrets are listed with keys and users, and without a value', async () => {
  const r = await started({ 'o.yaml': objects });
  const pods = [user('web', 'default'), user('api', 'default'), user('x', 'other')];
  const listed = listObjects(r.config.view(), (key) => r.config.object(key), pods);
  const apiVersion = 'podsched.dev/v1';
  const creationTimestamp = '2026-01-01T00:00:00Z';
  assert.deepEqual(
    listed.map(({ revision, ...rest }) => ({ ...rest, revision: /^[0-9a-f]{12}$/.test(revision) })),
    [
      {
        ...{ apiVersion, kind: 'ConfigMap', metadata: { namespace: 'default', name: 'site', creationTimestamp } },
        ...{ immutable: false, keys: ['a', 'b', 'logo'], source: 'file:o.yaml', usedBy: ['api', 'web'], revision: true },
      },
      {
        ...{ apiVersion, kind: 'Secret', metadata: { namespace: 'other', name: 'db', creationTimestamp }, type: 'Opaque' },
        ...{ immutable: true, keys: ['pw', 'user'], source: 'file:o.yaml', usedBy: ['x'], revision: true },
      },
    ],
  );
  const said = JSON.stringify(listed);
  assert.ok(!said.includes('the-value') && !said.includes('dGhlLXZhbHVl'));
});

test('a pod from another kind of source does not see it, so it is no user', async () => {
  const r = await started({ 'o.yaml': objects });
  const pods = [user('web', 'default', 'mqtt:node')];
  const listed = listObjects(r.config.view(), (key) => r.config.object(key), pods);
  assert.deepEqual(
    listed.map((o) => o.usedBy),
    [[], []],
  );
});

test('what was refused is not listed; of what was changed wrongly, the last good is', async () => {
  const r = await started({ 'o.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\ndata: {port: 8080}\n' });
  const list = () => listObjects(r.config.view(), (key) => r.config.object(key), []);
  assert.deepEqual(list(), []);
  r.folder.set({ 'o.yaml': objects });
  await r.config.readFolder();
  r.folder.set({ 'o.yaml': objects.replace('b: "the-value"', 'b: 5') });
  await r.config.readFolder();
  assert.deepEqual(
    list().map((o) => o.metadata.name),
    ['site', 'db'],
  );
});
