/** cpu.weight, cpu.max, cpu.max.burst, cpu.idle, cpu.stat. Times in microseconds. */
import type { Controller, Limit } from './controller.ts';
import { CgroupError } from './error.ts';
import { checkedLimit, mustExist, readIfThere, type Setting, writeChanged } from './files.ts';
import { parseFlatKeyed, parseLimit, parseNumber } from './parse.ts';

export const defaultPeriodUsec = 100_000;

/** cpu.max: `quota` microseconds of processor time in each `period` (over all processors together). */
export interface CpuMax {
  readonly quota: Limit;
  /** Kept as it is in the file when left out (100 ms in a new group). */
  readonly period?: number;
}

export interface CpuResources {
  /** 1 … 10000; 100 is what a new group has. */
  readonly weight?: number;
  readonly max?: CpuMax;
  /** How much unused quota may be saved up. */
  readonly 'max.burst'?: number;
  /** SCHED_IDLE for the whole group; the weight counts for nothing then. */
  readonly idle?: boolean;
}

export interface CpuStat {
  readonly weight?: number;
  readonly max?: Required<CpuMax>;
  readonly 'max.burst'?: number;
  /** cpu.stat by the kernel's keys: usage_usec, user_usec, system_usec, nr_periods, nr_throttled, throttled_usec, … */
  readonly stat: Readonly<Record<string, number>>;
}

/** `50000 100000` or `max 100000`. */
export function parseCpuMax(text: string, file = 'cpu.max'): Required<CpuMax> {
  const [quota = '', period] = text.trim().split(/\s+/);
  return { quota: parseLimit(quota, file), period: period === undefined ? defaultPeriodUsec : parseNumber(period, file) };
}

/** What goes into cpu.max. The kernel takes periods from 1 ms to 1 s and quotas from 1 ms. */
export function printCpuMax(max: CpuMax): string {
  const quota = checkedLimit('cpu.max', max.quota, 1000);
  return max.period === undefined ? quota : `${quota} ${checkedLimit('cpu.max', max.period, 1000, 1_000_000)}`;
}

function settings(wanted: CpuResources): readonly Setting[] {
  const result: Setting[] = [];
  if (wanted.idle !== undefined) result.push(['cpu.idle', wanted.idle ? '1' : '0']);
  if (wanted.weight !== undefined) result.push(['cpu.weight', checkedLimit('cpu.weight', wanted.weight, 1, 10_000)]);
  if (wanted.max !== undefined) result.push(['cpu.max', printCpuMax(wanted.max)]);
  if (wanted['max.burst'] !== undefined) result.push(['cpu.max.burst', checkedLimit('cpu.max.burst', wanted['max.burst'])]);
  return result;
}

export const cpu: Controller<CpuResources, CpuStat> = {
  name: 'cpu',

  isSet: (wanted) => [wanted.weight, wanted.max, wanted['max.burst'], wanted.idle].some((value) => value !== undefined),

  async set(dir, wanted, fs) {
    let max = wanted.max;
    if (max !== undefined && max.period === undefined) {
      // the file answers with a period always: complete ours, so that it can be compared and an equal value is not written
      const now = await readIfThere(dir, 'cpu.max');
      max = { quota: max.quota, period: now === undefined ? defaultPeriodUsec : parseCpuMax(now).period };
    }
    const whole = settings(max === undefined ? wanted : { ...wanted, max });
    const burst = whole.filter(([name]) => name === 'cpu.max.burst');
    const others = whole.filter(([name]) => name !== 'cpu.max.burst');
    // the burst may never be larger than the quota: a falling one goes first
    const now = burst.length > 0 ? await readIfThere(dir, 'cpu.max.burst') : undefined;
    const falls = now !== undefined && (wanted['max.burst'] ?? 0) < parseNumber(now, 'cpu.max.burst');
    try {
      return await writeChanged(dir, falls ? [...burst, ...others] : [...others, ...burst], fs);
    } catch (error) {
      throw withBudgetHint(error);
    }
  },

  async stat(dir) {
    await mustExist(dir);
    const [weight, max, burst, stat] = await Promise.all(
      ['cpu.weight', 'cpu.max', 'cpu.max.burst', 'cpu.stat'].map((name) => readIfThere(dir, name)),
    );
    return {
      ...(weight !== undefined && { weight: parseNumber(weight, 'cpu.weight') }),
      ...(max !== undefined && { max: parseCpuMax(max) }),
      ...(burst !== undefined && { 'max.burst': parseNumber(burst, 'cpu.max.burst') }),
      stat: parseFlatKeyed(stat ?? ''),
    };
  },
};

/** EINVAL of cpu.max.burst has one usual cause that the code does not say. */
function withBudgetHint(error: unknown): unknown {
  if (!(error instanceof CgroupError) || error.code !== 'EINVAL' || !error.file.endsWith('cpu.max.burst') || error.cause === undefined)
    return error;
  const detail = 'the kernel does not take this value (a burst may not be larger than the quota of cpu.max)';
  return new CgroupError({ code: error.code, file: error.file, value: error.value, detail, cause: error.cause });
}
