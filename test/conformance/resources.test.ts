/** Every case of resources.json (numeric facts of kubelet v1.32) against src/api. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseQuantity, quantityMilliValue, quantityValue } from '../../src/api/quantity.ts';
import {
  type CgroupDriver,
  cgroupParent,
  cpuQuota,
  cpuShares,
  cpuWeight,
  downwardResource,
  limitedSwap,
  memoryQos,
  oomScoreAdj,
  podResources,
  type QosClass,
  qosClass,
  sharesFromWeight,
} from '../../src/api/resources.ts';
import type { Container, Pod } from '../../src/api/v1.ts';

interface CaseContainer {
  readonly name: string;
  readonly requests?: Record<string, string>;
  readonly limits?: Record<string, string>;
  readonly sidecar?: boolean;
}
interface CasePod {
  readonly containers: readonly CaseContainer[];
  readonly initContainers?: readonly CaseContainer[];
}
interface Case {
  readonly id: string;
  readonly kind: string;
  // the shape of in and out is the kind's own
  readonly in: unknown;
  readonly out: unknown;
  readonly note?: string;
}

const container = (c: CaseContainer): Container => ({
  name: c.name,
  image: 'image',
  resources: { ...(c.requests && { requests: c.requests }), ...(c.limits && { limits: c.limits }) },
  ...(c.sidecar && { restartPolicy: 'Always' as const }),
});
const pod = (p: CasePod, priorityClassName?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'case' },
  spec: {
    containers: p.containers.map(container),
    initContainers: (p.initContainers ?? []).map(container),
    ...(priorityClassName !== undefined && { priorityClassName }),
  },
});

const judge: Record<string, (input: never, out: never) => void> = {
  cpuShares: (i: { milliCPU: number }, out) => assert.equal(cpuShares(i.milliCPU), out),
  cpuWeight: (i: { shares: number }, out) => assert.equal(cpuWeight(i.shares), out),
  sharesFromWeight: (i: { weight: number }, out) => assert.equal(sharesFromWeight(i.weight), out),
  cpuQuota: (i: { milliCPU: number; periodUs: number }, out) => assert.equal(cpuQuota(i.milliCPU, i.periodUs), out),
  quantity: (i: string, out: { error?: boolean; value: string; milliValue: string | null }) => {
    if (out.error) return assert.equal(parseQuantity(i), undefined);
    assert.notEqual(parseQuantity(i), undefined);
    assert.equal(BigInt(quantityValue(i)), BigInt(out.value));
    // null: it does not fit 64 bits; it saturates here
    assert.equal(BigInt(quantityMilliValue(i)), out.milliValue === null ? 2n ** 63n : BigInt(out.milliValue));
  },
  qosClass: (i: CasePod, out) => assert.equal(qosClass(pod(i)), out),
  oomScoreAdj: (i: { pod: CasePod; container: string; memoryCapacity: number; nodeCritical: boolean }, out) => {
    const p = pod(i.pod, i.nodeCritical ? 'system-node-critical' : undefined);
    const c = [...p.spec.containers, ...(p.spec.initContainers ?? [])].find((each) => each.name === i.container);
    assert.ok(c);
    assert.equal(oomScoreAdj(p, c, i.memoryCapacity), out);
  },
  podCgroup: (
    i: { pod: CasePod; enforceCPULimits: boolean; periodUs: number },
    out: { shares: number; weight: number; quota: number | null; period: number | null; memory: number | null },
  ) => {
    const got = podResources(pod(i.pod), { enforceCpuLimits: i.enforceCPULimits, periodUs: i.periodUs });
    assert.deepEqual(
      {
        shares: got.cpuShares,
        weight: got.cpuWeight,
        quota: got.cpuQuota ?? null,
        period: got.cpuPeriodUs ?? null,
        memory: got.memoryBytes ?? null,
      },
      out,
    );
  },
  cgroupPath: (i: { driver: CgroupDriver; qosClass: QosClass; podUID: string | null }, out) =>
    assert.equal(cgroupParent(i.driver, i.qosClass, i.podUID ?? undefined), out),
  memoryQoS: (i: { request: number; limit: number; nodeAllocatable: number; throttlingFactor: number; pageSize: number }, out) =>
    assert.deepEqual(
      memoryQos({
        requestBytes: i.request,
        limitBytes: i.limit,
        nodeAllocatableBytes: i.nodeAllocatable,
        throttlingFactor: i.throttlingFactor,
        pageSize: i.pageSize,
      }),
      out,
    ),
  limitedSwap: (i: { memoryRequest: number; memoryCapacity: number; swapCapacity: number }, out) =>
    assert.equal(limitedSwap(i.memoryRequest, i.memoryCapacity, i.swapCapacity), out),
  downwardResource: (i: { resource: string; value: string; divisor: string }, out) =>
    assert.equal(downwardResource(i.resource, i.value, i.divisor), out),
};

const { cases } = JSON.parse(readFileSync(new URL('./resources.json', import.meta.url), 'utf8')) as { cases: readonly Case[] };

test('the table of resources has all its 203 cases', () => assert.equal(cases.length, 203));
for (const c of cases) {
  test(`${c.id}${c.note === undefined ? '' : `: ${c.note}`}`, () => {
    const check = judge[c.kind];
    assert.ok(check, `no check for ${c.kind}`);
    check(c.in as never, c.out as never);
  });
}
