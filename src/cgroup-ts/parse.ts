/** The kernel's text forms, both ways. Nothing here reads a file. */
import { CgroupError } from './error.ts';

/** `max` or a number. `file` is only for the error. */
export function parseLimit(text: string, file = 'value'): number | 'max' {
  const word = text.trim();
  if (word === 'max') return word;
  return parseNumber(word, file);
}

/** A whole number; anything else is a CgroupError EINVAL. Beyond 2^53 the nearest number. */
export function parseNumber(text: string, file = 'value'): number {
  const word = text.trim();
  if (!/^\d+$/.test(word)) throw new CgroupError({ code: 'EINVAL', file, detail: `"${word.slice(0, 60)}" is no number` });
  return Number(word);
}

export const limitText = (value: number | 'max'): string => String(value);

/** `low 0\nhigh 3\n` → { low: 0, high: 3 }. Lines that are not "key number" are left out: kernels add kinds of lines. */
export function parseFlatKeyed(text: string): Readonly<Record<string, number>> {
  const result: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const match = /^(\S+) (\d+)$/.exec(line.trim());
    if (match?.[1] !== undefined && match[2] !== undefined) result[match[1]] = Number(match[2]);
  }
  return result;
}

/** `res_a 1\nres_b max\n` → { res_a: 1, res_b: 'max' }. */
export function parseLimits(text: string): Readonly<Record<string, number | 'max'>> {
  const result: Record<string, number | 'max'> = {};
  for (const line of text.split('\n')) {
    const match = /^(\S+) (\d+|max)$/.exec(line.trim());
    if (match?.[1] !== undefined && match[2] !== undefined) result[match[1]] = match[2] === 'max' ? 'max' : Number(match[2]);
  }
  return result;
}

/** `8:0 rbytes=1 wbytes=2` → { '8:0': { rbytes: '1', wbytes: '2' } }; words without "=" are left out. */
export function parseNestedKeyed(text: string): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const result: Record<string, Record<string, string>> = {};
  for (const line of text.split('\n')) {
    const [key, ...words] = line.trim().split(/\s+/);
    if (key === undefined || key === '') continue;
    const values: Record<string, string> = {};
    for (const word of words) {
      const at = word.indexOf('=');
      if (at > 0) values[word.slice(0, at)] = word.slice(at + 1);
    }
    result[key] = values;
  }
  return result;
}

/** Space separated words: cgroup.controllers, cgroup.subtree_control. */
export const parseWords = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== '');

/** One number a line: cgroup.procs. 0 (a process of another pid namespace) is left out: nobody may signal it. */
export const parsePids = (text: string): readonly number[] =>
  text
    .split('\n')
    .map((line) => Number(line.trim()))
    .filter((pid) => Number.isSafeInteger(pid) && pid > 0);

/** Runs of white space become one space: for comparing what a file holds with what it should hold. */
export const normalFlat = (text: string): string => text.trim().replace(/\s+/g, ' ');

const longestList = 8192; // CPUs that Linux can be built for

/** The kernel's list format: `0-3,5` → [0, 1, 2, 3, 5]; empty text → []. Strides and wrong text: CgroupError EINVAL. */
export function parseList(text: string, file = 'list'): readonly number[] {
  const result = new Set<number>();
  const refuse = (part: string): CgroupError =>
    new CgroupError({ code: 'EINVAL', file, value: text.slice(0, 60), detail: `"${part.slice(0, 60)}" is no number or range such as 0-3` });
  for (const part of text.trim() === '' ? [] : text.trim().split(',')) {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (match?.[1] === undefined) throw refuse(part);
    const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (to < from || to >= longestList) throw refuse(part);
    for (let n = from; n <= to; n++) result.add(n);
  }
  return [...result].sort((a, b) => a - b);
}

/** [5, 0, 1, 2, 3] → `0-3,5`. Two neighbours are a range as well, as the kernel prints them. */
export function printList(numbers: Iterable<number>): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  let from: number | undefined;
  for (const [i, n] of sorted.entries()) {
    from ??= n;
    if (sorted[i + 1] === n + 1) continue;
    parts.push(from === n ? String(n) : `${from}-${n}`);
    from = undefined;
  }
  return parts.join(',');
}
