/** What the agent says that pods and the node use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import type { GroupUse, NodeUse } from '../../src/cm/usage.ts';
import type { ContainerStats } from '../../src/container/stats.ts';
import { type ContainerId, labels } from '../../src/container/words.ts';
import { type StatsDeps, type StatsView, statsView } from '../../src/operations/stats.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { cs, running, told } from './view.ts';

const mib = 2 ** 20;
const start = Date.parse('2026-01-01T00:00:00Z');

interface Cost {
  /** Thousandths of a core. */
  readonly milli: number;
  readonly bytes: number;
  readonly attempt?: number;
}

interface World extends Partial<StatsDeps> {
  readonly pods?: () => readonly ToldPod[];
  /** By uid, then by container. */
  readonly costs?: Readonly<Record<string, Readonly<Record<string, Cost>>>>;
  readonly group?: (uid: string, seconds: number) => GroupUse | undefined;
}

const nodeUse: NodeUse = {
  memory: { usageBytes: 700 * mib, workingSetBytes: 500 * mib, shmemBytes: 0, swapBytes: 10 * mib, rssBytes: 300 * mib },
  cpuUsec: 0,
  pids: 240,
  maxPids: 32_768,
  totalBytes: 1000 * mib,
  availableBytes: 400 * mib,
  swapTotalBytes: 100 * mib,
  swapFreeBytes: 90 * mib,
};

