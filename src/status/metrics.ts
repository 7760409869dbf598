// pure
/**
 * The metrics payload: usage of node and pods in the shape of stats/summary (stats/v1alpha1), cut down to processor time and memory, since it
 * is told at each heartbeat. Too many pods: containers go first, then the pods that use least; what went is said.
 */
import type { NodeMetrics } from '../api/messages.ts';
import type { Unstamped } from '../api/payloads.ts';
import { jsonBytes } from './cut.ts';

export type MetricsBody = Unstamped<NodeMetrics>;

/** What of stats/summary is told. */
interface Used {
  readonly cpu?: { readonly usageNanoCores?: number; readonly usageCoreNanoSeconds?: number };
  readonly memory?: { readonly availableBytes?: number; readonly workingSetBytes?: number };
}
export interface MetricsSource {
  readonly node: Used;
  readonly pods: readonly (Used & {
    readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
    readonly containers: readonly (Used & { readonly name: string })[];
  })[];
}

/** Room for boot and seq, which are added when it is told. */
const stampBytes = 64;

/** `time`: RFC 3339, of the measuring. */
export function nodeMetrics(node: string, time: string, source: MetricsSource, maxBytes: number): MetricsBody {
  type Pod = MetricsBody['pods'][number];
  const whole: readonly Pod[] = source.pods.map(({ podRef, containers, ...used }) => ({
    podRef,
    ...use(used),
    containers: containers.map((c) => ({ name: c.name, ...use(c) })),
  }));
  const body = (pods: readonly Pod[], truncated?: string): MetricsBody => ({
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeMetrics',
    node: { nodeName: node, time, ...use(source.node) },
    pods,
    ...(truncated !== undefined && { truncated }),
  });
  const fits = (b: MetricsBody): boolean => jsonBytes(b) <= maxBytes - stampBytes;
  if (fits(body(whole))) return body(whole);
  const podsOnly = whole.map(({ containers: _, ...pod }) => pod);
  if (fits(body(podsOnly, 'containers'))) return body(podsOnly, 'containers');
  // the largest, in their order; halved until they fit: a few tries, however many there are
  const bySize = [...podsOnly].sort((a, b) => (b.memory?.workingSetBytes ?? 0) - (a.memory?.workingSetBytes ?? 0));
  for (let count = Math.floor(bySize.length / 2); ; count = Math.floor(count / 2)) {
    const kept = new Set(bySize.slice(0, count));
    const cut = body(
      podsOnly.filter((p) => kept.has(p)),
      `containers, ${podsOnly.length - kept.size} pods`,
    );
    if (count === 0 || fits(cut)) return cut;
  }
}

const use = ({ cpu, memory }: Used): Used => ({
  ...(cpu && {
    cpu: {
      ...(cpu.usageNanoCores !== undefined && { usageNanoCores: cpu.usageNanoCores }),
      ...(cpu.usageCoreNanoSeconds !== undefined && { usageCoreNanoSeconds: cpu.usageCoreNanoSeconds }),
    },
  }),
  ...(memory && {
    memory: {
      ...(memory.availableBytes !== undefined && { availableBytes: memory.availableBytes }),
      ...(memory.workingSetBytes !== undefined && { workingSetBytes: memory.workingSetBytes }),
    },
  }),
});
