/** Looks at a cgroup that change nothing, and the one write that must not wait for systemd. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CgroupFs, type Driver, setResources } from 'cgroup-ts';
import { isNowhere } from '../world/errno.ts';
import type { CgroupName } from './names.ts';
import { type Limits, wholePages } from './podLimits.ts';

/** Those that limits of ours need. Others may come and go with what systemd and the runtime do. */
const needed: readonly string[] = ['cpu', 'memory', 'pids', 'hugetlb'];

/** It is there and was handed what it needs of these controllers: one that lacks some is made again, as the kubelet does. */
export async function isWhole(driver: Driver, name: CgroupName, controllers: ReadonlySet<string>): Promise<boolean> {
  try {
    const words = (await readFile(join(driver.path(name), 'cgroup.controllers'), 'utf8')).trim().split(' ');
    return needed.every((controller) => !controllers.has(controller) || words.includes(controller));
  } catch (e) {
    if (isNowhere(e)) return false;
    throw e;
  }
}

const nothing = async (): Promise<void> => {};
const withoutWriting: CgroupFs = { write: nothing, mkdir: nothing, rmdir: nothing };

/** Something else stands in its files. */
export const differs = async (driver: Driver, name: CgroupName, limits: Limits): Promise<boolean> =>
  (await setResources(driver.path(name), limits, withoutWriting)).length > 0;

/** What the group has of memory now is all it gets without waiting (`memory.high`). Rejects when the group is gone. */
export async function holdMemory(driver: Driver, name: CgroupName, pageBytes: number): Promise<void> {
  const dir = driver.path(name);
  const current = Number((await readFile(join(dir, 'memory.current'), 'utf8')).trim());
  await setResources(dir, { memory: { high: wholePages(current, pageBytes) } });
}
