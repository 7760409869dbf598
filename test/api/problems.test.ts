import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duplicates, withoutValue } from '../../src/api/problems.ts';

const problem = (path: string) => ({ path, expected: 'a string', got: '"CANARY"' });

test('values of environment variables are never shown, whatever is wrong with them', () => {
  for (const path of ['spec.containers[0].env[2].value', 'spec.initContainers[1].env[0]', 'spec.containers[0].env']) {
    assert.equal(withoutValue(problem(path), false).got, 'a value that is not shown', path);
  }
});

test('the data of Secrets and ConfigMaps is not shown, and everything else is', () => {
  for (const path of ['data[p]', 'stringData', 'items[0].data.key', 'binaryData[x]']) {
    assert.equal(withoutValue(problem(path), true).got, 'a value that is not shown', path);
    assert.equal(withoutValue(problem(path), false).got, '"CANARY"', path);
  }
  assert.equal(withoutValue(problem('spec.containers[0].image'), true).got, '"CANARY"');
});

test('the second of a name is a problem that names the first', () => {
  const found = duplicates([
    { path: 'c[0].name', name: 'a' },
    { path: 'c[1].name', name: 'b' },
    { path: 'c[2].name', name: 'a' },
  ]);
  assert.deepEqual(
    found.map((p) => [p.path, p.expected]),
    [['c[2].name', 'another name than c[0].name has']],
  );
});
