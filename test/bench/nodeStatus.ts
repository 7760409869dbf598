/** What a look at the node costs: the product's node status on this machine's own /proc and /sys, many heartbeats one after another. */
import { arch, release } from 'node:os';
import type { NodeCapacity } from '../../src/api/nodeResources.ts';
import { NodeStatus } from '../../src/node/status.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import type { Row } from './report.ts';

/** `nodeStatusUpdateFrequency` as it comes: a heartbeat a minute. */
const heartbeatsPerMinute = 1;
const capacity: NodeCapacity = { cpuMilli: 4000, memoryBytes: 4 * 2 ** 30, ephemeralBytes: 29 * 2 ** 30, pods: 110, hugepages: {} };

/** One heartbeat reads the board's sensors, judges the conditions, and makes what would be told; `disk`: a folder on a real file system. */
export async function measureNodeStatus(heartbeats: number, disk: string): Promise<Row[]> {
  const enough = new AbortController();
  let seen = 0;
  let from: NodeJS.CpuUsage | undefined;
  let spentMs = Number.NaN;
  const status: NodeStatus = new NodeStatus({
    clock: { ...systemClock, sleep: () => new Promise((resolve) => setImmediate(resolve)) },
    log: silentLog,
    store: new MemoryStore(),
    roots: { proc: '/proc', sys: '/sys', etc: '/etc', run: '/run' },
    bootId: 'bench',
    node: { name: 'bench', machine: 'bench', agentVersion: '0', architecture: arch(), kernelVersion: release() },
    labels: () => ({}),
    addresses: () => ['192.0.2.7'],
    runtimeVersion: () => 'containerd://1',
    capacity: () => capacity,
    allocatable: () => capacity,
    ready: () => ({ problems: [], network: 'ready' }),
    others: () => [],
    images: async () => [],
    heartbeatMs: () => 0,
    writable: ['/', disk],
    disk,
    event: () => {},
    changed: () => {
      JSON.stringify(status.told());
      // the first fifth warms up
      if (++seen === Math.floor(heartbeats / 5)) from = process.cpuUsage();
      if (seen < heartbeats) return;
      const { user, system } = process.cpuUsage(from);
      spentMs = (user + system) / 1000 / (heartbeats - Math.floor(heartbeats / 5));
      enough.abort();
    },
  });
  await status.load();
  await status.run(enough.signal);
  const value = spentMs * heartbeatsPerMinute;
  return [{ what: 'node status: CPU', unit: 'ms/min', value, n: heartbeats, budget: { of: 'value', limit: 30 } }];
}
