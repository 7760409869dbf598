import assert from 'node:assert/strict';
import { test } from 'node:test';
import { immutableProblem } from '../../src/api/immutable.ts';
import type { ApiObject } from '../../src/api/objects.ts';
import { rawPod } from './objects.ts';

const map = (o: object): ApiObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, ...o }) as ApiObject;
const secret = (o: object): ApiObject => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, ...o }) as ApiObject;
const immutable = true;

test('an immutable object keeps its content, and stays immutable', () => {
  const table: readonly (readonly [ApiObject, ApiObject, string, string])[] = [
    [map({ immutable, data: { a: '1' } }), map({ immutable, data: { a: '2' } }), 'data[a]', 'another value'],
    [map({ immutable, data: { a: '1' } }), map({ immutable, data: { a: '1', b: '' } }), 'data[b]', 'a new key'],
    [map({ immutable, data: { a: '1' } }), map({ immutable }), 'data[a]', 'nothing'],
    [map({ immutable, data: { a: '1' } }), map({ data: { a: '1' } }), 'immutable', 'nothing'],
    [map({ immutable, data: { a: '1' } }), map({ immutable: false, data: { a: '1' } }), 'immutable', 'false'],
    [map({ immutable, data: { a: 'AA==' } }), map({ immutable, binaryData: { a: 'AA==' } }), 'binaryData[a]', 'another value'],
    [secret({ immutable, data: { a: 'eA==' } }), secret({ immutable, stringData: { a: 'y' } }), 'stringData[a]', 'another value'],
    [secret({ immutable }), secret({ immutable, type: 'kubernetes.io/tls' }), 'type', 'another type'],
  ];
  for (const [before, after, path, got] of table) {
    const problem = immutableProblem(before, after);
    assert.deepEqual([problem?.path, problem?.got], [path, got]);
    assert.match(problem?.expected ?? '', /the object is immutable; remove it and add it again/);
  }
});

test('labels of an immutable object may change, the word may come, and a Secret may be written another way', () => {
  const table: readonly (readonly [ApiObject, ApiObject])[] = [
    [map({ immutable, data: { a: '1' } }), map({ immutable, data: { a: '1' }, metadata: { name: 'c', labels: { x: 'y' } } })],
    [map({ data: { a: '1' } }), map({ immutable, data: { a: '2' } })],
    [map({ immutable: false, data: { a: '1' } }), map({ data: { a: '2' } })],
    [secret({ immutable, data: { a: 'eA==' } }), secret({ immutable, stringData: { a: 'x' } })],
    [secret({ immutable, data: { a: 'eQ==' }, stringData: { a: 'x' } }), secret({ immutable, type: 'Opaque', data: { a: 'eA==' } })],
    [rawPod() as unknown as ApiObject, rawPod({ hostNetwork: true }) as unknown as ApiObject],
  ];
  for (const [before, after] of table) assert.equal(immutableProblem(before, after), undefined);
});
