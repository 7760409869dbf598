// pure
/** Which boots a run has, and what happens in each: one machine through its days, since a boot costs a minute. */

export interface BootPlan {
  readonly name: string;
  /** Suites by name, in order (guest/main.ts has them). */
  readonly suites: readonly string[];
  readonly memoryMb: number;
  /** More words for the kernel. */
  readonly kernel?: string;
  /** Ended as by a power cut, not by the guest. */
  readonly cut?: true;
  readonly minutes: number;
}

/** What every run needs before it can ask for anything else. */
const always: readonly string[] = ['install'];

export const boots: readonly BootPlan[] = [
  {
    name: 'first',
    suites: ['install', 'cgroup-ts', 'cgroups', 'limits', 'budgets', 'devices', 'upgrade', 'before-reboot'],
    memoryMb: 2048,
    minutes: 17,
    cut: true,
  },
  { name: 'again', suites: ['reboot', 'eviction', 'disk', 'systemd-driver'], memoryMb: 2048, minutes: 12 },
  { name: 'no-memory-cgroup', suites: ['no-memory'], memoryMb: 1024, kernel: 'cgroup_disable=memory', minutes: 6 },
];

/** What a suite finds made by another one. */
const needs: Readonly<Record<string, readonly string[]>> = { reboot: ['before-reboot'] };

/**
 * The boots of a run: all, or those with a suite that one of `only` is part of, with what these need. `installed`: the machine has the package
 * already (a kept layer of an earlier run).
 */
export function planned(only: readonly string[], installed: boolean): BootPlan[] {
  const all = boots.flatMap((b) => b.suites);
  const chosen = new Set(only.length === 0 ? all : all.filter((suite) => only.some((word) => suite.includes(word))));
  for (const suite of [...chosen]) for (const needed of needs[suite] ?? []) chosen.add(needed);
  if (chosen.size === 0) return [];
  if (!installed) for (const suite of always) chosen.add(suite);
  const some = boots.map((b) => ({ ...b, suites: b.suites.filter((suite) => chosen.has(suite)) })).filter((b) => b.suites.length > 0);
  const [first] = some;
  // nothing but the installation in a boot of its own, where the rest can go on in it
  const [, second] = some;
  if (
    only.length > 0 &&
    first !== undefined &&
    second !== undefined &&
    second.kernel === undefined &&
    first.suites.every((s) => always.includes(s))
  )
    return [{ ...second, suites: [...first.suites, ...second.suites], minutes: first.minutes + second.minutes }, ...some.slice(2)];
  return some;
}
