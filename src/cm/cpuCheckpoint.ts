// pure
/** What is kept of the CPU manager: who has which CPUs, and what they were chosen under. What does not fit the machine of today is told, not used. */
import { cpuListText, parseCpuList } from '../api/cpuList.ts';
import type { PodUid } from '../api/objects.ts';

/** By pod and container. */
export type CpuEntries = ReadonlyMap<PodUid, ReadonlyMap<string, readonly number[]>>;

/** What a choice of CPUs holds for. */
export interface CpuGround {
  readonly online: readonly number[];
  readonly reserved: readonly number[];
}

export interface CpuCheckpoint {
  readonly policyName: 'static';
  readonly online: string;
  readonly reserved: string;
  readonly entries: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** As it is stored: lists of CPUs in the kernel's format. */
export const checkpointOf = ({ online, reserved }: CpuGround, entries: CpuEntries): CpuCheckpoint => ({
  policyName: 'static',
  online: cpuListText(online),
  reserved: cpuListText(reserved),
  entries: Object.fromEntries(
    [...entries].map(([uid, containers]) => [uid, Object.fromEntries([...containers].map(([name, cpus]) => [name, cpuListText(cpus)]))]),
  ),
});

/** What was kept, or why it does not hold any more. */
export function readCheckpoint(stored: unknown, ground: CpuGround): CpuEntries | string {
  if (!isRecord(stored) || stored.policyName !== 'static' || !isRecord(stored.entries)) return 'it cannot be understood';
  const [online, reserved] = [cpuListText(ground.online), cpuListText(ground.reserved)];
  if (stored.online !== online) return `it was made for CPUs ${String(stored.online)}, and this machine has ${online}`;
  if (stored.reserved !== reserved) return `it was made with CPUs ${String(stored.reserved)} reserved, and now ${reserved} are`;
  const free = new Set(ground.online.filter((cpu) => !ground.reserved.includes(cpu)));
  const entries = new Map<PodUid, ReadonlyMap<string, readonly number[]>>();
  for (const [uid, containers] of Object.entries(stored.entries)) {
    if (!isRecord(containers)) return 'it cannot be understood';
    const sets = new Map<string, readonly number[]>();
    for (const [name, text] of Object.entries(containers)) {
      const cpus = typeof text === 'string' ? parseCpuList(text) : undefined;
      if (cpus === undefined || cpus.length === 0) return 'it cannot be understood';
      // in a pod, an init container's CPUs go on to those after it
      if (!cpus.every((cpu) => free.has(cpu))) return `CPUs ${text} of ${name} are not there to be given, or were given twice`;
      sets.set(name, cpus);
    }
    entries.set(uid as PodUid, sets);
    for (const cpu of [...sets.values()].flat()) free.delete(cpu);
  }
  return entries;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
