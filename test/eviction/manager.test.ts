/** Stories of a node that runs short, with a small stand-in for pods, disk and workers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { defaultEvictionHard, type EvictionThreshold } from '../../src/api/evictionThresholds.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Pod } from '../../src/api/v1.ts';
import type { EvictOptions } from '../../src/eviction/deps.ts';
import { Eviction } from '../../src/eviction/manager.ts';
import type { FilesystemReading, MemoryReading, PodDiskUsage } from '../../src/eviction/words.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { desiredPod } from '../pod/desiredPod.ts';

const MiB = 2 ** 20;
const GiB = 2 ** 30;

interface Use {
  memory: number;
  disk: number;
  pids: number;
}

function node(thresholds: readonly EvictionThreshold[] = defaultEvictionHard()) {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const pods = new Map<PodUid, { readonly desired: DesiredPod; readonly use: Use }>();
  const n = {
    clock,
    did: [] as string[],
    evicted: [] as EvictOptions[],
    /** Of the machine besides pods. */
    memory: { totalBytes: 1000 * MiB, swapFreeBytes: 0, anonBytes: 500 * MiB, zram: false } as Omit<MemoryReading, 'availableBytes'>,
    systemBytes: 200 * MiB,
    disk: { device: 1, capacityBytes: 10 * GiB, inodes: 0, inodesFree: 0 } as Omit<FilesystemReading, 'availableBytes'>,
    /** Of the disk besides pods: images and logs that may go among them. */
    diskBytes: 5 * GiB,
    imageDisk: undefined as FilesystemReading | undefined,
    frees: { deadLogs: 0, deadContainers: 0, unusedImages: 0 },
    looks: 0,
    walks: 0,
    pressures: [] as string[],
    add: (name: string, use: Partial<Use>, spec: Partial<Pod['spec']> = {}): Use => {
      const desired = desiredPod(name, `u-${name}`, { spec });
      const it = { desired, use: { memory: 0, disk: 0, pids: 1, ...use } };
      pods.set(desired.uid, it);
      return it.use;
    },
    names: (): string[] => [...pods.values()].map((p) => p.desired.name).sort(),
    take: (): string[] => n.did.splice(0),
    sum: (part: keyof Use): number => [...pods.values()].reduce((all, p) => all + p.use[part], 0),
    endsInMs: 1000,
    lingers: false,
    make: (): Eviction =>
      new Eviction({
        ...{ clock, log: silentLog, store, thresholds },
        pressureTransitionMs: 300_000,
        node: {
          memory: () => {
            n.looks++;
            return { ...n.memory, availableBytes: Math.max(0, n.memory.totalBytes - n.systemBytes - n.sum('memory')) };
          },
          processes: () => ({ most: 1000, running: 100 + n.sum('pids') }),
          nodefs: async () => ({ ...n.disk, availableBytes: Math.max(0, n.disk.capacityBytes - n.diskBytes - n.sum('disk')) }),
          imagefs: async () =>
            n.imageDisk ?? { ...n.disk, availableBytes: Math.max(0, n.disk.capacityBytes - n.diskBytes - n.sum('disk')) },
        },
        pods: () => [...pods.values()].map((p) => p.desired),
        usage: async (uids) =>
          new Map(
            uids.map((uid) => {
              const { memory = 0, pids = 0 } = pods.get(uid)?.use ?? {};
              return [uid, { memoryBytes: memory, processes: pids, containerMemoryBytes: new Map([['app', memory]]) }];
            }),
          ),
        diskUsage: async (wanted) => {
          n.walks++;
          return new Map(
            wanted.map(({ uid }): [PodUid, PodDiskUsage] => {
              const amount = { bytes: pods.get(uid)?.use.disk ?? 0, inodes: 1 };
              return [uid, { volumes: new Map([['data', amount]]), logs: new Map(), layers: new Map() }];
            }),
          );
        },
        reclaim: {
          deadLogs: async () => n.reclaim('deadLogs'),
          deadContainers: async () => n.reclaim('deadContainers'),
          unusedImages: async () => n.reclaim('unusedImages'),
        },
        evict: async (uid, o) => {
          n.did.push(`evict ${uid.slice(2)}`);
          n.evicted.push(o);
          // in a hurry, of one that is ending
          assert.equal(pods.delete(uid) || o.graceSeconds === 1, true);
          await clock.sleep(n.endsInMs);
          if (n.lingers) throw new Error('it did not end in time');
        },
        removeContent: async (uid) => {
          n.did.push(`clear ${uid.slice(2)}`);
        },
        event: (_type, reason, message) => n.did.push(`${reason}: ${message}`),
        changed: (now) => {
          n.pressures = [...now];
        },
      }),
    reclaim: (what: 'deadLogs' | 'deadContainers' | 'unusedImages'): void => {
      n.did.push(what);
      n.diskBytes -= n.frees[what];
      n.frees[what] = 0;
    },
  };
  return n;
}

