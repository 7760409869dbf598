// pure
/**
 * What is left of memory, and whether it is too late to wait for the threshold. Two failures of the field stand behind it (H3): the kernel
 * kills first and at random, or the machine freezes, with plenty "available"; and pods go while swap is free.
 * So free swap counts, as far as there is something to put there, and half where it lies compressed in memory itself; and below twice the
 * threshold it counts as well that tasks stall for memory (PSI), and how fast it goes: an end takes a moment, in which a leak goes on.
 */
import type { Monotonic } from '../world/clock.ts';
import type { MemoryReading, Observation } from './words.ts';

/** What zram saves of what is put there, as a rule: compressed to half. */
const zramGain = 0.5;

/** Shares of the last 10 s, in percent. A cgroup that stalls at its own limit counts in them too, so they alone say nothing. */
const stalledFull = 10;
const stalledSome = 40;
/** Some waiting: looked at every second from then on. */
const uneasySome = 5;
/** So long an eviction takes until memory comes back. */
const reactionMs = 2_000;
/** A reading so much older says nothing of the pace. */
const longestPaceMs = 6_000;
/** A leak is taken for no faster than this as long as it was not seen: bytes per ms, 50 MB/s. */
const unseenPace = 50_000;

/** Between two looks at the node, at least and at most. */
export const shortestLookMs = 1_000;
export const longestLookMs = 10_000;

/** Bytes that can be had: the kernel's estimate, and what swap can take. */
export function availableMemory({ availableBytes, swapFreeBytes, anonBytes, zram }: MemoryReading): number {
  const swappable = Math.min(swapFreeBytes, anonBytes);
  return Math.floor(availableBytes + swappable * (zram ? zramGain : 1));
}

/** What earlier looks say of the pace, newest last; two are enough. */
export interface MemoryTrack {
  readonly at: Monotonic;
  readonly available: number;
  /** Bytes per ms by which it fell up to this look; 0: it did not, or nobody knows. */
  readonly pace: number;
}

/** The look of this moment, with the pace since the last one. */
export function trackMemory(before: MemoryTrack | undefined, reading: MemoryReading, at: Monotonic): MemoryTrack {
  const available = availableMemory(reading);
  const ms = before === undefined ? 0 : at - before.at;
  const pace = before === undefined || ms <= 0 || ms > longestPaceMs ? 0 : Math.max(0, (before.available - available) / ms);
  return { at, available, pace };
}

/** `threshold`: bytes of the hard threshold; 0: there is none, and nothing is urgent. */
export function observeMemory(reading: MemoryReading, before: MemoryTrack | undefined, now: MemoryTrack, threshold: number): Observation {
  const { available } = now;
  const base = { capacity: reading.totalBytes, available };
  if (threshold <= 0) return base;
  const { stall } = reading;
  const tight = 2 * threshold;
  if (stall !== undefined && reading.availableBytes < tight && (stall.full10 >= stalledFull || stall.some10 >= stalledSome)) {
    return { ...base, urgent: `Tasks waited for memory in ${Math.round(stall.some10)}% of the last 10 s. ` };
  }
  // one fast step is a program that starts; two are a leak
  const pace = Math.min(before?.pace ?? 0, now.pace);
  const soon = available >= threshold && available < tight && available - pace * reactionMs < threshold;
  return soon ? { ...base, urgent: `It was going by ${Math.round(pace / 1049)}Mi a second. ` } : base;
}

/** When to look again, in ms: the emptier and the faster, the sooner. */
export function nextMemoryLookMs({ stall }: MemoryReading, { available, pace }: MemoryTrack, threshold: number): number {
  if (threshold <= 0) return longestLookMs;
  if (available < 2 * threshold || (stall?.some10 ?? 0) >= uneasySome) return shortestLookMs;
  const ms = (available - threshold) / Math.max(unseenPace, 2 * pace);
  return Math.min(longestLookMs, Math.max(shortestLookMs, ms));
}
