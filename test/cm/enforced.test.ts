/** What cannot be enforced, of pods and of the node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../src/api/v1.ts';
import { type CgroupFacts, limitsNotEnforced, nodeProblems } from '../../src/cm/enforced.ts';

const pod = (...limits: Record<string, string>[]): Pick<Pod, 'spec'> => ({
  spec: { containers: limits.map((l, i) => ({ name: `c${i}`, image: 'i', resources: { limits: l } })) },
});
const facts = (version: CgroupFacts['version'], ...controllers: string[]): CgroupFacts => ({ version, controllers: new Set(controllers) });
const whole = facts('v2', 'cpu', 'memory', 'pids', 'hugetlb');
const v1 = facts('v1', 'cpu', 'memory', 'pids');
const place = { podPidsLimit: -1, perQos: true, elsewhere: false };

test('a pod is told exactly what of its limits is not enforced', () => {
  const cases: readonly (readonly [string, Pick<Pod, 'spec'>, CgroupFacts, Partial<typeof place>, string | undefined])[] = [
    ['all is there', pod({ cpu: '1', memory: '1Gi' }), whole, {}, undefined],
    ['no limits, nothing there', pod({}), facts('none'), {}, undefined],
    ['memory is off', pod({ cpu: '1', memory: '1Gi' }), facts('v2', 'cpu', 'pids'), {}, 'memory'],
    ['memory is off, no limit of it', pod({ cpu: '1' }), facts('v2', 'cpu', 'pids'), {}, undefined],
    ['one container of two has a limit', pod({ memory: '1Gi' }, {}), facts('v2', 'cpu', 'pids'), {}, 'memory'],
    ['two are off', pod({ cpu: '1', memory: '1Gi' }), facts('v2', 'pids'), {}, 'cpu, memory'],
    ['processes are not counted', pod({}), facts('v2', 'cpu', 'memory'), { podPidsLimit: 10 }, 'pids'],
    ['v1', pod({ memory: '1Gi' }), v1, {}, 'pod level'],
    ['v1, half of it limited', pod({ memory: '1Gi' }, {}), v1, {}, undefined],
    ['v1, limited processes', pod({}), v1, { podPidsLimit: 10 }, 'pod level'],
    ['v1 with memory off', pod({ memory: '1Gi' }), facts('v1', 'cpu', 'pids'), {}, 'memory, pod level'],
    ['hybrid', pod({ cpu: '1' }), facts('hybrid', 'cpu', 'memory', 'pids'), {}, 'pod level'],
    ['read-only', pod({ cpu: '1' }), { ...whole, refused: 'EROFS' }, {}, 'pod level'],
    ['not asked for', pod({ cpu: '1' }), whole, { perQos: false }, 'pod level'],
    ['it runs elsewhere', pod({}), whole, { elsewhere: true }, 'cgroup differs'],
    ['a limit of 0 is none', pod({ memory: '0' }), facts('v2', 'cpu'), {}, undefined],
  ];
  for (const [title, of, on, o, expected] of cases) assert.equal(limitsNotEnforced(of, on, { ...place, ...o }), expected, title);
});

const line = { place: 'the line in /boot/firmware/cmdline.txt', booted: 'root=PARTUUID=1 rootwait' };
const told = (f: CgroupFacts, booted = line.booted) => nodeProblems(f, { ...line, booted }).map((p) => [p.type, p.reason, p.message]);

test('the node names the exact line and the file', () => {
  assert.deepEqual(told(whole), []);
  assert.deepEqual(told(facts('v2', 'cpu', 'pids')), [
    [
      'MemoryCgroupOff',
      'MemoryCgroupOff',
      'memory limits are not enforced: the kernel has no memory controller; add cgroup_enable=memory cgroup_memory=1 to the line in /boot/firmware/cmdline.txt and reboot',
    ],
  ]);
  const [off] = told(facts('v2', 'cpu', 'pids'), 'coherent_pool=1M cgroup_disable=memory root=/dev/mmcblk0p2');
  assert.match(off?.[2] ?? '', / and reboot \(and take cgroup_disable=memory out of it, if it is there\)$/);
  assert.deepEqual(
    told(v1).map(([type, reason]) => [type, reason]),
    [['LimitsNotEnforced', 'CgroupV1']],
  );
  assert.match(told(v1)[0]?.[2] ?? '', /add systemd\.unified_cgroup_hierarchy=1 to the line in \/boot\/firmware\/cmdline\.txt and reboot/);
});

test('it is decided by what the kernel offers: the command line alone says nothing', () => {
  assert.deepEqual(told(whole, 'cgroup_disable=memory'), []);
});

test('a missing controller and a file system that cannot be written are told too', () => {
  assert.match(told(facts('v2', 'memory', 'cpu'))[0]?.[2] ?? '', /^limits of pids are not enforced/);
  assert.match(told({ ...whole, refused: '/sys/fs/cgroup cannot be written (EROFS)' })[0]?.[2] ?? '', /cannot be written \(EROFS\)/);
  assert.deepEqual(
    told(facts('none')).map(([type]) => type),
    ['MemoryCgroupOff', 'LimitsNotEnforced'],
  );
});
