import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { thermalThrottlePaths } from '../src/agentNode.ts';

test('thermal_throttle is masked of each processor that has it, in their order', () => {
  const sys = mkdtempSync(join(tmpdir(), 'podsched-sys-'));
  try {
    for (const name of ['cpu10/thermal_throttle', 'cpu2/thermal_throttle', 'cpu0', 'cpufreq/thermal_throttle'])
      mkdirSync(join(sys, 'devices/system/cpu', name), { recursive: true });
    assert.deepEqual(thermalThrottlePaths(sys), [
      '/sys/devices/system/cpu/cpu2/thermal_throttle',
      '/sys/devices/system/cpu/cpu10/thermal_throttle',
    ]);
    assert.deepEqual(thermalThrottlePaths(join(sys, 'none')), [], 'a Pi has none');
  } finally {
    rmSync(sys, { recursive: true, force: true });
  }
});
