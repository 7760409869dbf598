import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCpuMax, printCpuMax } from '../cpu.ts';
import { CgroupError } from '../error.ts';
import { hugePageSize } from '../hugetlb.ts';
import { parseIoMax, parseIoWeight, printIoMax } from '../io.ts';
import { parseMemoryEvents, workingSet } from '../memory.ts';
import { parseMountinfo } from '../mountinfo.ts';
import { parseFlatKeyed, parseLimit, parseLimits, parseList, parseNestedKeyed, parsePids, parseWords, printList } from '../parse.ts';
import { parsePressure } from '../psi.ts';

const refused = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof CgroupError && error.code === code && text.test(error.message);

test('lists are read and printed as the kernel does', () => {
  const table: readonly [text: string, numbers: readonly number[], printed: string][] = [
    ['', [], ''],
    ['\n', [], ''],
    ['0', [0], '0'],
    ['0-3', [0, 1, 2, 3], '0-3'],
    ['0-3,5', [0, 1, 2, 3, 5], '0-3,5'],
    ['5,0-3', [0, 1, 2, 3, 5], '0-3,5'],
    ['0,1', [0, 1], '0-1'],
    ['1,1-2,2', [1, 2], '1-2'],
    ['0,2,4', [0, 2, 4], '0,2,4'],
    ['63-64,1023', [63, 64, 1023], '63-64,1023'],
    [' 1 , 3\n', [1, 3], '1,3'],
  ];
  for (const [text, numbers, printed] of table) {
    assert.deepEqual(parseList(text), numbers, text);
    assert.equal(printList(numbers), printed, text);
  }
  for (const text of ['a', '3-1', '1-', '-1', '0-3:2', '1,,2', '0-99999999', '1.5', '0x1'])
    assert.throws(() => parseList(text, 'cpuset.cpus'), refused('EINVAL', /cpuset\.cpus/), text);
});

test('limits are numbers or max, and nothing else', () => {
  const table: readonly [text: string, limit: number | 'max'][] = [
    ['max\n', 'max'],
    ['0', 0],
    ['20971520\n', 20_971_520],
  ];
  for (const [text, limit] of table) assert.equal(parseLimit(text), limit);
  for (const text of ['', '-1', '1e3', 'MAX', '12 ']) {
    if (text === '12 ') assert.equal(parseLimit(text), 12);
    else assert.throws(() => parseLimit(text, 'memory.max'), refused('EINVAL', /memory\.max/), text);
  }
});

test('keyed files lose the lines that are of another kind, not the rest', () => {
  assert.deepEqual(parseFlatKeyed('low 0\nhigh 3\nodd line here\nname=x\noom_kill 2\n'), { low: 0, high: 3, oom_kill: 2 });
  assert.deepEqual(parseLimits('res_a 10\nres_b max\n'), { res_a: 10, res_b: 'max' });
  assert.deepEqual(parseNestedKeyed('8:0 rbytes=1 wbytes=2 rios\n\n254:0 rbytes=9\n'), {
    '8:0': { rbytes: '1', wbytes: '2' },
    '254:0': { rbytes: '9' },
  });
  assert.deepEqual(parseWords('cpuset cpu io\n'), ['cpuset', 'cpu', 'io']);
  assert.deepEqual(parseWords('\n'), []);
});

test('pid 0, a process of another pid namespace, is never among the pids', () => {
  assert.deepEqual(parsePids('1\n0\n4711\n'), [1, 4711]);
  assert.deepEqual(parsePids(''), []);
});