/** Runs it until the test ends it. */
function start(eviction: Eviction, { clock }: { readonly clock: FakeClock }): () => Promise<void> {
  const stop = new AbortController();
  const running = eviction.run(stop.signal);
  return async () => {
    stop.abort();
    // an eviction under way comes to its end
    await clock.advance(20_000);
    await running;
    assert.equal(clock.sleeping, 0);
  };
}

test('a leak: that pod is evicted, once, before memory is gone; the pressure stands and passes (H3)', async () => {
  const n = node();
  const eviction = n.make();
  const stop = start(eviction, n);
  n.add('idle', { memory: 50 * MiB });
  const leak = n.add('leak', { memory: 50 * MiB });
  let least = n.memory.totalBytes;
  for (let second = 0; second < 40 && n.names().includes('leak'); second++) {
    leak.memory += 50 * MiB;
    await n.clock.advance(1000);
    least = Math.min(least, n.memory.totalBytes - n.systemBytes - n.sum('memory'));
  }
  assert.deepEqual(n.take(), ['EvictionThresholdMet: Attempting to reclaim memory', 'evict leak']);
  assert.ok(least > 0, 'the kernel had no cause to act');
  const [o] = n.evicted;
  assert.deepEqual([o?.graceSeconds, o?.disrupts, o?.until, o?.reason], [1, true, 'MemoryPressure', 'Evicted']);
  assert.match(
    o?.message ?? '',
    /^The node was low on resource: memory\. Threshold quantity: 80Mi, available: \d+Mi\. (It was going by \d+Mi a second\. )?Container app was using \d+Mi, request is 0, has larger consumption of memory\. $/,
  );
  assert.deepEqual(n.pressures, ['MemoryPressure']);
  assert.deepEqual(
    eviction.conditions().map((c) => `${c.type} ${c.status} ${c.reason}`),
    [
      'MemoryPressure True KubeletHasInsufficientMemory',
      'DiskPressure False KubeletHasNoDiskPressure',
      'PIDPressure False KubeletHasSufficientPID',
    ],
  );
  await n.clock.advance(290_000);
  assert.deepEqual(n.pressures, ['MemoryPressure']);
  await n.clock.advance(30_000);
  assert.deepEqual([n.pressures, n.take(), n.names()], [[], [], ['idle']]);
  await stop();
});

test('tasks stall while swap is still free: it acts before the freeze; with swap free and no stall it does not', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.memory = { ...n.memory, swapFreeBytes: 400 * MiB, stall: { some10: 0, full10: 0 } };
  n.add('hog', { memory: 700 * MiB });
  await n.clock.advance(60_000);
  assert.deepEqual(n.take(), []);
  n.memory = { ...n.memory, stall: { some10: 70, full10: 30 } };
  await n.clock.advance(10_000);
  assert.deepEqual(n.take().at(-1), 'evict hog');
  assert.match(n.evicted[0]?.message ?? '', /Tasks waited for memory in 70% of the last 10 s\. /);
  await n.clock.advance(60_000);
  assert.deepEqual(n.take(), []);
  await stop();
});

test('what the machine itself takes ends no pod that could not give it back (G9)', async () => {
  const n = node();
  n.add('small', { memory: MiB });
  n.systemBytes = 980 * MiB;
  const stop = start(n.make(), n);
  await n.clock.advance(50_000);
  assert.deepEqual(n.take(), [
    'EvictionThresholdMet: Attempting to reclaim memory',
    'EvictionThresholdMet: Attempting to reclaim memory: no pod could give back enough of it to matter, so none is ended',
  ]);
  assert.deepEqual(n.pressures, ['MemoryPressure']);
  await stop();
});

