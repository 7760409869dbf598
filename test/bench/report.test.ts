import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slope, spread } from './measure.ts';
import { keepsBudget, type Row, ratio, row, table } from './report.ts';

test('a spread has the middle of what was measured, for odd and even numbers', () => {
  assert.deepEqual(spread([3, 1, 2]), { median: 2, min: 1, max: 3, n: 3 });
  assert.equal(spread([4, 1, 2, 3]).median, 2.5);
});

test('a slope is what rises on the whole, not from the first sample to the last', () => {
  assert.equal(
    slope([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
    2,
  );
  assert.equal(
    slope([
      [0, 5],
      [1, 7],
      [2, 7],
      [3, 5],
    ]),
    0,
  );
});

const base: Row = { what: 'x', unit: 'ms', value: 150 };
const cases: readonly [string, Row, number | undefined, boolean | undefined][] = [
  ['without a promise nothing is judged', { ...base, floor: 100 }, 1.5, undefined],
  ['a ratio at its limit is kept', { ...base, floor: 100, budget: { of: 'ratio', limit: 1.5 } }, 1.5, true],
  ['a ratio over its limit is missed', { ...base, floor: 99, budget: { of: 'ratio', limit: 1.5 } }, 150 / 99, false],
  ['a ratio without a floor is missed, not kept', { ...base, budget: { of: 'ratio', limit: 1.5 } }, undefined, false],
  ['a value is judged by itself', { ...base, budget: { of: 'value', limit: 200 } }, undefined, true],
  ['nothing written keeps a budget of nothing', { ...base, value: 0, budget: { of: 'value', limit: 0 } }, undefined, true],
];
for (const [claim, r, wantRatio, kept] of cases) {
  test(claim, () => {
    assert.equal(ratio(r), wantRatio);
    assert.equal(keepsBudget(r), kept);
  });
}

test('the table shows what was missed beside its budget', () => {
  const text = table([row('told', spread([300, 200, 100]), { floor: 100, budget: { of: 'ratio', limit: 1.5 } })]);
  assert.match(text, /told\s+200 ms\s+100–300, n=3\s+100\s+2\.00\s+≤ 1\.5 ×\s+MISSED/);
});
