/** What a machine’s cgroups are, read from folders in place of the kernel’s files. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { kernelLine, readCgroups } from '../../src/cm/machine.ts';
import { temporaryFolder } from './cgroupBed.ts';

function machine(files: Readonly<Record<string, string>>) {
  const dir = temporaryFolder();
  for (const folder of ['cgroup', 'proc/self', 'boot']) mkdirSync(join(dir, folder), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(dir, path, '..'), { recursive: true });
    writeFileSync(join(dir, path), text.replaceAll('ROOT', join(dir, 'cgroup')));
  }
  return { cgroups: join(dir, 'cgroup'), proc: join(dir, 'proc'), boot: join(dir, 'boot'), dir };
}

const unified = '30 24 0:26 / ROOT rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n';
const legacy = (...controllers: string[]) =>
  `30 24 0:26 / ROOT rw - tmpfs tmpfs rw,mode=755\n${controllers.map((c, i) => `3${i + 1} 30 0:3${i} / ROOT/${c} rw - cgroup cgroup rw,${c}\n`).join('')}`;

test('v2 with all controllers, and Raspberry Pi OS as it is delivered, without memory', async () => {
  const whole = machine({
    'proc/self/mountinfo': unified,
    'cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
    'cgroup/cgroup.procs': '',
  });
  assert.deepEqual(await readCgroups(whole), { version: 'v2', controllers: new Set(['cpuset', 'cpu', 'io', 'memory', 'pids']) });
  const pi = machine({ 'proc/self/mountinfo': unified, 'cgroup/cgroup.controllers': 'cpuset cpu io pids\n', 'cgroup/cgroup.procs': '' });
  assert.equal((await readCgroups(pi)).controllers.has('memory'), false);
});

test('v1 and hybrid are told apart from v2, with the controllers they have', async () => {
  const v1 = await readCgroups(machine({ 'proc/self/mountinfo': legacy('cpu', 'memory') }));
  assert.deepEqual(v1, { version: 'v1', controllers: new Set(['cpu', 'memory']) });
  const tree = `${legacy('cpu', 'memory')}40 30 0:40 / ROOT/unified rw - cgroup2 cgroup2 rw\n`;
  const hybrid = await readCgroups(
    machine({ 'proc/self/mountinfo': tree, 'cgroup/unified/cgroup.controllers': '\n', 'cgroup/unified/cgroup.procs': '' }),
  );
  assert.deepEqual(hybrid, { version: 'hybrid', controllers: new Set(['cpu', 'memory']) });
});

test('a v2 tree that is mounted read-only is not written', async () => {
  const mountinfo = unified.replace('rw,nosuid', 'ro,nosuid');
  const facts = await readCgroups(
    machine({ 'proc/self/mountinfo': mountinfo, 'cgroup/cgroup.controllers': 'cpu memory pids\n', 'cgroup/cgroup.procs': '' }),
  );
  assert.match(facts.refused ?? '', /cannot be written \(EROFS\)/);
});

test('no cgroups at all is an answer too', async () => {
  assert.deepEqual(await readCgroups(machine({ 'proc/self/mountinfo': '24 1 8:1 / / rw - ext4 /dev/root rw\n' })), {
    version: 'none',
    controllers: new Set(),
  });
});

test('the file of the kernel command line: Raspberry Pi OS now and before, and elsewhere words', () => {
  const now = machine({ 'boot/firmware/cmdline.txt': 'a', 'boot/cmdline.txt': 'DO NOT EDIT', 'proc/cmdline': 'root=/dev/sda1 quiet\n' });
  assert.deepEqual(kernelLine(now), { place: `the line in ${join(now.boot, 'firmware/cmdline.txt')}`, booted: 'root=/dev/sda1 quiet' });
  const before = machine({ 'boot/cmdline.txt': 'a' });
  assert.deepEqual(kernelLine(before), { place: `the line in ${join(before.boot, 'cmdline.txt')}`, booted: '' });
  assert.match(kernelLine(machine({})).place, /\/etc\/default\/grub/);
});
