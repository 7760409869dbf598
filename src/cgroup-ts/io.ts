/** io.weight, io.max, io.stat. Devices are named `major:minor`. */
import type { Controller, Limit } from './controller.ts';
import { CgroupError } from './error.ts';
import { checkedLimit, mustExist, readIfThere, writeChanged, writeText } from './files.ts';
import { parseLimit, parseNestedKeyed } from './parse.ts';

export interface IoMax {
  /** Bytes a second. */
  readonly rbps?: Limit;
  readonly wbps?: Limit;
  /** Operations a second. */
  readonly riops?: Limit;
  readonly wiops?: Limit;
}

export interface IoResources {
  /** 1 … 10000 for every device without its own weight (BFQ or io.cost must be in use on it). */
  readonly weight?: number;
  /** By `major:minor`; what a device's entry does not mention stays. */
  readonly max?: Readonly<Record<string, IoMax>>;
}

export interface IoStat {
  readonly weight?: number;
  readonly max?: Readonly<Record<string, Required<IoMax>>>;
  /** By device, by the kernel's keys: rbytes, wbytes, rios, wios, dbytes, dios. */
  readonly stat: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const keys = ['rbps', 'wbps', 'riops', 'wiops'] as const;

/** `8:0 rbps=max wbps=1048576 riops=max wiops=max`, a line for each device. */
export function parseIoMax(text: string): Readonly<Record<string, Required<IoMax>>> {
  const of = (values: Readonly<Record<string, string>>, key: string): Limit => parseLimit(values[key] ?? 'max', 'io.max');
  return Object.fromEntries(
    Object.entries(parseNestedKeyed(text)).map(([device, values]) => [
      device,
      { rbps: of(values, 'rbps'), wbps: of(values, 'wbps'), riops: of(values, 'riops'), wiops: of(values, 'wiops') },
    ]),
  );
}

/** What goes into io.max for one device. */
export function printIoMax(device: string, max: IoMax): string {
  if (!/^\d+:\d+$/.test(device))
    throw new CgroupError({ code: 'EINVAL', file: 'io.max', value: device, detail: 'a device is major:minor' });
  const words = keys.flatMap((key) => (max[key] === undefined ? [] : [`${key}=${checkedLimit('io.max', max[key], 1)}`]));
  return [device, ...words].join(' ');
}

/** The default of io.weight: `default 100` on the first line (io.bfq.weight of older kernels: the number alone). */
export function parseIoWeight(text: string): number | undefined {
  const match = /^(?:default )?(\d+)$/m.exec(text);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

export const io: Controller<IoResources, IoStat> = {
  name: 'io',

  isSet: (wanted) =>
    wanted.weight !== undefined || Object.values(wanted.max ?? {}).some((max) => keys.some((key) => max[key] !== undefined)),

  async set(dir, wanted, fs) {
    const written: string[] = [];
    if (wanted.weight !== undefined) {
      const value = checkedLimit('io.weight', wanted.weight, 1, 10_000);
      const now = await readIfThere(dir, 'io.weight');
      const bfq = now === undefined ? await readIfThere(dir, 'io.bfq.weight') : undefined;
      if (bfq !== undefined) {
        // BFQ's own file ends at 1000: the same share of the range
        const scaled = String(
          Math.max(1, Math.min(1000, wanted.weight <= 100 ? wanted.weight : Math.round(100 + ((wanted.weight - 100) * 900) / 9900))),
        );
        if (String(parseIoWeight(bfq)) !== scaled) written.push(...(await writeChanged(dir, [['io.bfq.weight', scaled]], fs)));
      } else if (now === undefined || String(parseIoWeight(now)) !== value) {
        await writeText(dir, 'io.weight', `default ${value}`, fs);
        written.push('io.weight');
      }
    }
    const now = wanted.max === undefined ? {} : parseIoMax((await readIfThere(dir, 'io.max')) ?? '');
    for (const [device, max] of Object.entries(wanted.max ?? {})) {
      const line = printIoMax(device, max);
      if (keys.every((key) => max[key] === undefined || max[key] === (now[device]?.[key] ?? 'max'))) continue;
      await writeText(dir, 'io.max', line, fs);
      if (!written.includes('io.max')) written.push('io.max');
    }
    return written;
  },

  async stat(dir) {
    await mustExist(dir);
    const [weight, max, stat] = await Promise.all(['io.weight', 'io.max', 'io.stat'].map((name) => readIfThere(dir, name)));
    const defaultWeight = weight === undefined ? undefined : parseIoWeight(weight);
    return {
      ...(defaultWeight !== undefined && { weight: defaultWeight }),
      ...(max !== undefined && { max: parseIoMax(max) }),
      stat: Object.fromEntries(
        Object.entries(parseNestedKeyed(stat ?? '')).map(([device, values]) => [
          device,
          Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (/^\d+$/.test(value) ? [[key, Number(value)]] : []))),
        ]),
      ),
    };
  },
};
