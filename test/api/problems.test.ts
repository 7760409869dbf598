import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duplicates, inFileOrder, problemText, withoutValue } from '../../src/api/problems.ts';

const problem = (path: string) => ({ path, expected: 'a string', got: '"CANARY"' });

test('a problem in one line: place, path, what was expected, what was meant', () => {
  const p = { path: 'spec.a', expected: 'a string', got: '5' };
  assert.equal(problemText(p), 'spec.a: expected a string, got 5');
  const placed = { ...p, file: 'web.yaml', line: 7, column: 3, nearest: '"5"' };
  assert.equal(problemText(placed, '/etc/podsched/'), '/etc/podsched/web.yaml:7:3: spec.a: expected a string, got 5; did you mean "5"?');
  assert.equal(problemText({ ...p, expected: 'absent: not supported yet', got: 'set' }), 'spec.a: not supported yet');
  assert.equal(problemText({ ...p, expected: 'absent: there is no scheduler', got: 'ignored' }), 'spec.a: ignored: there is no scheduler');
  assert.equal(problemText({ ...p, expected: 'nothing', got: 'it has no effect' }), 'spec.a: it has no effect');
  const at = (line?: number, column?: number) => ({ ...p, ...(line !== undefined && { line }), ...(column !== undefined && { column }) });
  assert.deepEqual(inFileOrder([at(3, 1), at(2, 9), at(2, 1), at()]), [at(), at(2, 1), at(2, 9), at(3, 1)]);
});

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
  const name = { path: 'spec.containers[0].env[3].name', expected: 'a name', got: '"PASSWORD=CANARY\\nCANARY"' };
  assert.equal(withoutValue(name, false).got, '"PASSWORD=…');
  assert.equal(withoutValue({ ...name, got: '"PASS WORD"' }, false).got, '"PASS WORD"');
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
