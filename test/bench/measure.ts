/** Reading the clock and the kernel's books about one process. */
import { readdirSync, readFileSync } from 'node:fs';

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly n: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (i: number) => sorted[i] ?? Number.NaN;
  const middle = sorted.length / 2;
  return {
    median: sorted.length % 2 === 1 ? at(Math.floor(middle)) : (at(middle - 1) + at(middle)) / 2,
    min: at(0),
    max: at(sorted.length - 1),
    n: sorted.length,
  };
}

/** The slope of the straight line nearest to the points (least squares), in units of y per unit of x. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number) => points.reduce((sum, p) => sum + of(p), 0) / points.length;
  const [x0, y0] = [mean(([x]) => x), mean(([, y]) => y)];
  return mean(([x, y]) => (x - x0) * (y - y0)) / mean(([x]) => (x - x0) ** 2);
}

/** Milliseconds that `step` took. */
export async function timed(step: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await step();
  return performance.now() - start;
}

/** The wall clock with its fraction, to compare with the runtime's nanoseconds. */
export const wallMs = (): number => performance.timeOrigin + performance.now();

export interface ProcessBooks {
  /** Milliseconds on a CPU since the start, all threads. */
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly peakRssBytes: number;
  /** Bytes caused to be written to a block device since the start. */
  readonly writtenBytes: number;
}

export function processBooks(pid: number): ProcessBooks {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (text: string, name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);
  const cpuNs = readdirSync(`/proc/${pid}/task`).reduce(
    (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );
  return {
    cpuMs: cpuNs / 1e6,
    rssBytes: field(status, 'VmRSS') * 1024,
    peakRssBytes: field(status, 'VmHWM') * 1024,
    writtenBytes: field(readFileSync(`/proc/${pid}/io`, 'utf8'), 'write_bytes'),
  };
}
