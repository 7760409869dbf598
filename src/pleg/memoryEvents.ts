/**
 * What the kernel itself counts of containers that run: processes killed for want of memory, from `memory.events` of their cgroups. The kernel
 * says when the file changes, so that nothing is asked in between; one watch per running container, gone with it. It is the second witness
 * beside the runtime's events, which are lost while the event stream is down. A kill that takes the whole container may take the cgroup away
 * before it can be read: then the runtime's event is the only one.
 * cgroup v2 only; elsewhere, and where a file is missing, it is silent. Never decides what a kill means.
 */
import { existsSync, type FSWatcher, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import type { PodUid } from '../api/objects.ts';
import { type CgroupDriver, cgroupParent, type QosClass } from '../api/resources.ts';
import type { ContainerId } from '../container/words.ts';

export interface MemoryEventsDeps {
  /** `/sys/fs/cgroup` */
  readonly root: string;
  /** The kernel killed a process of this container: its first, or a child. */
  readonly killed: (id: ContainerId, uid: PodUid) => void;
  /** A container that is seen for the first time has begun in this run of the agent: what is counted of it already was told to nobody. */
  readonly isNew: () => boolean;
}

interface Watched {
  /** undefined: there is no such file, or not any more. */
  watcher: FSWatcher | undefined;
  path: string;
  /** Kills counted so far; undefined: not read yet. */
  kills: number | undefined;
}

const drivers: readonly CgroupDriver[] = ['systemd', 'cgroupfs'];
const classes: readonly QosClass[] = ['Burstable', 'BestEffort', 'Guaranteed'];

/** Where a container's `memory.events` may be below the root: the runtime's driver and the pod's class are in its path. */
export const memoryEventsFiles = (uid: PodUid, id: ContainerId): string[] =>
  drivers.flatMap((driver) => {
    const own = driver === 'systemd' ? `cri-containerd-${id}.scope` : id;
    return classes.map((qos) => join(cgroupParent(driver, qos, uid), own, 'memory.events'));
  });

/** Kills in a `memory.events`; undefined: it does not say. */
export function killsIn(text: string): number | undefined {
  const count = /^oom_kill (\d+)$/m.exec(text)?.[1];
  return count === undefined ? undefined : Number(count);
}

export class MemoryEvents {
  #pods = new Map<PodUid, Map<ContainerId, Watched>>();
  #unified: boolean | undefined;

  constructor(private readonly deps: MemoryEventsDeps) {}

  /** These containers of the pod run now, and no others. */
  podRuns(uid: PodUid, running: Iterable<ContainerId>): void {
    this.#unified ??= existsSync(join(this.deps.root, 'cgroup.controllers'));
    if (!this.#unified) return;
    const ids = new Set(running);
    const known = this.#pods.get(uid) ?? new Map<ContainerId, Watched>();
    for (const [id, watched] of known) {
      if (ids.has(id)) continue;
      // what killed it may be counted already and not said yet
      this.#look(watched, uid, id);
      this.#end(watched);
      known.delete(id);
    }
    for (const id of ids) if (!known.has(id)) known.set(id, this.#watch(uid, id));
    if (known.size > 0) this.#pods.set(uid, known);
    else this.#pods.delete(uid);
  }

  /** How many files are watched. */
  get watches(): number {
    return [...this.#pods.values()].flatMap((pod) => [...pod.values()]).filter((w) => w.watcher !== undefined).length;
  }

  stop(): void {
    for (const uid of [...this.#pods.keys()]) this.podRuns(uid, []);
  }

  #watch(uid: PodUid, id: ContainerId): Watched {
    const watched: Watched = { watcher: undefined, path: '', kills: undefined };
    for (const file of memoryEventsFiles(uid, id)) {
      watched.path = join(this.deps.root, file);
      if (existsSync(watched.path) && this.#open(watched, uid, id)) break;
    }
    return watched;
  }

  #open(watched: Watched, uid: PodUid, id: ContainerId): boolean {
    try {
      const watcher = watch(watched.path, { persistent: false }, (event) => {
        this.#look(watched, uid, id);
        // the cgroup is gone
        if (event === 'rename' && !existsSync(watched.path)) this.#end(watched);
      });
      watcher.on('error', () => this.#end(watched));
      watched.watcher = watcher;
    } catch {
      return false; // it went meanwhile, or the kernel has no watches left: the runtime's events remain
    }
    watched.kills = this.deps.isNew() ? 0 : this.#kills(watched);
    // a child may have been killed before anybody looked
    this.#look(watched, uid, id);
    return true;
  }

  #end(watched: Watched): void {
    watched.watcher?.close();
    watched.watcher = undefined;
  }

  #look(watched: Watched, uid: PodUid, id: ContainerId): void {
    const kills = this.#kills(watched);
    if (kills === undefined) return;
    const more = watched.kills !== undefined && kills > watched.kills;
    watched.kills = kills;
    if (more && watched.watcher !== undefined) this.deps.killed(id, uid);
  }

  /** Read at once, for the cgroup may be gone in a moment; it is memory of the kernel, not a disk. */
  #kills({ path }: Watched): number | undefined {
    try {
      return killsIn(readFileSync(path, 'utf8'));
    } catch {
      return undefined; // gone with its container
    }
  }
}
