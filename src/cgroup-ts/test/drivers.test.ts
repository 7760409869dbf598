import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CgroupfsDriver } from '../cgroupfsDriver.ts';
import type { Driver } from '../driver.ts';
import { CgroupError } from '../error.ts';
import type { Run, RunResult } from '../run.ts';
import { expandSlice } from '../slices.ts';
import { SystemdDriver } from '../systemdDriver.ts';
import { newTree, type Tree } from './tree.ts';

const ok = (stdout = 'o "/org/freedesktop/systemd1/job/12"\n'): RunResult => ({ code: 0, stdout, stderr: '' });
const failed = (text: string): RunResult => ({ code: 1, stdout: '', stderr: `Call failed: ${text}\n` });

/** As much of systemd as the driver talks to: it makes and removes slices in the tree, a little later than it answers. */
class FakeSystemd {
  readonly calls: (readonly string[])[] = [];
  readonly loaded = new Set<string>();
  knowsCpuset = true;
  /** Units with a file of their own. */
  readonly files = new Set<string>();
  answer: RunResult | undefined;
  /** Units whose memory it was told of: it answers first, and writes its own memory.oom.group afterwards. */
  readonly #dirty = new Set<string>();
  readonly #later: (() => void)[] = [];

  constructor(private readonly tree: Tree) {
    tree.onSleep = () => this.work();
  }

