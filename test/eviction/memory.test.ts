import assert from 'node:assert/strict';
import { test } from 'node:test';
import { availableMemory, type MemoryTrack, nextMemoryLookMs, observeMemory, trackMemory } from '../../src/eviction/memory.ts';
import type { MemoryReading } from '../../src/eviction/words.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const MiB = 2 ** 20;
const threshold = 80 * MiB;
const reading = (availableMi: number, o: Partial<MemoryReading> = {}): MemoryReading => ({
  totalBytes: 1000 * MiB,
  availableBytes: availableMi * MiB,
  swapFreeBytes: 0,
  anonBytes: 500 * MiB,
  zram: false,
  ...o,
});

/** Looks a second apart; the last one's observation. */
function looks(readings: readonly MemoryReading[], everyMs = 1000) {
  let before: MemoryTrack | undefined;
  let now: MemoryTrack | undefined;
  readings.forEach((r, i) => {
    before = now;
    now = trackMemory(before, r, (i * everyMs) as Monotonic);
  });
  const last = readings.at(-1);
  assert.ok(now && last);
  return { observation: observeMemory(last, before, now, threshold), nextMs: nextMemoryLookMs(last, now, threshold) };
}

test('free swap counts, half where it is zram, and no more than there is to put into it (H3)', () => {
  assert.equal(availableMemory(reading(50)), 50 * MiB);
  assert.equal(availableMemory(reading(50, { swapFreeBytes: 100 * MiB })), 150 * MiB);
  assert.equal(availableMemory(reading(50, { swapFreeBytes: 100 * MiB, zram: true })), 100 * MiB);
  assert.equal(availableMemory(reading(50, { swapFreeBytes: 900 * MiB, anonBytes: 30 * MiB })), 80 * MiB);
});

test('tasks that stall make it urgent, but only where memory is short: a pod at its own limit stalls too', () => {
  const stall = { some10: 60, full10: 12 };
  assert.equal(looks([reading(120, { stall })]).observation.urgent, 'Tasks waited for memory in 60% of the last 10 s. ');
  assert.equal(looks([reading(300, { stall })]).observation.urgent, undefined);
  assert.equal(looks([reading(120, { stall: { some10: 20, full10: 5 } })]).observation.urgent, undefined);
  assert.ok(looks([reading(120, { stall: { some10: 41, full10: 0 } })]).observation.urgent);
  const swap = { swapFreeBytes: 400 * MiB, stall };
  assert.ok(looks([reading(60, swap)]).observation.urgent, 'swap is free, and it swaps itself to death');
});

test('a leak is caught before it is at the threshold; one fast step is a program that starts', () => {
  assert.match(looks([reading(230), reading(190), reading(150)]).observation.urgent ?? '', /^It was going by 40Mi a second\. $/);
  assert.equal(looks([reading(300), reading(300), reading(120)]).observation.urgent, undefined);
  assert.equal(looks([reading(420), reading(370), reading(320)]).observation.urgent, undefined, 'plenty is left');
  assert.equal(looks([reading(200), reading(170), reading(140)], 9000).observation.urgent, undefined, 'an old look tells no pace');
});

test('the emptier and the faster, the sooner the next look', () => {
  assert.equal(looks([reading(900)]).nextMs, 10_000);
  assert.equal(looks([reading(150)]).nextMs, 1000);
  assert.equal(looks([reading(900, { stall: { some10: 6, full10: 0 } })]).nextMs, 1000);
  const calm = looks([reading(330)]).nextMs;
  assert.ok(calm > 4000 && calm < 6000, `${calm}`);
  const falling = looks([reading(530), reading(430), reading(330)]).nextMs;
  assert.ok(falling < calm && falling >= 1000, `${falling}`);
});

test('without a hard threshold nothing is urgent', () => {
  const r = reading(1, { stall: { some10: 99, full10: 99 } });
  const track = trackMemory(undefined, r, 0 as Monotonic);
  assert.equal(observeMemory(r, undefined, track, 0).urgent, undefined);
  assert.equal(nextMemoryLookMs(r, track, 0), 10_000);
});
