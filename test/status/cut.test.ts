import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutText, firstBytes } from '../../src/status/cut.ts';

test('text is cut between characters, with a mark that counts', () => {
  assert.equal(cutText('abc', 3), 'abc');
  assert.equal(cutText('äöü', 5), 'ä…');
  assert.equal(cutText('äöüß', 6), 'ä…');
  assert.equal(cutText('abc', 2), '…');
});

test('the first bytes hold whole characters only, and the text itself when it is short enough', () => {
  const cases: readonly (readonly [string, number, string])[] = [
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['a€', 4, 'a€'],
    ['a€€', 6, 'a€'],
    ['a\u{1f600}', 4, 'a'],
    ['x\ufffdy', 4, 'x\ufffd'],
    ['abc', -1, ''],
  ];
  for (const [text, bytes, first] of cases) assert.equal(firstBytes(text, bytes), first);
});
