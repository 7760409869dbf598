import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { NodeMetricsSchema } from '../../src/api/messages.ts';
import { jsonBytes } from '../../src/status/cut.ts';
import { type MetricsSource, nodeMetrics } from '../../src/status/metrics.ts';

const used = (n: number) => ({
  cpu: { time: 't', usageNanoCores: n, usageCoreNanoSeconds: n * 10 },
  memory: { time: 't', workingSetBytes: n, rssBytes: n, availableBytes: 7 },
});
const source = (pods: number, containers: number): MetricsSource => ({
  node: { ...used(5) },
  pods: Array.from({ length: pods }, (_, i) => ({
    podRef: { name: `pod-${i}`, namespace: 'default', uid: `uid-${i}` },
    ...used(1000 + i),
    containers: Array.from({ length: containers }, (_, c) => ({ name: `c${c}`, ...used(c), rootfs: { usedBytes: 1 } })),
  })),
});
const stamped = (body: object) => ({ ...body, boot: 4_000_000_000, seq: Number.MAX_SAFE_INTEGER });

test('processor time and memory of node, pods and containers, in the shape of stats/summary; nothing else of it', () => {
  const body = nodeMetrics('pi-07', '2026-01-01T00:00:00Z', source(1, 1), 60 * 1024);
  assert.deepEqual(body, {
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeMetrics',
    node: {
      nodeName: 'pi-07',
      time: '2026-01-01T00:00:00Z',
      cpu: { usageNanoCores: 5, usageCoreNanoSeconds: 50 },
      memory: { availableBytes: 7, workingSetBytes: 5 },
    },
    pods: [
      {
        podRef: { name: 'pod-0', namespace: 'default', uid: 'uid-0' },
        cpu: { usageNanoCores: 1000, usageCoreNanoSeconds: 10_000 },
        memory: { availableBytes: 7, workingSetBytes: 1000 },
        containers: [
          { name: 'c0', cpu: { usageNanoCores: 0, usageCoreNanoSeconds: 0 }, memory: { availableBytes: 7, workingSetBytes: 0 } },
        ],
      },
    ],
  });
  assert.deepEqual([...Value.Errors(NodeMetricsSchema, stamped(body))], []);
});

test('it stays within 60 KiB: containers go first, then the pods that use least, and both are said', () => {
  for (const [pods, containers, truncated] of [
    [110, 1, undefined],
    [110, 10, 'containers'],
    [2000, 1, 'containers, 1750 pods'],
  ] as const) {
    const body = nodeMetrics('pi-07', '2026-01-01T00:00:00Z', source(pods, containers), 60 * 1024);
    assert.ok(jsonBytes(stamped(body)) <= 60 * 1024, `${pods}: ${jsonBytes(stamped(body))}`);
    assert.equal(body.truncated, truncated);
    assert.deepEqual([...Value.Errors(NodeMetricsSchema, stamped(body))], []);
  }
  const cut = nodeMetrics('pi-07', 't', source(2000, 1), 60 * 1024);
  assert.equal(cut.pods[0]?.podRef.name, 'pod-1750', 'the largest stay, in their order');
  assert.equal(nodeMetrics('pi-07', 't', source(20, 1), 400).pods.length, 0, 'a broker that takes next to nothing');
});

test('a runtime without figures: pods without figures', () => {
  const bare: MetricsSource = { node: {}, pods: [{ podRef: { name: 'a', namespace: 'd', uid: 'u' }, containers: [{ name: 'c' }] }] };
  assert.deepEqual(nodeMetrics('n', 't', bare, 60_000).pods, [
    { podRef: { name: 'a', namespace: 'd', uid: 'u' }, containers: [{ name: 'c' }] },
  ]);
});
