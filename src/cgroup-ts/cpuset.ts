/** cpuset.cpus and cpuset.mems, in the kernel's list format (`0-3,5`). */
import type { Controller } from './controller.ts';
import { mustExist, readIfThere, type Setting, writeChanged } from './files.ts';
import { parseList, printList } from './parse.ts';

export interface CpusetResources {
  /** `0-3,5`; the empty text takes the setting back (the parent's CPUs count then). */
  readonly cpus?: string;
  /** Memory nodes. */
  readonly mems?: string;
}

export interface CpusetStat {
  /** What was asked for; empty: nothing. */
  readonly cpus?: string;
  readonly mems?: string;
  /** What really counts. */
  readonly 'cpus.effective'?: string;
  readonly 'mems.effective'?: string;
}

function settings(wanted: CpusetResources): readonly Setting[] {
  const result: Setting[] = [];
  // a lone line end is how the empty list is written: write(2) of nothing does not reach the kernel
  const put = (name: string, list: string): number => result.push([name, printList(parseList(list, name)) || '\n']);
  if (wanted.mems !== undefined) put('cpuset.mems', wanted.mems);
  if (wanted.cpus !== undefined) put('cpuset.cpus', wanted.cpus);
  return result;
}

export const cpuset: Controller<CpusetResources, CpusetStat> = {
  name: 'cpuset',

  isSet: (wanted) => wanted.cpus !== undefined || wanted.mems !== undefined,

  set: async (dir, wanted, fs) => writeChanged(dir, settings(wanted), fs),

  async stat(dir) {
    await mustExist(dir);
    const [cpus, mems, cpusEffective, memsEffective] = await Promise.all(
      ['cpuset.cpus', 'cpuset.mems', 'cpuset.cpus.effective', 'cpuset.mems.effective'].map((name) => readIfThere(dir, name)),
    );
    return {
      ...(cpus !== undefined && { cpus }),
      ...(mems !== undefined && { mems }),
      ...(cpusEffective !== undefined && { 'cpus.effective': cpusEffective }),
      ...(memsEffective !== undefined && { 'mems.effective': memsEffective }),
    };
  },
};
