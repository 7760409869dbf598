// pure
/** How much processor time is used per second, from two readings of a counter. */

export interface CpuCounter {
  /** On whichever clock, in milliseconds; the same for both readings. */
  readonly atMs: number;
  readonly usageNs: number;
}

/**
 * Billionths of a core, as Kubernetes counts them; undefined: there are no two readings, or it began anew between them. `elapsedMs`: what the
 * monotonic clock says lies between the two looks. The readings' own times are finer, unless their clock was set meanwhile.
 */
export function nanoCores(before: CpuCounter | undefined, now: CpuCounter | undefined, elapsedMs: number): number | undefined {
  if (before === undefined || now === undefined || now.usageNs < before.usageNs) return undefined;
  const told = now.atMs - before.atMs;
  const ms = told > elapsedMs / 2 && told < elapsedMs * 2 ? told : elapsedMs;
  if (!(ms > 0)) return undefined;
  const rate = Math.round(((now.usageNs - before.usageNs) / ms) * 1000);
  return Number.isFinite(rate) ? rate : undefined;
}
