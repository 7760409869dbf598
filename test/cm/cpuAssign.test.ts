import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCpuList } from '../../src/api/cpuList.ts';
import { type CpuPlace, takeCpus } from '../../src/cm/cpuAssign.ts';

/** A Pi: one socket, four cores of one thread. */
const pi: readonly CpuPlace[] = [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, node: 0 }));
/** One socket, four cores; the second threads come after all first ones. */
const threads: readonly CpuPlace[] = [0, 1, 2, 3, 4, 5, 6, 7].map((cpu) => ({ cpu, core: cpu % 4, socket: 0, node: 0 }));
/** Two sockets of four cores, numbered in turn, each with its memory. */
const sockets: readonly CpuPlace[] = [0, 1, 2, 3, 4, 5, 6, 7].map((cpu) => ({ cpu, core: cpu, socket: cpu % 2, node: cpu % 2 }));

test('whole sockets come first, then whole cores, then threads of cores in use', () => {
  const table: readonly (readonly [readonly CpuPlace[], string, number, string | undefined])[] = [
    [pi, '1-3', 1, '1'],
    [pi, '1-3', 2, '1-2'],
    [pi, '0-3', 4, '0-3'],
    [pi, '1-3', 4, undefined],
    [pi, '1-3', 0, ''],
    [pi, '', 1, undefined],
    // not on the machine
    [pi, '3,9', 2, undefined],
    [threads, '0-7', 2, '0,4'],
    [threads, '1-7', 2, '1,5'],
    // a lone thread beside a core in use before a half of another
    [threads, '1-7', 1, '4'],
    [threads, '0-7', 3, '0-1,4'],
    [threads, '1,2,4,6', 2, '2,6'],
    [threads, '1,2,4,6', 3, '2,4,6'],
    [sockets, '0-7', 4, '0,2,4,6'],
    [sockets, '1-7', 4, '1,3,5,7'],
    // the fuller socket first
    [sockets, '1-7', 2, '2,4'],
    [sockets, '1-7', 5, '1-3,5,7'],
    [sockets, '0-7', 8, '0-7'],
  ];
  for (const [topology, available, count, taken] of table) {
    const expected = taken === undefined ? undefined : parseCpuList(taken);
    assert.deepEqual(takeCpus(topology, parseCpuList(available) ?? [], count), expected, `${available} ${count}`);
  }
});
