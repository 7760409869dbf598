/**
 * The test bed: a private containerd with images built on the spot. It owns its folder, bridge, subnet and pods' cgroups, and takes them
 * all down again; it never touches what somebody else made. Works on cgroup v1 and v2, without a registry and without CAP_SYS_RESOURCE.
 */
import { appendFileSync, existsSync, type FSWatcher, mkdtempSync, readFileSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killShims, mountsUnder, removeBed, shims } from './cleanup.ts';
import { type BedPaths, bedPaths, cgroupParents, writeContainerdConfig } from './containerd.ts';
import { busybox1, busybox2, type ImageRecipe, imageArchive, sandboxImage } from './images.ts';
import { type Daemon, mustRun, startDaemon, startTicks, until } from './process.ts';
import { RawCri } from './rawCri.ts';
import { adopt, type BedRecord, enter, locked, records } from './registry.ts';

export interface Bed {
  readonly name: string;
  readonly dir: string;
  /** Path of the containerd socket; `endpoint` is the same with its scheme. */
  readonly socket: string;
  readonly endpoint: string;
  readonly bridge: string;
  /** A second opinion on what runs. */
  readonly cri: RawCri;
  /** `ctr -n k8s.io …` on this containerd. */
  ctr(...args: string[]): Promise<string>;
  addImage(recipe: ImageRecipe): Promise<void>;
  /** Ends containerd; pods go on under their shims. */
  stopContainerd(how?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Starts containerd again and waits until it serves. */
  startContainerd(): Promise<void>;
  restartContainerd(how?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** What containerd wrote so far. */
  log(): string;
  /** Takes everything down. Rejects when something of the bed is left. */
  stop(): Promise<void>;
}

export interface BedOptions {
  readonly name?: string;
  /** Images beside busybox:1 and :2. */
  readonly images?: readonly ImageRecipe[];
  /** False: containerd is configured but not started yet, and no image is imported. */
  readonly started?: boolean;
}

let made = 0;

/** A 10.x.y.0/24 that no route of this machine and no other bed uses, beginning at one that comes from the pid. */
async function freeSubnet(taken: ReadonlySet<string>): Promise<string> {
  const routes = await mustRun('ip', ['-4', 'route', 'show', 'table', 'all']);
  for (let i = 0; i < 32768; i++) {
    const n = (process.pid * 4 + made + i) % 32768;
    const prefix = `10.${64 + (n >> 8)}.${n & 255}.`;
    if (!routes.includes(prefix) && !taken.has(`${prefix}0/24`)) return `${prefix}0/24`;
  }
  throw new Error('no free 10.x subnet');
}

async function register(dir: string, name: string): Promise<BedRecord> {
  return await locked(async () => {
    const id = `${process.pid.toString(36)}${made++}`;
    const record: BedRecord = {
      name: `${name}-${id}`,
      dir,
      ownerPid: process.pid,
      ownerStart: startTicks(process.pid) ?? 0,
      bridge: `psb${id}`,
      network: `podsched-bed-${id}`,
      subnet: await freeSubnet(new Set(records().map((r) => r.subnet))),
    };
    await enter(record);
    return record;
  });
}

/** Clears away beds whose owner was killed before it could. Returns their names. */
export async function sweepBeds(): Promise<string[]> {
  const stale = await adopt();
  for (const record of stale)
    await removeBed(record, [...new Set([...pastParents(record.dir), ...cgroupParents(bedPaths(record.dir).bundles)])], []);
  return stale.map((r) => r.name);
}

const parentsFile = (dir: string): string => join(dir, 'cgroups');
const pastParents = (dir: string): string[] =>
  existsSync(parentsFile(dir)) ? readFileSync(parentsFile(dir), 'utf8').split('\n').filter(Boolean) : [];

/** Remembers the cgroup of every pod that ever runs in the bed: after a pod is removed nothing else knows its uid. */
function watchCgroups(paths: BedPaths): { parents: Set<string>; look(): void; close(): void } {
  const parents = new Set<string>();
  const look = () => {
    for (const parent of cgroupParents(paths.bundles)) {
      if (parents.has(parent)) continue;
      parents.add(parent);
      appendFileSync(parentsFile(paths.dir), `${parent}\n`);
    }
  };
  let timer: NodeJS.Timeout | undefined;
  const watcher: FSWatcher = watch(paths.bundles, () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      look();
    }, 50); // the bundle's config.json is written just after its folder
    timer.unref();
  });
  watcher.on('error', () => {}); // the folder goes with the bed
  watcher.unref();
  return { parents, look, close: () => watcher.close() };
}

