import assert from 'node:assert/strict';
import { link, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { deadLogNames, removeDeadLogs } from '../../src/eviction/deadLogs.ts';
import { folderUsage } from '../../src/eviction/diskUsage.ts';
import { readFilesystem, readMemory, readProcesses } from '../../src/eviction/readings.ts';

async function folder(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'eviction-'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await writeFile(join(root, name), text);
  }
  return root;
}

// captured on a Raspberry Pi 4 (kernel 6.6, Raspberry Pi OS), cut
const meminfo =
  'MemTotal:         948012 kB\nMemFree:          101200 kB\nMemAvailable:     412340 kB\nSwapTotal:        102396 kB\nSwapFree:         102396 kB\nAnonPages:        231004 kB\n';
const pressure = 'some avg10=12.50 avg60=3.00 avg300=0.71 total=1234\nfull avg10=4.25 avg60=1.00 avg300=0.20 total=999\n';

test('memory is read with swap, its kind, and how long tasks waited', async () => {
  const proc = await folder({
    meminfo,
    'pressure/memory': pressure,
    swaps: 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0                              partition\t102396\t\t0\t\t100\n',
  });
  assert.deepEqual(readMemory(proc), {
    totalBytes: 948012 * 1024,
    availableBytes: 412340 * 1024,
    swapFreeBytes: 102396 * 1024,
    anonBytes: 231004 * 1024,
    zram: true,
    stall: { some10: 12.5, full10: 4.25 },
  });
});

test('a kernel without PSI says nothing of it, one without /proc nothing at all', async () => {
  assert.equal(readMemory(await folder({ meminfo }))?.stall, undefined);
  assert.equal(readMemory(await folder({ meminfo }))?.zram, false);
  assert.equal(readMemory(await folder({})), undefined);
  assert.equal(readProcesses(await folder({ loadavg: '0.1 0.2 0.3 1/200 999\n' })), undefined);
});

test('process numbers: threads count, and the smaller of the two limits', async () => {
  const proc = await folder({
    loadavg: '0.52 0.58 0.59 1/467 12345\n',
    'sys/kernel/pid_max': '4194304\n',
    'sys/kernel/threads-max': '7344\n',
  });
  assert.deepEqual(readProcesses(proc), { most: 7344, running: 467 });
});

test('this machine can be read', async () => {
  const memory = readMemory('/proc');
  assert.ok(memory && memory.totalBytes > memory.availableBytes);
  const here = await readFilesystem(tmpdir());
  assert.ok(here && here.capacityBytes >= here.availableBytes);
  assert.equal(await readFilesystem('/not/there'), undefined);
});

test('a folder is measured in blocks and files, links are not followed, and of two names one counts', async () => {
  const root = await folder({ 'a/one': 'x'.repeat(100_000), 'a/b/two': 'y'.repeat(50_000), three: '' });
  const outside = await folder({ big: 'z'.repeat(1_000_000) });
  await symlink(outside, join(root, 'away'));
  await link(join(root, 'a/one'), join(root, 'again'));
  const { bytes, inodes } = await folderUsage(root);
  assert.ok(bytes >= 150_000 && bytes < 300_000, `${bytes}`);
  // root, a, b, one, two, three, away
  assert.equal(inodes, 7);
  assert.deepEqual(await folderUsage(join(root, 'away')), { bytes: 0, inodes: 0 });
  assert.deepEqual(await folderUsage(join(root, 'nothing')), { bytes: 0, inodes: 0 });
});

test('a walk ends after so many entries, and when it is told to', async () => {
  const root = await folder(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`f${i}`, ''])));
  const { inodes } = await folderUsage(root, undefined, 50);
  assert.ok(inodes >= 50 && inodes < 100, `${inodes}`);
  await assert.rejects(folderUsage(root, AbortSignal.abort()), { name: 'AbortError' });
});

test('dead logs are rotated parts and earlier attempts; the last log of a container stays', async () => {
  const names = [
    '0.log',
    '1.log',
    '2.log',
    '2.log.20260101-000000',
    '2.log.20260101-000000.gz',
    '2.log.20260102-000000.gz.tmp',
    'notes.txt',
    '10.log',
  ];
  assert.deepEqual(deadLogNames(names, '2.log'), ['0.log', '1.log', '2.log.20260101-000000', '2.log.20260101-000000.gz']);
  const root = await folder(Object.fromEntries(names.map((n) => [`pod/app/${n}`, '1234'])));
  await writeFile(join(root, 'pod/keep'), '');
  const path = (n: string) => join(root, 'pod/app', n);
  assert.equal(await removeDeadLogs([path('1.log'), path('2.log'), '', join(root, 'gone/app/0.log')]), 16);
  assert.deepEqual((await readdir(join(root, 'pod/app'))).sort(), ['10.log', '2.log', '2.log.20260102-000000.gz.tmp', 'notes.txt']);
  await rm(root, { recursive: true });
});
