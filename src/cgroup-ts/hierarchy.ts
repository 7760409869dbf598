/**
 * The tree of a cgroup v2 mount (or of a part of it that was delegated to us): create, enable controllers, list, move, freeze, kill, delete.
 * Names are paths below the root: `kubepods/burstable`; the empty name is the root itself. It holds no state: the kernel is asked each time.
 */
import { join } from 'node:path';
import { asCgroupError, CgroupError, codeOf } from './error.ts';
import { type CgroupFs, childFolders, folderExists, kernelFs, readIfThere, readText, writeText } from './files.ts';
import { parseFlatKeyed, parsePids, parseWords } from './parse.ts';
import { realSleep, type Sleep, waits } from './time.ts';

export interface HierarchyOptions {
  /** Absolute path of the cgroup2 mount or of the delegated subtree. Default: /sys/fs/cgroup. */
  readonly root?: string;
  readonly fs?: CgroupFs;
  readonly sleep?: Sleep;
  /** Default: process.kill with SIGKILL. Only used where the kernel has no cgroup.kill (before Linux 5.14). */
  readonly kill?: (pid: number) => void;
  /** A group that holds this process is never killed. Default: process.pid. */
  readonly ownPid?: number;
}

/** A controller that a level would not hand on, and why. */
export interface Refusal {
  readonly controller: string;
  /** Name of the group whose cgroup.subtree_control refused. */
  readonly at: string;
  readonly error: CgroupError;
}

export interface EnableResult {
  /** Controllers that the group itself has now (its cgroup.controllers). */
  readonly enabled: readonly string[];
  readonly refused: readonly Refusal[];
}

export interface WaitOptions {
  /** How long to wait for the kernel, all sleeps together. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const killRounds = 10;
const removeWaitMs = 3000;

export class Hierarchy {
  readonly root: string;
  readonly #fs: CgroupFs;
  readonly #sleep: Sleep;
  readonly #kill: (pid: number) => void;
  readonly #ownPid: number;

  constructor(options: HierarchyOptions = {}) {
    this.root = options.root ?? '/sys/fs/cgroup';
    this.#fs = options.fs ?? kernelFs;
    this.#sleep = options.sleep ?? realSleep;
    this.#kill = options.kill ?? ((pid) => void process.kill(pid, 'SIGKILL'));
    this.#ownPid = options.ownPid ?? process.pid;
  }

  /** Absolute path; touches nothing. Refuses names that leave the tree (CgroupError EINVAL). */
  path(name: string): string {
    return join(this.root, ...this.#parts(name));
  }

  #parts(name: string): readonly string[] {
    const parts = name.split('/').filter((part) => part !== '');
    for (const part of parts) {
      if (part === '.' || part === '..' || part.includes('\0') || part.startsWith('cgroup.'))
        throw new CgroupError({
          code: 'EINVAL',
          file: join(this.root, name.replaceAll('\0', '')),
          detail: `"${part}" is no name of a cgroup`,
        });
    }
    return parts;
  }

  /** Is there such a group? */
  exists(name: string): Promise<boolean> {
    return folderExists(this.path(name));
  }

  /** cgroup.controllers: what this group can use itself. */
  async controllers(name: string): Promise<readonly string[]> {
    return parseWords(await readText(this.path(name), 'cgroup.controllers'));
  }

  /** cgroup.subtree_control: what it hands on to its children. */
  async subtreeControl(name: string): Promise<readonly string[]> {
    return parseWords(await readText(this.path(name), 'cgroup.subtree_control'));
  }

