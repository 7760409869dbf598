/** Pressure stall information: how much time was lost waiting for CPU, memory or I/O. Of a group (`memory.pressure`) or the whole machine (/proc/pressure). */
import { readIfThere } from './files.ts';

export const pressureWords = ['cpu', 'memory', 'io'] as const;
export type PressureResource = (typeof pressureWords)[number];

export interface PressureLine {
  /** Per cent of the time in the last 10, 60, 300 seconds. */
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
  /** Microseconds since boot (or since the group exists). */
  readonly total: number;
}

export interface Pressure {
  /** At least one task waited. */
  readonly some: PressureLine;
  /** All of them waited; kernels before 5.13 do not tell it for cpu. */
  readonly full?: PressureLine;
}

/** What a kernel without PSI (CONFIG_PSI off, or psi=0) does not tell is left out. */
export type Pressures = Readonly<Partial<Record<PressureResource, Pressure>>>;

const line = /^(some|full) avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/;

/** `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`; undefined when there is no such line. */
export function parsePressure(text: string): Pressure | undefined {
  const found: { some?: PressureLine; full?: PressureLine } = {};
  for (const row of text.split('\n')) {
    const match = line.exec(row.trim());
    if (match === null) continue;
    const [, word, avg10, avg60, avg300, total] = match;
    found[word as 'some' | 'full'] = { avg10: Number(avg10), avg60: Number(avg60), avg300: Number(avg300), total: Number(total) };
  }
  if (found.some === undefined) return undefined;
  return { some: found.some, ...(found.full !== undefined && { full: found.full }) };
}

async function read(dir: string, nameOf: (resource: PressureResource) => string): Promise<Pressures> {
  const found: Partial<Record<PressureResource, Pressure>> = {};
  for (const resource of pressureWords) {
    const text = await readIfThere(dir, nameOf(resource));
    const pressure = text === undefined ? undefined : parsePressure(text);
    if (pressure !== undefined) found[resource] = pressure;
  }
  return found;
}

/** Of one group. Empty: the kernel keeps none, or the group is gone. */
export const pressures = (dir: string): Promise<Pressures> => read(dir, (resource) => `${resource}.pressure`);

/** Of the whole machine, from /proc/pressure. */
export const systemPressures = (procRoot = '/proc'): Promise<Pressures> => read(`${procRoot}/pressure`, (resource) => resource);
