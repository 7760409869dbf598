/** What pods and the node use, read from folders in place of the kernel's files. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { CgroupDriver } from '../../src/api/resources.ts';
import type { CgroupVersion } from '../../src/cm/enforced.ts';
import { readMaxPids, Usage } from '../../src/cm/usage.ts';
import { temporaryFolder } from './cgroupBed.ts';

const uid = 'aa-bb' as PodUid;

function machine(version: CgroupVersion, files: Readonly<Record<string, string>>, driver?: CgroupDriver) {
  const dir = temporaryFolder();
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  };
  for (const [path, text] of Object.entries(files)) put(path, text);
  const roots = { root: join(dir, 'cgroup'), proc: join(dir, 'proc') };
  const usage = new Usage({ ...roots, version: () => version, cgroupRoot: [], driver: () => driver });
  return { dir, put, usage };
}

const files = (folder: string, texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${folder}/${name}`, text]));

const unified = {
  'memory.current': '1000000\n',
  'memory.stat': 'anon 600000\nfile 400000\nshmem 50000\ninactive_file 300000\n',
  'memory.swap.current': '4096\n',
  'cpu.stat': 'usage_usec 123456\nuser_usec 100000\n',
  'pids.current': '7\n',
};
const expected = {
  memory: { usageBytes: 1_000_000, workingSetBytes: 700_000, shmemBytes: 50_000, swapBytes: 4096, rssBytes: 600_000 },
  cpuUsec: 123_456,
  pids: 7,
};

test('a pod is measured in its own cgroup, whichever driver made it', async () => {
  for (const folder of ['kubepods/burstable/podaa-bb', 'kubepods.slice/kubepods-podaa_bb.slice']) {
    const { usage } = machine('v2', files(`cgroup/${folder}`, unified));
    assert.deepEqual(await usage.pod(uid), expected, folder);
  }
});

test('what the kernel does not count is left out, and a pod without a cgroup has no answer', async () => {
  const { usage, dir } = machine('v2', files('cgroup/kubepods/podaa-bb', { 'cpu.stat': 'usage_usec 5\n' }));
  assert.deepEqual(await usage.pod(uid), { cpuUsec: 5 });
  rmSync(join(dir, 'cgroup/kubepods/podaa-bb'), { recursive: true });
  assert.equal(await usage.pod(uid), undefined);
});

test('more cache than memory is no negative working set', async () => {
  const { usage } = machine('v2', files('cgroup/kubepods/podaa-bb', { 'memory.current': '10\n', 'memory.stat': 'inactive_file 20\n' }));
  assert.equal((await usage.pod(uid))?.memory?.workingSetBytes, 0);
});

const legacy = {
  'cgroup/memory/kubepods/burstable/podaa-bb/memory.usage_in_bytes': '900000\n',
  'cgroup/memory/kubepods/burstable/podaa-bb/memory.stat':
    'rss 1\ntotal_rss 500000\ntotal_inactive_file 100000\ntotal_shmem 2000\ntotal_swap 3000\n',
  'cgroup/memory/kubepods/burstable/podaa-bb/memory.use_hierarchy': '1\n',
  'cgroup/cpuacct/kubepods/burstable/podaa-bb/cpuacct.usage': '5000000\n',
  'cgroup/pids/kubepods/burstable/podaa-bb/pids.current': '3\n',
};

test('on cgroup v1 a pod is measured where the runtime put its containers', async () => {
  const { usage } = machine('v1', legacy);
  assert.deepEqual(await usage.pod(uid), {
    memory: { usageBytes: 900_000, workingSetBytes: 800_000, shmemBytes: 2000, swapBytes: 3000, rssBytes: 500_000 },
    cpuUsec: 5000,
    pids: 3,
  });
});

test('on a v1 kernel that counts each group alone its containers are added up', async () => {
  const pod = 'cgroup/memory/kubepods/podaa-bb';
  const group = (folder: string, bytes: number) =>
    files(folder, {
      'memory.usage_in_bytes': `${bytes}\n`,
      'memory.stat': `rss ${bytes}\ninactive_file 10\nshmem 0\nswap 0\n`,
      'memory.use_hierarchy': '0\n',
    });
  const { usage } = machine('v1', { ...group(pod, 20), ...group(`${pod}/c1`, 100), ...group(`${pod}/c2`, 200) });
  assert.deepEqual((await usage.pod(uid))?.memory, { usageBytes: 320, workingSetBytes: 290, shmemBytes: 0, swapBytes: 0, rssBytes: 320 });
});

const kb = (fields: Readonly<Record<string, number>>): string =>
  Object.entries(fields)
    .map(([name, n]) => `${name}:${' '.repeat(8)}${n} kB\n`)
    .join('');
const meminfo = kb({
  MemTotal: 2000,
  MemFree: 500,
  MemAvailable: 1200,
  Buffers: 50,
  Cached: 700,
  SwapCached: 10,
  'Inactive(file)': 400,
  AnonPages: 600,
  Shmem: 30,
  SwapTotal: 1000,
  SwapFree: 900,
});

test('the node is measured without any cgroup', async () => {
  const { usage } = machine('v1', {
    'proc/meminfo': meminfo,
    'proc/stat': 'cpu  100 5 50 1000 20 1 2 3 0 0\ncpu0 1 2 3\n',
    'proc/loadavg': '0.10 0.20 0.30 2/345 6789\n',
    'proc/sys/kernel/threads-max': '14949\n',
    'proc/sys/kernel/pid_max': '32768\n',
  });
  assert.deepEqual(await usage.node(), {
    memory: { usageBytes: 1360 * 1024, workingSetBytes: 960 * 1024, shmemBytes: 30 * 1024, swapBytes: 100 * 1024, rssBytes: 600 * 1024 },
    totalBytes: 2000 * 1024,
    availableBytes: 1200 * 1024,
    swapTotalBytes: 1000 * 1024,
    swapFreeBytes: 900 * 1024,
    cpuUsec: 1_580_000,
    pids: 345,
    maxPids: 14_949,
  });
});

test('the kernel allows as many processes as the smaller of its two limits', async () => {
  const { dir } = machine('v2', { 'proc/sys/kernel/pid_max': '4194304\n' });
  assert.equal(await readMaxPids(join(dir, 'proc')), 4_194_304);
  assert.equal(await readMaxPids(join(dir, 'nowhere')), undefined);
});

test('all pods together are measured where they have a cgroup together', () => {
  const both = { 'memory.current': '5000\n', 'memory.stat': 'inactive_file 1000\n' };
  assert.equal(machine('v2', files('cgroup/kubepods.slice', both)).usage.podsWorkingSet(), 4000);
  assert.equal(machine('v2', files('cgroup/kubepods', both)).usage.podsWorkingSet(), 4000);
  assert.equal(machine('v2', {}).usage.podsWorkingSet(), undefined);
  assert.equal(machine('v1', files('cgroup/kubepods', both)).usage.podsWorkingSet(), undefined);
});

test('what the other driver left, or somebody else has there, is not taken for our pods', () => {
  const of = (bytes: number) => ({ 'memory.current': `${bytes}\n`, 'memory.stat': 'inactive_file 0\n' });
  const both = { ...files('cgroup/kubepods.slice', of(9000)), ...files('cgroup/kubepods', of(4000)) };
  assert.equal(machine('v2', both, 'cgroupfs').usage.podsWorkingSet(), 4000);
  assert.equal(machine('v2', both, 'systemd').usage.podsWorkingSet(), 9000);
});
