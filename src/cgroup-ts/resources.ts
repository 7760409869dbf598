/** All controllers' settings in one object, and the verbs over all of them. What is not mentioned is not touched. */
import type { Controller } from './controller.ts';
import { type CpuResources, cpu } from './cpu.ts';
import { type CpusetResources, cpuset } from './cpuset.ts';
import { type CgroupFs, kernelFs } from './files.ts';
import { type HugetlbResources, hugetlb } from './hugetlb.ts';
import { type IoResources, io } from './io.ts';
import { type MemoryResources, memory } from './memory.ts';
import { type MiscResources, misc } from './misc.ts';
import { type PidsResources, pids } from './pids.ts';

/** Keys inside are the kernel's file names without the controller: `memory: { 'swap.max': 0 }` is memory.swap.max. */
export interface Resources {
  readonly cpu?: CpuResources;
  readonly cpuset?: CpusetResources;
  readonly memory?: MemoryResources;
  readonly pids?: PidsResources;
  readonly io?: IoResources;
  readonly hugetlb?: HugetlbResources;
  readonly misc?: MiscResources;
}

export type ControllerName = keyof Resources;

/** In the order they are written: cpuset before anything can run, memory before what it needs to hold. */
export const controllerNames: readonly ControllerName[] = ['cpuset', 'memory', 'cpu', 'pids', 'io', 'hugetlb', 'misc'];

/** Does `resources` ask anything of this controller? */
export function isSet(resources: Resources, name: ControllerName): boolean {
  const ask = <R>(controller: Controller<R, unknown>, wanted: R | undefined): boolean => wanted !== undefined && controller.isSet(wanted);
  switch (name) {
    case 'cpu':
      return ask(cpu, resources.cpu);
    case 'cpuset':
      return ask(cpuset, resources.cpuset);
    case 'memory':
      return ask(memory, resources.memory);
    case 'pids':
      return ask(pids, resources.pids);
    case 'io':
      return ask(io, resources.io);
    case 'hugetlb':
      return ask(hugetlb, resources.hugetlb);
    case 'misc':
      return ask(misc, resources.misc);
  }
}

/** The controllers that `resources` ask something of. */
export const controllersIn = (resources: Resources): readonly ControllerName[] => controllerNames.filter((name) => isSet(resources, name));

/**
 * Writes what differs from the files in `dir`, controller by controller; stops at the first error (CgroupError with file and value).
 * Answers the names of the kernel files written.
 */
export async function setResources(dir: string, resources: Resources, fs: CgroupFs = kernelFs): Promise<readonly string[]> {
  const written: string[] = [];
  const put = async <R>(controller: Controller<R, unknown>, wanted: R | undefined): Promise<void> => {
    if (wanted !== undefined && controller.isSet(wanted)) written.push(...(await controller.set(dir, wanted, fs)));
  };
  await put(cpuset, resources.cpuset);
  await put(memory, resources.memory);
  await put(cpu, resources.cpu);
  await put(pids, resources.pids);
  await put(io, resources.io);
  await put(hugetlb, resources.hugetlb);
  await put(misc, resources.misc);
  return written;
}
