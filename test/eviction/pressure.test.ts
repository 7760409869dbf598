import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EvictionThreshold } from '../../src/api/evictionThresholds.ts';
import { noPressure, type PressureState, pressureStep } from '../../src/eviction/pressure.ts';
import type { Observation } from '../../src/eviction/words.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const hard: EvictionThreshold = { signal: 'memory.available', kind: 'hard', amount: { value: 100 }, graceMs: 0 };
const soft: EvictionThreshold = { signal: 'memory.available', kind: 'soft', amount: { value: 200 }, graceMs: 60_000 };
const disk: EvictionThreshold = {
  signal: 'nodefs.available',
  kind: 'hard',
  amount: { percent: 10 },
  minimumReclaim: { value: 50 },
  graceMs: 0,
};

function story(thresholds: readonly EvictionThreshold[], transitionMs = 300_000) {
  let state: PressureState = noPressure;
  return (seconds: number, seen: Readonly<Record<string, number | Observation>>) => {
    const observations = new Map(
      Object.entries(seen).map(([signal, o]) => [
        signal as EvictionThreshold['signal'],
        typeof o === 'number' ? { capacity: 1000, available: o } : o,
      ]),
    );
    const step = pressureStep(state, thresholds, observations, (seconds * 1000) as Monotonic, transitionMs);
    state = step.state;
    return {
      active: step.active.map((a) => `${a.threshold.kind} ${a.threshold.signal} ${a.missing}`),
      pressures: step.pressures,
    };
  };
}

test('a hard threshold acts when less than its amount is available, not at it', () => {
  const at = story([hard]);
  assert.deepEqual(at(0, { 'memory.available': 100 }), { active: [], pressures: [] });
  assert.deepEqual(at(1, { 'memory.available': 99 }), { active: ['hard memory.available 1'], pressures: ['MemoryPressure'] });
});

test('a soft threshold presses at once and acts after its grace without a break', () => {
  const at = story([soft]);
  assert.deepEqual(at(0, { 'memory.available': 150 }), { active: [], pressures: ['MemoryPressure'] });
  assert.deepEqual(at(59, { 'memory.available': 150 }).active, []);
  assert.deepEqual(at(60, { 'memory.available': 150 }).active, ['soft memory.available 50']);
  at(61, { 'memory.available': 200 });
  assert.deepEqual(at(62, { 'memory.available': 150 }).active, [], 'it begins anew');
});

test('what was met stays met until the minimum was reclaimed beyond the threshold', () => {
  const at = story([disk]);
  assert.deepEqual(at(0, { 'nodefs.available': 120 }).active, []);
  assert.deepEqual(at(1, { 'nodefs.available': 90 }).active, ['hard nodefs.available 60']);
  assert.deepEqual(at(2, { 'nodefs.available': 149 }).active, ['hard nodefs.available 1']);
  assert.deepEqual(at(3, { 'nodefs.available': 150 }).active, []);
  assert.deepEqual(at(4, { 'nodefs.available': 120 }).active, []);
});

test('a pressure is reported until it was not seen for the transition period', () => {
  const at = story([hard]);
  at(0, { 'memory.available': 10 });
  assert.deepEqual(at(10, { 'memory.available': 500 }).pressures, ['MemoryPressure']);
  assert.deepEqual(at(299, { 'memory.available': 500 }).pressures, ['MemoryPressure']);
  assert.deepEqual(at(300, { 'memory.available': 500 }).pressures, []);
});

test('what was not observed keeps its state and calls for nothing', () => {
  const at = story([hard, disk], 1000);
  at(0, { 'memory.available': 10, 'nodefs.available': 10 });
  assert.deepEqual(at(100, { 'nodefs.available': 10 }), {
    active: ['hard nodefs.available 140'],
    pressures: ['MemoryPressure', 'DiskPressure'],
  });
});

test('memory comes before the disk, a hard threshold before a soft one', () => {
  const at = story([disk, { ...soft, graceMs: 0 }, hard]);
  assert.deepEqual(at(0, { 'memory.available': 10, 'nodefs.available': 10 }).active, [
    'hard memory.available 90',
    'soft memory.available 190',
    'hard nodefs.available 140',
  ]);
});

test('what cannot wait meets the hard threshold, and the soft one not', () => {
  const at = story([soft, hard]);
  const urgent = { capacity: 1000, available: 250, urgent: 'Tasks waited. ' };
  assert.deepEqual(at(0, { 'memory.available': urgent }).active, ['hard memory.available 1']);
});
