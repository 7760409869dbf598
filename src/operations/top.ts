// pure
/**
 * What pods and the node use now, as the metrics API of Kubernetes shapes it (usage as quantities, a time and a window), with what they may
 * use beside it: an answer needs no second question. A pod's usage is that of its running containers together, as kubectl top has it.
 */
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import { isSidecar } from '../api/resources.ts';
import type { ToldPod } from '../api/status.ts';
import type { Container } from '../api/v1.ts';
import { toRfc3339 } from '../world/rfc3339.ts';
import type { ContainerUse, PodUse, SummaryFacts } from './statsSummary.ts';

/** Quantities: `12345678n`, `2048Ki`. What could not be read is absent. */
export interface Amounts {
  readonly cpu?: string;
  readonly memory?: string;
}

export interface ContainerUsage {
  readonly name: string;
  readonly usage: Amounts;
  readonly limits?: Amounts;
}

export interface PodUsage {
  readonly apiVersion: 'podsched.dev/v1';
  readonly kind: 'PodUsage';
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly timestamp: string;
  /** Seconds over which processor time was measured: `1.003s`. */
  readonly window: string;
  readonly usage: Amounts;
  /** Of a resource that each of its containers has a limit of. */
  readonly limits?: Amounts;
  readonly containers: readonly ContainerUsage[];
}

export interface NodeUsage {
  readonly apiVersion: 'podsched.dev/v1';
  readonly kind: 'NodeUsage';
  readonly metadata: { readonly name: string };
  readonly timestamp: string;
  readonly window: string;
  readonly usage: Amounts;
  readonly allocatable: Amounts;
  /** Of the processor; absent where no sensor is known. */
  readonly temperatureCelsius?: number;
  /** Absent: the node has none. */
  readonly swap?: { readonly usedBytes: number; readonly totalBytes: number };
  /** What pods write to. */
  readonly disk?: { readonly usedBytes: number; readonly capacityBytes: number; readonly availableBytes: number };
}

const cpuText = (nanoCores: number): string => `${Math.round(nanoCores)}n`;
const memoryText = (bytes: number): string => `${Math.floor(bytes / 1024)}Ki`;

const amounts = (nanoCores: number | undefined, bytes: number | undefined): Amounts => ({
  ...(nanoCores !== undefined && { cpu: cpuText(nanoCores) }),
  ...(bytes !== undefined && { memory: memoryText(bytes) }),
});

/** undefined: not one of them was read. */
const total = (values: readonly (number | undefined)[]): number | undefined => {
  const known = values.filter((v) => v !== undefined);
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0);
};

const bytesOf = ({ stats }: ContainerUse): number | undefined => stats.memory?.workingSetBytes;

/** `told`: the pod with its spec. */
export function podUsage(told: ToldPod, { name, namespace, uid, containers }: PodUse, at: SummaryFacts['at'], windowMs: number): PodUsage {
  const limits = podLimits(told);
  const specs = [...(told.spec.initContainers ?? []), ...told.spec.containers];
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'PodUsage',
    metadata: { name, namespace, uid },
    timestamp: toRfc3339(at),
    window: windowText(windowMs),
    usage: amounts(total(containers.map((c) => c.nanoCores)), total(containers.map(bytesOf))),
    ...(limits && { limits }),
    containers: containers.map((c) => {
      const own = limitsOf(specs.find((s) => s.name === c.stats.name));
      return { name: c.stats.name, usage: amounts(c.nanoCores, bytesOf(c)), ...(own && { limits: own }) };
    }),
  };
}

export interface NodeUsageFacts extends Pick<SummaryFacts, 'nodeName' | 'at' | 'node' | 'nodeFs'> {
  readonly windowMs: number;
  readonly allocatable: { readonly cpuMilli: number; readonly memoryBytes: number };
  readonly temperatureCelsius?: number;
}

/** Memory is the working set; processor time over the window, absent where there were no two looks. */
export function nodeUsage(f: NodeUsageFacts): NodeUsage {
  const { memory, swapTotalBytes, swapFreeBytes } = f.node.use;
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'NodeUsage',
    metadata: { name: f.nodeName },
    timestamp: toRfc3339(f.at),
    window: windowText(f.windowMs),
    usage: amounts(f.node.nanoCores, memory.workingSetBytes),
    allocatable: { cpu: `${f.allocatable.cpuMilli}m`, memory: memoryText(f.allocatable.memoryBytes) },
    ...(f.temperatureCelsius !== undefined && { temperatureCelsius: f.temperatureCelsius }),
    ...(swapTotalBytes > 0 && { swap: { usedBytes: swapTotalBytes - swapFreeBytes, totalBytes: swapTotalBytes } }),
    ...(f.nodeFs && {
      disk: {
        usedBytes: Math.max(0, f.nodeFs.capacityBytes - f.nodeFs.availableBytes),
        capacityBytes: f.nodeFs.capacityBytes,
        availableBytes: f.nodeFs.availableBytes,
      },
    }),
  };
}

const windowText = (ms: number): string => `${(ms / 1000).toFixed(3)}s`;

/** A limit of 0 is none. */
function limitsOf(container: Pick<Container, 'resources'> | undefined): Amounts | undefined {
  const { cpu, memory } = container?.resources?.limits ?? {};
  const [milli, bytes] = [quantityMilliValue(cpu), quantityValue(memory)];
  if (milli <= 0 && bytes <= 0) return undefined;
  return { ...(milli > 0 && { cpu: `${milli}m` }), ...(bytes > 0 && { memory: memoryText(bytes) }) };
}

/** What all that runs beside one another may use. */
function podLimits({ spec }: ToldPod): Amounts | undefined {
  const running = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers];
  const limit = (amountOf: (c: Container) => number): number =>
    running.every((c) => amountOf(c) > 0) ? running.reduce((all, c) => all + amountOf(c), 0) : 0;
  const milli = limit((c) => quantityMilliValue(c.resources?.limits?.cpu));
  const bytes = limit((c) => quantityValue(c.resources?.limits?.memory));
  return limitsOf({ resources: { limits: { cpu: `${milli}m`, memory: String(bytes) } } });
}
