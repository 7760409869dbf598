/**
 * Where this board's sensors are, and what of it never changes: looked up once, at the start. Read from files, so a folder is its fake. A
 * machine without a sensor (a PC, a virtual machine) has no path for it.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StorageCard } from './cardWear.ts';
import { fileText } from './files.ts';
import { type HardwareRoots, readHardware, readModel } from './hardware.ts';
import { storageCards } from './storageCards.ts';
import { resetReasons } from './throttled.ts';

export interface BoardRoots extends HardwareRoots {
  /** `/etc` */
  readonly etc: string;
  /** `/run` */
  readonly run: string;
}

export interface Board {
  readonly model: string | undefined;
  readonly serial: string | undefined;
  /** PRETTY_NAME of os-release. */
  readonly osImage: string;
  readonly systemUUID: string;
  /** File with the temperature of the processor, in thousandths of a degree. */
  readonly temperature: string | undefined;
  /** The firmware's `get_throttled`. */
  readonly throttled: string | undefined;
  /** 1 while the supply voltage is too low. */
  readonly underVoltage: string | undefined;
  readonly cards: readonly StorageCard[];
  /** Why the power chip reset the board the last time, in words; empty: an ordinary start, or it does not say. */
  readonly resetReasons: readonly string[];
}

/** Looks once where this board has its sensors and what it says of itself. Never rejects: what is not found is absent. */
export async function findBoard(roots: BoardRoots): Promise<Board> {
  const { proc, sys } = roots;
  const [{ serial }, model, osImage, systemUUID, temperature, throttled, underVoltage, cards, reset] = await Promise.all([
    readHardware(roots),
    readModel(roots),
    readOsImage(roots),
    readSystemUUID(roots),
    findTemperature(sys),
    findThrottled(sys),
    findUnderVoltage(sys),
    storageCards(sys),
    readFile(join(proc, 'device-tree/chosen/power/power_reset')).catch(() => new Uint8Array()), // a board without it
  ]);
  return { model, serial, osImage, systemUUID, temperature, throttled, underVoltage, cards, resetReasons: resetReasons(reset) };
}

async function readOsImage({ etc }: Pick<BoardRoots, 'etc'>): Promise<string> {
  const text = (await fileText(join(etc, 'os-release'))) || (await fileText(join(etc, '../usr/lib/os-release')));
  const line = /^PRETTY_NAME=(.*)$/m.exec(text)?.[1]?.trim() ?? '';
  return line.replace(/^(["'])(.*)\1$/, '$2').slice(0, 200);
}

/** Where cAdvisor looks for it (the kubelet's source), in its order. */
async function readSystemUUID({ proc, sys, etc }: BoardRoots): Promise<string> {
  for (const path of [
    join(sys, 'class/dmi/id/product_uuid'),
    join(proc, 'device-tree/system-id'),
    join(proc, 'device-tree/vm,uuid'),
    join(etc, 'machine-id'),
  ]) {
    const text = await fileText(path);
    if (/^[0-9A-Za-z-]{1,64}$/.test(text)) return text;
  }
  return '';
}

const entries = async (folder: string): Promise<string[]> => (await readdir(folder).catch(() => [])).sort(); // no such class: no sensor

/** Kinds of thermal zones that are the processor's, the likeliest first: Raspberry Pi, other boards, PCs. */
const cpuZones = [/^cpu[-_]?thermal/, /^(soc|cpu)/, /^x86_pkg_temp$/, /^k10temp|^coretemp/, /^acpitz$/];

async function findTemperature(sys: string): Promise<string | undefined> {
  const folder = join(sys, 'class/thermal');
  const zones = (await entries(folder)).filter((name) => /^thermal_zone[0-9]+$/.test(name));
  const kinds = await Promise.all(zones.map((name) => fileText(join(folder, name, 'type'))));
  for (const kind of cpuZones) {
    const zone = zones.find((_, i) => kind.test(kinds[i] ?? ''));
    if (zone !== undefined) return join(folder, zone, 'temp');
  }
  // a zone of another kind (a radio, a battery) would be a lie
  return undefined;
}

/** `soc:firmware` on a Pi 4, `soc@107c000000:firmware` on a Pi 5; a kernel that is not Raspberry Pi's own has no such file. */
async function findThrottled(sys: string): Promise<string | undefined> {
  const folder = join(sys, 'bus/platform/devices');
  for (const name of (await entries(folder)).filter((n) => /(^|:)firmware$/.test(n))) {
    const path = join(folder, name, 'get_throttled');
    // it is not read: the kernel writes a warning at the first time
    if ((await entries(join(folder, name))).includes('get_throttled')) return path;
  }
  return undefined;
}

async function findUnderVoltage(sys: string): Promise<string | undefined> {
  const folder = join(sys, 'class/hwmon');
  for (const name of await entries(folder)) {
    if ((await fileText(join(folder, name, 'name'))) === 'rpi_volt') return join(folder, name, 'in0_lcrit_alarm');
  }
  return undefined;
}
