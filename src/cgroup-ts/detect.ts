/**
 * What this machine has: v1, hybrid, v2 or none; which controllers; which of them do not reach a given subtree; may we write there.
 * Decided from what the kernel says (mountinfo, cgroup.controllers, /proc/cgroups), never from the kernel's command line: a word there may
 * be wrong, doubled or ignored.
 */
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asCgroupError, codeOf } from './error.ts';
import { folderExists, readIfThere } from './files.ts';
import { type Mount, parseMountinfo } from './mountinfo.ts';
import { parseWords } from './parse.ts';

/** hybrid: v1 hierarchies with the controllers, and a v2 tree beside them. */
export type Mode = 'v1' | 'hybrid' | 'v2' | 'none';

export interface MissingController {
  readonly controller: string;
  /**
   * disabled: the kernel has it, and it was switched off at boot. v1: a v1 hierarchy holds it. not-listed: /proc/cgroups lacks it, so the
   * kernel was built without it (or, from Linux 6.15 on, without its v1 form, and then it may be switched off).
   * unknown: /proc/cgroups is not readable, or says that it is on.
   */
  readonly why: 'disabled' | 'not-listed' | 'v1' | 'unknown';
}

export interface NotDelegated {
  readonly controller: string;
  /** The last group on the way that has it itself (below the root; empty: the root) and does not hand it on. */
  readonly lostAt: string;
}

export interface Detection {
  readonly mode: Mode;
  /** Where the v2 tree is mounted. */
  readonly mountPoint?: string;
  /** cgroup.controllers at the root (v2 only; in hybrid mode what is left for it). */
  readonly available: readonly string[];
  /** Of the wanted ones, those the root does not have. */
  readonly missing: readonly MissingController[];
  /** Of the wanted ones, those the root has and the subtree has not. Empty when no subtree was given, or it does not exist yet. */
  readonly notDelegated: readonly NotDelegated[];
  /** Controllers in v1 hierarchies. */
  readonly v1: readonly string[];
  /** May this process make groups in the subtree (or, while that is not there, in its nearest parent)? */
  readonly writable: boolean;
  /** Why not: EACCES, EROFS, … */
  readonly notWritable?: string;
}

export interface DetectOptions {
  /** Default: /sys/fs/cgroup. */
  readonly root?: string;
  /** Default: /proc. */
  readonly procRoot?: string;
  /** The group we mean to work in, below the root. Default: the root. */
  readonly subtree?: string;
  /** Controllers to look for. */
  readonly wanted?: readonly string[];
}

export const commonControllers: readonly string[] = ['cpu', 'cpuset', 'io', 'memory', 'hugetlb', 'pids'];

const v1Names = new Set('blkio cpu cpuacct cpuset devices freezer hugetlb memory misc net_cls net_prio perf_event pids rdma'.split(' '));

const textOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    if (['ENOENT', 'EACCES', 'EPERM'].includes(codeOf(error) ?? '')) return '';
    throw asCgroupError(error, file);
  });

/** The mount that a path is on: the longest mount point above it, of equal ones the last. */
function mountOf(mounts: readonly Mount[], path: string): Mount | undefined {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const point = mount.mountPoint === '/' ? '/' : `${mount.mountPoint}/`;
    if (`${path}/`.startsWith(point) && (best === undefined || mount.mountPoint.length >= best.mountPoint.length)) best = mount;
  }
  return best;
}

/** Of several mounts on one point, the last. */
const seen = (mounts: readonly Mount[]): readonly Mount[] => [...new Map(mounts.map((m) => [m.mountPoint, m])).values()];

/** The mode alone, from the mounts. */
export function modeOf(mounts: readonly Mount[], root: string): Mode {
  if (mountOf(mounts, root)?.type === 'cgroup2') return 'v2';
  const inside = seen(mounts).filter((m) => m.mountPoint.startsWith(`${root}/`));
  const v1 = inside.some((m) => m.type === 'cgroup' && m.superOptions.some((word) => v1Names.has(word)));
  const v2 = inside.some((m) => m.type === 'cgroup2');
  if (v1) return v2 ? 'hybrid' : 'v1';
  return v2 ? 'v2' : 'none';
}

