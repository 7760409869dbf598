import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCrashBackoff } from '../../src/api/crashBackoff.ts';
import { canonicalQuantity, compareQuantities, exactQuantity, parseDuration, parseQuantity } from '../../src/api/quantity.ts';

test('a quantity is spelled as Kubernetes spells it', () => {
  const table: readonly (readonly [string | number, string])[] = [
    ['0.5', '500m'],
    [0.5, '500m'],
    ['0.1', '100m'],
    ['1.5Gi', '1536Mi'],
    ['0.1Gi', '107374182400m'],
    ['12000Ki', '12000Ki'],
    ['1024Mi', '1Gi'],
    ['1Ki', '1Ki'],
    ['0.5Ki', '512'],
    [100_000_000, '100M'],
    ['1e8', '100e6'],
    ['1e3', '1e3'],
    ['67108864', '67108864'],
    ['1000', '1k'],
    ['0', '0'],
    ['0Mi', '0'],
    ['-1500m', '-1500m'],
    ['1n', '1n'],
    ['0.1n', '1n'],
    ['1E', '1E'],
  ];
  for (const [written, spelled] of table) assert.equal(canonicalQuantity(written), spelled, String(written));
});

test('one value has one exact spelling, in whatever family it was written', () => {
  for (const same of [
    ['1Gi', '1024Mi', '1073741824', 1_073_741_824],
    ['0.5', '500m', 0.5, '5e-1', '.50'],
    ['1e3', '1k', '1000', 1000],
  ]) {
    assert.equal(new Set(same.map((q) => exactQuantity(q))).size, 1, same.join(' '));
  }
  assert.equal(exactQuantity('1500m'), '1.5');
  assert.equal(exactQuantity('-0.25'), '-0.25');
});

test('the canonical spelling keeps the value', () => {
  for (const q of ['1.5Gi', '333m', '1e-3', '7Ti', '12.345678901', '1023', '9223372036854775807']) {
    assert.equal(compareQuantities(q, canonicalQuantity(q)), 0, q);
  }
});

test('absurd exponents and lengths end quickly', () => {
  assert.equal(canonicalQuantity('1e999999999'), canonicalQuantity('9223372036854775807e0'));
  assert.equal(exactQuantity('1e-999999999'), '0.000000001');
  assert.equal(parseQuantity('9'.repeat(101)), undefined);
});

test('durations are Go durations', () => {
  const table: readonly (readonly [string, number | undefined])[] = [
    ['0', 0],
    ['10s', 10_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['100ms', 100],
    ['250us', 0.25],
    ['', undefined],
    ['10', undefined],
    ['-1s', undefined],
    ['1 s', undefined],
    ['1d', undefined],
  ];
  for (const [text, ms] of table) assert.equal(parseDuration(text), ms, text);
});

test('crash-backoff is two durations, the first not above the second', () => {
  assert.deepEqual(parseCrashBackoff('1s,1m'), { firstMs: 1000, maxMs: 60_000 });
  assert.deepEqual(parseCrashBackoff('500ms, 500ms'), { firstMs: 500, maxMs: 500 });
  for (const wrong of ['', '1s', '1m,1s', '0,1s', '10ms,1s', '1s,25h', '1s,1m,1h', '1,2', 'a,b'])
    assert.equal(parseCrashBackoff(wrong), undefined, wrong);
});
