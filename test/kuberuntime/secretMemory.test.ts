import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject } from '../../src/api/objects.ts';
import type { ObjectLookup } from '../../src/api/references.ts';
import type { Secret } from '../../src/api/v1.ts';
import { repeatableSecrets, withoutSecrets } from '../../src/kuberuntime/envObjects.ts';
import { SecretMemory } from '../../src/kuberuntime/secretMemory.ts';
import { container, desiredPod } from './house.ts';

const secret = (value: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db' },
  data: { OLD: btoa(`${value}-bytes`) },
  stringData: { PW: value },
});

test('the last values of a Secret are hidden, also when it is gone, and reading it again pushes none out', () => {
  let now: ApiObject | undefined = secret('first-value');
  const memory = new SecretMemory(() => now);
  const look = (): string => {
    const found = memory.lookup('Secret', 'default', 'db', 'file:db.yaml');
    const secrets = new Map(found?.kind === 'Secret' ? [['db', found]] : []);
    return withoutSecrets('first-value first-value-bytes second-value', { secrets });
  };
  assert.equal(look(), '… … second-value');
  now = secret('second-value');
  for (let i = 0; i < 20; i++) {
    now = secret('second-value');
    assert.equal(look(), '… … …');
  }
  now = undefined;
  assert.equal(look(), '… … …');
});

test('one that nobody changed is the very same object, and what is not there is not there', () => {
  const one = secret('value');
  const memory = new SecretMemory((kind, _, name) => (kind === 'Secret' && name === 'db' ? one : undefined));
  assert.equal(memory.lookup('Secret', 'default', 'db', 'file:db.yaml'), one);
  assert.equal(memory.lookup('Secret', 'default', 'other', 'file:db.yaml'), undefined);
  assert.equal(memory.lookup('ConfigMap', 'default', 'db', 'file:db.yaml'), undefined);
});

test('a container may repeat the Secrets of its environment and of the volumes that it mounts, and no others', () => {
  const volumes = [
    { name: 'own', secret: { secretName: 'mounted' } },
    { name: 'all', projected: { sources: [{ secret: { name: 'projected' } }] } },
    { name: 'foreign', secret: { secretName: 'foreign' } },
  ];
  const mounting = container('c', {
    envFrom: [{ secretRef: { name: 'env' } }],
    volumeMounts: ['own', 'all'].map((name) => ({ name, mountPath: `/${name}` })),
  });
  const desired = desiredPod({ containers: [mounting], volumes });
  const lookup: ObjectLookup = (_, __, name) => ({ ...secret(`${name} value`), metadata: { name } });
  assert.deepEqual([...repeatableSecrets(lookup, desired, mounting).secrets.keys()], ['env', 'mounted', 'projected']);
  const message = withoutSecrets('cat: mounted value, foreign value', repeatableSecrets(lookup, desired, mounting));
  assert.equal(message, 'cat: …, foreign value');
});

test('of a value of several lines a single one is hidden too, unless it may be an ordinary word', () => {
  const secrets = new Map([['db', { ...secret(''), stringData: { key: '-----BEGIN\nc2VjcmV0LWtleQ==\nyes\n' } }]]);
  assert.equal(withoutSecrets('yes: cannot read c2VjcmV0LWtleQ==', { secrets }), 'yes: cannot read …');
});
