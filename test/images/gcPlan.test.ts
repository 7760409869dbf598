import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bytesToFree,
  type DiskUse,
  type GcRun,
  imagesToRemove,
  type KnownImage,
  offlineKeepMs,
  removalOrder,
  type Spared,
  usedPercent,
  whySpared,
} from '../../src/images/gcPlan.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const day = 86_400_000;
/** Thirty days after the boot. */
const start = 30 * day;
const at = (ms: number): Monotonic => ms as Monotonic;
const run = (o: Partial<GcRun> = {}): GcRun => ({ startedAt: at(start), minimumAgeMs: 120_000, offline: false, ...o });
const image = (name: string, o: Partial<KnownImage> = {}): KnownImage => ({
  id: `sha256:${name}`,
  names: [name],
  sizeBytes: 100,
  used: false,
  pins: [],
  firstDetected: at(0),
  lastUsed: undefined,
  ...o,
});

test('how full a disk is, as the kubelet counts', () => {
  for (const [capacityBytes, availableBytes, percent] of [
    [1000, 1000, 0],
    [1000, 0, 100],
    [1000, 150, 85],
    // what is free is cut to whole points, so 85.1 counts as 86
    [1000, 149, 86],
    [1000, 999, 1],
    // more free than there is (a file system that counts oddly)
    [1000, 2000, 0],
    [0, 0, 0],
    [64e9, 9.6e9, 85],
  ] as const) {
    assert.equal(usedPercent({ capacityBytes, availableBytes }), percent, `${availableBytes} of ${capacityBytes}`);
  }
});

test('how much is to be freed', () => {
  const disk = (availableBytes: number, capacityBytes = 1000): DiskUse => ({ capacityBytes, availableBytes });
  for (const [what, use, highPercent, lowPercent, bytes] of [
    ['below the high threshold nothing', disk(160), 85, 80, 0],
    ['between the two nothing', disk(190), 85, 80, 0],
    ['at the high one down to the low one', disk(150), 85, 80, 50],
    ['full', disk(0), 85, 80, 200],
    ['a threshold of 100 on a full disk nothing', disk(0), 100, 80, 0],
    ['thresholds far apart', disk(100), 90, 10, 800],
    ['a low one of 0 empties what it can', disk(100), 90, 0, 900],
    ['a high one of 1 as soon as something lies there', disk(990), 1, 0, 10],
    ['a disk without size nothing', disk(0, 0), 85, 80, 0],
  ] as const) {
    assert.equal(bytesToFree(use, { highPercent, lowPercent }), bytes, what);
  }
});

