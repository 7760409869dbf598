// pure
/**
 * The doctor's judgement of the board, its kernel and its disks, from facts that somebody else has read. What is not known is no fault: a
 * check that has nothing to go by says so and is content.
 */
import { type CgroupFacts, type KernelLine, nodeProblems } from '../cm/enforced.ts';
import { sizeText } from '../images/sizeText.ts';
import { cardText, type StorageCard, wornText } from '../node/cardWear.ts';
import { type PowerBits, underVoltageBit, wordsOf } from '../node/throttled.ts';
import { advice, type Finding, ok, wrong } from './doctorFinding.ts';

export interface CgroupsSeen {
  readonly facts: CgroupFacts;
  readonly line: KernelLine;
}

const neededControllers = ['cpu', 'cpuset', 'io', 'memory', 'pids'] as const;

/** By the controllers that the kernel offers; pods run in every case, but a limit of memory is a promise. */
export function cgroupsFinding({ facts, line }: CgroupsSeen): Finding {
  const name = 'cgroups';
  const problems = nodeProblems(facts, line);
  if (problems.length === 0) {
    return ok(name, `cgroup ${facts.version} with ${neededControllers.filter((c) => facts.controllers.has(c)).join(', ')}`);
  }
  // each is told as "what; what to do"
  const parts = problems.map(({ message }) => message.split('; '));
  const what = parts.map(([first = '']) => first).join('; ');
  const todo = parts.flatMap(([, ...rest]) => rest.map((text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`)).join(' ');
  const judge = problems.some((p) => p.type === 'MemoryCgroupOff') ? wrong : advice;
  return judge(name, what, todo === '' ? 'Start podsched by its unit, and not in a container of its own.' : todo);
}

const usualPageBytes = 4096;

/** `bytes` undefined: the kernel does not say. */
export function pageSizeFinding(bytes: number | undefined): Finding {
  const name = 'page_size';
  if (bytes === undefined) return ok(name, 'the kernel does not say how large its memory pages are');
  const size = bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`;
  if (bytes === usualPageBytes) return ok(name, `memory pages of ${size}`);
  return advice(
    name,
    `memory pages of ${size}: programs that were built for 4 KiB (jemalloc in many images, some databases) end at once`,
    'If an image needs it: kernel=kernel8.img in /boot/firmware/config.txt, then: reboot',
  );
}

export interface DiskSeen {
  /** What lies there, for a person: `pods, logs`. */
  readonly use: string;
  readonly path: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  /** 0: this kind does not count them. */
  readonly inodes: number;
  readonly inodesFree: number;
  readonly kind: 'disk' | 'tmpfs' | 'overlay';
}

/** Where evictions begin by default (nodefs), and where images are cleaned up. */
const evictionPercent = 10;
const imagesPercent = 15;
const inodesPercent = 5;

/** All disks in one sentence; the worst of them decides. */
export function diskFinding(disks: readonly DiskSeen[]): Finding {
  const name = 'disk';
  if (disks.length === 0) return advice(name, 'no disk could be asked how full it is', 'df, dmesg');
  const judged = disks.map(judgeDisk);
  const worst = judged.find((d) => d.level === 'wrong') ?? judged.find((d) => d.level === 'advice');
  const message = judged.map((d) => d.message).join('; ');
  if (worst === undefined) return ok(name, message);
  return { ...worst, name, message };
}

function judgeDisk({ use, path, capacityBytes, availableBytes, inodes, inodesFree, kind }: DiskSeen): Finding {
  const where = `${path} (${use})`;
  const percent = (free: number, all: number): number => (all > 0 ? (free / all) * 100 : 100);
  const bytes = percent(availableBytes, capacityBytes);
  const files = percent(inodesFree, inodes);
  const space = `${sizeText(availableBytes)} of ${sizeText(capacityBytes)} free`;
  const tidy = 'podsched images prune, journalctl --vacuum-size=50M, du -xh / | sort -h | tail';
  if (files < inodesPercent) return wrong(where, `${where} has room for ${inodesFree} more files of ${inodes}: pods are refused`, tidy);
  if (bytes < evictionPercent) return wrong(where, `${where} has ${space}: pods are refused or evicted`, tidy);
  if (kind !== 'disk') {
    return advice(
      where,
      `${where} is in memory (${kind}), with ${space}: what is stored there is gone after a reboot`,
      'Switch the overlay file system off (raspi-config), or put it on a disk.',
    );
  }
  if (bytes < imagesPercent) return advice(where, `${where} has ${space}: images that nothing uses are removed`, tidy);
  return ok(where, `${where} has ${space}`);
}

/** `points`: where nobody can write, of the root and of the folders that podsched writes to. */
export function writableFinding(points: readonly string[]): Finding {
  const name = 'read_only';
  if (points.length === 0) return ok(name, 'the disks can be written');
  const all = points.join(' and ');
  const remedy = `dmesg says why (a worn card, a power cut). If nothing speaks against it: mount -o remount,rw ${points[0]}`;
  return wrong(name, `the kernel lets nobody write to ${all}`, remedy);
}

export interface ClockSeen {
  /** Milliseconds since 1970, as the clock says. */
  readonly nowMs: number;
  /** From the network, since the boot; undefined: nobody can say. */
  readonly synced: boolean | undefined;
  /** It goes on while the board is off. */
  readonly hasRtc: boolean;
}

/** No podsched is older. */
const firstYear = 2024;

export function clockFinding({ nowMs, synced, hasRtc }: ClockSeen): Finding {
  const name = 'clock';
  const date = new Date(nowMs);
  const year = date.getUTCFullYear();
  const setIt = 'timedatectl set-ntp true, and: timedatectl timesync-status';
  // the negation also finds a date that is none
  if (!(year >= firstYear)) {
    const at = Number.isNaN(year) ? 'is no date' : `is at ${date.toISOString().slice(0, 10)}`;
    return wrong(name, `the clock ${at}: no certificate is valid then, so registries and brokers are refused`, setIt);
  }
  const battery = hasRtc ? 'and goes on without power' : 'and stands still without power';
  if (synced === true) return ok(name, `it was set from the network, ${battery}`);
  if (synced === undefined) return ok(name, `nobody says whether it was set from the network; it is at ${date.toISOString().slice(0, 10)}`);
  return advice(name, `it was not set from the network since the boot, ${battery}`, setIt);
}

export interface PowerSeen {
  /** The firmware's word; undefined: it has none. */
  readonly firmware: PowerBits | undefined;
  /** The voltage sensor's alarm; undefined: there is no sensor. */
  readonly underVoltage: boolean | undefined;
  readonly cards: readonly StorageCard[];
  /** Why the board started again the last time; empty: as usual, or not known. */
  readonly resetReasons: readonly string[];
}

const supply = 'Use the power supply made for this board with a short cable, and a powered hub for USB disks.';

export function powerFinding({ firmware, underVoltage, resetReasons }: PowerSeen): Finding {
  const name = 'power';
  const now = (firmware?.now ?? 0) | (underVoltage === true ? underVoltageBit : 0);
  const before = (firmware?.before ?? 0) & ~now;
  if ((now & underVoltageBit) !== 0) {
    return wrong(name, 'the supply voltage is too low just now: cards are damaged and devices fall off', supply);
  }
  const told = [
    ...wordsOf(now).map((w) => `${w} now`),
    ...wordsOf(before).map((w) => `${w} since the boot`),
    ...resetReasons.filter((r) => r !== 'enable signal').map((r) => `the board was reset by ${r}`),
  ];
  if (told.length > 0) {
    const low = ((now | before) & underVoltageBit) !== 0 || resetReasons.includes('under-voltage');
    return advice(name, told.join(', '), low ? supply : 'A heat sink or a fan: vcgencmd measure_temp says how hot it is.');
  }
  return ok(
    name,
    firmware === undefined && underVoltage === undefined ? 'this board tells nothing of its supply' : 'the supply is as it should be',
  );
}

export function cardFinding({ cards }: Pick<PowerSeen, 'cards'>): Finding {
  const name = 'card';
  const worn = cards.flatMap((card) => wornText(card) ?? []);
  if (worn.length > 0) return advice(name, worn.join('; '), 'Copy it to a new card before it fails.');
  return ok(name, cards.length === 0 ? 'no SD card or eMMC' : cards.map(cardText).join('; '));
}

export interface ArchitectureSeen {
  /** `uname -m` */
  readonly machine: string;
  /** Node's word for what this program was built for. */
  readonly agent: string;
  /** Of a 32-bit ARM system: `2.3.3`; undefined: not found. */
  readonly libseccomp: string | undefined;
}

/** Before it, the calls that new 32-bit programs read the clock with are refused as unknown. */
const seccompWithClock = [2, 4, 2] as const;

export function architectureFinding({ machine, agent, libseccomp }: ArchitectureSeen): Finding {
  const name = 'architecture';
  const is32 = agent === 'arm';
  if (is32 && libseccomp !== undefined && isOlder(libseccomp, seccompWithClock)) {
    return wrong(
      name,
      `libseccomp ${libseccomp} refuses new 32-bit programs the clock: in containers it is 1970, or they end`,
      'A newer system (Debian 11 or later), or libseccomp2 from its backports.',
    );
  }
  if (machine === 'armv6l') {
    return advice(
      name,
      'armv6l: most images have nothing for it',
      'Choose images that have linux/arm/v6 (as Alpine has), or a newer board.',
    );
  }
  if (is32 && (machine === 'aarch64' || machine === 'armv8l')) {
    return advice(
      name,
      'a 32-bit system on a 64-bit kernel: the runtime pulls images for 32 bit, which fewer and fewer have',
      'A 64-bit Raspberry Pi OS.',
    );
  }
  return ok(name, machine);
}

function isOlder(version: string, than: readonly number[]): boolean {
  const parts = version.split('.').map(Number);
  for (const [i, n] of than.entries()) {
    const part = parts[i] ?? 0;
    if (part !== n) return part < n;
  }
  return false;
}

export interface IdentitySeen {
  /** As stored on this card; undefined: nothing is, or it cannot be read. */
  readonly stored: { readonly nodeName: string; readonly machine: string } | undefined;
  /** Every hash this board may be known by; empty: it has nothing of its own. */
  readonly hashes: readonly string[];
}

/** Two boards with copies of one card take one another for themselves. */
export function identityFinding({ stored, hashes }: IdentitySeen): Finding {
  const name = 'identity';
  if (stored === undefined) return ok(name, 'this node has no name yet: it gets one at the first start');
  if (hashes.length === 0 || hashes.includes(stored.machine)) return ok(name, `${stored.nodeName}, on its own board`);
  return advice(
    name,
    `this card was written on another board, as node ${stored.nodeName}: if that one still runs with a copy of it, both have one name`,
    'Set nodeName in podsched.yaml, another one on each board.',
  );
}
