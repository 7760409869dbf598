/** hugetlb.<size>.max and its counters, for every page size the kernel has (`2MB`, `1GB`, `64KB`). Bytes. */
import { readdir } from 'node:fs/promises';
import type { Controller, Limit } from './controller.ts';
import { asCgroupError, CgroupError } from './error.ts';
import { checkedLimit, readIfThere, type Setting, writeChanged } from './files.ts';
import { parseFlatKeyed, parseLimit, parseNumber } from './parse.ts';

/** Limit by page size, as the file names spell it. */
export type HugetlbResources = Readonly<Record<string, Limit>>;

export interface HugetlbPages {
  readonly current: number;
  readonly max: Limit;
  /** How often an allocation failed because of the limit. */
  readonly failed: number;
}

export type HugetlbStat = Readonly<Record<string, HugetlbPages>>;

/** 2097152 → `2MB`: the kernel's spelling in file names. */
export function hugePageSize(bytes: number): string {
  if (bytes >= 2 ** 30) return `${bytes / 2 ** 30}GB`;
  return bytes >= 2 ** 20 ? `${bytes / 2 ** 20}MB` : `${bytes / 2 ** 10}KB`;
}

/** The sizes that `dir` has files for, smallest first; none: the controller is not there. */
export async function hugePageSizes(dir: string): Promise<readonly string[]> {
  const units: Readonly<Record<string, number>> = { KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30 };
  const bytes = (size: string): number => Number(size.slice(0, -2)) * (units[size.slice(-2)] ?? 0);
  const names = await readdir(dir).catch((error: unknown) => {
    throw asCgroupError(error, dir);
  });
  const sizes = names.flatMap((name) => /^hugetlb\.(\d+[KMG]B)\.max$/.exec(name)?.[1] ?? []);
  return sizes.sort((a, b) => bytes(a) - bytes(b));
}

export const hugetlb: Controller<HugetlbResources, HugetlbStat> = {
  name: 'hugetlb',

  isSet: (wanted) => Object.keys(wanted).length > 0,

  async set(dir, wanted, fs) {
    const settings = Object.entries(wanted).map(([size, limit]): Setting => {
      if (!/^\d+[KMG]B$/.test(size))
        throw new CgroupError({ code: 'EINVAL', file: `hugetlb.${size}.max`, detail: 'no page size (2MB, 1GB, …)' });
      return [`hugetlb.${size}.max`, checkedLimit(`hugetlb.${size}.max`, limit)];
    });
    return writeChanged(dir, settings, fs);
  },

  async stat(dir) {
    const of = async (size: string): Promise<readonly [string, HugetlbPages]> => {
      const [current, max, events] = await Promise.all(
        ['current', 'max', 'events'].map((name) => readIfThere(dir, `hugetlb.${size}.${name}`)),
      );
      return [
        size,
        {
          current: current === undefined ? 0 : parseNumber(current, `hugetlb.${size}.current`),
          max: max === undefined ? 'max' : parseLimit(max, `hugetlb.${size}.max`),
          failed: parseFlatKeyed(events ?? '').max ?? 0,
        },
      ];
    };
    return Object.fromEntries(await Promise.all((await hugePageSizes(dir)).map(of)));
  },
};
