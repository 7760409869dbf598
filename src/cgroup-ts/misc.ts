/** misc.max, misc.current, misc.capacity: scalar resources that drivers offer (encrypted-VM ids and the like). */
import type { Controller, Limit } from './controller.ts';
import { CgroupError } from './error.ts';
import { checkedLimit, mustExist, readIfThere, writeText } from './files.ts';
import { parseFlatKeyed, parseLimits } from './parse.ts';

/** Limit by the resource's name. */
export type MiscResources = Readonly<Record<string, Limit>>;

export interface MiscStat {
  readonly current: Readonly<Record<string, number>>;
  readonly max: Readonly<Record<string, Limit>>;
  /** Only in the root group: what the machine has. */
  readonly capacity?: Readonly<Record<string, number>>;
  readonly events?: Readonly<Record<string, number>>;
}

export const misc: Controller<MiscResources, MiscStat> = {
  name: 'misc',

  isSet: (wanted) => Object.keys(wanted).length > 0,

  async set(dir, wanted, fs) {
    const now = parseLimits((await readIfThere(dir, 'misc.max')) ?? '');
    let written = false;
    for (const [name, limit] of Object.entries(wanted)) {
      if (!/^\S+$/.test(name)) throw new CgroupError({ code: 'EINVAL', file: 'misc.max', value: name, detail: 'no name of a resource' });
      const value = checkedLimit('misc.max', limit);
      if (now[name] === limit) continue;
      await writeText(dir, 'misc.max', `${name} ${value}`, fs);
      written = true;
    }
    return written ? ['misc.max'] : [];
  },

  async stat(dir) {
    await mustExist(dir);
    const [current, max, capacity, events] = await Promise.all(
      ['misc.current', 'misc.max', 'misc.capacity', 'misc.events'].map((name) => readIfThere(dir, name)),
    );
    return {
      current: parseFlatKeyed(current ?? ''),
      max: parseLimits(max ?? ''),
      ...(capacity !== undefined && { capacity: parseFlatKeyed(capacity) }),
      ...(events !== undefined && { events: parseFlatKeyed(events) }),
    };
  },
};
