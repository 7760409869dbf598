import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { leftovers, machineTraces, runMark } from '../leftovers.ts';
import { mustRun, processes, startDaemon, until } from './process.ts';

test('a process that a run left is found by the mark it inherited, and only that one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podsched-left-'));
  const mark = `mark-${process.pid}`;
  const left = startDaemon('sleep', ['60'], { logFile: join(folder, 'log'), env: { ...process.env, [runMark]: mark } });
  const others = startDaemon('sleep', ['60'], { logFile: join(folder, 'log'), env: { ...process.env, [runMark]: `${mark}0` } });
  try {
    // whoever starts it becomes it a moment later
    const sleeps = (pid: number) => processes().some((p) => p.pid === pid && p.argv[0] === 'sleep');
    await until('both to be what they are', 30_000, () => sleeps(left.pid) && sleeps(others.pid));
    assert.deepEqual(leftovers(mark, folder, machineTraces()).processes, [{ pid: left.pid, what: 'sleep 60' }]);
  } finally {
    await left.end();
    await others.end();
    rmSync(folder, { recursive: true });
  }
});

test('a mount that a run left is found by the run’s folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podsched-left-'));
  await mustRun('mount', ['-t', 'tmpfs', 'tmpfs', folder]);
  try {
    assert.deepEqual(leftovers('no such mark', folder, machineTraces()).mounts, [folder]);
  } finally {
    await mustRun('umount', [folder]);
    rmSync(folder, { recursive: true });
  }
});
