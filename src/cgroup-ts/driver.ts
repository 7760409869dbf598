/**
 * What both drivers promise. A name is a list of components without any driver's notation: `['kubepods', 'burstable', 'pod1234-ab']`.
 * The cgroupfs driver makes `kubepods/burstable/pod1234-ab` of it, the systemd driver
 * `kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_ab.slice`.
 */
import { CgroupError } from './error.ts';
import type { EnableResult } from './hierarchy.ts';
import type { Resources } from './resources.ts';

export type CgroupName = readonly string[];

export interface Driver {
  readonly kind: 'cgroupfs' | 'systemd';
  /**
   * Creates the group, its missing parents first (those without limits), enables every available controller down to it, and writes
   * `resources`. A group that exists is kept and gets the resources. Says which controllers could not be enabled.
   */
  create(name: CgroupName, resources?: Resources): Promise<EnableResult>;
  /** Writes `resources`; what they do not mention stays. Answers the kernel files that were written (none: nothing differed). */
  update(name: CgroupName, resources: Resources): Promise<readonly string[]>;
  /**
   * Kills what runs in the group and below, and removes it with its children. A group that is not there is no error. `kill: false`: nothing is
   * killed, and a group that somebody lives in is refused (EBUSY).
   */
  remove(name: CgroupName, options?: { readonly kill?: boolean }): Promise<void>;
  /** Absolute path of the group's folder; touches nothing. */
  path(name: CgroupName): string;
  /** Path below the cgroup root with a leading slash, as runtimes want it for `cgroup_parent`: `/kubepods.slice/…`. */
  cgroupParent(name: CgroupName): string;
  /** Is the folder there? */
  exists(name: CgroupName): Promise<boolean>;
  /**
   * Full names of the direct children, sorted; empty when the group is not there. The systemd driver tells slices only: a runtime's scopes
   * have no name here.
   */
  list(name: CgroupName): Promise<readonly CgroupName[]>;
  /** Every pid in the group and below (0, a process of another pid namespace, left out). */
  procs(name: CgroupName): Promise<readonly number[]>;
}

/** Refuses what could leave the tree or cannot be told apart in a slice's name. Throws CgroupError EINVAL. */
export function checkName(name: CgroupName, forSlices: boolean): void {
  for (const part of name) {
    const bad =
      part === '' || part === '.' || part === '..' || /[/\0\n]/.test(part) || part.length > 255 || part.startsWith('cgroup.')
        ? 'is no name of a cgroup'
        : forSlices && /[^A-Za-z0-9:.-]/.test(part)
          ? 'has characters that a slice name cannot carry (letters, digits, ":", "." and "-" are allowed)'
          : undefined;
    if (bad !== undefined) throw new CgroupError({ code: 'EINVAL', file: name.join('/'), detail: `"${part}" ${bad}` });
  }
}
