/** The three verbs that every controller has. `dir` is the absolute path of a cgroup's folder. */
import type { CgroupFs } from './files.ts';

/** A number in the file's own unit, or the kernel's word for none. */
export type Limit = number | 'max';

export interface Controller<Wanted, Stat> {
  /** As `cgroup.controllers` names it. */
  readonly name: string;
  /** Is there anything in `wanted` to write? Touches no file. */
  isSet(wanted: Wanted): boolean;
  /** Writes what differs; answers the names of the files written. Throws CgroupError (file, value, code). */
  set(dir: string, wanted: Wanted, fs?: CgroupFs): Promise<readonly string[]>;
  /** Everything the kernel says; files that this kernel or this level does not have are left out. Throws CgroupError when the group is gone. */
  stat(dir: string): Promise<Stat>;
}
