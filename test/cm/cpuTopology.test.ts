import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readCpuTopology } from '../../src/cm/cpuTopology.ts';

/** A /sys with these files. */
function sysWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const sys = mkdtempSync(join(tmpdir(), 'podsched-cpus-'));
  t.after(() => rmSync(sys, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(sys, path)), { recursive: true });
    writeFileSync(join(sys, path), `${text}\n`);
  }
  return sys;
}

const cpuFiles = (cpu: number, o: { siblings?: string; socket?: string }): Record<string, string> => ({
  ...(o.siblings !== undefined && { [`devices/system/cpu/cpu${cpu}/topology/core_cpus_list`]: o.siblings }),
  ...(o.socket !== undefined && { [`devices/system/cpu/cpu${cpu}/topology/physical_package_id`]: o.socket }),
});

test('who shares a core is said by the siblings, so clusters that count their cores anew stay apart', async (t) => {
  const sys = sysWith(t, {
    'devices/system/cpu/online': '0-3',
    ...cpuFiles(0, { siblings: '0', socket: '0' }),
    ...cpuFiles(1, { siblings: '1', socket: '0' }),
    ...cpuFiles(2, { siblings: '2-3', socket: '-1' }),
    ...cpuFiles(3, { siblings: '2-3' }),
    'devices/system/node/online': '0-1',
    'devices/system/node/node0/cpulist': '0-1',
    'devices/system/node/node1/cpulist': '2-3',
  });
  assert.deepEqual(await readCpuTopology({ sys }), [
    { cpu: 0, core: 0, socket: 0, node: 0 },
    { cpu: 1, core: 1, socket: 0, node: 0 },
    { cpu: 2, core: 2, socket: 0, node: 1 },
    { cpu: 3, core: 2, socket: 0, node: 1 },
  ]);
});

test('a kernel that says only which CPUs are there has as many cores', async (t) => {
  const sys = sysWith(t, { 'devices/system/cpu/online': '0,2' });
  assert.deepEqual(
    (await readCpuTopology({ sys })).map((p) => [p.cpu, p.core]),
    [
      [0, 0],
      [2, 2],
    ],
  );
});

test('CPUs that the root cgroup does not have are not there, whatever the version of cgroups', async (t) => {
  for (const file of ['cpuset.cpus.effective', 'cpuset/cpuset.effective_cpus', 'cpuset/cpuset.cpus']) {
    const sys = sysWith(t, { 'devices/system/cpu/online': '0-7', [`fs/cgroup/${file}`]: '0-1' });
    assert.deepEqual(
      (await readCpuTopology({ sys })).map((p) => p.cpu),
      [0, 1],
      file,
    );
  }
});

test('a machine that does not say which CPUs it has is an error', async (t) => {
  await assert.rejects(readCpuTopology({ sys: sysWith(t, {}) }), /ENOENT/);
  await assert.rejects(readCpuTopology({ sys: sysWith(t, { 'devices/system/cpu/online': 'all' }) }), /names no CPUs/);
});
