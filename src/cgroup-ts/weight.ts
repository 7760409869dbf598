/**
 * CPU shares (v1: 2 … 262144, 1024 the default) and cpu.weight (v2: 1 … 10000, 100 the default), both ways, as both generations of OCI
 * runtimes convert them. Quota and period too. Nothing here reads a file.
 *
 * linear     runc ≤ 1.3.1, crun < 1.23, and the kubelet for its own groups: maps the ranges; 1024 becomes 39
 * quadratic  runc ≥ 1.3.2, crun ≥ 1.23: a curve through the two ends and the two defaults; 1024 becomes 100
 */
import type { CpuMax } from './cpu.ts';

export type Generation = 'linear' | 'quadratic';

export const minShares = 2;
export const maxShares = 262_144;

const clamp = (n: number, low: number, high: number): number => Math.min(high, Math.max(low, n));

/** 0 means "not set" to runtimes: undefined. Shares outside of the range count as its ends. */
export function sharesToWeight(shares: number, generation: Generation = 'linear'): number | undefined {
  if (shares === 0) return undefined;
  if (shares <= minShares) return 1;
  if (shares >= maxShares) return 10_000;
  switch (generation) {
    case 'linear':
      return 1 + Math.floor(((shares - 2) * 9999) / 262_142);
    case 'quadratic': {
      const l = Math.log2(shares);
      const exponent = (l * l + 125 * l) / 612 - 7 / 34;
      // 10^2 comes out of the logarithm a hair above 100 on some machines, and would be rounded up to 101
      return clamp(Math.ceil(10 ** exponent - 1e-9), 1, 10_000);
    }
  }
}

/** Shares that give `weight`; for most weights there are several, this is the smallest (linear) or the nearest (quadratic). */
export function weightToShares(weight: number, generation: Generation = 'linear'): number {
  if (weight <= 1) return minShares;
  if (weight >= 10_000) return maxShares;
  switch (generation) {
    case 'linear':
      return 2 + Math.floor(((weight - 1) * 262_142) / 9999);
    case 'quadratic': {
      const l = (-125 + Math.sqrt(125 ** 2 + 4 * (612 * Math.log10(weight) + 126))) / 2;
      return clamp(Math.round(2 ** l), minShares, maxShares);
    }
  }
}

/** Thousandths of a CPU → shares: clamp(floor(m · 1024 / 1000), 2, 262144). */
export const milliCpuToShares = (milliCpu: number): number => clamp(Math.floor((milliCpu * 1024) / 1000), minShares, maxShares);

/** Thousandths of a CPU → cpu.max; 0 and less: no limit. Never below 1 ms of quota, the kernel's least. */
export function milliCpuToMax(milliCpu: number, period = 100_000): Required<CpuMax> {
  if (milliCpu <= 0) return { quota: 'max', period };
  return { quota: Math.max(1000, Math.floor((milliCpu * period) / 1000)), period };
}

/** cpu.max → thousandths of a CPU; undefined: no limit. */
export const maxToMilliCpu = (max: Required<CpuMax>): number | undefined =>
  max.quota === 'max' ? undefined : Math.round((max.quota * 1000) / max.period);

/** v1's pair (quota −1: none, 0: not set) → cpu.max; undefined: nothing to write. */
export function quotaToMax(quota: number, period: number): CpuMax | undefined {
  if (quota === 0 && period === 0) return undefined;
  return { quota: quota > 0 ? quota : 'max', ...(period > 0 && { period }) };
}
