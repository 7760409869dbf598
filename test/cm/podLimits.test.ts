/** Which limits of a pod may be written when, and what they are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container } from '../../src/api/v1.ts';
import { heldBy, type Limits, podLimits, risen, sameLimits } from '../../src/cm/podLimits.ts';
import { hugepageLimits } from '../../src/kuberuntime/hugepages.ts';

const settings = {
  podPidsLimit: -1,
  pageBytes: 4096,
  hugepages: (a: Readonly<Record<string, string | number>>) => hugepageLimits(a, ['2MB', '1GB']),
};
const container = (name: string, limits: Record<string, string>, requests: Record<string, string> = {}): Container => ({
  name,
  image: 'i',
  resources: { limits, requests },
});

test('a pod’s limits are whole pages, and `max` where a container has none', () => {
  const limits = podLimits(
    { spec: { containers: [container('a', { memory: '10M' }), container('b', { memory: '10M', cpu: '500m' })] } },
    settings,
  );
  assert.deepEqual(limits, {
    cpu: { weight: 20, max: { quota: 'max', period: 100_000 } },
    memory: { max: 19_996_672 }, // 20,000,000 without the last part of a page
    pids: { max: 'max' },
    hugetlb: { '2MB': 0, '1GB': 0 },
  });
});

test('huge pages of all containers count together', () => {
  const limits = podLimits(
    { spec: { containers: [container('a', { 'hugepages-2Mi': '4Mi' }), container('b', { 'hugepages-2Mi': '6Mi' })] } },
    { ...settings, podPidsLimit: 5 },
  );
  assert.deepEqual(limits.hugetlb, { '2MB': 10 * 2 ** 20, '1GB': 0 });
  assert.deepEqual(limits.pids, { max: 5 });
});

const all = (cpu: number | 'max', memory: number | 'max', weight = 10, pids: number | 'max' = 'max', huge = 0): Limits => ({
  cpu: { weight, max: { quota: cpu, period: 100_000 } },
  memory: { max: memory },
  pids: { max: pids },
  hugetlb: { '2MB': huge },
});

test('before containers are replaced each limit is the larger of the two, alone', () => {
  const cases: readonly (readonly [Limits, Limits, Limits])[] = [
    [all(1000, 10), all(2000, 5), all(2000, 10)],
    [all('max', 10), all(2000, 'max'), all('max', 'max')],
    [all(1000, 10, 50), all(1000, 10, 20), all(1000, 10, 50)],
    [all(1000, 10, 10, 5, 7), all(1000, 10, 10, 9, 3), all(1000, 10, 10, 9, 7)],
    [{}, all(1000, 10), all(1000, 10)],
    [all(1000, 10), {}, {}],
  ];
  for (const [stands, wanted, expected] of cases) assert.deepEqual(risen(stands, wanted), expected);
});

test('limits are the same in whatever order they are written, and one number makes them others', () => {
  assert.equal(sameLimits({ cpu: { weight: 1 }, memory: { max: 2 } }, { memory: { max: 2 }, cpu: { weight: 1 } }), true);
  assert.equal(sameLimits({ memory: { max: 2 } }, { memory: { max: 'max' } }), false);
  assert.equal(sameLimits({ memory: { max: 2 } }, {}), false);
});

test('what no controller holds is left out', () => {
  assert.deepEqual(heldBy(all(1000, 10), new Set(['memory', 'io'])), { memory: { max: 10 } });
});