test('what is spared, and why', () => {
  const lately = { firstDetected: at(start - 20 * day), lastUsed: at(start - 6 * day) };
  const longAgo = { firstDetected: at(start - 20 * day), lastUsed: at(start - 8 * day) };
  const rows: readonly (readonly [string, KnownImage, Partial<GcRun>, Spared | undefined])[] = [
    ['nobody needs it', image('a'), {}, undefined],
    ['a container is made of it', image('a', { used: true, lastUsed: at(start) }), {}, 'used'],
    ['it was used when this run began', image('a', { lastUsed: at(start) }), {}, 'used'],
    ['it was used since', image('a', { lastUsed: at(start + 1) }), {}, 'used'],
    ['it was used before', image('a', { lastUsed: at(start - 1) }), {}, undefined],
    ['the runtime pins it', image('a', { pins: ['runtime'] }), {}, 'pinned'],
    ['sandboxes are made of it', image('a', { pins: ['sandbox'] }), {}, 'pinned'],
    ['a pod names it', image('a', { pins: ['pod'] }), {}, 'pinned'],
    ['it was imported', image('a', { pins: ['imported'] }), {}, 'pinned'],
    ['a pin holds for the oldest, too', image('a', { pins: ['pod'], lastUsed: at(1) }), {}, 'pinned'],
    ['it came a minute ago', image('a', { firstDetected: at(start - 60_000) }), {}, 'young'],
    ['it came just within the minimum age', image('a', { firstDetected: at(start - 119_999) }), {}, 'young'],
    ['it came the minimum age ago', image('a', { firstDetected: at(start - 120_000) }), {}, undefined],
    ['no minimum age', image('a', { firstDetected: at(start) }), { minimumAgeMs: 0 }, undefined],
    ['a longer minimum age', image('a', { firstDetected: at(start - day) }), { minimumAgeMs: 2 * day }, 'young'],
    ['offline, used within a week', image('a', lately), { offline: true }, 'offline'],
    ['online, used within a week', image('a', lately), {}, undefined],
    ['offline, used longer ago', image('a', longAgo), { offline: true }, undefined],
    ['offline, used a week ago to the millisecond', image('a', { lastUsed: at(start - offlineKeepMs) }), { offline: true }, undefined],
    [
      'offline, never seen used and seen for less than a week',
      image('a', { firstDetected: at(start - day) }),
      { offline: true },
      'offline',
    ],
    ['offline, never seen used for more than a week', image('a', { firstDetected: at(0) }), { offline: true }, undefined],
    ['offline and pinned', image('a', { ...longAgo, pins: ['pod'] }), { offline: true }, 'pinned'],
  ];
  for (const [what, known, o, spared] of rows) assert.equal(whySpared(known, run(o)), spared, what);
});

test('the order: used longest ago, then seen first, then by name', () => {
  const order = (...images: KnownImage[]) => removalOrder(images, run()).map((i) => i.names[0]);
  assert.deepEqual(order(image('b', { lastUsed: at(2000) }), image('a', { lastUsed: at(1000) })), ['a', 'b']);
  // never used in this run goes before used at any time
  assert.deepEqual(order(image('old', { lastUsed: at(1) }), image('never', { firstDetected: at(start - day) })), ['never', 'old']);
  assert.deepEqual(order(image('late', { firstDetected: at(2000) }), image('early', { firstDetected: at(1000) })), ['early', 'late']);
  // last use counts before first sight
  assert.deepEqual(
    order(
      image('seen-first', { firstDetected: at(1), lastUsed: at(5000) }),
      image('seen-last', { firstDetected: at(4000), lastUsed: at(4500) }),
    ),
    ['seen-last', 'seen-first'],
  );
  assert.deepEqual(order(image('c'), image('a'), image('b')), ['a', 'b', 'c']);
  assert.deepEqual(order(image('pinned', { pins: ['pod'] }), image('a'), image('used', { used: true })), ['a']);
});

test('as many go as are needed, and no more', () => {
  const three = [
    image('third', { lastUsed: at(3000) }),
    image('first', { lastUsed: at(1000) }),
    image('second', { lastUsed: at(2000), sizeBytes: 300 }),
  ];
  for (const [what, bytes, names, freed, enough] of [
    ['nothing is needed', 0, [], 0, true],
    ['a byte takes one image', 1, ['first'], 100, true],
    ['exactly one image', 100, ['first'], 100, true],
    ['a byte more', 101, ['first', 'second'], 400, true],
    ['all of it', 500, ['first', 'second', 'third'], 500, true],
    ['more than there is', 501, ['first', 'second', 'third'], 500, false],
    ['everything', Number.POSITIVE_INFINITY, ['first', 'second', 'third'], 500, false],
  ] as const) {
    const plan = imagesToRemove(three, bytes, run());
    assert.deepEqual([plan.images.map((i) => i.names[0]), plan.bytes, plan.enough], [names, freed, enough], what);
  }
});

test('an image whose size is not told goes in its turn and counts for nothing', () => {
  const plan = imagesToRemove([image('unknown', { sizeBytes: 0, lastUsed: at(1) }), image('known', { lastUsed: at(2) })], 50, run());
  assert.deepEqual([plan.images.map((i) => i.names[0]), plan.bytes], [['unknown', 'known'], 100]);
});
