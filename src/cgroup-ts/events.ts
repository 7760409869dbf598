/**
 * Watches the counter files that the kernel announces by inotify: memory.events, memory.events.local, cgroup.events, pids.events,
 * hugetlb.<size>.events. No polling: one inotify watch for each file. It does not keep the process alive.
 */
import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import { asCgroupError, type CgroupError } from './error.ts';
import { readIfThere } from './files.ts';
import { parseFlatKeyed } from './parse.ts';

export type Counters = Readonly<Record<string, number>>;

export interface EventChange<Key extends string = string> {
  /** Only what changed: now − before. `oom_kill: 2`; cgroup.events are states, there it is 1 or −1. */
  readonly delta: Readonly<Partial<Record<Key, number>>>;
  /** The whole file now. */
  readonly now: Readonly<Record<Key, number>>;
}

export interface WatchOptions {
  readonly signal?: AbortSignal;
  /** The group was removed, or the watch broke (then with an error); nothing is told after that. Not called after an abort. */
  readonly onEnd?: (error?: CgroupError) => void;
}

/** Changed counters only; a counter the file lacked before began at 0. */
export function difference(before: Counters, now: Counters): Readonly<Record<string, number>> {
  const delta: Record<string, number> = {};
  for (const [key, value] of Object.entries(now)) {
    const change = value - (before[key] ?? 0);
    if (change !== 0) delta[key] = change;
  }
  return delta;
}

/**
 * Tells every change of the file from now on. Resolves with the counters as they are when the watch stands: nothing after them is lost,
 * changes close together come as one. Throws CgroupError (ENOENT: no such group or controller; ENOSPC: no inotify watches left).
 */
export async function watchEvents(
  dir: string,
  name: string,
  onChange: (change: EventChange) => void,
  options: WatchOptions = {},
): Promise<Counters> {
  const file = join(dir, name);
  options.signal?.throwIfAborted();
  let ended = false;
  let watcher: FSWatcher | undefined;
  const close = (): void => {
    ended = true;
    options.signal?.removeEventListener('abort', close);
    watcher?.close();
  };
  const end = (error?: CgroupError): void => {
    if (ended) return;
    close();
    options.onEnd?.(error);
  };

  let last: Counters | undefined;
  let reading = false;
  let again = false;
  const look = async (): Promise<void> => {
    if (reading || last === undefined) {
      again = true; // this reading may have begun before that change
      return;
    }
    reading = true;
    try {
      do {
        again = false;
        const text = await readIfThere(dir, name);
        if (ended) return;
        if (text === undefined) return end();
        const now = parseFlatKeyed(text);
        const delta = difference(last, now);
        last = now;
        if (Object.keys(delta).length > 0) onChange({ delta, now });
      } while (again && !ended);
    } catch (error) {
      end(asCgroupError(error, file));
    } finally {
      reading = false;
    }
  };

  try {
    // the watch first: what happens between it and the first reading is seen by either
    watcher = watch(file, { persistent: false }, () => void look());
    watcher.on('error', (error) => end(asCgroupError(error, file)));
  } catch (error) {
    throw asCgroupError(error, file);
  }
  options.signal?.addEventListener('abort', close, { once: true });
  try {
    const text = await readIfThere(dir, name);
    if (text === undefined) throw asCgroupError(Object.assign(new Error(), { code: 'ENOENT' }), file);
    last = parseFlatKeyed(text);
  } catch (error) {
    close();
    throw asCgroupError(error, file);
  }
  if (again) void look();
  return last;
}

/** memory.events of a group and its children: low, high, max, oom, oom_kill, oom_group_kill. */
export const watchMemoryEvents = (dir: string, onChange: (change: EventChange) => void, options?: WatchOptions): Promise<Counters> =>
  watchEvents(dir, 'memory.events', onChange, options);

/** cgroup.events: `populated` (anything alive in here or below) and `frozen`. */
export const watchCgroupEvents = (
  dir: string,
  onChange: (change: EventChange<'populated' | 'frozen'>) => void,
  options?: WatchOptions,
): Promise<Counters> => watchEvents(dir, 'cgroup.events', (change) => onChange(change as EventChange<'populated' | 'frozen'>), options);
