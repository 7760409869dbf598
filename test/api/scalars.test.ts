import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeScalar, shown } from '../../src/api/scalars.ts';

const int32 = { kind: 'int', min: -(2 ** 31), max: 2 ** 31 - 1 } as const;

test('a mode is octal: decimal look-alikes and texts are told so', () => {
  const mode = (raw: unknown) => decodeScalar(raw, int32, { path: 'spec.volumes[0].configMap.defaultMode' }, false);
  assert.deepEqual(mode(0o644), { value: 420 });
  const decimal = mode(644);
  assert.ok('problem' in decimal);
  assert.equal(decimal.problem.nearest, '0644');
  const text = mode('0999');
  assert.ok('problem' in text);
  assert.equal(text.problem.expected, 'an octal mode from 0 to 0777, without quotes');
});

test('a port is a whole number or a name; base64 may have line breaks', () => {
  const at = { path: 'x' };
  assert.deepEqual(decodeScalar(80, { kind: 'intOrString' }, at, false), { value: 80 });
  assert.deepEqual(decodeScalar('http', { kind: 'intOrString' }, at, false), { value: 'http' });
  assert.ok('problem' in decodeScalar(1.5, { kind: 'intOrString' }, at, false));
  assert.deepEqual(decodeScalar('aGVs\nbG8=\r\n', { kind: 'bytes' }, at, false), { value: 'aGVsbG8=' });
  for (const wrong of ['aGVsbG8', 'a===', 'ü', 3]) assert.ok('problem' in decodeScalar(wrong, { kind: 'bytes' }, at, false), String(wrong));
});

test('values are shown short, lists and mappings only by kind', () => {
  assert.equal(shown('x'.repeat(100)).length, 63);
  assert.deepEqual(
    [shown([1]), shown({ a: 1 }), shown(null), shown(undefined), shown(1.5), shown(false)],
    ['a list', 'a mapping', 'null', 'nothing', '1.5', 'false'],
  );
});
