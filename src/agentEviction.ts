/** What eviction goes by on a real machine: the kernel's files, the agent's folders, the configured thresholds. Owns nothing. */
import { join } from 'node:path';
import type { PodschedConfiguration } from './api/configuration.ts';
import { evictionMaps, parseEviction } from './api/evictionThresholds.ts';
import { folderUsage } from './eviction/diskUsage.ts';
import { readFilesystem, readMemory, readProcesses } from './eviction/readings.ts';
import type { EvictionWorld } from './kubeletEviction.ts';

export const systemEviction = (config: PodschedConfiguration, proc: string): EvictionWorld => ({
  thresholds: parseEviction(evictionMaps(config)).thresholds,
  pressureTransitionMs: config.evictionPressureTransitionPeriod,
  memory: () => readMemory(proc),
  processes: () => readProcesses(proc),
  filesystem: readFilesystem,
  folderUsage,
  podsDir: join(config.stateDir, 'pods'),
});
