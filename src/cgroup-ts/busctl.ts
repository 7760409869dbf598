/**
 * systemd's D-Bus manager by way of `busctl`: the argument lists, and what its answers mean. Nothing here runs anything.
 * What a unit file calls CPUQuota is CPUQuotaPerSecUSec here; infinity is 2^64 − 1.
 */
import { defaultPeriodUsec } from './cpu.ts';
import { CgroupError } from './error.ts';
import { checkedLimit } from './files.ts';
import { parseList } from './parse.ts';
import type { Resources } from './resources.ts';

/** One property: name, D-Bus type, and the words that busctl wants for the value. */
export type Property = readonly [name: string, type: 'b' | 't' | 's' | 'as' | 'ay', ...words: readonly string[]];

const infinity = '18446744073709551615';
const unsigned = (name: string, value: number | 'max', min = 0): string => (value === 'max' ? infinity : checkedLimit(name, value, min));

/** A CPU or node list as systemd wants it: one bit for each number, lowest byte first, the number of bytes before. */
export function bitmaskWords(list: string, file = 'cpuset'): readonly string[] {
  const numbers = parseList(list, file);
  const bytes = new Array<number>(numbers.length === 0 ? 0 : Math.floor((numbers.at(-1) ?? 0) / 8) + 1).fill(0);
  for (const n of numbers) bytes[n >> 3] = (bytes[n >> 3] ?? 0) | (1 << (n & 7));
  return [String(bytes.length), ...bytes.map(String)];
}

/** systemd keeps whole per cents of a CPU (10 ms a second) in what it writes to disk: rounded up, so that a reload takes nothing away. */
function quotaPerSecond(quota: number | 'max', period: number): string {
  if (quota === 'max') return infinity;
  return String(Math.ceil(Math.ceil((quota * 1_000_000) / period) / 10_000) * 10_000);
}

/**
 * What of `resources` systemd has a property for. The rest (hugetlb, misc, memory.oom.group, cpu.max.burst, cpu.idle, cpuset where systemd is
 * too old, io.max: systemd wants device paths) goes into the kernel's files. Throws CgroupError EINVAL for values out of range.
 */
export function resourceProperties(resources: Resources, withCpuset = true): readonly Property[] {
  const { cpu, cpuset, memory, pids, io } = resources;
  const result: Property[] = [];
  if (cpu?.weight !== undefined) result.push(['CPUWeight', 't', checkedLimit('cpu.weight', cpu.weight, 1, 10_000)]);
  if (cpu?.max !== undefined) {
    const period = cpu.max.period ?? defaultPeriodUsec;
    checkedLimit('cpu.max', cpu.max.quota, 1000);
    if (cpu.max.period !== undefined) result.push(['CPUQuotaPeriodUSec', 't', checkedLimit('cpu.max', period, 1000, 1_000_000)]);
    result.push(['CPUQuotaPerSecUSec', 't', quotaPerSecond(cpu.max.quota, period)]);
  }
  if (withCpuset && cpuset?.cpus !== undefined) result.push(['AllowedCPUs', 'ay', ...bitmaskWords(cpuset.cpus, 'cpuset.cpus')]);
  if (withCpuset && cpuset?.mems !== undefined) result.push(['AllowedMemoryNodes', 'ay', ...bitmaskWords(cpuset.mems, 'cpuset.mems')]);
  if (memory?.min !== undefined) result.push(['MemoryMin', 't', unsigned('memory.min', memory.min)]);
  if (memory?.low !== undefined) result.push(['MemoryLow', 't', unsigned('memory.low', memory.low)]);
  if (memory?.high !== undefined) result.push(['MemoryHigh', 't', unsigned('memory.high', memory.high, 1)]);
  if (memory?.max !== undefined) result.push(['MemoryMax', 't', unsigned('memory.max', memory.max, 1)]);
  if (memory?.['swap.max'] !== undefined) result.push(['MemorySwapMax', 't', unsigned('memory.swap.max', memory['swap.max'])]);
  if (pids?.max !== undefined) result.push(['TasksMax', 't', unsigned('pids.max', pids.max, 1)]);
  if (io?.weight !== undefined) result.push(['IOWeight', 't', checkedLimit('io.weight', io.weight, 1, 10_000)]);
  return result;
}

/** What every slice gets: its parent is wanted, nothing else is implied, and its controllers are on. A slice has no Delegate. */
export const sliceProperties = (parent: string, description: string): readonly Property[] => [
  ['Description', 's', description],
  ['Wants', 'as', '1', parent],
  ['DefaultDependencies', 'b', 'false'],
  ['CPUAccounting', 'b', 'true'],
  ['MemoryAccounting', 'b', 'true'],
  ['IOAccounting', 'b', 'true'],
  ['TasksAccounting', 'b', 'true'],
];

const words = (properties: readonly Property[]): readonly string[] => [String(properties.length), ...properties.flat()];

const call = (busctl: string, method: string, ...args: readonly string[]): readonly string[] => [
  busctl,
  '--system',
  '--', // what follows are never options
  'call',
  'org.freedesktop.systemd1',
  '/org/freedesktop/systemd1',
  'org.freedesktop.systemd1.Manager',
  method,
  ...args,
];

export const startTransientUnit = (busctl: string, unit: string, properties: readonly Property[]): readonly string[] =>
  call(busctl, 'StartTransientUnit', 'ssa(sv)a(sa(sv))', unit, 'replace', ...words(properties), '0');

/** `systemctl set-property --runtime` for several properties at once. */
export const setUnitProperties = (busctl: string, unit: string, properties: readonly Property[]): readonly string[] =>
  call(busctl, 'SetUnitProperties', 'sba(sv)', unit, 'true', ...words(properties));

export const startUnit = (busctl: string, unit: string): readonly string[] => call(busctl, 'StartUnit', 'ss', unit, 'replace');

export const stopUnit = (busctl: string, unit: string): readonly string[] => call(busctl, 'StopUnit', 'ss', unit, 'replace');

/** Its answer comes after everything that it was told before is done. */
export const pingManager = (busctl: string): readonly string[] => [
  ...[busctl, '--system', '--', 'call', 'org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.DBus.Peer', 'Ping'],
];

export const resetFailedUnit = (busctl: string, unit: string): readonly string[] => call(busctl, 'ResetFailedUnit', 's', unit);

/** What systemd said, as far as it changes what we do next. */
export type Complaint = 'exists' | 'not loaded' | 'unknown property' | 'denied' | 'other';

/** busctl prints `Call failed: <text of the D-Bus error>`. */
export function complaintOf(stderr: string): Complaint {
  if (/already (loaded|exists)|has a fragment file/i.test(stderr)) return 'exists';
  if (/not loaded|not found|no such unit/i.test(stderr)) return 'not loaded';
  if (/unknown (property|assignment)|cannot set property|no such property/i.test(stderr)) return 'unknown property';
  if (/access denied|permission denied|authentication required|not permitted/i.test(stderr)) return 'denied';
  return 'other';
}

/** The error for a call that failed, with the unit as its file. */
export function busctlError(unit: string, method: string, stderr: string): CgroupError {
  const codes: Readonly<Record<Complaint, string>> = {
    exists: 'EEXIST',
    'not loaded': 'ENOENT',
    'unknown property': 'ENOTSUP',
    denied: 'EACCES',
    other: 'EIO',
  };
  const text = stderr.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  return new CgroupError({
    code: codes[complaintOf(stderr)],
    file: unit,
    detail: `systemd: ${method}: ${text === '' ? 'no answer' : text}`,
  });
}
