/** The table of a bench run: each measure beside its floor, its ratio beside the budget. */
import { writeFileSync } from 'node:fs';
import type { Spread } from './measure.ts';

export interface Row {
  readonly what: string;
  readonly unit: 'ms' | 'MB' | 'MB/h' | 'ms/s' | 'ms/min' | 'bytes/min';
  readonly value: number;
  readonly min?: number;
  readonly max?: number;
  readonly n?: number;
  /** The same work by raw CRI calls (of probes: by bare node:http), in the same unit and the same run. */
  readonly floor?: number;
  /** Judged: of value ÷ floor where `of` is ratio, else of the value. */
  readonly budget?: { readonly of: 'ratio' | 'value'; readonly limit: number };
  /** What kubelet 1.32 needed on a machine of this kind, for the reader. */
  readonly kubelet?: string;
}

export const row = (what: string, s: Spread, more: Partial<Row> = {}): Row => ({
  what,
  unit: 'ms',
  value: s.median,
  min: s.min,
  max: s.max,
  n: s.n,
  ...more,
});

export const ratio = (r: Row): number | undefined => (r.floor === undefined || r.floor === 0 ? undefined : r.value / r.floor);

/** undefined: nobody promised anything. */
export function keepsBudget(r: Row): boolean | undefined {
  if (r.budget === undefined) return undefined;
  const judged = r.budget.of === 'value' ? r.value : ratio(r);
  return judged !== undefined && judged <= r.budget.limit;
}

const figure = (n: number | undefined): string => (n === undefined ? '' : n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2));

export function table(rows: readonly Row[]): string {
  const cells = rows.map((r) => {
    const kept = keepsBudget(r);
    return [
      r.what,
      `${figure(r.value)} ${r.unit}`,
      r.min === undefined || (r.n ?? 1) < 2 ? '' : `${figure(r.min)}–${figure(r.max)}, n=${r.n}`,
      figure(r.floor),
      figure(ratio(r)),
      r.budget === undefined ? '' : `≤ ${r.budget.limit}${r.budget.of === 'value' ? ` ${r.unit}` : ' ×'}`,
      kept === undefined ? '' : kept ? 'kept' : 'MISSED',
      r.kubelet ?? '',
    ];
  });
  const head = ['what', 'median', 'min–max', 'floor', 'ratio', 'budget', '', 'kubelet 1.32'];
  const all = [head, head.map(() => ''), ...cells];
  const widths = head.map((_, i) => Math.max(...all.map((line) => line[i]?.length ?? 0)));
  return all
    .map((line, i) =>
      (i === 1 ? widths.map((w) => '─'.repeat(w)) : line.map((cell, c) => cell.padEnd(widths[c] ?? 0))).join('  ').trimEnd(),
    )
    .join('\n');
}

export function writeJson(file: string, rows: readonly Row[], more: object): void {
  const told = rows.map((r) => ({ ...r, ratio: ratio(r), kept: keepsBudget(r) }));
  writeFileSync(file, `${JSON.stringify({ ...more, rows: told }, undefined, 2)}\n`);
}
