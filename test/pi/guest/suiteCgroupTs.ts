/** The package cgroup-ts on a real kernel and beside a real systemd: what it promises, where a temporary folder can only play along. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import {
  CgroupError,
  CgroupfsDriver,
  controllersIn,
  cpu,
  cpuset,
  detect,
  type EventChange,
  hugePageSize,
  hugePageSizes,
  hugetlb,
  io,
  isSet,
  memory,
  misc,
  PressureMonitor,
  type Pressures,
  pids,
  pressures,
  pressureWords,
  type Resources,
  SystemdDriver,
  systemPressures,
  watchCgroupEvents,
} from 'cgroup-ts';
import type { Story, Suite } from './checks.ts';
import { read, sleep, until } from './machine.ts';

const root = '/sys/fs/cgroup';
const parent = ['pitest'];
const group = ['pitest', 'one'];
const mib = 2 ** 20;
/** Without these there is no node; others are used where the kernel has them. */
const required = ['cpu', 'cpuset', 'io', 'memory', 'pids'];
/** Of every wait for kernel or systemd: both are slow here. */
const slowly = { timeoutMs: 30_000 };

const offered = (): readonly string[] => read(`${root}/cgroup.controllers`).split(' ');
const disk = (): string => read('/sys/class/block/vda/dev');

/** As their cgroup files will be named: the root has no such files, so this is what the kernel says elsewhere. */
const pageSizes = (): readonly string[] =>
  readdirSync('/sys/kernel/mm/hugepages').flatMap((name) => {
    const kb = /^hugepages-(\d+)kB$/.exec(name)?.[1];
    return kb === undefined ? [] : [hugePageSize(Number(kb) * 1024)];
  });

/** None of it is what a new group has. */
const wanted = (): Resources => ({
  cpu: { weight: 50, max: { quota: 20_000, period: 100_000 } },
  cpuset: { cpus: '1' },
  memory: { max: 64 * mib, 'swap.max': 0, 'oom.group': true },
  pids: { max: 50 },
  io: { max: { [disk()]: { wbps: 8 * mib } } },
  ...(offered().includes('hugetlb') && { hugetlb: Object.fromEntries(pageSizes().map((size) => [size, 0])) }),
});

type Driver = CgroupfsDriver | SystemdDriver;

const folders = { cgroupfs: '/pitest/one', systemd: '/pitest.slice/pitest-one.slice' } as const;

