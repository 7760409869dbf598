/**
 * The agent's own size: one that leaks must not become what the node is short of. Over its limit at three looks in a row it says so and asks to
 * be started anew; pods are no children of it and go on. Owns the count of those looks; what it may have is told by the machine.
 */
import { every } from './async/every.ts';
import type { Clock } from './world/clock.ts';
import { describeError, type Log } from './world/log.ts';

export interface OwnMemoryDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** What of it is in memory now. */
  readonly rssBytes: () => number;
  readonly limitBytes: number;
  /** Once, in words. */
  readonly tooLarge: (message: string) => void;
}

/** Nothing tells of it, and a look costs microseconds. */
const lookMs = 60_000;
/** A large answer to somebody passes in less. */
const looksInARow = 3;
const mib = 2 ** 20;

/** Twice what a hundred probed pods cost; of a small board a quarter. */
export const ownMemoryLimit = (nodeMemoryBytes: number): number => Math.min(192 * mib, Math.floor(nodeMemoryBytes / 4));

/** Until aborted, or it was too large. */
export async function watchOwnMemory(deps: OwnMemoryDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, rssBytes, limitBytes, tooLarge } = deps;
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  let looks = 0;
  const look = async (): Promise<void> => {
    const bytes = rssBytes();
    looks = bytes > limitBytes ? looks + 1 : 0;
    if (looks < looksInARow) return;
    over.abort();
    const size = `${Math.round(bytes / mib)} MiB of memory, and may have ${Math.round(limitBytes / mib)}`;
    tooLarge(`podsched has ${size}: it starts anew, pods go on`);
  };
  await every(
    clock,
    () => lookMs,
    both,
    look,
    (e) => log.warn({ error: describeError(e) }, 'the size of the agent is not known'),
  );
}