function world(o: World = {}) {
  const clock = new FakeClock(start);
  const seconds = () => (clock.monotonic() - 1_000_000) / 1000;
  const asked = { stats: 0, node: 0 };
  const containerStats = async (): Promise<readonly ContainerStats[]> => {
    asked.stats++;
    return Object.entries(o.costs ?? {}).flatMap(([uid, containers]) =>
      Object.entries(containers).map(([name, { milli, bytes, attempt = 0 }]) => ({
        id: `${uid}-${name}-${attempt}` as ContainerId,
        name: name.replace(/#.*/, ''),
        attempt,
        labels: { [labels.podUid]: uid },
        cpu: { atMs: clock.now(), usageNs: Math.round(seconds() * milli * 1e6) },
        memory: { atMs: clock.now(), workingSetBytes: bytes, usageBytes: bytes + mib, rssBytes: bytes - mib },
        writableLayer: { atMs: clock.now(), mountpoint: '/snapshots', usedBytes: 5 * mib, inodesUsed: 7 },
      })),
    );
  };
  const view = statsView({
    clock,
    nodeName: 'pi-07',
    pods: o.pods ?? (() => [told('web')]),
    containerStats,
    podUsage: async (uid) => o.group?.(uid, seconds()),
    nodeUsage: async () => {
      asked.node++;
      return { ...nodeUse, cpuUsec: Math.round(seconds() * 250_000) };
    },
    uptimeSeconds: () => 3600,
    allocatable: () => ({ cpuMilli: 3800, memoryBytes: 900 * mib }),
    nodeFolder: '/var/lib/podsched',
    fsSpace: async (path) =>
      path === '/snapshots'
        ? { capacityBytes: 64 * mib, availableBytes: 16 * mib, inodes: 1000, inodesFree: 900 }
        : { capacityBytes: 1024 * mib, availableBytes: 256 * mib, inodes: 0, inodesFree: 0 },
    imageFilesystems: async () => [{ mountpoint: '/snapshots', usedBytes: 40 * mib, inodesUsed: 99 }],
    logUsage: async (_pod, container) => (container === 'app' ? { usedBytes: 2 * mib, inodesUsed: 3 } : undefined),
    ...o,
  });
  /** The answer, with the clock carried on while it sleeps. */
  const answer = async <T>(ask: (v: StatsView) => Promise<T>): Promise<T> => {
    const pending = ask(view);
    pending.catch(() => {}); // told to the asker
    await clock.advance(0);
    while (clock.sleeping > 0) await clock.advance(clock.nextInMs ?? 0);
    return pending;
  };
  return { clock, view, answer, asked };
}

test('an idle agent reads nothing', async () => {
  const { clock, asked } = world();
  await clock.advance(600_000);
  assert.deepEqual(asked, { stats: 0, node: 0 });
});

test('top tells processor and memory of each container and of all together, with what they may use', async () => {
  const limited = { limits: { cpu: '500m', memory: '64Mi' } };
  const pod = told('web', {
    spec: {
      containers: [
        { name: 'app', image: 'i', resources: limited },
        { name: 'side', image: 'i' },
      ],
    },
    status: { containerStatuses: [cs('app', { state: running }), cs('side', { state: running })] },
  });
  const { answer } = world({
    pods: () => [pod],
    costs: { 'uid-web': { app: { milli: 120, bytes: 30 * mib }, side: { milli: 7, bytes: 2 * mib } } },
  });
  assert.deepEqual(await answer((v) => v.topPods()), [
    {
      apiVersion: 'podsched.dev/v1',
      kind: 'PodUsage',
      metadata: { name: 'web', namespace: 'default', uid: 'uid-web' },
      timestamp: '2026-01-01T00:00:01Z',
      window: '1.000s',
      usage: { cpu: '127000000n', memory: '32768Ki' },
      containers: [
        { name: 'app', usage: { cpu: '120000000n', memory: '30720Ki' }, limits: { cpu: '500m', memory: '65536Ki' } },
        { name: 'side', usage: { cpu: '7000000n', memory: '2048Ki' } },
      ],
    },
  ]);
});

test('a pod has a limit where each of its containers has one, sidecars too', async () => {
  const memory = (text: string) => ({ resources: { limits: { memory: text } } });
  const pod = told('web', {
    spec: {
      initContainers: [
        { name: 'proxy', image: 'i', restartPolicy: 'Always', ...memory('16Mi') },
        { name: 'setup', image: 'i' },
      ],
      containers: [{ name: 'app', image: 'i', ...memory('48Mi') }],
    },
  });
  const { answer } = world({ pods: () => [pod], costs: { 'uid-web': { app: { milli: 1, bytes: 1 } } } });
  assert.deepEqual((await answer((v) => v.topPods()))[0]?.limits, { memory: '65536Ki' });
});

test('pods of which nothing runs, and containers of nobody, are not told', async () => {
  const { answer } = world({
    pods: () => [told('idle'), told('web')],
    costs: { 'uid-web': { app: { milli: 1, bytes: mib } }, foreign: { x: { milli: 900, bytes: mib } } },
  });
  assert.deepEqual(
    (await answer((v) => v.topPods())).map((p) => p.metadata.name),
    ['web'],
  );
});

test('while one container replaces another of its name, the newer is told', async () => {
  const { answer } = world({
    costs: { 'uid-web': { 'app#old': { milli: 500, bytes: 9 * mib }, app: { milli: 10, bytes: mib, attempt: 1 } } },
  });
  const [pod] = await answer((v) => v.topPods());
  assert.deepEqual(pod?.containers, [{ name: 'app', usage: { cpu: '10000000n', memory: '1024Ki' } }]);
});

test('a container without readings is none, and one that just began has no rate yet', async () => {
  const { clock, view } = world({
    containerStats: async () => [
      { id: 'e' as ContainerId, name: 'ended', attempt: 0, labels: { [labels.podUid]: 'uid-web' } },
      {
        // another one at each look
        id: `n${clock.monotonic()}` as ContainerId,
        name: 'app',
        attempt: 0,
        labels: { [labels.podUid]: 'uid-web' },
        cpu: { atMs: 5, usageNs: 5 },
        memory: { atMs: 5, workingSetBytes: 4096 },
      },
    ],
  });
  const asked = view.topPods();
  await clock.advance(1000);
  assert.deepEqual((await asked)[0]?.containers, [{ name: 'app', usage: { memory: '4Ki' } }]);
});

test('top of the node is of what pods may use, and asks no runtime', async () => {
  const { answer, asked } = world({
    containerStats: () => Promise.reject(new Error('away')),
    temperature: async () => 48.3,
  });
  assert.deepEqual(await answer((v) => v.topNode()), {
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeUsage',
    metadata: { name: 'pi-07' },
    timestamp: '2026-01-01T00:00:01Z',
    window: '1.000s',
    usage: { cpu: '250000000n', memory: '512000Ki' },
    allocatable: { cpu: '3800m', memory: '921600Ki' },
    temperatureCelsius: 48.3,
    swap: { usedBytes: 10 * mib, totalBytes: 100 * mib },
    disk: { usedBytes: 768 * mib, capacityBytes: 1024 * mib, availableBytes: 256 * mib },
  });
  assert.equal(asked.stats, 0);
});

test('figures of the node that cannot be had are left out', async () => {
  const { answer } = world({
    nodeUsage: async () => ({ ...nodeUse, cpuUsec: undefined, swapTotalBytes: 0, swapFreeBytes: 0 }) as unknown as NodeUse,
    fsSpace: () => Promise.reject(new Error('EIO')),
    temperature: () => Promise.reject(new Error('EIO')),
  });
  const node = await answer((v) => v.topNode());
  assert.deepEqual(Object.keys(node).sort(), ['allocatable', 'apiVersion', 'kind', 'metadata', 'timestamp', 'usage', 'window']);
  assert.deepEqual(node.usage, { memory: '512000Ki' });
});

test('the summary has the shape of the kubelet’s', async () => {
  const pod = told('web', { status: { startTime: '2025-12-31T23:00:00Z', containerStatuses: [cs('app', { state: running })] } });
  const { answer } = world({
    pods: () => [pod],
    costs: { 'uid-web': { app: { milli: 100, bytes: 30 * mib } } },
    group: (_uid, seconds) => ({
      cpuUsec: Math.round(seconds * 110_000),
      memory: { usageBytes: 40 * mib, workingSetBytes: 33 * mib, shmemBytes: 0, swapBytes: 0, rssBytes: 20 * mib },
      pids: 4,
    }),
    volumes: async () => [
      { name: 'cache', usedBytes: 3 * mib, inodesUsed: 2, ephemeral: true },
      {
        name: 'tmp',
        usedBytes: mib,
        inodesUsed: 1,
        ephemeral: false,
        space: { capacityBytes: 8 * mib, availableBytes: 7 * mib, inodes: 10, inodesFree: 9 },
      },
    ],
  });
  const time = '2026-01-01T00:00:01Z';
  const disk = { availableBytes: 256 * mib, capacityBytes: 1024 * mib };
  assert.deepEqual(await answer((v) => v.summary('all')), {
    node: {
      nodeName: 'pi-07',
      startTime: '2025-12-31T23:00:01Z',
      cpu: { time, usageNanoCores: 250_000_000, usageCoreNanoSeconds: 250_000_000 },
      memory: { time, availableBytes: 500 * mib, usageBytes: 700 * mib, workingSetBytes: 500 * mib, rssBytes: 300 * mib },
      swap: { time, swapAvailableBytes: 90 * mib, swapUsageBytes: 10 * mib },
      fs: { time, ...disk, usedBytes: 768 * mib },
      runtime: {
        imageFs: {
          ...{ time, availableBytes: 16 * mib, capacityBytes: 64 * mib },
          ...{ usedBytes: 40 * mib, inodesFree: 900, inodes: 1000, inodesUsed: 99 },
        },
      },
      rlimit: { time, maxpid: 32_768, curproc: 240 },
    },
    pods: [
      {
        podRef: { name: 'web', namespace: 'default', uid: 'uid-web' },
        startTime: '2025-12-31T23:00:00Z',
        containers: [
          {
            name: 'app',
            startTime: running.running.startedAt,
            cpu: { time, usageNanoCores: 100_000_000, usageCoreNanoSeconds: 100_000_000 },
            memory: { time, workingSetBytes: 30 * mib, usageBytes: 31 * mib, rssBytes: 29 * mib },
            rootfs: {
              ...{ time, availableBytes: 16 * mib, capacityBytes: 64 * mib },
              ...{ usedBytes: 5 * mib, inodesFree: 900, inodes: 1000, inodesUsed: 7 },
            },
            logs: { time, ...disk, usedBytes: 2 * mib, inodesUsed: 3 },
          },
        ],
        cpu: { time, usageNanoCores: 110_000_000, usageCoreNanoSeconds: 110_000_000 },
        memory: { time, usageBytes: 40 * mib, workingSetBytes: 33 * mib, rssBytes: 20 * mib },
        swap: { time, swapUsageBytes: 0 },
        volume: [
          { time, ...disk, usedBytes: 3 * mib, inodesUsed: 2, name: 'cache' },
          {
            ...{ time, availableBytes: 7 * mib, capacityBytes: 8 * mib, usedBytes: mib },
            ...{ inodesFree: 9, inodes: 10, inodesUsed: 1, name: 'tmp' },
          },
        ],
        'ephemeral-storage': { time, ...disk, usedBytes: 10 * mib, inodesUsed: 12 },
        process_stats: { process_count: 4 },
      },
    ],
  });
});

test('of a pod without a cgroup of its own its containers together are told', async () => {
  const { answer } = world({
    costs: { 'uid-web': { app: { milli: 100, bytes: 30 * mib }, side: { milli: 50, bytes: 10 * mib } } },
  });
  const { pods } = await answer((v) => v.summary('all'));
  const time = '2026-01-01T00:00:01Z';
  assert.deepEqual(pods[0]?.cpu, { time, usageNanoCores: 150_000_000, usageCoreNanoSeconds: 150_000_000 });
  assert.deepEqual(pods[0]?.memory, { time, usageBytes: 42 * mib, workingSetBytes: 40 * mib, rssBytes: 38 * mib });
  assert.equal(pods[0]?.swap, undefined);
  assert.equal(pods[0]?.process_stats, undefined);
});

test('a container has what its probes cost, where one has been asked', async () => {
  const cost = { probe: 'liveness', handler: 'exec', count: 3, totalMs: 900, meanMs: 300, perMinuteMs: 1800 } as const;
  const { answer } = world({
    costs: { 'uid-web': { app: { milli: 100, bytes: 30 * mib }, side: { milli: 50, bytes: 10 * mib } } },
    probeCosts: (id) => (id === 'uid-web-app-0' ? [cost] : []),
  });
  for (const only of ['all', 'cpuAndMemory'] as const) {
    const [app, side] = (await answer((v) => v.summary(only))).pods[0]?.containers ?? [];
    assert.deepEqual(app?.probes, [cost]);
    assert.ok(side !== undefined && !('probes' in side));
  }
});

test('CPU and memory alone look at no disk', async () => {
  const looked: string[] = [];
  const { answer } = world({
    costs: { 'uid-web': { app: { milli: 100, bytes: 30 * mib } } },
    fsSpace: async (path) => {
      looked.push(path);
      return undefined;
    },
    logUsage: async () => {
      looked.push('logs');
      return undefined;
    },
    imageFilesystems: async () => {
      looked.push('images');
      return [];
    },
  });
  const { node, pods } = await answer((v) => v.summary('cpuAndMemory'));
  assert.deepEqual(looked, []);
  assert.deepEqual(Object.keys(node).sort(), ['cpu', 'memory', 'nodeName', 'startTime', 'swap']);
  assert.deepEqual(Object.keys(pods[0]?.containers[0] ?? {}).sort(), ['cpu', 'memory', 'name', 'startTime']);
  assert.equal(pods[0]?.['ephemeral-storage'], undefined);
});

test('a runtime that does not answer ends the summary, and nothing else does', async () => {
  const away = () => Promise.reject(new Error('away'));
  await assert.rejects(
    world({ containerStats: away }).answer((v) => v.summary('all')),
    /away/,
  );
  const { answer } = world({
    costs: { 'uid-web': { app: { milli: 100, bytes: 30 * mib } } },
    ...{ fsSpace: away, imageFilesystems: away, logUsage: away, volumes: away, podUsage: away },
  });
  const { node, pods } = await answer((v) => v.summary('all'));
  assert.equal(node.fs, undefined);
  assert.equal(node.runtime, undefined);
  assert.deepEqual(pods[0]?.['ephemeral-storage'], { time: '2026-01-01T00:00:01Z', usedBytes: 5 * mib, inodesUsed: 7 });
});