async function limits({ check }: Story, driver: Driver): Promise<boolean> {
  const dir = driver.path(group);
  const { kind } = driver;
  const created = await check(`${kind}: a group two levels down is made, and every controller reaches it`, async () => {
    assert.equal(driver.cgroupParent(group), folders[kind]);
    assert.equal(await driver.exists(group), false);
    const { enabled, refused } = await driver.create(group, wanted());
    assert.deepEqual(refused, []);
    assert.deepEqual([...enabled].sort(), [...offered()].sort());
    assert.deepEqual(await driver.list(parent), [group]);
    // systemd writes a memory.oom.group of its own with all the rest of a new slice; nothing comes after ours
    await sleep(1000);
    assert.deepEqual(await driver.update(group, { memory: { 'oom.group': true } }), []);
  });
  if (!created) return false;
  await check(`${kind}: the stat of each controller tells what was set`, async () => {
    assert.deepEqual(
      controllersIn(wanted()).filter((name) => name !== 'hugetlb'),
      ['cpuset', 'memory', 'cpu', 'pids', 'io'],
    );
    const ofCpu = await cpu.stat(dir);
    assert.deepEqual([ofCpu.weight, ofCpu.max], [50, { quota: 20_000, period: 100_000 }]);
    assert.equal(typeof ofCpu.stat.usage_usec, 'number');
    const ofCpuset = await cpuset.stat(dir);
    assert.deepEqual([ofCpuset.cpus, ofCpuset['cpus.effective']], ['1', '1']);
    const ofMemory = await memory.stat(dir);
    assert.deepEqual([ofMemory.max, ofMemory['swap.max'], ofMemory['oom.group']], [64 * mib, 0, true]);
    assert.deepEqual([typeof ofMemory.current, typeof ofMemory.peak, ofMemory.events?.oom_kill], ['number', 'number', 0]);
    const ofPids = await pids.stat(dir);
    assert.deepEqual([ofPids.max, ofPids.current], [50, 0]);
    const ofIo = await io.stat(dir);
    assert.deepEqual(ofIo.max?.[disk()], { rbps: 'max', wbps: 8 * mib, riops: 'max', wiops: 'max' });
    if (!offered().includes('hugetlb')) return;
    assert.deepEqual([...(await hugePageSizes(dir))].sort(), [...pageSizes()].sort());
    for (const [size, pages] of Object.entries(await hugetlb.stat(dir))) assert.deepEqual(pages, { current: 0, max: 0, failed: 0 }, size);
  });
  if (offered().includes('misc'))
    await check(`${kind}: misc tells the resources of the machine, and refuses one that it has not`, async () => {
      assert.deepEqual([isSet({ misc: {} }, 'misc'), isSet({ misc: { nonsense: 1 } }, 'misc')], [false, true]);
      const { capacity } = await misc.stat(root);
      assert.ok(capacity !== undefined, 'the root group tells them');
      const { current, max } = await misc.stat(dir);
      assert.deepEqual([Object.keys(current), Object.keys(max)], [Object.keys(capacity), Object.keys(capacity)]);
      await refuses(driver, { misc: { nonsense: 1 } }, 'misc.max', 'nonsense 1');
    });
  await check(`${kind}: the same once more is no difference, and a change is only what changed`, async () => {
    assert.deepEqual(await driver.update(group, wanted()), []);
    const written = await driver.update(group, { memory: { max: 32 * mib }, pids: { max: 60 } });
    // systemd may have written them before us
    if (kind === 'cgroupfs') assert.deepEqual(written, ['memory.max', 'pids.max']);
    await sleep(1000);
    const ofMemory = await memory.stat(dir);
    assert.deepEqual([ofMemory.max, ofMemory['swap.max'], (await pids.stat(dir)).max], [32 * mib, 0, 60]);
    assert.equal(ofMemory['oom.group'], true, 'systemd writes its own whenever it is told of memory; ours comes after it');
  });
  await check(`${kind}: a value that the kernel refuses is an error with file and value`, async () => {
    await refuses(driver, { cpuset: { cpus: '99' } }, 'cpuset.cpus', '99');
    // systemd would try the other one again at its next reload
    assert.deepEqual(await driver.update(group, { cpuset: { cpus: '1' } }), []);
    assert.equal((await cpuset.stat(dir)).cpus, '1');
  });
  return true;
}

async function refuses(driver: Driver, resources: Resources, file: string, value: string): Promise<void> {
  await assert.rejects(driver.update(group, resources), (e: unknown) => {
    assert.ok(e instanceof CgroupError, String(e));
    assert.deepEqual([e.file, e.value], [`${driver.path(group)}/${file}`, value]);
    // the kernel has two codes for a CPU that is not there, by how it was built
    assert.match(e.code, /^(EINVAL|ERANGE)$/);
    assert.ok(e.message.includes(`${file}: writing "${value}"`), e.message);
    return true;
  });
}

