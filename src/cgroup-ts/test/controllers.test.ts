import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cpu } from '../cpu.ts';
import { cpuset } from '../cpuset.ts';
import { CgroupError } from '../error.ts';
import { kernelFs } from '../files.ts';
import { Hierarchy } from '../hierarchy.ts';
import { hugetlb } from '../hugetlb.ts';
import { io } from '../io.ts';
import { memory, memoryUsage } from '../memory.ts';
import { misc } from '../misc.ts';
import { pids } from '../pids.ts';
import { controllersIn, type Resources, setResources } from '../resources.ts';
import { newTree, type Tree, temporaryFolder } from './tree.ts';

async function group(): Promise<Tree & { readonly dir: string }> {
  const tree = newTree();
  await new Hierarchy({ root: tree.root, fs: tree.fs }).create('g');
  tree.fs.calls.length = 0;
  return Object.assign(tree, { dir: join(tree.root, 'g') });
}

const everything: Resources = {
  cpu: { weight: 79, max: { quota: 10_000, period: 100_000 }, 'max.burst': 5000 },
  cpuset: { cpus: '0-1,3', mems: '0' },
  memory: { min: 4096, low: 8192, high: 16_384, max: 20_971_520, 'swap.max': 0, 'oom.group': true },
  pids: { max: 200 },
  io: { weight: 50, max: { '179:0': { wbps: 1_048_576 } } },
  hugetlb: { '2MB': 0 },
  misc: { sev: 3 },
};

test('each setting lands in the file that bears its name', async () => {
  const { dir, fs, text } = await group();
  const written = await setResources(dir, everything, fs);
  const values = Object.fromEntries(written.map((name) => [name, text(`g/${name}`)]));
  assert.deepEqual(values, {
    'cpuset.mems': '0',
    'cpuset.cpus': '0-1,3',
    'memory.swap.max': '0',
    'memory.high': '16384',
    'memory.max': '20971520',
    'memory.low': '8192',
    'memory.min': '4096',
    'memory.oom.group': '1',
    'cpu.weight': '79',
    'cpu.max': '10000 100000',
    'cpu.max.burst': '5000',
    'pids.max': '200',
    'io.weight': 'default 50',
    'io.max': '179:0 rbps=max wbps=1048576 riops=max wiops=max',
    'hugetlb.2MB.max': '0',
    'misc.max': 'sev 3',
  });
});

test('what is already so is not written again', async () => {
  const { dir, fs, put } = await group();
  await setResources(dir, everything, fs);
  put('g/io.weight', 'default 50\n'); // as the kernel prints it
  fs.calls.length = 0;
  assert.deepEqual(await setResources(dir, everything, fs), []);
  assert.deepEqual(fs.calls, []);
});

test('what is not mentioned is not touched, and isSet says so without a file', async () => {
  assert.deepEqual(controllersIn({}), []);
  assert.deepEqual(controllersIn({ cpu: {}, memory: {}, cpuset: {}, pids: {}, io: { max: { '8:0': {} } }, hugetlb: {}, misc: {} }), []);
  assert.deepEqual(controllersIn(everything), ['cpuset', 'memory', 'cpu', 'pids', 'io', 'hugetlb', 'misc']);
  const { dir, fs } = await group();
  assert.deepEqual(await setResources(dir, { memory: { max: 'max' }, cpu: { max: { quota: 'max' } } }, fs), []);
  assert.deepEqual(fs.calls, []);
});

test('a quota without a period keeps the period of the file', async () => {
  const { dir, fs, text } = await group();
  await cpu.set(dir, { max: { quota: 20_000, period: 50_000 } }, fs);
  await cpu.set(dir, { max: { quota: 30_000 } }, fs);
  assert.equal(text('g/cpu.max'), '30000 50000');
});

test('a burst that falls goes before the quota, one that rises after it', async () => {
  const { dir, fs } = await group();
  const names = (calls: readonly string[]): readonly string[] => calls.map((c) => c.split(' ')[1] ?? '');
  await cpu.set(dir, { max: { quota: 50_000 }, 'max.burst': 40_000 }, fs);
  assert.deepEqual(names(fs.calls), ['g/cpu.max', 'g/cpu.max.burst']);
  fs.calls.length = 0;
  await cpu.set(dir, { max: { quota: 10_000 }, 'max.burst': 5000 }, fs);
  assert.deepEqual(names(fs.calls), ['g/cpu.max.burst', 'g/cpu.max']);
});

test('an empty CPU list takes the setting back with a write that reaches the kernel', async () => {
  const { dir, fs, text } = await group();
  await cpuset.set(dir, { cpus: '2' }, fs);
  assert.deepEqual(await cpuset.set(dir, { cpus: '' }, fs), ['cpuset.cpus']);
  assert.equal(text('g/cpuset.cpus'), '');
  assert.deepEqual(await cpuset.stat(dir), { cpus: '', mems: '', 'cpus.effective': '0-3', 'mems.effective': '0' });
});

test('values that no kernel takes are refused before the first write, with the file and the value', async () => {
  const { dir, fs } = await group();
  const table: readonly [file: string, value: string, set: () => Promise<unknown>][] = [
    ['cpu.weight', '0', () => cpu.set(dir, { weight: 0 }, fs)],
    ['cpu.weight', '10001', () => cpu.set(dir, { weight: 10_001 }, fs)],
    ['memory.max', '-1', () => memory.set(dir, { 'swap.max': 0, max: -1 }, fs)],
    ['memory.max', '1.5', () => memory.set(dir, { max: 1.5 }, fs)],
    ['pids.max', 'NaN', () => pids.set(dir, { max: Number.NaN }, fs)],
    ['io.weight', '0', () => io.set(dir, { weight: 0 }, fs)],
    ['misc.max', '-2', () => misc.set(dir, { sev: -2 }, fs)],
    ['hugetlb.2MB.max', '-2', () => hugetlb.set(dir, { '2MB': -2 }, fs)],
  ];
  for (const [file, value, set] of table) {
    await assert.rejects(set, (error: unknown) => {
      assert.ok(error instanceof CgroupError);
      assert.deepEqual([error.code, error.file, error.value], ['EINVAL', file, value]);
      return true;
    });
  }
  await assert.rejects(async () => hugetlb.set(dir, { '../../x': 1 }, fs), /no page size/);
  await assert.rejects(async () => misc.set(dir, { 'a 1\nb': 1 }, fs), /no name of a resource/);
  assert.deepEqual(fs.calls, []);
});