  /** Its jobs. */
  work(): void {
    for (const job of this.#later.splice(0)) job();
  }

  readonly run: Run = async (argv) => {
    this.calls.push(argv);
    const [method = '', , unit = ''] = argv.slice(7);
    for (const dirty of this.#dirty) if (existsSync(this.dir(dirty))) this.tree.put(join(expandSlice(dirty), 'memory.oom.group'), '0');
    this.#dirty.clear();
    if (this.answer !== undefined) return this.answer;
    if (method === 'Ping') return ok('');
    if (argv.some((word) => word.startsWith('Memory') && word !== 'MemoryAccounting')) this.#dirty.add(unit);
    switch (method) {
      case 'StartTransientUnit':
        if (!this.knowsCpuset && argv.includes('AllowedCPUs')) return failed('Cannot set property AllowedCPUs, or unknown property.');
        if (this.loaded.has(unit) || this.files.has(unit)) return failed(`Unit ${unit} was already loaded or has a fragment file.`);
        this.loaded.add(unit);
        this.#later.push(() => this.make(unit));
        return ok();
      case 'StartUnit':
        this.loaded.add(unit);
        this.#later.push(() => this.make(unit));
        return ok();
      case 'SetUnitProperties':
        if (!this.knowsCpuset && argv.includes('AllowedCPUs')) return failed('Cannot set property AllowedCPUs, or unknown property.');
        return ok('');
      case 'StopUnit':
        if (!this.loaded.delete(unit)) return failed(`Unit ${unit} not loaded.`);
        this.#later.push(() => void this.tree.fs.rmdir(this.dir(unit)).catch(() => undefined));
        return ok();
      default:
        return failed(`Unit ${unit} not loaded.`);
    }
  };

  dir(unit: string): string {
    return join(this.tree.root, expandSlice(unit));
  }

  make(unit: string): void {
    if (!existsSync(this.dir(unit))) this.tree.fs.makeGroup(this.dir(unit));
  }

  methods(): readonly string[] {
    return this.calls.map((argv) => `${argv[7]} ${argv[9]}`);
  }
}

function systemd(tree: Tree): { readonly driver: SystemdDriver; readonly fake: FakeSystemd } {
  const fake = new FakeSystemd(tree);
  const driver = new SystemdDriver({ root: tree.root, fs: tree.fs, sleep: tree.sleep, run: fake.run, ownPid: 99_999 });
  return { driver, fake };
}

const cgroupfs = (tree: Tree): CgroupfsDriver => new CgroupfsDriver({ root: tree.root, fs: tree.fs, sleep: tree.sleep, ownPid: 99_999 });

const both: readonly [kind: string, make: (tree: Tree) => Driver][] = [
  ['cgroupfs', cgroupfs],
  ['systemd', (tree) => systemd(tree).driver],
];

for (const [kind, make] of both) {
  test(`${kind}: a group lives from create to remove under one name`, async () => {
    const tree = newTree();
    const driver = make(tree);
    const pod = ['kubepods', 'burstable', 'pod12-34'];
    assert.equal(await driver.exists(pod), false);
    const { enabled, refused } = await driver.create(pod, {
      cpu: { weight: 4 },
      memory: { max: 20_971_520, 'oom.group': true },
      hugetlb: { '2MB': 0 },
    });
    assert.deepEqual(refused, []);
    for (const controller of ['cpu', 'cpuset', 'memory', 'pids', 'hugetlb']) assert.ok(enabled.includes(controller), controller);
    assert.equal(await driver.exists(pod), true);
    assert.equal(await driver.exists(['kubepods']), true);

    const below = driver.cgroupParent(pod).slice(1);
    assert.equal(driver.path(pod), join(tree.root, below));
    const values = ['cpu.weight', 'memory.max', 'memory.oom.group', 'hugetlb.2MB.max'].map((file) => tree.text(join(below, file)));
    assert.deepEqual(values, ['4', '20971520', '1', '0']);

    assert.deepEqual(await driver.update(pod, { pids: { max: 200 }, cpu: { weight: 4 } }), ['pids.max']);
    assert.deepEqual(await driver.update(pod, { pids: { max: 200 } }), []);
    assert.deepEqual(await driver.list(['kubepods']), [['kubepods', 'burstable']]);
    assert.deepEqual(await driver.list(['kubepods', 'burstable']), [pod]);
    assert.deepEqual(await driver.list(['nothing']), []);

    tree.fs.makeGroup(join(driver.path(pod), 'container'));
    tree.fs.setProcs(join(driver.path(pod), 'container'), [10, 11]);
    assert.deepEqual(await driver.procs(pod), [10, 11]);
    await driver.remove(pod);
    assert.equal(await driver.exists(pod), false);
    assert.equal(await driver.exists(['kubepods', 'burstable']), true);
    await driver.remove(pod);
  });

  test(`${kind}: creating again keeps the group and gives it the new limits`, async () => {
    const tree = newTree();
    const driver = make(tree);
    await driver.create(['a'], { cpu: { weight: 10 } });
    tree.fs.makeGroup(join(driver.path(['a']), 'child'));
    await driver.create(['a'], { cpu: { weight: 20 } });
    assert.equal(tree.text(`${driver.cgroupParent(['a'])}/cpu.weight`), '20');
    assert.ok(existsSync(join(driver.path(['a']), 'child')));
  });

  test(`${kind}: an update of a group that is gone is ENOENT`, async () => {
    const driver = make(newTree());
    const gone = (error: unknown): boolean => error instanceof CgroupError && error.code === 'ENOENT';
    await assert.rejects(driver.update(['gone'], { memory: { max: 4096 } }), gone);
  });

  test(`${kind}: names that mean something else to the file system are refused`, async () => {
    const driver = make(newTree());
    for (const name of [['..'], ['a', ''], ['a/b'], ['a', '.'], ['cgroup.procs'], ['a\nb']])
      assert.throws(
        () => driver.path(name),
        (error: unknown) => error instanceof CgroupError && error.code === 'EINVAL',
        name.join('|'),
      );
  });
}

test('the drivers differ in notation only', () => {
  const tree = newTree();
  const table: readonly [name: readonly string[], cgroupfs: string, systemd: string][] = [
    [[], '/', '/'],
    [['kubepods'], '/kubepods', '/kubepods.slice'],
    [['kubepods', 'besteffort'], '/kubepods/besteffort', '/kubepods.slice/kubepods-besteffort.slice'],
    [['kubepods', 'pod12-ab'], '/kubepods/pod12-ab', '/kubepods.slice/kubepods-pod12_ab.slice'],
    [
      ['kubepods', 'burstable', 'pod12-ab'],
      '/kubepods/burstable/pod12-ab',
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice',
    ],
  ];
  for (const [name, plain, slices] of table) {
    assert.equal(cgroupfs(tree).cgroupParent(name), plain);
    assert.equal(systemd(tree).driver.cgroupParent(name), slices);
  }
});

test('a name that a slice could not be read back from is refused by the systemd driver alone', () => {
  const tree = newTree();
  assert.throws(() => systemd(tree).driver.path(['a_b']), /slice name cannot carry/);
  assert.ok(cgroupfs(tree).path(['a_b']));
});

test('systemd starts the parents first, and one slice with all its limits in one call', async () => {
  const { driver, fake } = systemd(newTree());
  await driver.create(['kubepods', 'pod1'], { cpu: { weight: 39 }, pids: { max: 'max' } });
  assert.deepEqual(fake.methods(), ['StartTransientUnit kubepods.slice', 'StartTransientUnit kubepods-pod1.slice']);
  const argv = fake.calls[1] ?? [];
  assert.deepEqual(argv.slice(0, 11), [
    'busctl',
    '--system',
    '--',
    'call',
    'org.freedesktop.systemd1',
    '/org/freedesktop/systemd1',
    'org.freedesktop.systemd1.Manager',
    'StartTransientUnit',
    'ssa(sv)a(sa(sv))',
    'kubepods-pod1.slice',
    'replace',
  ]);
  assert.equal(
    argv
      .slice(11)
      .join(' ')
      .replace(/Description s .*?slice(?= Wants)/, 'Description s …'),
    [
      '9 Description s … Wants as 1 kubepods.slice DefaultDependencies b false CPUAccounting b true MemoryAccounting b true',
      'IOAccounting b true TasksAccounting b true CPUWeight t 39 TasksMax t 18446744073709551615 0',
    ].join(' '),
  );
  assert.ok(!argv.includes('Delegate'), 'slices have none');
});

test('a change is one runtime call, and none when systemd has no property for it', async () => {
  const { driver, fake } = systemd(newTree());
  await driver.create(['a']);
  fake.calls.length = 0;
  await driver.update(['a'], { memory: { max: 4096, 'swap.max': 0 } });
  assert.deepEqual(fake.calls[0]?.slice(7), [
    'SetUnitProperties',
    'sba(sv)',
    'a.slice',
    'true',
    '2',
    ...'MemoryMax t 4096 MemorySwapMax t 0'.split(' '),
  ]);
  fake.calls.length = 0;
  assert.deepEqual(await driver.update(['a'], { hugetlb: { '2MB': 4_194_304 }, memory: { 'oom.group': true } }), [
    'memory.oom.group',
    'hugetlb.2MB.max',
  ]);
  assert.deepEqual(fake.calls, []);
});

test('systemd writes a memory.oom.group of its own whenever it is told of memory, and ours is written after that', async () => {
  const tree = newTree();
  const { driver, fake } = systemd(tree);
  const group = (): string => tree.text('a.slice/memory.oom.group');
  await driver.create(['a'], { memory: { max: 8192, 'oom.group': true } });
  assert.equal(group(), '1');
  await driver.update(['a'], { memory: { max: 4096 } });
  assert.equal(group(), '1', 'also when nobody speaks of it');
  fake.calls.length = 0;
  assert.deepEqual(await driver.update(['a'], { memory: { max: 4096, 'oom.group': true } }), [], 'it settles');
  assert.deepEqual(fake.calls, []);
  await driver.update(['a'], { memory: { 'oom.group': false } });
  await driver.update(['a'], { memory: { max: 8192 } });
  assert.equal(group(), '0');
});

test('a systemd without AllowedCPUs is asked once, and the file gets the list', async () => {
  const tree = newTree();
  const { driver, fake } = systemd(tree);
  fake.knowsCpuset = false;
  await driver.create(['a'], { cpuset: { cpus: '1' }, cpu: { weight: 7 } });
  assert.equal(tree.text('a.slice/cpuset.cpus'), '1');
  fake.calls.length = 0;
  await driver.update(['a'], { cpuset: { cpus: '2' } });
  assert.deepEqual(fake.calls, []);
  assert.equal(tree.text('a.slice/cpuset.cpus'), '2');
});

test('a unit that is loaded without a folder is forgotten and started anew', async () => {
  const { driver, fake } = systemd(newTree());
  fake.loaded.add('a.slice');
  await driver.create(['a']);
  assert.deepEqual(
    fake.calls.map((argv) => argv[7]),
    ['StartTransientUnit', 'StopUnit', 'ResetFailedUnit', 'StartTransientUnit'],
  );
});

test('a slice that has a unit file is started by it and gets its limits then', async () => {
  const { driver, fake } = systemd(newTree());
  fake.files.add('a.slice');
  await driver.create(['a'], { pids: { max: 5 } });
  assert.deepEqual(
    fake.calls.map((argv) => argv[7]),
    ['StartTransientUnit', 'StopUnit', 'ResetFailedUnit', 'StartTransientUnit', 'StartUnit', 'SetUnitProperties'],
  );
});

test('systemd is not told again what it was told, but anew after somebody changed the file', async () => {
  const tree = newTree();
  const { driver, fake } = systemd(tree);
  await driver.create(['a'], { memory: { max: 8192 } });
  fake.calls.length = 0;
  assert.deepEqual(await driver.update(['a'], { memory: { max: 8192 } }), []);
  assert.deepEqual(fake.calls, []);
  tree.put('a.slice/memory.max', 'max\n');
  assert.deepEqual(await driver.update(['a'], { memory: { max: 8192 } }), ['memory.max']);
  assert.deepEqual(fake.methods(), ['SetUnitProperties a.slice']);
  const another = new SystemdDriver({ root: tree.root, fs: tree.fs, sleep: tree.sleep, run: fake.run });
  await another.update(['a'], { memory: { max: 8192 } });
  assert.equal(fake.calls.length, 2, 'a process that begins does not know what systemd was told');
});

test('what systemd refuses is told with the unit and its words', async () => {
  const { driver, fake } = systemd(newTree());
  const table: readonly [stderr: string, code: string][] = [
    ['Access denied', 'EACCES'],
    ['Interactive authentication required.', 'EACCES'],
    ['Value specified in MemoryMax is out of range', 'EIO'],
  ];
  for (const [text, code] of table) {
    fake.answer = failed(text);
    await assert.rejects(driver.create(['a']), (error: unknown) => {
      assert.ok(error instanceof CgroupError);
      assert.deepEqual([error.code, error.file], [code, 'a.slice']);
      assert.ok(error.message.includes(text), error.message);
      return true;
    });
  }
  fake.answer = { code: -1, stdout: '', stderr: 'spawn busctl ENOENT' };
  await assert.rejects(driver.create(['a']), /spawn busctl ENOENT/);
});

test('a job of systemd that never ends is ETIMEDOUT', async () => {
  const tree = newTree();
  const { driver } = systemd(tree);
  tree.onSleep = () => undefined;
  await assert.rejects(driver.create(['a']), (error: unknown) => error instanceof CgroupError && error.code === 'ETIMEDOUT');
  assert.equal(
    tree.slept.reduce((a, b) => a + b, 0),
    5000,
  );
});

test('folders that are no slices of ours are not listed', async () => {
  const tree = newTree();
  const { driver } = systemd(tree);
  await driver.create(['kubepods', 'pod1']);
  for (const name of ['cri-containerd-abc.scope', 'other-pod2.slice', 'kubepods-pod1-x.slice', 'init.scope'])
    mkdirSync(join(tree.root, 'kubepods.slice', name));
  assert.deepEqual(await driver.list(['kubepods']), [['kubepods', 'pod1']]);
});

test('removing kills first, so that no container gets a polite SIGTERM from systemd', async () => {
  const tree = newTree();
  const { driver, fake } = systemd(tree);
  await driver.create(['a']);
  tree.fs.setProcs(driver.path(['a']), [5]);
  tree.fs.calls.length = 0;
  fake.calls.length = 0;
  await driver.remove(['a']);
  assert.equal(tree.fs.calls[0], 'write a.slice/cgroup.kill 1');
  assert.deepEqual(fake.methods(), ['StopUnit a.slice', 'ResetFailedUnit a.slice']);
});
