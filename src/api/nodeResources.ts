// pure
/**
 * What a node has, what is kept back, and what is left for pods. Mirrors kubelet v1.32 cm/node_container_manager_linux.go (facts 11.4):
 * allocatable = capacity − systemReserved − kubeReserved − hard eviction thresholds, huge pages taken from memory, never below 0.
 */

import { parseCpuList } from './cpuList.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { isPlain } from './plain.ts';
import { canonicalQuantity, parseQuantity, quantityMilliValue, quantityValue } from './quantity.ts';

/** Resources that `systemReserved` and `kubeReserved` may name. */
const reservable = ['cpu', 'memory', 'ephemeral-storage', 'pid'] as const;

/** 0: none, or not known. */
export interface NodeAmounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly ephemeralBytes: number;
  readonly pids: number;
}

export interface NodeCapacity {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  /** Of the file system that pods write to; 0: it could not be asked. */
  readonly ephemeralBytes: number;
  readonly pods: number;
  /** Bytes by resource name (`hugepages-2Mi`). */
  readonly hugepages: Readonly<Record<string, number>>;
}

/** Hard eviction thresholds in bytes; only these two count for allocatable. 0: none. */
export interface HardThresholds {
  /** `memory.available` */
  readonly memoryBytes: number;
  /** `nodefs.available` */
  readonly ephemeralBytes: number;
}

type Amounts = Readonly<Record<string, string>>;