test("the kernel's refusal carries the path, the value and the code", async () => {
  const { dir, fs } = await group();
  fs.fail.set('write g/memory.max', ['EBUSY']);
  await assert.rejects(memory.set(dir, { max: 4096 }, fs), (error: unknown) => {
    assert.ok(error instanceof CgroupError);
    assert.deepEqual([error.code, error.file, error.value], ['EBUSY', join(dir, 'memory.max'), '4096']);
    assert.match(error.message, /memory\.max: writing "4096": busy/);
    return true;
  });
  fs.fail.set('write g/cpu.max.burst', ['EINVAL']);
  await assert.rejects(cpu.set(dir, { 'max.burst': 9_000_000 }, fs), /may not be larger than the quota/);
});

test('a missing controller is ENOENT that names its file, and no file appears', async () => {
  const dir = join(temporaryFolder(), 'bare');
  mkdirSync(dir);
  await assert.rejects(memory.set(dir, { max: 4096 }, kernelFs), (error: unknown) => {
    assert.ok(error instanceof CgroupError);
    assert.deepEqual([error.code, error.file], ['ENOENT', join(dir, 'memory.max')]);
    return true;
  });
  assert.deepEqual(await memory.stat(dir), { stat: {} });
  assert.deepEqual(await pids.stat(dir), {});
  assert.equal(await memoryUsage(dir), undefined);
});

test('stat tells everything the files hold', async () => {
  const { dir, fs, put } = await group();
  await setResources(dir, everything, fs);
  put('g/cpu.stat', 'usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 9\nnr_throttled 3\nthrottled_usec 250\n');
  put('g/memory.current', '1000000\n');
  put('g/memory.peak', '2000000\n');
  put('g/memory.stat', 'anon 600000\nfile 400000\ninactive_file 300000\n');
  put('g/memory.events', 'low 0\nhigh 0\nmax 5\noom 1\noom_kill 2\noom_group_kill 1\n');
  put('g/pids.current', '7\n');
  put('g/pids.events', 'max 4\n');
  put('g/io.stat', '179:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n');
  put('g/hugetlb.2MB.current', '2097152\n');
  put('g/misc.current', 'sev 1\n');

  const c = await cpu.stat(dir);
  assert.deepEqual([c.weight, c.max, c['max.burst']], [79, { quota: 10_000, period: 100_000 }, 5000]);
  assert.deepEqual([c.stat.usage_usec, c.stat.nr_throttled], [1500, 3]);

  const m = await memory.stat(dir);
  assert.deepEqual([m.current, m.peak, m.workingSet], [1_000_000, 2_000_000, 700_000]);
  assert.deepEqual([m.min, m.low, m.high, m.max, m['swap.max'], m['oom.group']], [4096, 8192, 16_384, 20_971_520, 0, true]);
  assert.equal(m.events?.oom_kill, 2);
  assert.equal(m['events.local']?.oom_kill, 0);
  assert.deepEqual(await memoryUsage(dir), { current: 1_000_000, workingSet: 700_000 });

  assert.deepEqual(await pids.stat(dir), { current: 7, peak: 0, max: 200, events: { max: 4 } });
  const i = await io.stat(dir);
  assert.deepEqual([i.weight, i.stat['179:0']?.wbytes, i.max?.['179:0']?.wbps], [50, 20, 1_048_576]);
  assert.deepEqual(await hugetlb.stat(dir), { '2MB': { current: 2_097_152, max: 0, failed: 0 } });
  assert.deepEqual(await misc.stat(dir), { current: { sev: 1 }, max: { sev: 3 }, events: {} });
});

test('stat of a group that is gone is ENOENT, not an empty answer', async () => {
  const { dir } = await group();
  rmSync(dir, { recursive: true });
  for (const controller of [cpu, cpuset, memory, pids, io, hugetlb, misc])
    await assert.rejects(
      controller.stat(dir),
      (error: unknown) => error instanceof CgroupError && error.code === 'ENOENT',
      controller.name,
    );
});

test("BFQ's own weight file takes its own range", async () => {
  const { dir, fs, put, text } = await group();
  rmSync(join(dir, 'io.weight'));
  for (const [weight, bfq] of [
    [1, '1'],
    [100, '100'],
    [10_000, '1000'],
    [5050, '550'],
  ] as const) {
    put('g/io.bfq.weight', '77\n');
    assert.deepEqual(await io.set(dir, { weight }, fs), ['io.bfq.weight']);
    assert.equal(text('g/io.bfq.weight'), bfq);
  }
});

test('a memory limit that the kernel rounded to pages is not written again', async () => {
  const { dir, fs, put } = await group();
  put('g/memory.max', '8192\n');
  assert.deepEqual(await memory.set(dir, { max: 10_000 }, fs), []);
  assert.deepEqual(await memory.set(dir, { max: 12_288 }, fs), ['memory.max']);
  put('g/memory.high', 'max\n');
  assert.deepEqual(await memory.set(dir, { high: 0 }, fs), ['memory.high']);
});
