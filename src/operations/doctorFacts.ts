/**
 * What the doctor's checks go by, read from a real machine. Roots are handed in, so that folders are its fake. Nothing is changed; a file that
 * is not there says nothing.
 */
import { access, readdir, readFile, readlink, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { kernelLine, readCgroups } from '../cm/machine.ts';
import { type BoardRoots, findBoard } from '../node/board.ts';
import { fileText } from '../node/files.ts';
import { machineHashes, readHardware, readPageBytes } from '../node/hardware.ts';
import { readOnlyMounts } from '../node/readOnly.ts';
import { decodeThrottled } from '../node/throttled.ts';
import { FileStore } from '../store/fileStore.ts';
import { type CniSeen, type CniSettings, cniBinDirs } from './doctorCni.ts';
import type { ArchitectureSeen, CgroupsSeen, ClockSeen, DiskSeen, IdentitySeen, PowerSeen } from './doctorMachine.ts';

/** Each reads when it is asked, and may reject: then its check says so. */
export interface MachineFacts {
  cgroups(): Promise<CgroupsSeen>;
  pageBytes(): Promise<number | undefined>;
  disks(): Promise<readonly DiskSeen[]>;
  /** Mount points of the root and of the used folders where nobody can write. */
  readOnly(): Promise<readonly string[]>;
  clock(): Promise<ClockSeen>;
  power(): Promise<PowerSeen>;
  architecture(): Promise<ArchitectureSeen>;
  identity(): Promise<IdentitySeen>;
  cni(settings: CniSettings): Promise<Pick<CniSeen, 'files' | 'programs'>>;
}

export interface MachineFactsDeps {
  readonly roots: BoardRoots & { readonly cgroups: string; readonly boot: string; readonly lib: string };
  /** Folders that pods and images need, with a word for what lies there. */
  readonly folders: readonly { readonly path: string; readonly use: string }[];
  readonly stateDir: string;
  readonly now: () => number;
  /** Whether the clock was set from the network; undefined: nobody can say. */
  readonly timeSynced: () => Promise<boolean | undefined>;
  /** `uname -m` */
  readonly machine: string;
  /** Node's word for what this program was built for. */
  readonly agent: string;
  /** What another user may not do says nothing of the agent. */
  readonly asRoot: boolean;
}

/** Kinds of file systems that are in memory, by the kernel's magic numbers. */
const kinds: ReadonlyMap<number, DiskSeen['kind']> = new Map([
  [0x01021994, 'tmpfs'],
  [0x794c7630, 'overlay'],
]);

/** A file of a network is small. */
const mostConfBytes = 1 << 20;
const mostConfs = 100;

/** Reads this machine, by the roots that are handed in, each fact when it is asked for. */
export function systemMachineFacts(deps: MachineFactsDeps): MachineFacts {
  const { roots, folders } = deps;
  return {
    cgroups: async () => {
      const { refused, ...facts } = await readCgroups(roots);
      return { facts: { ...facts, ...(refused !== undefined && deps.asRoot && { refused }) }, line: kernelLine(roots) };
    },
    pageBytes: () => readPageBytes(roots),
    disks: () => readDisks(folders),
    readOnly: async () => {
      const mountinfo = await readFile(join(roots.proc, 'self/mountinfo'), 'utf8');
      return readOnlyMounts(mountinfo, ['/', ...folders.map((f) => f.path)]);
    },
    clock: async () => ({
      nowMs: deps.now(),
      synced: await deps.timeSynced(),
      hasRtc: (await names(join(roots.sys, 'class/rtc'))).length > 0,
    }),
    power: async () => {
      const { throttled, underVoltage, cards, resetReasons } = await findBoard(roots);
      // the kernel writes a warning into its log at the first look of a boot; a person asked
      const firmware = throttled === undefined ? undefined : decodeThrottled(await fileText(throttled));
      const alarm = underVoltage === undefined ? undefined : (await fileText(underVoltage)) === '1';
      return { firmware, underVoltage: alarm, cards, resetReasons };
    },
    architecture: async () => ({
      machine: deps.machine,
      agent: deps.agent,
      libseccomp: await libseccompVersion(join(roots.lib, 'arm-linux-gnueabihf/libseccomp.so.2')),
    }),
    identity: async () => ({
      stored: await storedIdentity(join(deps.stateDir, 'state')),
      hashes: machineHashes(await readHardware(roots)),
    }),
    cni: async (settings) => ({
      files: await confFiles(settings.confDir),
      programs: Object.fromEntries(await Promise.all(cniBinDirs(settings).map(async (dir) => [dir, await names(dir)] as const))),
    }),
  };
}

const names = async (folder: string): Promise<string[]> => readdir(folder).catch(() => []); // not there: nothing in it

/** Each file system once, with everything that lies on it. A folder that is not there yet will be made where the one above it is. */
async function readDisks(folders: MachineFactsDeps['folders']): Promise<readonly DiskSeen[]> {
  const byDevice = new Map<number, DiskSeen>();
  for (const { path, use } of folders) {
    const there = await nearestFolder(path);
    const found = await Promise.all([stat(there), statfs(there)]).catch(() => undefined); // its disk is away: another check says so
    if (found === undefined) continue;
    const [{ dev }, { blocks, bavail, bsize, files, ffree, type }] = found;
    const known = byDevice.get(dev);
    const size = { capacityBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, inodesFree: ffree };
    const disk: DiskSeen = known ?? { use, path, ...size, kind: kinds.get(type) ?? 'disk' };
    byDevice.set(dev, known === undefined ? disk : { ...known, use: `${known.use}, ${use}` });
  }
  return [...byDevice.values()];
}

async function nearestFolder(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const there = await access(at).then(
      () => true,
      () => false,
    );
    if (there || dirname(at) === at) return at;
  }
}

async function confFiles(folder: string): Promise<CniSeen['files']> {
  const all = await readdir(folder).catch(() => undefined); // there is no such folder
  if (all === undefined) return undefined;
  const wanted = all.filter((name) => /\.(conf|conflist|json)$/.test(name)).sort();
  return Promise.all(
    wanted.slice(0, mostConfs).map(async (name) => {
      const path = join(folder, name);
      const size = await stat(path).then(
        (s) => (s.isFile() ? s.size : Number.POSITIVE_INFINITY),
        () => Number.POSITIVE_INFINITY,
      );
      return { name, text: size > mostConfBytes ? '' : await readFile(path, 'utf8').catch(() => '') };
    }),
  );
}

/** By the file that the library's short name points to: `libseccomp.so.2.5.4`. */
async function libseccompVersion(link: string): Promise<string | undefined> {
  const target = await readlink(link).catch(() => ''); // another architecture, or it is linked into the runtime
  return /libseccomp\.so\.(\d+(?:\.\d+){1,3})$/.exec(target)?.[1];
}

async function storedIdentity(folder: string): Promise<IdentitySeen['stored']> {
  const value = await new FileStore(folder, { durable: true }).get('identity').catch(() => undefined); // damaged: made anew at the start
  const { nodeName, machine } = (value ?? {}) as { readonly nodeName?: unknown; readonly machine?: unknown };
  return typeof nodeName === 'string' && typeof machine === 'string' ? { nodeName, machine } : undefined;
}