/** /proc/cgroups: controller (by its v1 name) → is it on. */
export function parseProcCgroups(text: string): ReadonlyMap<string, boolean> {
  const rows = text.split('\n').map((line) => /^(\w+)\s+\d+\s+\d+\s+([01])$/.exec(line.trim()));
  return new Map(rows.flatMap((row) => (row?.[1] === undefined ? [] : [[row[1], row[2] === '1'] as const])));
}

/** Never throws for what a machine may lack; CgroupError for what is broken (EIO and the like). */
export async function detect(options: DetectOptions = {}): Promise<Detection> {
  const { root = '/sys/fs/cgroup', procRoot = '/proc', subtree = '', wanted = commonControllers } = options;
  const mountinfo = await textOf(join(procRoot, 'self/mountinfo'));
  const mounts = parseMountinfo(mountinfo);
  const v1 = [
    ...new Set(mounts.filter((m) => m.type === 'cgroup').flatMap((m) => m.superOptions.filter((word) => v1Names.has(word)))),
  ].sort();
  let mode = modeOf(mounts, root);
  // without a mountinfo (a strange /proc) the tree itself is what the kernel says
  if (mode === 'none' && mountinfo === '' && (await readIfThere(root, 'cgroup.controllers')) !== undefined) mode = 'v2';

  const own = mountOf(mounts, root);
  const inside = seen(mounts)
    .filter((m) => m.type === 'cgroup2' && m.mountPoint.startsWith(`${root}/`))
    .at(-1);
  const mountPoint = own?.type === 'cgroup2' ? own.mountPoint : (inside?.mountPoint ?? (mode === 'v2' ? root : undefined));
  const top = own?.type === 'cgroup2' || inside === undefined ? root : inside.mountPoint;
  const available = mountPoint === undefined ? [] : parseWords((await readIfThere(top, 'cgroup.controllers')) ?? '');

  const kernel = parseProcCgroups(await textOf(join(procRoot, 'cgroups')));
  const whyMissing = (controller: string): MissingController['why'] => {
    const old = controller === 'io' ? 'blkio' : controller;
    if (v1.includes(old)) return 'v1';
    const on = kernel.get(old);
    if (on === undefined) return kernel.size === 0 ? 'unknown' : 'not-listed';
    return on ? 'unknown' : 'disabled';
  };
  const missing = wanted.filter((c) => !available.includes(c)).map((controller) => ({ controller, why: whyMissing(controller) }));

  const parts = mode === 'v2' ? subtree.split('/').filter((part) => part !== '') : [];
  const notDelegated: NotDelegated[] = [];
  let left = wanted.filter((c) => available.includes(c));
  let nearest = top;
  for (const [depth, part] of parts.entries()) {
    const dir = join(nearest, part);
    if (!(await folderExists(dir))) break;
    const here = parseWords((await readIfThere(dir, 'cgroup.controllers')) ?? '');
    const lostAt = parts.slice(0, depth).join('/');
    notDelegated.push(...left.filter((c) => !here.includes(c)).map((controller) => ({ controller, lostAt })));
    left = left.filter((c) => here.includes(c));
    nearest = dir;
  }

  const notWritable = mountPoint === undefined ? undefined : await whyNotWritable(nearest, mountOf(mounts, nearest));
  return {
    mode,
    ...(mountPoint !== undefined && { mountPoint }),
    available,
    missing,
    notDelegated,
    v1,
    writable: mountPoint !== undefined && notWritable === undefined,
    ...(notWritable !== undefined && { notWritable }),
  };
}

async function whyNotWritable(dir: string, mount: Mount | undefined): Promise<string | undefined> {
  if (mount?.type === 'cgroup2' && (mount.options.includes('ro') || mount.superOptions.includes('ro'))) return 'EROFS';
  try {
    await access(dir, constants.W_OK);
    await access(join(dir, 'cgroup.procs'), constants.W_OK);
    return undefined;
  } catch (error) {
    return codeOf(error) ?? 'EACCES';
  }
}
