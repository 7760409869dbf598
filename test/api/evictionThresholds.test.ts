import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  amountOf,
  checkEviction,
  defaultEvictionHard,
  type EvictionMaps,
  type EvictionSignal,
  parseEviction,
  reservedByEviction,
} from '../../src/api/evictionThresholds.ts';

const MiB = 2 ** 20;
const GiB = 2 ** 30;
const none: EvictionMaps = { evictionHard: {}, evictionSoft: {}, evictionSoftGracePeriod: {}, evictionMinimumReclaim: {} };
const read = (maps: Partial<EvictionMaps>) => parseEviction({ ...none, ...maps });
const wrong = (maps: Partial<EvictionMaps>) => read(maps).problems.map((p) => p.path);

test('a node that configures nothing keeps a share that fits its board free', () => {
  const kept = (signal: EvictionSignal, capacity: number): number => {
    const threshold = defaultEvictionHard().find((t) => t.signal === signal);
    assert.ok(threshold);
    return amountOf(threshold.amount, capacity);
  };
  assert.deepEqual(
    [430, 900, 1900, 7800].map((mi) => Math.round(kept('memory.available', mi * MiB) / MiB)),
    [40, 72, 100, 100],
    'Pi Zero 2, Pi 3, 2 GB, 8 GB',
  );
  assert.deepEqual(
    [7, 14, 29, 470].map((gi) => (kept('nodefs.available', gi * GiB) / GiB).toFixed(1)),
    ['0.7', '1.4', '2.0', '2.0'],
    'cards of 8, 16 and 32 GB, an SSD',
  );
  assert.equal(kept('imagefs.available', 14 * GiB), kept('nodefs.available', 14 * GiB), 'one disk has one threshold');
  assert.equal(kept('nodefs.inodesFree', 2_000_000), 50_000);
  assert.equal(kept('pid.available', 7_500), 375);
  assert.equal(kept('memory.available', 20 * MiB), 20 * MiB, 'never more than there is');
});

test('the kubelet’s syntax: amounts and shares', () => {
  const { thresholds, problems } = read({
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '7.5%', 'pid.available': '1000' },
    evictionSoft: { 'memory.available': '200Mi' },
    evictionSoftGracePeriod: { 'memory.available': '1m30s' },
    evictionMinimumReclaim: { 'nodefs.available': '500Mi', 'memory.available': '0' },
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(thresholds, [
    { signal: 'memory.available', kind: 'hard', amount: { value: 100 * MiB }, graceMs: 0, minimumReclaim: { value: 0 } },
    { signal: 'nodefs.available', kind: 'hard', amount: { percent: 7.5 }, graceMs: 0, minimumReclaim: { value: 500 * MiB } },
    { signal: 'pid.available', kind: 'hard', amount: { value: 1000 }, graceMs: 0 },
    { signal: 'memory.available', kind: 'soft', amount: { value: 200 * MiB }, graceMs: 90_000, minimumReclaim: { value: 0 } },
  ]);
});

test('evictionHard replaces the defaults as a whole; 0% and 100% switch a signal off', () => {
  assert.deepEqual(
    read({ evictionHard: { 'memory.available': '0%', 'nodefs.available': '100%', 'imagefs.available': '5%' } }).thresholds.map(
      (t) => t.signal,
    ),
    ['imagefs.available'],
  );
});

test('a minimum reclaim replaces the one of the defaults', () => {
  const [memory] = read({ evictionMinimumReclaim: { 'memory.available': '64Mi' } }).thresholds;
  assert.deepEqual(memory?.minimumReclaim, { value: 64 * MiB });
});

test('every mistake is told with its path', () => {
  assert.deepEqual(wrong({ evictionHard: { 'memory.avaliable': '1Mi' } }), ['evictionHard.memory.avaliable']);
  assert.equal(read({ evictionHard: { 'memory.avaliable': '1Mi' } }).problems[0]?.nearest, 'memory.available');
  for (const text of ['', 'much', '-1Mi', '0', '101%', '-1%', '%', '1e1%', 'Mi', '10 %']) {
    assert.deepEqual(wrong({ evictionHard: { 'memory.available': text } }), ['evictionHard.memory.available'], text);
  }
  assert.deepEqual(
    wrong({
      evictionHard: { 'nodefs.available': 'x' },
      evictionSoft: { 'memory.available': '1Mi', 'pid.available': '5' },
      evictionSoftGracePeriod: { 'pid.available': 'soon', 'imagefs.available': '1m', nodefs: '1m' },
      evictionMinimumReclaim: { 'memory.available': '-1' },
    }).sort(),
    [
      'evictionHard.nodefs.available',
      'evictionMinimumReclaim.memory.available',
      'evictionSoftGracePeriod.imagefs.available',
      'evictionSoftGracePeriod.memory.available',
      'evictionSoftGracePeriod.nodefs',
      'evictionSoftGracePeriod.pid.available',
    ],
  );
});

test('containerfs is taken, and follows from the others as in the kubelet', () => {
  assert.deepEqual(read({ evictionHard: { 'containerfs.available': '5%' } }), { thresholds: [], problems: [] });
});

test('a threshold of all the memory there is would be met for ever', () => {
  const v = { evictionHard: { 'memory.available': '1Gi' }, evictionSoft: {} };
  assert.deepEqual(checkEviction(v, 2 * GiB), []);
  assert.deepEqual(checkEviction(v), []);
  assert.deepEqual(
    checkEviction(v, GiB).map((p) => p.path),
    ['evictionHard.memory.available'],
  );
});

test('what hard thresholds keep is no part of what pods may ask for', () => {
  const { thresholds } = read({
    evictionHard: { 'memory.available': '10%' },
    evictionSoft: { 'nodefs.available': '20%' },
    evictionSoftGracePeriod: { 'nodefs.available': '1m' },
  });
  assert.equal(reservedByEviction(thresholds, 'memory.available', 1000), 100);
  assert.equal(reservedByEviction(thresholds, 'nodefs.available', 1000), 0);
});
