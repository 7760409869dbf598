import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject } from '../../src/api/objects.ts';
import type { Secret } from '../../src/api/v1.ts';
import { withoutSecrets } from '../../src/kuberuntime/envObjects.ts';
import { SecretMemory } from '../../src/kuberuntime/secretMemory.ts';

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
    return withoutSecrets('first-value first-value-bytes second-value', { configMaps: new Map(), secrets });
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
