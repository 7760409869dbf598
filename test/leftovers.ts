/** What a run left on the machine: found by the run's own mark in the environment of its processes, and by the temporary folder it was given. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mountsUnder } from './device/cleanup.ts';
import { processes } from './device/process.ts';
import { kubepodsTrees, records } from './device/registry.ts';

/** The variable that every process of a run inherits. */
export const runMark = 'PODSCHED_TEST_RUN';

export interface Leftovers {
  /** Pids with a word on what they are. */
  readonly processes: readonly { readonly pid: number; readonly what: string }[];
  readonly mounts: readonly string[];
  readonly beds: readonly string[];
  readonly others: readonly string[];
}

/** Network namespaces, bridges of test beds and kubepods trees that are there now. */
export function machineTraces(): Set<string> {
  const namespaces = existsSync('/run/netns') ? readdirSync('/run/netns').map((n) => `/run/netns/${n}`) : [];
  const bridges = readdirSync('/sys/class/net')
    .filter((n) => n.startsWith('psb'))
    .map((n) => `/sys/class/net/${n}`);
  return new Set([...namespaces, ...bridges, ...kubepodsTrees()]);
}

function carriesMark(pid: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${runMark}=${mark}`);
  } catch {
    return false; // ended, or not ours to read
  }
}

/** Looks for what the run with this mark and folder left. Traces that somebody else's bed may have made are not held against it. */
export function leftovers(mark: string, folder: string, before: ReadonlySet<string>): Leftovers {
  const beds = records();
  const othersWork = beds.some((b) => !b.dir.startsWith(folder));
  return {
    processes: processes()
      .filter((p) => p.pid !== process.pid && carriesMark(p.pid, mark))
      .map((p) => ({ pid: p.pid, what: p.argv.join(' ').slice(0, 160) })),
    mounts: mountsUnder(folder),
    beds: beds.filter((b) => b.dir.startsWith(folder)).map((b) => b.name),
    others: othersWork ? [] : [...machineTraces()].filter((t) => !before.has(t)),
  };
}