/** Starts a bed and waits until its containerd serves and its images are there (about a second). */
export async function startBed(o: BedOptions = {}): Promise<Bed> {
  await sweepBeds();
  const dir = mkdtempSync(join(tmpdir(), `podsched-bed-`));
  const record = await register(dir, o.name ?? 'bed');
  const paths = bedPaths(dir);
  await writeContainerdConfig(record);
  const cri = new RawCri(paths.socket);
  const cgroups = watchCgroups(paths);
  let daemon: Daemon | undefined;
  let stopping: Promise<void> | undefined;

  const ctr = (...args: string[]) => mustRun('ctr', ['-a', paths.socket, '-n', 'k8s.io', ...args]);
  const imported = new Set<string>();
  const importImages = async (recipes: readonly ImageRecipe[]) => {
    for (const recipe of recipes) {
      if (imported.has(recipe.ref)) continue;
      await ctr('images', 'import', await imageArchive(recipe));
      imported.add(recipe.ref);
    }
  };

  const startContainerd = async () => {
    if (daemon?.running() === true) return;
    daemon = startDaemon('containerd', ['--config', paths.config], { logFile: paths.log });
    const started = daemon;
    await until('containerd to serve CRI', 60_000, async () => {
      if (!started.running()) throw new Error(`containerd ended at once:\n${bed.log().slice(-3000)}`);
      return existsSync(paths.socket) && (await cri.ready().catch(() => false));
    });
    await importImages([sandboxImage, busybox1, busybox2, ...(o.images ?? [])]);
  };
  const stopContainerd = async (how: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') => {
    if (daemon === undefined) return;
    daemon.signal(how);
    await daemon.end();
  };

  const takeDown = async () => {
    let ids: string[] = [];
    try {
      if (existsSync(paths.bundles) && (shims(paths.socket).length > 0 || daemon?.running() === true)) {
        await startContainerd();
        const sandboxes = await cri.sandboxes();
        ids = sandboxes.map((s) => s.id);
        cgroups.look();
        // containers and then the sandbox, by the runtime itself: only it gives addresses and port mappings back
        await Promise.all(sandboxes.map((s) => cri.stopSandbox(s.id).then(() => cri.removeSandbox(s.id))));
      }
    } catch {
      await killShims(paths.socket).catch(() => {}); // by hand then: removeBed goes on where this ended
    }
    cgroups.look();
    cgroups.close();
    await daemon?.end();
    cri.close();
    await removeBed(record, [...cgroups.parents], ids);
    const left = [
      ...shims(paths.socket).map((pid) => `process ${pid}`),
      ...mountsUnder(dir),
      ...[dir, `/sys/class/net/${record.bridge}`].filter((p) => existsSync(p)),
    ];
    if (left.length > 0) throw new Error(`the bed left behind: ${left.join(', ')}`);
  };

  const bed: Bed = {
    name: record.name,
    dir,
    socket: paths.socket,
    endpoint: `unix://${paths.socket}`,
    bridge: record.bridge,
    cri,
    ctr,
    addImage: (recipe) => importImages([recipe]),
    stopContainerd,
    startContainerd,
    restartContainerd: async (how) => {
      await stopContainerd(how);
      await startContainerd();
    },
    log: () => (existsSync(paths.log) ? readFileSync(paths.log, 'utf8') : ''),
    stop: () => {
      stopping ??= takeDown();
      return stopping;
    },
  };
  try {
    if (o.started !== false) await startContainerd();
  } catch (e) {
    await bed.stop().catch(() => {});
    throw e;
  }
  return bed;
}
