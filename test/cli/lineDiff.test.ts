import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unifiedDiff } from '../../src/cli/lineDiff.ts';

const names = { before: 'a', after: 'b' };
const lines = (...all: readonly (string | number)[]): string => all.map((l) => `${l}\n`).join('');

test('no difference is no text', () => assert.equal(unifiedDiff('a\n', 'a\n', names), ''));

test('a changed line stands in three lines of context', () => {
  const before = lines(1, 2, 3, 4, 5, 6, 7, 8, 9);
  assert.equal(
    unifiedDiff(before, before.replace('5', 'five'), names),
    lines('--- a', '+++ b', '@@ -2,7 +2,7 @@', ' 2', ' 3', ' 4', '-5', '+five', ' 6', ' 7', ' 8'),
  );
});

test('what is new, what is gone, and what is far apart', () => {
  assert.equal(unifiedDiff('', 'x\ny\n', names), lines('--- a', '+++ b', '@@ -0,0 +1,2 @@', '+x', '+y'));
  assert.equal(unifiedDiff('x\n', '', names), lines('--- a', '+++ b', '@@ -1 +0,0 @@', '-x'));
  const many = Array.from({ length: 30 }, (_, i) => i);
  const text = unifiedDiff(lines(...many), lines('new', ...many.slice(0, 29)), names);
  assert.equal(text.match(/^@@/gm)?.length, 2);
});

/** As patch reads it: by the numbers in the heads. */
function patched(before: readonly string[], diff: string): string[] {
  const out: string[] = [];
  let at = 0;
  for (const hunk of diff.split(/^@@ /m).slice(1)) {
    const [, start = '', count = '1'] = /^-(\d+)(?:,(\d+))? /.exec(hunk) ?? [];
    const begins = count === '0' ? Number(start) : Number(start) - 1;
    out.push(...before.slice(at, begins));
    at = begins;
    for (const line of hunk.split('\n').slice(1, -1)) {
      if (line[0] !== '+') assert.equal(line.slice(1), before[at++], 'context and removed lines are where the head says');
      if (line[0] !== '-') out.push(line.slice(1));
    }
  }
  return [...out, ...before.slice(at)];
}

test('whoever applies it gets the second text', () => {
  let seed = 7;
  const random = (n: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % n;
  };
  for (let i = 0; i < 200; i++) {
    const before = Array.from({ length: random(30) }, () => `line ${random(6)}`);
    const after = before.flatMap((l) => (random(4) === 0 ? [] : random(4) === 0 ? [l, `new ${random(3)}`] : [l]));
    assert.deepEqual(patched(before, unifiedDiff(lines(...before), lines(...after), names)), after);
  }
});