/** Of one map as it is configured; what is no amount counts as none (the checks of the configuration tell it). */
function amountsOf(value: unknown): NodeAmounts {
  const text = (key: (typeof reservable)[number]): string => {
    const given = isPlain(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    return typeof given === 'string' ? given : '0';
  };
  return {
    cpuMilli: Math.max(0, quantityMilliValue(text('cpu'))),
    memoryBytes: Math.max(0, quantityValue(text('memory'))),
    ephemeralBytes: Math.max(0, quantityValue(text('ephemeral-storage'))),
    pids: Math.max(0, quantityValue(text('pid'))),
  };
}

/**
 * All that is kept from pods by the configuration: `systemReserved` and `kubeReserved` together. Named CPUs (`reservedSystemCPUs`) stand for
 * the cpu of both, as with the kubelet.
 */
export function reservedOf(configuration: {
  readonly systemReserved?: unknown;
  readonly kubeReserved?: unknown;
  readonly reservedSystemCPUs?: unknown;
}): NodeAmounts {
  const [a, b] = [amountsOf(configuration.systemReserved), amountsOf(configuration.kubeReserved)];
  const list = configuration.reservedSystemCPUs;
  const named = typeof list === 'string' ? (parseCpuList(list)?.length ?? 0) : 0;
  return {
    cpuMilli: named > 0 ? named * 1000 : a.cpuMilli + b.cpuMilli,
    memoryBytes: a.memoryBytes + b.memoryBytes,
    ephemeralBytes: a.ephemeralBytes + b.ephemeralBytes,
    pids: a.pids + b.pids,
  };
}

const sum = (amounts: Readonly<Record<string, number>>): number => Object.values(amounts).reduce((total, n) => total + n, 0);

/** What pods may ask for, in the shape of the capacity. */
export function allocatableOf(capacity: NodeCapacity, reserved: NodeAmounts, hard: HardThresholds): NodeCapacity {
  const left = (from: number, ...taken: readonly number[]): number =>
    Math.max(
      0,
      taken.reduce((rest, n) => rest - n, from),
    );
  return {
    cpuMilli: left(capacity.cpuMilli, reserved.cpuMilli),
    memoryBytes: left(capacity.memoryBytes, reserved.memoryBytes, hard.memoryBytes, sum(capacity.hugepages)),
    ephemeralBytes: left(capacity.ephemeralBytes, reserved.ephemeralBytes, hard.ephemeralBytes),
    pods: capacity.pods,
    hugepages: capacity.hugepages,
  };
}

/** Bytes in the node's spelling: `8008092Ki` where they are whole Ki, else the plain number. */
export const bytesText = (bytes: number): string =>
  bytes > 0 && bytes % 1024 === 0 ? canonicalQuantity(`${bytes / 1024}Ki`) : String(bytes);

/** As `v1 NodeStatus` has it. `devices`: how many by resource name. */
export function resourceList(of: NodeCapacity, devices: Readonly<Record<string, number>> = {}): Readonly<Record<string, string>> {
  const sorted = (amounts: Readonly<Record<string, number>>): [string, number][] =>
    Object.entries(amounts).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return {
    cpu: canonicalQuantity(`${of.cpuMilli}m`),
    'ephemeral-storage': bytesText(of.ephemeralBytes),
    ...Object.fromEntries(sorted(of.hugepages).map(([name, bytes]) => [name, bytesText(bytes)])),
    memory: bytesText(of.memoryBytes),
    pods: String(of.pods),
    ...Object.fromEntries(sorted(devices).map(([name, count]) => [name, String(count)])),
  };
}

const oneMi = 2 ** 20;

/** What is wrong with the amounts of `systemReserved` and `kubeReserved`, by themselves. */
export function checkReserved(values: Readonly<Record<string, unknown>>): Problem[] {
  return ['systemReserved', 'kubeReserved'].flatMap((path) => {
    const map = values[path];
    return Object.entries(isPlain(map) ? (map as Amounts) : {}).flatMap(([name, text]) => {
      const wrong = wrongAmount(name, String(text));
      return wrong === undefined ? [] : [{ path: `${path}.${name}`, got: String(text).slice(0, 100), ...wrong }];
    });
  });
}

function wrongAmount(name: string, text: string): Pick<Problem, 'expected' | 'nearest'> | undefined {
  if (!reservable.some((known) => known === name)) {
    const close = nearest(name, reservable);
    return { expected: `one of ${reservable.join(', ')}`, ...(close !== undefined && { nearest: close }) };
  }
  const parsed = parseQuantity(text);
  if (parsed === undefined) return { expected: examples[name] ?? 'an amount' };
  if (parsed.nano < 0n) return { expected: 'an amount of 0 or more' };
  if (name === 'pid') return quantityMilliValue(text) % 1000 === 0 ? undefined : { expected: 'a whole number' };
  if (name === 'cpu' || parsed.nano === 0n) return undefined;
  // `memory: 100` is 100 bytes, and `100m` a tenth of one: nobody means that
  if (quantityValue(text) >= oneMi) return undefined;
  const digits = /^[0-9]+(\.[0-9]+)?/.exec(text)?.[0];
  return { expected: 'at least 1Mi', ...(digits !== undefined && { nearest: `${digits}Mi` }) };
}

const examples: Readonly<Record<string, string>> = {
  cpu: 'an amount of CPU such as 200m',
  memory: 'an amount of bytes such as 128Mi',
  'ephemeral-storage': 'an amount of bytes such as 1Gi',
  pid: 'a number of processes such as 1000',
};

/**
 * More kept back than this node has: nothing would be left for pods, so the configuration is wrong here. An amount of the machine that is
 * 0 is not known, and not checked.
 */
export function checkReservedFits(values: Readonly<Record<string, unknown>>, machine: NodeAmounts): Problem[] {
  const [system, kube] = [amountsOf(values.systemReserved), amountsOf(values.kubeReserved)];
  const check = (name: string, of: (a: NodeAmounts) => number, shown: (n: number) => string): Problem[] => {
    const [s, k, all] = [of(system), of(kube), of(machine)];
    if (all === 0 || s + k <= all) return [];
    const [path, other, rest] = s >= k ? ['systemReserved', 'kubeReserved', k] : ['kubeReserved', 'systemReserved', s];
    const beside = rest === 0 ? '' : ` beside the ${shown(rest)} of ${other}`;
    return [
      {
        path: `${path}.${name}`,
        expected: `at most ${shown(Math.max(0, all - rest))}${beside}: this node has ${shown(all)}`,
        got: shown(Math.max(s, k)),
      },
    ];
  };
  return [
    ...check(
      'cpu',
      (a) => a.cpuMilli,
      (n) => canonicalQuantity(`${n}m`),
    ),
    ...check('memory', (a) => a.memoryBytes, bytesText),
    ...check('ephemeral-storage', (a) => a.ephemeralBytes, bytesText),
    ...check('pid', (a) => a.pids, String),
  ];
}
