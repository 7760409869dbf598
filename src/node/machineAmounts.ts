/** What this machine has, for judging a configuration that is meant for it before there is an agent. */
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import type { NodeAmounts } from '../api/nodeResources.ts';

/** Disks are not looked at: which one pods write to is what the configuration says. */
export const machineAmounts = (proc = '/proc'): NodeAmounts => ({
  cpuMilli: cpus().length * 1000,
  memoryBytes: totalmem(),
  ephemeralBytes: 0,
  pids: mostProcesses(proc),
});

/** 0: nobody says. */
function mostProcesses(proc: string): number {
  try {
    const most = Number(readFileSync(join(proc, 'sys/kernel/pid_max'), 'utf8'));
    return Number.isSafeInteger(most) && most > 0 ? most : 0;
  } catch {
    return 0;
  }
}
