/**
 * Keeps the agent and the runtime alive when memory is short: the kernel takes other processes first (`oom_score_adj`), and does not take their
 * memory while there is other (`memory.min`, cgroup v2, where each has a cgroup of its own as systemd's services have). Without it a leaking pod
 * takes the very programs that would end it.
 * Writes only what differs, into cgroups of services, never into one that is shared with others. What is refused is told once and left as it is.
 * Mirrors kubelet v1.32 qos/policy.go in the score, which the kubelet sets for itself alone.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isMissing } from '../world/errno.ts';
import { describeError, type Log } from '../world/log.ts';

export interface ProtectDeps {
  readonly log: Log;
  /** `/sys/fs/cgroup` */
  readonly root: string;
  /** `/proc` */
  readonly proc: string;
  /** The agent's own. */
  readonly pid: number;
  /** Where the runtime listens: `unix:///run/containerd/containerd.sock`. */
  readonly endpoint: string;
  readonly nodeMemoryBytes: number;
  /** Cgroups of version 2 that may be written. */
  readonly unified: () => boolean;
}

/** As the kubelet has it: before every pod, after nothing but what may never be killed. */
const score = -999;
const mostBytes = 96 * 2 ** 20;

export class Protection {
  #runtimePid: number | undefined;
  /** What was refused, so that it is told once. */
  #told = new Set<string>();

  constructor(private readonly deps: ProtectDeps) {}

  /** Looks at both, and writes what differs. `again`: the runtime may be another process than before. Never throws. */
  look(again: boolean): void {
    const { pid } = this.deps;
    if (again || this.#runtimePid === undefined || !isRuntime(this.deps.proc, this.#runtimePid)) this.#runtimePid = this.#findRuntime();
    const pids = [pid, ...(this.#runtimePid === undefined || this.#runtimePid === pid ? [] : [this.#runtimePid])];
    for (const each of pids) this.#score(each);
    if (this.deps.unified()) this.#memory(pids);
  }

  #score(pid: number): void {
    this.#write(join(this.deps.proc, String(pid), 'oom_score_adj'), (now) => Math.min(now, score));
  }

  /** A grant counts only as far as every parent grants it too. */
  #memory(pids: readonly number[]): void {
    const grant = Math.min(mostBytes, Math.floor(this.deps.nodeMemoryBytes / 8));
    const page = grant - (grant % 65_536); // whole pages of every kernel
    const services = new Set(pids.flatMap((pid) => this.#serviceOf(pid) ?? []));
    const granted = new Map<string, number>();
    for (const service of services) {
      for (let at = service; at !== '/' && at !== '.'; at = dirname(at)) granted.set(at, (granted.get(at) ?? 0) + page);
    }
    for (const [path, bytes] of granted) this.#write(join(this.deps.root, path, 'memory.min'), (now) => Math.max(now, bytes));
  }

  /** The cgroup of a service that the process is in, if it is in one: `/system.slice/podsched.service`. */
  #serviceOf(pid: number): string | undefined {
    const path = /^0::(\/.*)$/m.exec(textOf(join(this.deps.proc, String(pid), 'cgroup')))?.[1];
    return path?.endsWith('.service') && !/\/user@\d+\.service$/.test(path) && !path.includes('/../') ? path : undefined;
  }

  /** Writes another number into a file of the kernel when it should be another. What the file is not there for is no matter. */
  #write(file: string, wanted: (now: number) => number): void {
    try {
      const text = readFileSync(file, 'utf8').trim();
      const now = text === 'max' ? Number.MAX_SAFE_INTEGER : Number(text);
      const next = wanted(now);
      if (next === now) return;
      writeFileSync(file, String(next), { flag: 'r+' });
      this.#told.delete(file);
    } catch (e) {
      if (isMissing(e) || this.#told.has(file)) return;
      this.#told.add(file);
      this.deps.log.info({ file, error: describeError(e) }, 'the agent or the runtime cannot be protected from running out of memory');
    }
  }

  /** The process that holds the runtime's socket, among those that are called as runtimes are. */
  #findRuntime(): number | undefined {
    const { proc } = this.deps;
    const inode = this.#socketInode();
    if (inode === undefined) return undefined;
    const pids = namesIn(proc).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
    return pids.find((pid) => isRuntime(proc, pid) && this.#holds(pid, inode));
  }

  #holds(pid: number, inode: string): boolean {
    const folder = join(this.deps.proc, String(pid), 'fd');
    return namesIn(folder).some((fd) => linkOf(join(folder, fd)) === `socket:[${inode}]`);
  }

  /** Of the socket that listens (flag 00010000) at the runtime's path; the kernel has the one it was bound to, behind links such as /var/run. */
  #socketInode(): string | undefined {
    const path = this.deps.endpoint.replace(/^unix:(?:\/\/)?/, '');
    const paths = [path, realPathOf(path)];
    for (const line of textOf(join(this.deps.proc, 'net/unix')).split('\n')) {
      const [, , , flags, , , inode, ...name] = line.trim().split(/\s+/);
      if (flags === '00010000' && paths.includes(name.join(' '))) return inode;
    }
    return undefined;
  }
}

const isRuntime = (proc: string, pid: number): boolean => /^(containerd|crio)$/.test(textOf(join(proc, String(pid), 'comm')).trim());

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // gone meanwhile
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // gone meanwhile, or not ours to see
  }
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // it is not there now
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // closed meanwhile
  }
}
