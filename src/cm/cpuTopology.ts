/** Which CPUs this machine has on line, and which of them share a core, a socket, a memory node: what the kernel says under /sys. Owns nothing. */
import { readFile } from 'node:fs/promises';
import { parseCpuList } from '../api/cpuList.ts';
import type { CpuPlace } from './cpuAssign.ts';

export interface TopologyRoots {
  /** `/sys` */
  readonly sys: string;
}

/** By number. Rejects when the kernel does not say which CPUs there are; what it leaves out of a CPU's place is taken for the simplest. */
export async function readCpuTopology({ sys }: TopologyRoots): Promise<readonly CpuPlace[]> {
  const folder = `${sys}/devices/system/cpu`;
  const online = parseCpuList((await readFile(`${folder}/online`, 'utf8')).trim());
  if (online === undefined || online.length === 0) throw new Error(`${folder}/online names no CPUs`);
  const usable = await usableCpus(sys);
  const cpus = online.filter((cpu) => usable === undefined || usable.includes(cpu));
  const nodeOf = await memoryNodes(sys);
  return Promise.all(
    cpus.map(async (cpu) => {
      const topology = `${folder}/cpu${cpu}/topology`;
      // core ids count anew in each cluster of an arm64 processor: who shares the core is the same everywhere
      const siblings = (await listIn(`${topology}/core_cpus_list`)) ?? (await listIn(`${topology}/thread_siblings_list`)) ?? [cpu];
      // −1: the kernel does not know
      const socket = Math.max(0, Number((await textOf(`${topology}/physical_package_id`)) ?? 0));
      return { cpu, core: siblings[0] ?? cpu, socket, node: nodeOf.get(cpu) ?? 0 };
    }),
  );
}

/** Those of the root cgroup: a machine inside another has fewer than its kernel knows. undefined: the kernel has no such list. */
const usableCpus = async (sys: string): Promise<readonly number[] | undefined> =>
  (await listIn(`${sys}/fs/cgroup/cpuset.cpus.effective`)) ??
  (await listIn(`${sys}/fs/cgroup/cpuset/cpuset.effective_cpus`)) ??
  (await listIn(`${sys}/fs/cgroup/cpuset/cpuset.cpus`));

async function memoryNodes(sys: string): Promise<ReadonlyMap<number, number>> {
  const nodes = (await listIn(`${sys}/devices/system/node/online`)) ?? [];
  const lists = await Promise.all(
    nodes.map(async (node) => ((await listIn(`${sys}/devices/system/node/node${node}/cpulist`)) ?? []).map((cpu) => [cpu, node] as const)),
  );
  return new Map(lists.flat());
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch {
    return undefined; // a kernel without it
  }
}

/** undefined: there is no such file, or no CPU in it. */
async function listIn(path: string): Promise<readonly number[] | undefined> {
  const list = parseCpuList((await textOf(path)) ?? '');
  return list === undefined || list.length === 0 ? undefined : list;
}