async function processes({ check }: Story, driver: Driver): Promise<void> {
  const { kind, hierarchy } = driver;
  const dir = driver.path(group);
  const at = driver.cgroupParent(group);
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (e) => resolve(e.message));
    child.once('exit', (code, signal) => resolve(signal ?? String(code)));
  });
  const abort = new AbortController();
  const heard: EventChange<'populated' | 'frozen'>[] = [];
  const told = (key: 'populated' | 'frozen', delta: number): Promise<boolean> =>
    until(
      () => `${key} to change by ${delta}; told were ${JSON.stringify(heard)}`,
      20,
      () => heard.some((change) => change.delta[key] === delta) || undefined,
    );
  try {
    await check(`${kind}: a process moves in, and the group tells that somebody lives in it`, async () => {
      const before = await watchCgroupEvents(dir, (change) => heard.push(change), { signal: abort.signal });
      assert.deepEqual(before, { populated: 0, frozen: 0 });
      assert.ok(child.pid !== undefined, 'sleep runs');
      await hierarchy.move(at, child.pid);
      assert.equal(read(`/proc/${child.pid}/cgroup`), `0::${at}`);
      assert.deepEqual(await driver.procs(parent), [child.pid]);
      assert.equal((await pids.stat(dir)).current, 1);
      await told('populated', 1);
    });
    await check(`${kind}: it is frozen and thawed, and both are told`, async () => {
      await hierarchy.freeze(at, slowly);
      assert.match(read(`${dir}/cgroup.events`), /^frozen 1$/m);
      await told('frozen', 1);
      await hierarchy.thaw(at, slowly);
      assert.match(read(`${dir}/cgroup.events`), /^frozen 0$/m);
      await told('frozen', -1);
    });
    await check(`${kind}: it is killed, and the group tells that it is empty`, async () => {
      await hierarchy.kill(at, slowly);
      assert.equal(await ended, 'SIGKILL');
      assert.equal(await hierarchy.populated(at), false);
      await told('populated', -1);
    });
    await check(`${kind}: the pressure of a group is told by resource`, async () => {
      hasAll(await pressures(dir));
    });
  } finally {
    abort.abort();
    child.kill('SIGKILL');
  }
}

function hasAll(found: Pressures): void {
  assert.deepEqual(Object.keys(found), [...pressureWords]);
  for (const resource of pressureWords) {
    const some = found[resource]?.some;
    assert.ok(some !== undefined && some.avg10 >= 0 && some.avg10 <= 100 && Number.isSafeInteger(some.total), resource);
  }
}

async function drive(story: Story, driver: Driver): Promise<void> {
  try {
    if (await limits(story, driver)) await processes(story, driver);
    await story.check(`${driver.kind}: the groups are removed, the inner one first`, async () => {
      for (const name of [group, parent]) {
        await driver.remove(name);
        assert.equal(await driver.exists(name), false, name.join('/'));
      }
      // what is gone is no error
      await driver.remove(group);
    });
  } finally {
    // whatever failed: nothing is left to the suites that follow
    if (await driver.exists(parent)) for (const name of [group, parent]) await driver.remove(name).catch(() => {});
  }
}

export const cgroupTs: Suite = {
  name: 'cgroup-ts',
  async run(story) {
    const { check, figure } = story;
    figure('controllers of the kernel', offered().join(' '));
    await check('the machine has cgroups v2 with all that is wanted, and they may be written', async () => {
      assert.deepEqual(
        required.filter((name) => !offered().includes(name)),
        [],
      );
      const found = await detect({ subtree: 'system.slice' });
      assert.deepEqual(
        [found.mode, found.mountPoint, found.missing, found.v1, found.writable],
        ['v2', root, [], [], true],
        JSON.stringify(found),
      );
    });
    await check('the pressure of the machine is read, and its share of the time between two readings', async () => {
      hasAll(await systemPressures());
      const monitor = new PressureMonitor({ read: () => systemPressures() });
      const first = await monitor.readOnce();
      assert.deepEqual(first.share, {});
      await sleep(200);
      const { share } = await monitor.readOnce();
      assert.deepEqual(Object.keys(share), [...pressureWords]);
      for (const resource of pressureWords) assert.ok((share[resource] ?? -1) >= 0 && (share[resource] ?? 101) <= 100, resource);
      // a processor made of software has kept somebody waiting by now
      assert.ok((first.pressures.cpu?.some.total ?? 0) > 0);
    });
    await drive(story, new CgroupfsDriver());
    await drive(story, new SystemdDriver({ jobTimeoutMs: slowly.timeoutMs }));
  },
};
