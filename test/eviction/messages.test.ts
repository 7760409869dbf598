import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionWords } from '../../src/api/pressures.ts';
import { brokenLimit, hasLocalLimit } from '../../src/eviction/localLimits.ts';
import { binaryText, lowResourceMessage } from '../../src/eviction/messages.ts';
import type { PodDiskUsage } from '../../src/eviction/words.ts';

const MiB = 2 ** 20;

test('amounts as Kubernetes writes them: the largest suffix that keeps them whole', () => {
  assert.deepEqual([0, 1, 1023, 1024, 1536, 104857600, 3 * 2 ** 30, 104857601].map(binaryText), [
    '0',
    '1',
    '1023',
    '1Ki',
    '1536',
    '100Mi',
    '3Gi',
    '104857601',
  ]);
});

test('the words of the kubelet, the space at the end included (facts 14.6)', () => {
  const base = { resource: 'memory', threshold: '100Mi', available: '52Mi', offenders: [] };
  assert.equal(lowResourceMessage(base), 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. ');
  assert.equal(
    lowResourceMessage({
      ...base,
      urgent: 'It was going by 40Mi a second. ',
      offenders: [{ container: 'app', usage: '700Mi', request: '0' }],
    }),
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. It was going by 40Mi a second. Container app was using 700Mi, request is 0, has larger consumption of memory. ',
  );
});

test('conditions of the node in the words of the kubelet (facts 17.2)', () => {
  assert.deepEqual(conditionWords('MemoryPressure', true), {
    reason: 'KubeletHasInsufficientMemory',
    message: 'kubelet has insufficient memory available',
  });
  assert.equal(conditionWords('DiskPressure', false).reason, 'KubeletHasNoDiskPressure');
  assert.equal(conditionWords('PIDPressure', true).message, 'kubelet has insufficient PID available');
});

const used = (o: { volumes?: Record<string, number>; logs?: Record<string, number>; layers?: Record<string, number> }): PodDiskUsage => {
  const amounts = (part: Record<string, number> = {}) =>
    new Map(Object.entries(part).map(([name, mi]) => [name, { bytes: mi * MiB, inodes: 1 }]));
  return { volumes: amounts(o.volumes), logs: amounts(o.logs), layers: amounts(o.layers) };
};
const limited = (limit: string) => ({ image: 'i', resources: { limits: { 'ephemeral-storage': limit } } });

test('local limits in the order and the words of the kubelet (facts 14.5)', () => {
  const spec = {
    volumes: [
      { name: 'cache', emptyDir: { sizeLimit: '10Mi' } },
      { name: 'ram', emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } },
    ],
    containers: [
      { name: 'a', ...limited('20Mi') },
      { name: 'b', ...limited('30Mi') },
    ],
  };
  const broken = (usage: PodDiskUsage) => brokenLimit({ spec }, usage);
  assert.equal(broken(used({ volumes: { cache: 10 }, logs: { a: 10 }, layers: { a: 10, b: 20 } })), undefined, 'at its limits');
  assert.equal(broken(used({ volumes: { cache: 11, ram: 500 } })), 'Usage of EmptyDir volume "cache" exceeds the limit "10Mi". ');
  assert.equal(
    broken(used({ volumes: { cache: 10 }, layers: { b: 30 }, logs: { a: 11 } })),
    'Pod ephemeral local storage usage exceeds the total limit of containers 50Mi. ',
  );
  assert.equal(broken(used({ layers: { a: 15 }, logs: { a: 6 } })), 'Container a exceeded its local ephemeral storage limit "20Mi". ');
});

test('a pod of which a container has no limit has none as a whole', () => {
  const spec = {
    containers: [
      { name: 'a', ...limited('20Mi') },
      { name: 'b', image: 'i' },
    ],
  };
  assert.equal(brokenLimit({ spec }, used({ layers: { b: 5000 } })), undefined);
  assert.equal(hasLocalLimit({ spec }), true);
  assert.equal(hasLocalLimit({ spec: { containers: [{ name: 'a', image: 'i' }], volumes: [{ name: 'v', emptyDir: {} }] } }), false);
  assert.equal(
    hasLocalLimit({
      spec: { containers: [{ name: 'a', image: 'i' }], volumes: [{ name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }] },
    }),
    false,
  );
});