  /**
   * Makes the group and its missing parents, and enables controllers on every level above it: `wanted` of those that are available
   * (default: all). A level that refuses one (EBUSY: it holds processes itself) is told in the answer; the group is made all the same.
   */
  async create(name: string, wanted?: readonly string[]): Promise<EnableResult> {
    const parts = this.#parts(name);
    const refused: Refusal[] = [];
    for (const depth of parts.keys()) {
      const parent = parts.slice(0, depth).join('/');
      refused.push(...(await this.#handOn(parent, wanted)));
      const dir = this.path(parts.slice(0, depth + 1).join('/'));
      try {
        await this.#fs.mkdir(dir);
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw asCgroupError(error, dir);
      }
    }
    return { enabled: await this.controllers(name), refused };
  }

  /** The controllers' part of `create`, for a group that is there. */
  async enable(name: string, wanted?: readonly string[]): Promise<EnableResult> {
    const parts = this.#parts(name);
    const refused: Refusal[] = [];
    for (const depth of parts.keys()) refused.push(...(await this.#handOn(parts.slice(0, depth).join('/'), wanted)));
    return { enabled: await this.controllers(name), refused };
  }

  async #handOn(name: string, wanted: readonly string[] | undefined): Promise<readonly Refusal[]> {
    const dir = this.path(name);
    const [available, already] = [await this.controllers(name), await this.subtreeControl(name)];
    const missing = available.filter((c) => !already.includes(c) && (wanted === undefined || wanted.includes(c)));
    if (missing.length === 0) return [];
    try {
      await writeText(dir, 'cgroup.subtree_control', missing.map((c) => `+${c}`).join(' '), this.#fs);
      return [];
    } catch {
      // one bad word makes the kernel refuse all of them: one by one
    }
    const refused: Refusal[] = [];
    for (const controller of missing) {
      try {
        await writeText(dir, 'cgroup.subtree_control', `+${controller}`, this.#fs);
      } catch (error) {
        refused.push({ controller, at: name, error: asCgroupError(error, join(dir, 'cgroup.subtree_control'), `+${controller}`) });
      }
    }
    return refused;
  }

  /** Names (whole, below the root) of the direct children, sorted. Throws ENOENT when the group is gone. */
  async list(name: string): Promise<readonly string[]> {
    const parent = this.#parts(name).join('/');
    return (await childFolders(this.path(name))).map((child) => (parent === '' ? child : `${parent}/${child}`));
  }

  /** The group and everything below it, parents first. Groups that vanish while we look are left out. */
  async subtree(name: string): Promise<readonly string[]> {
    const parts = this.#parts(name).join('/');
    const children = await this.list(parts).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    if (children === undefined) return [];
    const result = [parts];
    for (const child of children) result.push(...(await this.subtree(child)));
    return result;
  }

  /** Moves a process with all its threads into the group. Throws ESRCH when it is gone, EBUSY when the group hands on controllers. */
  async move(name: string, pid: number): Promise<void> {
    if (!Number.isSafeInteger(pid) || pid <= 0)
      throw new CgroupError({ code: 'EINVAL', file: join(this.path(name), 'cgroup.procs'), value: String(pid) });
    await writeText(this.path(name), 'cgroup.procs', String(pid), this.#fs);
  }

  /** Pids directly in the group. A threaded group (EOPNOTSUPP) and one that is gone have none. */
  async procs(name: string): Promise<readonly number[]> {
    const text = await readIfThere(this.path(name), 'cgroup.procs');
    return text === undefined ? [] : parsePids(text);
  }

  /** Pids in the group and everything below it. */
  async procsOfSubtree(name: string): Promise<readonly number[]> {
    const result: number[] = [];
    for (const group of await this.subtree(name)) result.push(...(await this.procs(group)));
    return [...new Set(result)];
  }

  /** Does anything live in the group or below? (cgroup.events; the root group has none: true.) false when the group is gone. */
  async populated(name: string): Promise<boolean> {
    const events = await readIfThere(this.path(name), 'cgroup.events');
    if (events === undefined) return this.#parts(name).length === 0;
    return parseFlatKeyed(events).populated !== 0;
  }

  /** Stops everything in the group and below, and waits until the kernel says so. Throws ETIMEDOUT after `timeoutMs` (5 s). */
  freeze(name: string, options: WaitOptions = {}): Promise<void> {
    return this.#setFrozen(name, 1, options);
  }

  thaw(name: string, options: WaitOptions = {}): Promise<void> {
    return this.#setFrozen(name, 0, options);
  }

  async #setFrozen(name: string, wanted: 0 | 1, { timeoutMs = 5000, signal }: WaitOptions): Promise<void> {
    const dir = this.path(name);
    await writeText(dir, 'cgroup.freeze', String(wanted), this.#fs);
    for (const ms of [...waits(timeoutMs), undefined]) {
      if (parseFlatKeyed(await readText(dir, 'cgroup.events')).frozen === wanted) return;
      if (ms !== undefined) await this.#sleep(ms, signal);
    }
    const detail = `not ${wanted === 1 ? 'frozen' : 'thawed'} after ${timeoutMs} ms`;
    throw new CgroupError({ code: 'ETIMEDOUT', file: join(dir, 'cgroup.events'), detail });
  }

  /**
   * SIGKILL to everything in the group and below: cgroup.kill, or round by round where the kernel has none. Waits until the group is empty.
   * Throws EPERM when this process is in there, ETIMEDOUT when something cannot die (uninterruptible sleep). A group that is gone is no error.
   */
  async kill(name: string, { timeoutMs = 5000, signal }: WaitOptions = {}): Promise<void> {
    const dir = this.path(name);
    const pids = await this.procsOfSubtree(name);
    if (pids.includes(this.#ownPid)) throw new CgroupError({ code: 'EPERM', file: dir, detail: 'this process itself is in the group' });
    if (pids.length === 0 && !(await this.populated(name))) return;
    const byKernel = await writeText(dir, 'cgroup.kill', '1', this.#fs).then(
      () => true,
      (error: unknown) => {
        if (['ENOENT', 'EOPNOTSUPP', 'ENODEV'].includes(codeOf(error) ?? '')) return false; // an old kernel, a threaded group, gone already
        throw error;
      },
    );
    const pauses = byKernel ? waits(timeoutMs) : Array.from({ length: killRounds }, () => Math.ceil(timeoutMs / killRounds / 5));
    for (const ms of pauses) {
      if (!byKernel) for (const pid of await this.procsOfSubtree(name)) this.#killOne(pid, dir);
      if (!(await this.#alive(name))) return;
      await this.#sleep(ms, signal);
    }
    if (!(await this.#alive(name))) return;
    const left = await this.procsOfSubtree(name);
    throw new CgroupError({ code: 'ETIMEDOUT', file: dir, detail: `still alive after SIGKILL: pid ${left.slice(0, 10).join(', ')}` });
  }

  /** What the kernel says, and what can be seen: a process of another pid namespace shows only in cgroup.events. */
  async #alive(name: string): Promise<boolean> {
    return (await this.procsOfSubtree(name)).length > 0 || (this.#parts(name).length > 0 && (await this.populated(name)));
  }

  #killOne(pid: number, dir: string): void {
    if (pid === this.#ownPid) return;
    try {
      this.#kill(pid);
    } catch (error) {
      if (codeOf(error) !== 'ESRCH') throw asCgroupError(error, dir, `SIGKILL ${pid}`);
    }
  }

  /**
   * Kills what is left in the group and below (unless `kill` is false) and removes the folders, leaf first. EBUSY (a process on its way
   * out, or one that came in meanwhile) is tried again for 3 s in all; then CgroupError EBUSY with the pids. A group that is gone is no error.
   */
  async delete(name: string, options: WaitOptions & { readonly kill?: boolean } = {}): Promise<void> {
    if (this.#parts(name).length === 0)
      throw new CgroupError({ code: 'EPERM', file: this.root, detail: 'the root group cannot be removed' });
    const { kill = true, signal } = options;
    if (kill) await this.kill(name, options);
    let last: CgroupError | undefined;
    for (const ms of [...waits(options.timeoutMs ?? removeWaitMs), undefined]) {
      last = await this.#removeAll(name);
      if (last === undefined) return;
      if (ms === undefined) break;
      await this.#sleep(ms, signal);
      if (kill && (await this.procsOfSubtree(name)).length > 0) await this.kill(name, options);
    }
    const pids = await this.procsOfSubtree(name);
    throw new CgroupError({
      code: last?.code ?? 'EBUSY',
      file: last?.file ?? this.path(name),
      detail:
        pids.length > 0 ? `cannot be removed, these pids are in it: ${pids.slice(0, 10).join(', ')}` : 'cannot be removed, it stays busy',
      cause: last,
    });
  }

  /** One attempt over the whole subtree; the error that is worth another one. */
  async #removeAll(name: string): Promise<CgroupError | undefined> {
    let busy: CgroupError | undefined;
    for (const group of [...(await this.subtree(name))].reverse()) {
      const dir = this.path(group);
      try {
        await this.#fs.rmdir(dir);
      } catch (error) {
        const code = codeOf(error);
        if (code === 'ENOENT') continue;
        if (code !== 'EBUSY' && code !== 'ENOTEMPTY') throw asCgroupError(error, dir);
        busy ??= asCgroupError(error, dir);
      }
    }
    return busy;
  }
}
