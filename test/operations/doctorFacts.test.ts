/** The facts of the doctor's checks, read from folders that stand for a machine: one for each check, and one full of garbage. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { cniSettings } from '../../src/operations/doctorCni.ts';
import { type MachineFacts, type MachineFactsDeps, systemMachineFacts } from '../../src/operations/doctorFacts.ts';
import { FileStore } from '../../src/store/fileStore.ts';

interface Machine {
  readonly dir: string;
  readonly facts: MachineFacts;
  write(files: Readonly<Record<string, string | Uint8Array>>): void;
}

function machine(t: TestContext, o: Partial<MachineFactsDeps> = {}): Machine {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-machine-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const at = (name: string) => join(dir, name);
  const stateDir = at('var/lib/podsched');
  const roots = {
    ...{ proc: at('proc'), sys: at('sys'), etc: at('etc'), run: at('run'), boot: at('boot') },
    ...{ lib: at('usr/lib'), cgroups: at('sys/fs/cgroup') },
  };
  return {
    dir,
    facts: systemMachineFacts({
      roots,
      folders: [
        { path: stateDir, use: 'state' },
        { path: at('var/log/pods'), use: 'logs' },
      ],
      stateDir,
      now: () => 1_800_000_000_000,
      timeSynced: async () => undefined,
      machine: 'aarch64',
      agent: 'arm64',
      asRoot: true,
      ...o,
    }),
    write: (files) => {
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(at(name)), { recursive: true });
        writeFileSync(at(name), content);
      }
    },
  };
}

const mounts = (dir: string, type: 'cgroup2' | 'cgroup', options: string): string =>
  `31 23 0:28 / ${dir}/sys/fs/cgroup${type === 'cgroup' ? `/${options.split(',').at(-1)}` : ''} rw - ${type} ${type} ${options}\n`;

test('cgroups: a Pi whose kernel was told to leave memory out', async (t) => {
  const { dir, facts, write } = machine(t);
  write({
    'proc/self/mountinfo': mounts(dir, 'cgroup2', 'rw'),
    'proc/cgroups': '#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t1\t1\nmemory\t0\t1\t0\n',
    'proc/cmdline': 'console=tty1 cgroup_disable=memory\n',
    'sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io pids\n',
    'boot/firmware/cmdline.txt': 'console=tty1\n',
  });
  const seen = await facts.cgroups();
  assert.equal(seen.facts.version, 'v2');
  assert.deepEqual([...seen.facts.controllers].sort(), ['cpu', 'cpuset', 'io', 'pids']);
  assert.match(seen.line.place, /boot\/firmware\/cmdline\.txt$/);
});

test('cgroups: v1 beside an empty v2 tree is told as it is', async (t) => {
  const { dir, facts, write } = machine(t);
  write({
    'proc/self/mountinfo': `${mounts(dir, 'cgroup', 'rw,memory')}${mounts(dir, 'cgroup', 'rw,pids')}`,
    'sys/fs/cgroup/memory/tasks': '',
  });
  const seen = await facts.cgroups();
  assert.equal(seen.facts.version, 'v1');
  assert.ok(seen.facts.controllers.has('memory'));
});

test('page size: what the kernel told this process', async (t) => {
  const { facts, write } = machine(t);
  const words = new BigUint64Array([6n, 16_384n, 0n, 0n]);
  write({ 'proc/self/auxv': new Uint8Array(words.buffer) });
  assert.equal(await facts.pageBytes(), 16_384);
});

test('disk: each file system once, also for folders that are not there yet', async (t) => {
  const { facts, write, dir } = machine(t);
  write({ 'var/lib/podsched/x': '' });
  const [disk, ...others] = await facts.disks();
  assert.deepEqual(others, []);
  assert.equal(disk?.use, 'state, logs');
  assert.equal(disk?.path, join(dir, 'var/lib/podsched'));
  assert.ok((disk?.capacityBytes ?? 0) > 0 && (disk?.availableBytes ?? 0) <= (disk?.capacityBytes ?? 0));
});

test('read-only: by the file system, not by the mount', async (t) => {
  const { facts, write, dir } = machine(t);
  write({
    'proc/self/mountinfo': `1 0 8:1 / / rw - ext4 /dev/root ro,errors=remount-ro\n2 1 8:2 / ${dir}/var ro - ext4 /dev/b rw\n`,
  });
  assert.deepEqual(await facts.readOnly(), ['/']);
});

test('clock: with and without a battery', async (t) => {
  const { facts, write } = machine(t, { timeSynced: async () => false });
  assert.deepEqual(await facts.clock(), { nowMs: 1_800_000_000_000, synced: false, hasRtc: false });
  write({ 'sys/class/rtc/rtc0/name': 'rpi-rtc\n' });
  assert.equal((await facts.clock()).hasRtc, true);
});

test('power: the firmware’s word and the voltage sensor', async (t) => {
  const { facts, write } = machine(t);
  assert.deepEqual(await facts.power(), { firmware: undefined, underVoltage: undefined, cards: [], resetReasons: [] });
  write({
    'sys/bus/platform/devices/soc:firmware/get_throttled': '50000\n',
    'sys/class/hwmon/hwmon0/name': 'rpi_volt\n',
    'sys/class/hwmon/hwmon0/in0_lcrit_alarm': '1\n',
    'sys/block/mmcblk0/device/name': 'SC32G\n',
  });
  const seen = await facts.power();
  assert.deepEqual([seen.firmware, seen.underVoltage, seen.cards.length], [{ now: 0, before: 5 }, true, 1]);
});

test('architecture: the version of libseccomp, from the file its name points to', async (t) => {
  const { facts, dir } = machine(t, { machine: 'armv7l', agent: 'arm' });
  assert.deepEqual(await facts.architecture(), { machine: 'armv7l', agent: 'arm', libseccomp: undefined });
  mkdirSync(join(dir, 'usr/lib/arm-linux-gnueabihf'), { recursive: true });
  symlinkSync('libseccomp.so.2.3.3', join(dir, 'usr/lib/arm-linux-gnueabihf/libseccomp.so.2'));
  assert.equal((await facts.architecture()).libseccomp, '2.3.3');
});

test('identity: what the card says, and what the board says; nothing is written', async (t) => {
  const { facts, write, dir } = machine(t);
  assert.deepEqual(await facts.identity(), { stored: undefined, hashes: [] });
  await new FileStore(join(dir, 'var/lib/podsched/state'), { durable: false }).put('identity', { nodeName: 'pi-1', machine: 'aaaa' });
  write({ 'proc/device-tree/serial-number': '10000000abcdef01\0' });
  const seen = await facts.identity();
  assert.deepEqual(seen.stored, { nodeName: 'pi-1', machine: 'aaaa' });
  assert.match(seen.hashes[0] ?? '', /^[0-9a-f]{12}$/);
});

test('cni: the files of the folder, and the programs of each folder', async (t) => {
  const { facts, write, dir } = machine(t);
  const settings = cniSettings(
    `version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "${dir}/bin"\nconf_dir = "${dir}/net.d"\n`,
  );
  assert.equal((await facts.cni(settings)).files, undefined);
  write({ 'net.d/10-a.conflist': '{}', 'net.d/README': 'x', 'bin/bridge': '' });
  mkdirSync(join(dir, 'net.d/20-folder.conf'));
  const seen = await facts.cni(settings);
  assert.deepEqual(seen.files, [
    { name: '10-a.conflist', text: '{}' },
    { name: '20-folder.conf', text: '' },
  ]);
  assert.deepEqual(seen.programs[`${dir}/bin`], ['bridge']);
});

test('garbage in every file is read as nothing, and nothing rejects but what has no table of mounts', async (t) => {
  const { facts, write } = machine(t);
  const garbage = new Uint8Array([0, 255, 10, 27, 91, 50, 74, 10, 32, 45, 32]);
  write({
    'proc/self/mountinfo': garbage,
    'proc/cgroups': garbage,
    'proc/cmdline': garbage,
    'proc/self/auxv': garbage,
    'proc/device-tree/serial-number': garbage,
    'sys/fs/cgroup/cgroup.controllers': garbage,
    'sys/bus/platform/devices/soc:firmware/get_throttled': garbage,
    'sys/class/hwmon/hwmon0/name': garbage,
    'sys/block/mmcblk0/device/life_time': garbage,
    'usr/lib/arm-linux-gnueabihf/libseccomp.so.2': garbage,
    'var/lib/podsched/state/identity.json': garbage,
  });
  assert.equal((await facts.cgroups()).facts.version, 'none');
  assert.equal(await facts.pageBytes(), undefined);
  assert.deepEqual(await facts.readOnly(), []);
  const { firmware, underVoltage } = await facts.power();
  assert.deepEqual([firmware, underVoltage], [undefined, undefined]);
  assert.equal((await facts.architecture()).libseccomp, undefined);
  assert.equal((await facts.identity()).stored, undefined);
  const { facts: bare } = machine(t);
  await assert.rejects(bare.readOnly());
});