test('after an eviction it waits until the node shows it, unless memory goes on vanishing', async () => {
  const n = node();
  for (const name of ['a', 'b']) n.add(name, { memory: 360 * MiB });
  n.systemBytes = 700 * MiB;
  const stop = start(n.make(), n);
  await n.clock.advance(2_900);
  assert.deepEqual(
    n.take().filter((d) => d.startsWith('evict')),
    ['evict a'],
  );
  n.systemBytes = 570 * MiB; // 70Mi are left: under the threshold, and over half of it
  await n.clock.advance(7_000);
  assert.deepEqual(n.take(), []);
  await n.clock.advance(8_000);
  assert.deepEqual(n.take(), ['evict b']);
  n.add('c', { memory: 200 * MiB });
  n.systemBytes = 790 * MiB;
  await n.clock.advance(5_000);
  assert.deepEqual(n.take(), ['evict c'], 'nearly nothing is left');
  await stop();
});

test('a full disk: dead logs, then dead containers, then images, and no more than must', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.add('idle', { disk: 500 * MiB });
  await n.clock.advance(20_000);
  n.frees = { deadLogs: 10 * MiB, deadContainers: GiB, unusedImages: 3 * GiB };
  n.diskBytes = 9 * GiB;
  await n.clock.advance(20_000);
  assert.deepEqual(n.take(), ['EvictionThresholdMet: Attempting to reclaim ephemeral-storage', 'deadLogs', 'deadContainers']);
  assert.deepEqual([n.names(), n.pressures], [['idle'], ['DiskPressure']]);
  await stop();
});

test('one pod fills the disk: only the writer is evicted, once, after a second measurement; its things go (G9)', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.add('critical', { disk: GiB }, { priorityClassName: 'system-node-critical' });
  n.add('database', { disk: 2 * GiB });
  n.add('idle', { disk: MiB });
  const writer = n.add('writer', { disk: 0 });
  n.diskBytes = 4 * GiB;
  let seconds = 0;
  for (; seconds < 300 && n.names().includes('writer'); seconds++) {
    writer.disk += 17 * MiB; // a gigabyte a minute
    await n.clock.advance(1000);
  }
  await n.clock.advance(300_000);
  assert.deepEqual(n.take(), [
    'EvictionThresholdMet: Attempting to reclaim ephemeral-storage',
    'deadLogs',
    'deadContainers',
    'unusedImages',
    'evict writer',
    'clear writer',
  ]);
  assert.deepEqual(n.names(), ['critical', 'database', 'idle']);
  assert.deepEqual([n.evicted[0]?.until, n.evicted[0]?.graceSeconds], ['DiskPressure', 1]);
  assert.match(n.evicted[0]?.message ?? '', /^The node was low on resource: ephemeral-storage\. Threshold quantity: 1Gi, available: \d+/);
  await stop();
});

test('something else fills the disk: every pod stays', async () => {
  const n = node();
  const stop = start(n.make(), n);
  for (const name of ['a', 'b', 'c']) n.add(name, { disk: MiB });
  n.diskBytes = 10 * GiB;
  await n.clock.advance(600_000);
  assert.deepEqual(n.names(), ['a', 'b', 'c']);
  assert.ok(n.take().some((d) => d.includes('no pod could give back enough')));
  assert.ok(n.walks <= 12, `${n.walks}`);
  await stop();
});

test('images on a disk of their own: containers and images go for it, and logs for the other', async () => {
  const n = node();
  n.imageDisk = { device: 2, capacityBytes: 10 * GiB, availableBytes: 0.5 * GiB, inodes: 0, inodesFree: 0 };
  const stop = start(n.make(), n);
  await n.clock.advance(3_000);
  assert.deepEqual(n.take().slice(1, 3), ['deadContainers', 'unusedImages']);
  await stop();
});

test('a fork bomb is evicted for process numbers', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.add('quiet', { pids: 20 });
  n.add('bomb', { pids: 840 });
  await n.clock.advance(11_000);
  assert.deepEqual(n.take(), ['EvictionThresholdMet: Attempting to reclaim pids', 'evict bomb']);
  assert.equal(n.evicted[0]?.until, 'PIDPressure');
  await stop();
});

