import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CpuClaim, cpuClaims, cpuRefusal, holdCpus } from '../../src/api/exclusiveCpus.ts';
import type { Container, PodSpec } from '../../src/api/v1.ts';

const limited = (name: string, cpu: string, o: Partial<Container> = {}): Container => ({
  name,
  image: 'x',
  resources: { limits: { cpu, memory: '10Mi' } },
  ...o,
});
const pod = (containers: Container[], o: Partial<PodSpec> = {}) => ({ spec: { containers, ...o } });

test('only whole CPUs of Guaranteed pods are one’s own', () => {
  const own = (spec: Parameters<typeof cpuClaims>[0]) => cpuClaims(spec).map((c) => `${c.container} ${c.cpus}${c.lends ? ' lends' : ''}`);
  const burstable: Container = { name: 'c', image: 'x', resources: { requests: { cpu: '2' }, limits: { memory: '10Mi' } } };
  const table: readonly (readonly [string, ReturnType<typeof pod>, readonly string[]])[] = [
    ['whole', pod([limited('c', '2')]), ['c 2']],
    ['written in thousandths', pod([limited('c', '2000m')]), ['c 2']],
    ['a part', pod([limited('c', '1500m')]), []],
    ['one of two', pod([limited('a', '1'), limited('b', '500m')]), ['a 1']],
    ['Burstable', pod([burstable]), []],
    ['one Burstable makes the pod so', pod([limited('a', '1'), burstable]), []],
    ['BestEffort', pod([{ name: 'c', image: 'x' }]), []],
    [
      'init, sidecar, app',
      pod([limited('app', '1')], { initContainers: [limited('init', '2'), limited('side', '1', { restartPolicy: 'Always' })] }),
      ['init 2 lends', 'side 1', 'app 1'],
    ],
  ];
  for (const [name, of, claims] of table) assert.deepEqual(own(of), claims, name);
});

test('what init containers had goes on to those after them; sidecars keep theirs', () => {
  const claim = (cpus: number, lends = false): CpuClaim => ({ container: 'c', cpus, lends });
  const table: readonly (readonly [readonly CpuClaim[], number, ReturnType<typeof holdCpus>])[] = [
    [[claim(2)], 2, { held: 2 }],
    [[claim(2)], 1, { requested: 2, available: 1 }],
    [[claim(2, true), claim(2)], 2, { held: 2 }],
    [[claim(3, true), claim(1), claim(1)], 3, { held: 3 }],
    [[claim(1, true), claim(2, true), claim(3)], 3, { held: 3 }],
    [[claim(2, true), claim(1), claim(2)], 3, { held: 3 }],
    [[claim(1), claim(2, true), claim(2)], 3, { held: 3 }],
    [[claim(2, true), claim(2), claim(1)], 2, { requested: 1, available: 0 }],
    [[], 0, { held: 0 }],
  ];
  for (const [claims, free, held] of table) assert.deepEqual(holdCpus(claims, free), held, JSON.stringify([claims, free]));
});

test('who does not fit is refused in the kubelet’s words, and only under the policy static', () => {
  const two = pod([limited('c', '2')]);
  assert.equal(cpuRefusal(two, [], 3), undefined);
  assert.equal(cpuRefusal(two, [two, two], undefined), undefined);
  assert.equal(cpuRefusal(pod([limited('c', '500m')]), [two], 2), undefined);
  assert.deepEqual(cpuRefusal(two, [two], 3), {
    reason: 'UnexpectedAdmissionError',
    message: 'Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is unexpected',
  });
  // those that are here already and do not fit any more do not make it less than none
  assert.match(cpuRefusal(two, [two, two], 3)?.message ?? '', /available=0/);
});
