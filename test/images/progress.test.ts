import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ingest } from '../../src/container/runtime.ts';
import { beginProgress, fetched, hasBegun, lookAgain, type Progress, progressText, stalled } from '../../src/images/progress.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const limits = { stallMs: 120_000, leastRate: 1024, rateOverMs: 300_000 };
const ingest = (ref: string, offsetBytes: number, totalBytes = 0): Ingest => ({ ref, offsetBytes, totalBytes });
const at = (s: number) => (s * 1000) as Monotonic;

/** Looks every ten seconds; `seen(s)` is what is being written then. */
function watch(
  there: readonly Ingest[],
  seconds: number,
  seen: (s: number) => readonly Ingest[],
): { p: Progress; why: string | undefined; s: number } {
  let p = beginProgress(there, at(0));
  for (let s = 10; s <= seconds; s += 10) {
    p = lookAgain(p, seen(s), at(s), limits.rateOverMs);
    const why = stalled(p, at(s), limits);
    if (why !== undefined) return { p, why, s };
  }
  return { p, why: undefined, s: seconds };
}

test('what is written is added up, what vanished is whole, and what is not known yet is not counted', () => {
  let p = beginProgress([], at(0));
  assert.equal(progressText(p), undefined);
  p = lookAgain(p, [ingest('a', 0, 0)], at(10), limits.rateOverMs);
  assert.equal(progressText(p), undefined);
  p = lookAgain(p, [ingest('a', 4_500_000, 20_000_000), ingest('b', 30_000_000, 100_000_000)], at(20), limits.rateOverMs);
  assert.equal(progressText(p), '34.5 MB of 120 MB');
  p = lookAgain(p, [ingest('b', 60_000_000, 100_000_000)], at(30), limits.rateOverMs);
  assert.equal(progressText(p), '80 MB of 120 MB');
  assert.equal(fetched(p), 80_000_000);
  p = lookAgain(p, [ingest('b', 60_000_000, 100_000_000), ingest('c', 40_000, 0)], at(40), limits.rateOverMs);
  assert.equal(progressText(p), '80 MB', 'the size of c is not known');
});

test('a pull of which nothing comes is stalled after two minutes', () => {
  const { why, s } = watch([], 600, () => []);
  assert.deepEqual([why, s], ['pull stalled: 0 bytes in 2m0s', 120]);
});

test('a pull that stands still in the middle is stalled two minutes later', () => {
  const { why, s } = watch([], 600, (n) => [ingest('a', Math.min(n, 60) * 100_000, 50_000_000)]);
  assert.deepEqual([why, s], ['pull stalled: 6000000 bytes in 2m0s', 180]);
});

test('bytes that only trickle are no progress: judged by the rate of the last five minutes', () => {
  const slow = watch([], 3600, (n) => [ingest('a', n * 500, 50_000_000)]);
  assert.deepEqual([slow.why, slow.s], ['pull stalled: 150000 bytes in 5m0s', 310]);
  assert.equal(watch([], 3600, (n) => [ingest('a', n * 2000, 50_000_000)]).why, undefined, '2 KB/s is a thin line, and a pull');
  const once = watch([], 3600, (n) => [ingest('a', Math.min(n, 600) * 100_000 + n * 500, 5e9)]);
  assert.equal(once.s, 900, 'the last five minutes count, not all of it');
});

test('unpacking writes nothing: it gets ten minutes', () => {
  const { why, s } = watch([], 3600, (n) => (n <= 60 ? [ingest('a', n * 1e6, 60e6)] : []));
  assert.equal(s, 670);
  assert.equal(why, 'pull stalled: 60000000 bytes in 10m0s');
});

test('what an earlier pull left is not this one’s, until it grows', () => {
  const left = [ingest('old', 7_000_000, 9_000_000)];
  const hangs = watch(left, 600, () => left);
  assert.deepEqual([hangs.why, hangs.s], ['pull stalled: 0 bytes in 2m0s', 120]);
  assert.equal(hasBegun(hangs.p), false);
  const goesOn = watch(left, 60, (n) => [ingest('old', 7_000_000 + n * 10_000, 9_000_000)]);
  assert.equal(fetched(goesOn.p), 600_000);
  assert.equal(progressText(goesOn.p), '7.6 MB of 9 MB');
  const unpacks = watch(left, 300, (n) => (n <= 20 ? [...left, ingest('new', n * 1e6, 20e6)] : left));
  assert.equal(unpacks.why, undefined, 'its own is done, and what was left is nobody’s');
});

test('a layer that begins anew counts from there', () => {
  let p = beginProgress([ingest('a', 5_000_000, 9_000_000)], at(0));
  p = lookAgain(p, [ingest('a', 100_000, 9_000_000)], at(10), limits.rateOverMs);
  assert.equal(fetched(p), 0);
  p = lookAgain(p, [ingest('a', 300_000, 9_000_000)], at(20), limits.rateOverMs);
  assert.equal(fetched(p), 200_000);
});
