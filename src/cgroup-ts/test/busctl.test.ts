import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bitmaskWords, busctlError, complaintOf, type Property, resourceProperties } from '../busctl.ts';
import { CgroupError } from '../error.ts';
import type { Resources } from '../resources.ts';
import { runCommand } from '../run.ts';
import { expandSlice, parentSlice, parseSliceName, sliceName } from '../slices.ts';

test('slices stand in the folders of their parents', () => {
  const table: readonly [slice: string, path: string, parent: string][] = [
    ['kubepods.slice', 'kubepods.slice', '-.slice'],
    ['a-b-c.slice', 'a.slice/a-b.slice/a-b-c.slice', 'a-b.slice'],
    [
      'kubepods-burstable-pod12_34.slice',
      'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice',
      'kubepods-burstable.slice',
    ],
    ['-.slice', '', '-.slice'],
  ];
  for (const [slice, path, parent] of table) {
    assert.equal(expandSlice(slice), path);
    assert.equal(parentSlice(slice), parent);
  }
  for (const wrong of ['kubepods', 'a--b.slice', '-a.slice', 'a-.slice', '.slice', 'a/b.slice', 'x.scope'])
    assert.throws(() => expandSlice(wrong), /no name of a slice/, wrong);
});

test('names become slices and come back', () => {
  const table: readonly [name: readonly string[], slice: string][] = [
    [[], '-.slice'],
    [['kubepods'], 'kubepods.slice'],
    [['kubepods', 'besteffort', 'pod1-2-3'], 'kubepods-besteffort-pod1_2_3.slice'],
    [['kubepods', 'poda9e5b1'], 'kubepods-poda9e5b1.slice'],
  ];
  for (const [name, slice] of table) {
    assert.equal(sliceName(name), slice);
    assert.deepEqual(parseSliceName(slice), name);
  }
  for (const other of ['x.scope', 'a--b.slice', 'kubepods', '.slice']) assert.equal(parseSliceName(other), undefined, other);
});

test('a CPU list becomes bytes, the lowest CPUs in the first', () => {
  const table: readonly [list: string, words: readonly string[]][] = [
    ['', ['0']],
    ['0', ['1', '1']],
    ['0-3', ['1', '15']],
    ['1,3', ['1', '10']],
    ['7,8', ['2', '128', '1']],
    ['16', ['3', '0', '0', '1']],
  ];
  for (const [list, words] of table) assert.deepEqual(bitmaskWords(list), words, list);
});

test('each setting that systemd has a word for gets it; the others are left to the files', () => {
  const infinity = '18446744073709551615';
  const table: readonly [resources: Resources, properties: readonly Property[]][] = [
    [{}, []],
    [{ cpu: { weight: 4 } }, [['CPUWeight', 't', '4']]],
    [
      { cpu: { max: { quota: 10_000, period: 100_000 } } },
      [
        ['CPUQuotaPeriodUSec', 't', '100000'],
        ['CPUQuotaPerSecUSec', 't', '100000'],
      ],
    ],
    [{ cpu: { max: { quota: 'max' } } }, [['CPUQuotaPerSecUSec', 't', infinity]]],
    // 10.5 % of a CPU: systemd keeps whole per cents; the file gets the exact value afterwards
    [{ cpu: { max: { quota: 10_500 } } }, [['CPUQuotaPerSecUSec', 't', '110000']]],
    [{ cpuset: { cpus: '0-1' } }, [['AllowedCPUs', 'ay', '1', '3']]],
    [{ cpuset: { mems: '' } }, [['AllowedMemoryNodes', 'ay', '0']]],
    [
      { memory: { min: 1, low: 2, high: 3, max: 4, 'swap.max': 0 } },
      [
        ['MemoryMin', 't', '1'],
        ['MemoryLow', 't', '2'],
        ['MemoryHigh', 't', '3'],
        ['MemoryMax', 't', '4'],
        ['MemorySwapMax', 't', '0'],
      ],
    ],
    [{ memory: { max: 'max' } }, [['MemoryMax', 't', infinity]]],
    [{ pids: { max: 200 } }, [['TasksMax', 't', '200']]],
    [{ io: { weight: 50, max: { '8:0': { rbps: 1 } } } }, [['IOWeight', 't', '50']]],
    [{ cpu: { 'max.burst': 5, idle: true }, memory: { 'oom.group': true }, hugetlb: { '2MB': 0 }, misc: { sev: 1 } }, []],
  ];
  for (const [resources, properties] of table) assert.deepEqual(resourceProperties(resources), properties, JSON.stringify(resources));
  assert.deepEqual(resourceProperties({ cpuset: { cpus: '0' }, pids: { max: 3 } }, false), [['TasksMax', 't', '3']]);
  for (const wrong of [
    { cpu: { weight: 0 } },
    { memory: { max: 0 } },
    { pids: { max: 0 } },
    { cpu: { max: { quota: 5 } } },
    { cpuset: { cpus: 'x' } },
  ])
    assert.throws(
      () => resourceProperties(wrong),
      (error: unknown) => error instanceof CgroupError && error.code === 'EINVAL',
      JSON.stringify(wrong),
    );
});

test("systemd's complaints are told apart by what they ask of us", () => {
  for (const [stderr, complaint] of [
    ['Call failed: Unit kubepods.slice was already loaded or has a fragment file.', 'exists'],
    ['Call failed: Unit kubepods.slice already exists.', 'exists'],
    ['Call failed: Unit kubepods.slice not loaded.', 'not loaded'],
    ['Call failed: Unit kubepods.slice not found.', 'not loaded'],
    ['Call failed: Cannot set property AllowedCPUs, or unknown property.', 'unknown property'],
    ['Call failed: Access denied', 'denied'],
    ['Failed to connect to bus: No such file or directory', 'other'],
    ['', 'other'],
  ] as const)
    assert.equal(complaintOf(stderr), complaint, stderr);
  assert.match(busctlError('a.slice', 'StopUnit', '').message, /a\.slice: systemd: StopUnit: no answer/);
});

test('a command gets its arguments as they are, and never throws', async () => {
  const echoed = await runCommand([process.execPath, '-e', 'console.log(JSON.stringify(process.argv.slice(1)))', 'a b', '$HOME', '"; x']);
  assert.deepEqual([echoed.code, JSON.parse(echoed.stdout)], [0, ['a b', '$HOME', '"; x']]);
  const failed = await runCommand([process.execPath, '-e', 'console.error("no"); process.exit(3)']);
  assert.deepEqual([failed.code, failed.stderr.trim()], [3, 'no']);
  assert.equal((await runCommand(['/no/such/program'])).code, -1);
});