test('cpu.max is a quota and a period', () => {
  const table: readonly [text: string, max: ReturnType<typeof parseCpuMax>][] = [
    ['max 100000\n', { quota: 'max', period: 100_000 }],
    ['10000 100000', { quota: 10_000, period: 100_000 }],
    ['max', { quota: 'max', period: 100_000 }],
    ['150000 50000', { quota: 150_000, period: 50_000 }],
  ];
  for (const [text, max] of table) assert.deepEqual(parseCpuMax(text), max, text);
  assert.equal(printCpuMax({ quota: 10_000, period: 100_000 }), '10000 100000');
  assert.equal(printCpuMax({ quota: 'max' }), 'max');
  for (const max of [{ quota: 999 }, { quota: 5000, period: 2_000_000 }, { quota: 5000, period: 10 }, { quota: 1000.5 }, { quota: -1 }])
    assert.throws(() => printCpuMax(max), refused('EINVAL', /cpu\.max/), JSON.stringify(max));
});

test('io.max and io.weight are read by device, and written for one device at a time', () => {
  assert.deepEqual(parseIoMax('179:0 rbps=max wbps=1048576 riops=max wiops=120\n'), {
    '179:0': { rbps: 'max', wbps: 1_048_576, riops: 'max', wiops: 120 },
  });
  assert.equal(printIoMax('179:0', { wbps: 1_048_576, wiops: 'max' }), '179:0 wbps=1048576 wiops=max');
  assert.throws(() => printIoMax('/dev/mmcblk0', { wbps: 1 }), refused('EINVAL', /major:minor/));
  assert.throws(() => printIoMax('8:0\n8:1', { wbps: 1 }), refused('EINVAL', /major:minor/));
  const weights: readonly [text: string, weight: number | undefined][] = [
    ['default 100\n8:0 50\n', 100],
    ['200\n', 200],
    ['8:0 50\n', undefined],
    ['', undefined],
  ];
  for (const [text, weight] of weights) assert.equal(parseIoWeight(text), weight, text);
});

test('memory.events of an old kernel lacks counters: they are 0', () => {
  assert.deepEqual(parseMemoryEvents('low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\n'), {
    low: 1,
    high: 2,
    max: 3,
    oom: 4,
    oom_kill: 5,
    oom_group_kill: 0,
  });
});

test('the working set is what is charged without inactive file cache, and never negative', () => {
  assert.equal(workingSet(100, { inactive_file: 30 }), 70);
  assert.equal(workingSet(100, { inactive_file: 130 }), 0);
  assert.equal(workingSet(100, {}), 100);
});

test('page sizes are spelled as in the file names', () => {
  for (const [bytes, size] of [
    [2 ** 16, '64KB'],
    [2 ** 21, '2MB'],
    [2 ** 25, '32MB'],
    [2 ** 30, '1GB'],
  ] as const)
    assert.equal(hugePageSize(bytes), size);
});

test('pressure has averages and totals; a kernel without full for cpu is no error', () => {
  const some = { avg10: 1.53, avg60: 0.2, avg300: 0, total: 123_456 };
  assert.deepEqual(parsePressure('some avg10=1.53 avg60=0.20 avg300=0.00 total=123456\n'), { some });
  assert.deepEqual(parsePressure('some avg10=1.53 avg60=0.20 avg300=0.00 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n'), {
    some,
    full: { avg10: 0, avg60: 0, avg300: 0, total: 7 },
  });
  for (const text of ['', 'full avg10=0.00 avg60=0.00 avg300=0.00 total=7', 'some avg10=x']) assert.equal(parsePressure(text), undefined);
});

test('mountinfo gives mount points as they are, with their optional words left out', () => {
  const text = [
    '22 1 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw',
    '35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate',
    '36 24 0:31 / /mnt/with\\040blank rw - tmpfs tmpfs rw',
    'no mount at all',
    '',
  ].join('\n');
  assert.deepEqual(
    parseMountinfo(text).map((m) => [m.mountPoint, m.type, m.superOptions.join()]),
    [
      ['/', 'ext4', 'rw'],
      ['/sys/fs/cgroup', 'cgroup2', 'rw,nsdelegate'],
      ['/mnt/with blank', 'tmpfs', 'rw'],
    ],
  );
});