test('a soft threshold waits for its grace and lets the pod have its own', async () => {
  const n = node([{ signal: 'memory.available', kind: 'soft', amount: { value: 200 * MiB }, graceMs: 60_000 }]);
  n.add('big', { memory: 700 * MiB });
  const stop = start(n.make(), n);
  await n.clock.advance(50_000);
  assert.deepEqual([n.take(), n.pressures], [[], ['MemoryPressure']]);
  await n.clock.advance(20_000);
  assert.equal(n.take().at(-1), 'evict big');
  assert.equal(n.evicted[0]?.graceSeconds, undefined);
  await stop();
});

test('a pod over its own limit of local storage goes within a minute, and nobody else is measured for it', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.add('free', { disk: GiB });
  await n.clock.advance(120_000);
  assert.equal(n.walks, 0, 'nobody has a limit');
  n.add('capped', { disk: 200 * MiB }, { volumes: [{ name: 'data', emptyDir: { sizeLimit: '100Mi' } }] });
  await n.clock.advance(70_000);
  assert.deepEqual(n.take(), ['evict capped', 'clear capped']);
  assert.deepEqual(
    [n.evicted[0]?.message, n.evicted[0]?.disrupts, n.evicted[0]?.until],
    ['Usage of EmptyDir volume "data" exceeds the limit "100Mi". ', false, undefined],
  );
  assert.deepEqual(n.pressures, []);
  await stop();
});

test('what a pod that ends late left on the disk goes all the same', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.lingers = true;
  n.endsInMs = 10_000;
  n.add('capped', { disk: 200 * MiB }, { volumes: [{ name: 'data', emptyDir: { sizeLimit: '100Mi' } }] });
  await n.clock.advance(80_000);
  assert.deepEqual(n.take(), ['evict capped', 'clear capped']);
  await stop();
});

test('a pod that does not end is no reason to end another: that one would not end either', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.lingers = true;
  n.endsInMs = 10_000;
  for (const name of ['a', 'b']) n.add(name, { memory: 200 * MiB });
  n.systemBytes = 540 * MiB;
  await n.clock.advance(1_000);
  n.systemBytes = 790 * MiB;
  await n.clock.advance(60_000);
  assert.deepEqual(
    n.take().filter((d) => d.startsWith('evict')),
    ['evict a'],
  );
  await stop();
});

test('an agent that is started anew knows the pressure, lets the last one’s work end, and ends it in its time', async () => {
  const n = node();
  n.add('big', { memory: 740 * MiB });
  n.endsInMs = 330_000; // killed amid it
  const stopFirst = start(n.make(), n);
  await n.clock.advance(1_500);
  n.take();
  n.endsInMs = 1_000;
  n.add('other', { memory: 760 * MiB });
  const second = n.make();
  await second.load();
  assert.deepEqual(second.pressures(), ['MemoryPressure']);
  const stop = start(second, n);
  await n.clock.advance(4_000);
  assert.deepEqual(n.take(), []);
  await n.clock.advance(3_000);
  assert.equal(n.take().at(-1), 'evict other');
  await n.clock.advance(310_000);
  assert.deepEqual(second.pressures(), []);
  await n.clock.advance(30_000);
  await Promise.all([stop(), stopFirst()]);
});

test('a calm node is looked at every ten seconds, and its pods’ folders never', async () => {
  const n = node();
  const stop = start(n.make(), n);
  n.add('web', { memory: 100 * MiB });
  await n.clock.advance(600_000);
  assert.ok(n.looks <= 62, `${n.looks}`);
  assert.equal(n.walks, 0);
  await stop();
});

test('a hard threshold does not wait for a pod that a soft one lets end by its own long grace', async () => {
  const soft: EvictionThreshold = { signal: 'memory.available', kind: 'soft', amount: { value: 200 * MiB }, graceMs: 10_000 };
  const n = node([...defaultEvictionHard(), soft]);
  n.endsInMs = 100_000;
  n.add('patient', { memory: 320 * MiB });
  const leak = n.add('leak', { memory: 290 * MiB });
  const stop = start(n.make(), n);
  await n.clock.advance(40_000);
  assert.deepEqual(n.names(), ['leak']);
  leak.memory = 760 * MiB;
  await n.clock.advance(20_000);
  assert.deepEqual(
    n.evicted.map((o) => o.graceSeconds),
    [undefined, 1],
    'the one that is going goes at once',
  );
  leak.memory = 0;
  await n.clock.advance(150_000);
  await stop();
});
