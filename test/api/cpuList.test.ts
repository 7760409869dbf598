import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuListText, parseCpuList } from '../../src/api/cpuList.ts';

test('a list of CPUs is read as the kernel writes it, in order and each once', () => {
  const table: readonly (readonly [string, readonly number[] | undefined])[] = [
    ['', []],
    ['0', [0]],
    ['0-3', [0, 1, 2, 3]],
    ['2,0-1,8', [0, 1, 2, 8]],
    ['1,1-2', [1, 2]],
    ['3-3', [3]],
    ['3-1', undefined],
    ['0-', undefined],
    ['-1', undefined],
    ['a', undefined],
    ['0, 1', undefined],
    ['0,,1', undefined],
    ['0-99999', undefined],
    ['4294967296', undefined],
  ];
  for (const [text, cpus] of table) assert.deepEqual(parseCpuList(text), cpus, text);
});

test('a list is written as short as it can be, and reads back', () => {
  const table: readonly (readonly [readonly number[], string])[] = [
    [[], ''],
    [[5], '5'],
    [[3, 1, 2], '1-3'],
    [[0, 1, 3, 5, 6], '0-1,3,5-6'],
    [[2, 2], '2'],
  ];
  for (const [cpus, text] of table) {
    assert.equal(cpuListText(cpus), text);
    assert.deepEqual(
      parseCpuList(text),
      [...new Set(cpus)].sort((a, b) => a - b),
    );
  }
});
