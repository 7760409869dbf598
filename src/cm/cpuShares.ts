// pure
/** Who gets which CPUs: the sets of one pod beside those of all others. Mirrors kubelet v1.32 cm/cpumanager/policy_static.go (facts 11.7). */
import type { CpuClaim } from '../api/exclusiveCpus.ts';
import type { PodUid } from '../api/objects.ts';
import type { Pod } from '../api/v1.ts';
import type { RuntimePodStatus } from '../container/words.ts';
import { type CpuPlace, takeCpus } from './cpuAssign.ts';
import type { CpuEntries, CpuGround } from './cpuCheckpoint.ts';

/** The sets of a pod's containers, or at which of them the CPUs ran out. */
export type CpuShare =
  | { readonly sets: ReadonlyMap<string, readonly number[]> }
  | { readonly container: string; readonly requested: number; readonly available: number };

export interface ShareInputs extends CpuGround {
  readonly topology: readonly CpuPlace[];
  readonly entries: CpuEntries;
  /** CPUs that the container runs on by itself now, which it keeps when they can be its own. */
  readonly runsOn?: (container: string) => readonly number[] | undefined;
}

/** CPUs that are nobody's own, so that all others run on them; the reserved ones always are. */
export function sharedCpus({ online }: CpuGround, entries: CpuEntries): readonly number[] {
  const own = new Set([...entries.values()].flatMap((sets) => [...sets.values()].flat()));
  return online.filter((cpu) => !own.has(cpu));
}

/** All containers of a pod at once, in order. Who has CPUs of the right number keeps them. */
export function shareOf(uid: PodUid, claims: readonly CpuClaim[], o: ShareInputs): CpuShare {
  const others = new Map([...o.entries].filter(([other]) => other !== uid));
  const before = o.entries.get(uid);
  const free = new Set(sharedCpus(o, others).filter((cpu) => !o.reserved.includes(cpu)));
  const lent = new Set<number>();
  const sets = new Map<string, readonly number[]>();
  // what is kept is nobody else's choice
  for (const { container, cpus } of claims) {
    const own = before?.get(container);
    if (own?.length === cpus && own.every((cpu) => free.has(cpu))) sets.set(container, own);
  }
  const kept = new Set([...sets.values()].flat());
  const keptToTheEnd = new Set(claims.filter((c) => !c.lends).flatMap((c) => sets.get(c.container) ?? []));
  for (const { container, cpus, lends } of claims) {
    const [again, fresh] = [minus(lent, keptToTheEnd), minus(free, kept)];
    const given = sets.get(container) ?? choose(o.topology, cpus, again, fresh, o.runsOn?.(container));
    if (given === undefined) return { container, requested: cpus, available: new Set([...again, ...fresh]).size };
    sets.set(container, given);
    for (const cpu of given) {
      free.delete(cpu);
      if (lends) lent.add(cpu);
      else lent.delete(cpu);
    }
  }
  return { sets };
}

function choose(
  topology: readonly CpuPlace[],
  count: number,
  lent: ReadonlySet<number>,
  free: ReadonlySet<number>,
  runsOn: readonly number[] | undefined,
): readonly number[] | undefined {
  if (runsOn?.length === count && runsOn.every((cpu) => lent.has(cpu) || free.has(cpu))) return runsOn;
  const again = takeCpus(topology, lent, Math.min(count, lent.size)) ?? [];
  const fresh = takeCpus(topology, minus(free, lent), count - again.length);
  return fresh === undefined ? undefined : [...again, ...fresh].sort((a, b) => a - b);
}

/** It has ended and is not started again in this instance: its CPUs are free. A plain init container runs again in a new sandbox. */
export function isOver({ spec }: Pick<Pod, 'spec'>, container: string, status: RuntimePodStatus | undefined): boolean {
  const newest = status?.containers.find((c) => c.name === container);
  if (newest?.state !== 'exited' || spec.containers.every((c) => c.name !== container)) return false;
  return spec.restartPolicy === 'Never' || (spec.restartPolicy === 'OnFailure' && newest.exitCode === 0);
}

const minus = (cpus: ReadonlySet<number>, without: ReadonlySet<number>): ReadonlySet<number> =>
  without.size === 0 ? cpus : new Set([...cpus].filter((cpu) => !without.has(cpu)));
