// pure
/**
 * How far a pull is, from what containerd is writing: looked at every few seconds, added up, and judged. It knows nothing of which pull wrote
 * what: with several at once they are one. containerd writes whole MiB of each layer, so that on a thin line nothing seems to come for a while.
 */
import { goDuration } from '../container/goDuration.ts';
import type { Ingest } from '../container/runtime.ts';
import type { Monotonic } from '../world/clock.ts';

export interface ProgressLimits {
  /** No byte more for so long while something is being written, or nothing has been written at all: it is stalled. */
  readonly stallMs: number;
  /** Bytes per second over `rateOverMs`, below which it only looks alive. */
  readonly leastRate: number;
  readonly rateOverMs: number;
}

/** Nothing is being written any more: layers are unpacked, which a slow card does for minutes. */
const unpackingFactor = 5;

interface Piece {
  readonly from: number;
  readonly offset: number;
  readonly total: number;
  /** It was there before the pull and has not grown since: what an earlier pull left. */
  readonly left: boolean;
  readonly writing: boolean;
}

export interface Progress {
  readonly pieces: ReadonlyMap<string, Piece>;
  readonly began: Monotonic;
  /** When there was a byte more, or a piece came or was done. */
  readonly movedAt: Monotonic;
  /** The sum at each look of the last `rateOverMs` in which something was being written. */
  readonly looks: readonly { readonly at: Monotonic; readonly bytes: number }[];
}

/** `there`: what is being written before the pull begins. */
export function beginProgress(there: readonly Ingest[], now: Monotonic): Progress {
  const left = there.map((i): [string, Piece] => [
    i.ref,
    { from: i.offsetBytes, offset: i.offsetBytes, total: i.totalBytes, left: true, writing: true },
  ]);
  return { pieces: new Map(left), began: now, movedAt: now, looks: [] };
}

/** One look more. */
export function lookAgain(p: Progress, seen: readonly Ingest[], now: Monotonic, rateOverMs: number): Progress {
  const pieces = new Map<string, Piece>();
  let moved = false;
  const present = new Map(seen.map((i) => [i.ref, i]));
  for (const [ref, before] of p.pieces) {
    if (present.has(ref)) continue;
    // what vanished is complete
    moved ||= before.writing && !before.left;
    pieces.set(ref, { ...before, offset: before.left ? before.offset : Math.max(before.offset, before.total), writing: false });
  }
  for (const { ref, offsetBytes, totalBytes } of seen) {
    const before = p.pieces.get(ref);
    const grew = before === undefined || offsetBytes !== before.offset;
    moved ||= grew;
    // a piece that begins anew has lost what it had
    const from = before === undefined ? 0 : Math.min(before.from, offsetBytes);
    pieces.set(ref, { from, offset: offsetBytes, total: totalBytes, left: before?.left === true && !grew, writing: true });
  }
  const next = { ...p, pieces, movedAt: moved ? now : p.movedAt };
  if (![...pieces.values()].some((i) => i.writing && !i.left)) return { ...next, looks: [] };
  const looks = [...p.looks, { at: now, bytes: fetched(next) }];
  // the newest of those that are old enough stays, so that the rate is of the whole time
  const old = looks.findLastIndex((l) => now - l.at >= rateOverMs);
  return { ...next, looks: old > 0 ? looks.slice(old) : looks };
}

/** Bytes that came since the pull began. */
export function fetched(p: Progress): number {
  let bytes = 0;
  for (const piece of p.pieces.values()) bytes += Math.max(0, piece.offset - piece.from);
  return bytes;
}

/** Anything of it was written: the registry answers. */
export const hasBegun = (p: Progress): boolean => [...p.pieces.values()].some((i) => !i.left);

/** Why it is to be ended; undefined: it goes on. */
export function stalled(p: Progress, now: Monotonic, limits: ProgressLimits): string | undefined {
  const idle = now - p.movedAt;
  const active = [...p.pieces.values()].some((i) => i.writing && !i.left);
  const begun = hasBegun(p);
  const limit = limits.stallMs * (begun && !active ? unpackingFactor : 1);
  if (idle >= limit) return stallText(fetched(p), begun ? idle : now - p.began);
  const first = p.looks[0];
  if (first === undefined || now - first.at < limits.rateOverMs) return undefined;
  const came = fetched(p) - first.bytes;
  return (came * 1000) / (now - first.at) < limits.leastRate ? stallText(came, now - first.at) : undefined;
}

const stallText = (bytes: number, ms: number): string => `pull stalled: ${bytes} bytes in ${goDuration(Math.round(ms / 1000) * 1000)}`;

/**
 * `34.5 MB of 120 MB`; undefined: nothing to tell yet. The whole is what containerd knows of: it fetches a few layers at a time and learns
 * the size of the next ones later.
 */
export function progressText(p: Progress): string | undefined {
  const mine = [...p.pieces.values()].filter((i) => !i.left);
  const have = mine.reduce((sum, i) => sum + i.offset, 0);
  if (have === 0) return undefined;
  const whole = mine.reduce((sum, i) => sum + Math.max(i.total, i.offset), 0);
  return mine.some((i) => i.total === 0 && i.writing) ? megabytes(have) : `${megabytes(have)} of ${megabytes(whole)}`;
}

const megabytes = (bytes: number): string => `${Number((bytes / 1e6).toFixed(1))} MB`;
