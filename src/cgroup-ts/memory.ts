/** memory.min, low, high, max, swap.max, oom.group; current, peak, stat, events. Bytes. */
import type { Controller, Limit } from './controller.ts';
import { checkedLimit, mustExist, readIfThere, type Same, type Setting, writeChanged } from './files.ts';
import { parseFlatKeyed, parseLimit, parseNumber } from './parse.ts';

export interface MemoryResources {
  /** Never reclaimed, as long as every parent grants it too. */
  readonly min?: Limit;
  /** Reclaimed last. */
  readonly low?: Limit;
  /** Above it the group is throttled and reclaimed, never killed. */
  readonly high?: Limit;
  /** Above it the OOM killer looks into this group. The kernel rounds down to whole pages. */
  readonly max?: Limit;
  /** Swap alone (not memory and swap together, as v1 counted). */
  readonly 'swap.max'?: Limit;
  /** One out-of-memory kill ends the whole group. */
  readonly 'oom.group'?: boolean;
}

/** memory.events and memory.events.local: how often, since the group exists. */
export type MemoryEvents = Readonly<Record<'low' | 'high' | 'max' | 'oom' | 'oom_kill' | 'oom_group_kill', number>>;

export interface MemoryStat {
  /** Bytes charged to the group and its children; undefined in the root group, which counts nothing. */
  readonly current?: number;
  /** The highest `current` ever (Linux 5.19). */
  readonly peak?: number;
  readonly min?: Limit;
  readonly low?: Limit;
  readonly high?: Limit;
  readonly max?: Limit;
  readonly 'swap.current'?: number;
  readonly 'swap.max'?: Limit;
  readonly 'oom.group'?: boolean;
  readonly events?: MemoryEvents;
  /** The same, of this group alone, without its children. */
  readonly 'events.local'?: MemoryEvents;
  /** memory.stat by the kernel's keys: anon, file, inactive_file, … */
  readonly stat: Readonly<Record<string, number>>;
  /** current − inactive_file, not below 0: what cannot be given back easily. */
  readonly workingSet?: number;
}

/** Kernels that lack a counter: 0. */
export function parseMemoryEvents(text: string): MemoryEvents {
  const { low = 0, high = 0, max = 0, oom = 0, oom_kill = 0, oom_group_kill = 0 } = parseFlatKeyed(text);
  return { low, high, max, oom, oom_kill, oom_group_kill };
}

/** Memory that is not just page cache nobody looked at lately; what eviction thresholds and `top` mean by usage. */
export const workingSet = (current: number, stat: Readonly<Record<string, number>>): number =>
  Math.max(0, current - (stat.inactive_file ?? 0));

/** In the order they are written: what holds back first, what protects last. */
const limits = ['swap.max', 'high', 'max', 'low', 'min'] as const;

/** The kernel rounds down to whole pages. Pages larger than 4 kB: a limit between them is written again, which changes nothing. */
const samePages: Same = (now, wanted) => {
  const bytes = Number(wanted);
  return now.trim() === wanted || (bytes >= 4096 && Number(now) === bytes - (bytes % 4096));
};

function settings(wanted: MemoryResources): readonly Setting[] {
  const result: Setting[] = [];
  for (const key of limits) {
    const value = wanted[key];
    if (value !== undefined) result.push([`memory.${key}`, checkedLimit(`memory.${key}`, value)]);
  }
  const group = wanted['oom.group'];
  if (group !== undefined) result.push(['memory.oom.group', group ? '1' : '0']);
  return result;
}

export const memory: Controller<MemoryResources, MemoryStat> = {
  name: 'memory',

  isSet: (wanted) => wanted['oom.group'] !== undefined || limits.some((key) => wanted[key] !== undefined),

  set: async (dir, wanted, fs) => writeChanged(dir, settings(wanted), fs, samePages),

  async stat(dir) {
    await mustExist(dir);
    const names = ['current', 'peak', 'swap.current', 'oom.group', 'events', 'events.local', 'stat', ...limits];
    const texts = new Map(await Promise.all(names.map(async (name) => [name, await readIfThere(dir, `memory.${name}`)] as const)));
    const number = <K extends string>(key: K): Partial<Record<K, number>> => {
      const text = texts.get(key);
      return text === undefined ? {} : ({ [key]: parseNumber(text, `memory.${key}`) } as Record<K, number>);
    };
    const limit = <K extends string>(key: K): Partial<Record<K, Limit>> => {
      const text = texts.get(key);
      return text === undefined ? {} : ({ [key]: parseLimit(text, `memory.${key}`) } as Record<K, Limit>);
    };
    const events = texts.get('events');
    const local = texts.get('events.local');
    const group = texts.get('oom.group');
    const stat = parseFlatKeyed(texts.get('stat') ?? '');
    const current = number('current');
    return {
      ...current,
      ...number('peak'),
      ...number('swap.current'),
      ...limit('min'),
      ...limit('low'),
      ...limit('high'),
      ...limit('max'),
      ...limit('swap.max'),
      ...(group !== undefined && { 'oom.group': group.trim() === '1' }),
      ...(events !== undefined && { events: parseMemoryEvents(events) }),
      ...(local !== undefined && { 'events.local': parseMemoryEvents(local) }),
      stat,
      ...(current.current !== undefined && { workingSet: workingSet(current.current, stat) }),
    };
  },
};

/** Only what a usage report needs: two files instead of twelve. undefined when the controller is not there. */
export async function memoryUsage(dir: string): Promise<{ readonly current: number; readonly workingSet: number } | undefined> {
  const [current, stat] = await Promise.all([readIfThere(dir, 'memory.current'), readIfThere(dir, 'memory.stat')]);
  if (current === undefined) return undefined;
  const bytes = parseNumber(current, 'memory.current');
  return { current: bytes, workingSet: workingSet(bytes, parseFlatKeyed(stat ?? '')) };
}
