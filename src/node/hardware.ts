/**
 * What is fixed in the board or its kernel: the serial number, else the addresses burnt into the network cards, and the size of a memory page.
 * Read from files, so a folder is its fake.
 */
import { createHash } from 'node:crypto';
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface HardwareRoots {
  /** `/proc` */
  readonly proc: string;
  /** `/sys` */
  readonly sys: string;
}

export interface Hardware {
  readonly serial: string | undefined;
  /** Permanent MAC addresses in the order of their interface names. */
  readonly macs: readonly string[];
}

const permanentAddress = '0';

/** What tells this board from others. Never rejects: what is not found is absent. */
export async function readHardware(roots: HardwareRoots): Promise<Hardware> {
  return {
    serial: await readSerial(join(roots.proc, 'device-tree/serial-number')),
    macs: await permanentMacs(join(roots.sys, 'class/net')),
  };
}

/** The board by its device tree's name, as `Raspberry Pi 4 Model B Rev 1.4`; undefined: the machine does not say. */
export async function readModel({ proc }: Pick<HardwareRoots, 'proc'>): Promise<string | undefined> {
  const model = (await text(join(proc, 'device-tree/model'))).replaceAll('\0', '').trim();
  return model === '' ? undefined : model;
}

/** Bytes of a memory page, as the kernel tells each process at its start: 4096, or 16384 on a Pi 5; undefined: it does not. */
export async function readPageBytes({ proc }: Pick<HardwareRoots, 'proc'>): Promise<number | undefined> {
  const bytes = await readFile(join(proc, 'self/auxv')).catch(() => Buffer.alloc(0)); // not Linux: nothing is known
  const wide = pairs(bytes, 8);
  // read in words twice too long, the value of each pair stands in its type
  const vector = wide.every(([type]) => type < 2n ** 16n) ? wide : pairs(bytes, 4);
  const found = Number(vector.find(([type]) => type === pageSizeType)?.[1] ?? 0n);
  return found > 0 && Number.isInteger(Math.log2(found)) ? found : undefined;
}

/** AT_PAGESZ of the auxiliary vector. */
const pageSizeType = 6n;

/** Type and value, in little-endian words of this length. */
function pairs(bytes: Buffer, word: 4 | 8): (readonly [type: bigint, value: bigint])[] {
  const at = (offset: number): bigint => (word === 8 ? bytes.readBigUInt64LE(offset) : BigInt(bytes.readUInt32LE(offset)));
  return Array.from({ length: Math.floor(bytes.length / (2 * word)) }, (_, i) => [at(2 * i * word), at((2 * i + 1) * word)] as const);
}

async function readSerial(path: string): Promise<string | undefined> {
  // a device tree string ends with a zero byte; some boards have only zeros in it
  const serial = (await text(path)).replaceAll('\0', '').trim();
  return /^0*$/.test(serial) ? undefined : serial;
}

async function permanentMacs(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []); // no network at all: no address
  const found: string[] = [];
  for (const name of names.sort()) {
    const [address, kind] = await Promise.all([text(join(folder, name, 'address')), text(join(folder, name, 'addr_assign_type'))]);
    const mac = address.trim().toLowerCase();
    if (kind.trim() !== permanentAddress || !/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(mac) || mac === '00:00:00:00:00:00') continue;
    // lo, bridges and the pods' ends have no device behind them
    if (
      await access(join(folder, name, 'device')).then(
        () => true,
        () => false,
      )
    )
      found.push(mac);
  }
  return found;
}

const text = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => ''); // absent or unreadable: nothing is known

const hash12 = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 12);

/** Every hash this board may be known by, the one to be used first. Empty: the board has nothing of its own. */
export function machineHashes(h: Hardware): readonly string[] {
  return [...(h.serial === undefined ? [] : [hash12(`serial:${h.serial}`)]), ...h.macs.map((mac) => hash12(`mac:${mac}`))];
}

/** A node name from what is fixed: the last eight letters and digits, as a Pi's serial number is told apart. */
export function nameFromHardware(h: Hardware, machine: string): string {
  const fixed = (h.serial ?? h.macs[0] ?? machine).toLowerCase().replace(/[^a-z0-9]/g, '');
  return `pi-${(fixed === '' ? machine : fixed).slice(-8)}`;
}
