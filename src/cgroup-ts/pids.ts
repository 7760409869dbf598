/** pids.max, pids.current, pids.peak, pids.events: processes and threads, both count. */
import type { Controller, Limit } from './controller.ts';
import { checkedLimit, mustExist, readIfThere, type Setting, writeChanged } from './files.ts';
import { parseFlatKeyed, parseLimit, parseNumber } from './parse.ts';

export interface PidsResources {
  readonly max?: Limit;
}

export interface PidsStat {
  readonly current?: number;
  readonly peak?: number;
  readonly max?: Limit;
  /** How often a fork was refused: `max`. */
  readonly events?: Readonly<Record<string, number>>;
}

export const pids: Controller<PidsResources, PidsStat> = {
  name: 'pids',

  isSet: (wanted) => wanted.max !== undefined,

  async set(dir, wanted, fs) {
    const settings: readonly Setting[] = wanted.max === undefined ? [] : [['pids.max', checkedLimit('pids.max', wanted.max)]];
    return writeChanged(dir, settings, fs);
  },

  async stat(dir) {
    await mustExist(dir);
    const [current, peak, max, events] = await Promise.all(
      ['pids.current', 'pids.peak', 'pids.max', 'pids.events'].map((name) => readIfThere(dir, name)),
    );
    return {
      ...(current !== undefined && { current: parseNumber(current, 'pids.current') }),
      ...(peak !== undefined && { peak: parseNumber(peak, 'pids.peak') }),
      ...(max !== undefined && { max: parseLimit(max, 'pids.max') }),
      ...(events !== undefined && { events: parseFlatKeyed(events) }),
    };
  },
};
