/** What this machine is, as the agent read it at its start: for `info`, for admission, and for manifests that name their node. Owns nothing. */
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { arch, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import type { NodeFacts } from './admission/admit.ts';
import { evictionMaps, parseEviction, reservedByEviction } from './api/evictionThresholds.ts';
import { allocatableOf, type NodeAmounts, type NodeCapacity, reservedOf } from './api/nodeResources.ts';
import type { NodeValues } from './api/nodeValues.ts';
import { countsSwap } from './cm/countsSwap.ts';
import { hugepageSizes } from './kuberuntime/hugepages.ts';
import { readHardware, readModel, readPageBytes } from './node/hardware.ts';
import { hugepages } from './node/hugepages.ts';
import { nodeLabels } from './node/labels.ts';

export interface NodeSettings {
  readonly nodeName: string;
  readonly maxPods: number;
  /** On the file system that pods write to. */
  readonly podLogsDir: string;
  /** They may change while running. */
  readonly labels: () => Readonly<Record<string, string>>;
  /** By dotted path: systemReserved, kubeReserved and the thresholds of eviction. Left out: nothing is kept from pods. */
  readonly configuration?: Readonly<Record<string, unknown>>;
}

export interface AgentNode {
  readonly architecture: string;
  /** Sizes of huge pages that the kernel knows, as cgroups name them. */
  readonly hugepageSizes: readonly string[];
  readonly countsSwap: boolean;
  /** Folders of this machine that the kubelet masks too. */
  readonly thermalThrottlePaths: readonly string[];
  /** Of one page of memory; undefined: the kernel does not say. */
  readonly pageBytes: number | undefined;
  readonly facts: () => Omit<NodeFacts, 'hostPortsInUse'>;
  readonly values: () => NodeValues;
  readonly capacity: () => NodeCapacity;
  /** What pods may ask for. */
  readonly allocatable: () => NodeCapacity;
  /** What the configuration keeps from pods; eviction thresholds are no part of it. */
  readonly reserved: NodeAmounts;
  /** Bytes of the file system that pods write to; 0 when it cannot be asked. */
  readonly storageBytes: () => number;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', arm: 'arm' };

export async function readNode({ nodeName, maxPods, podLogsDir, labels, configuration }: NodeSettings): Promise<AgentNode> {
  const roots = { proc: '/proc', sys: '/sys' };
  const [{ serial }, model, pageBytes] = await Promise.all([readHardware(roots), readModel(roots), readPageBytes(roots)]);
  const architecture = architectures[arch()] ?? arch();
  const storageBytes = () => bytesOf(podLogsDir);
  const fixed = { cpuMilli: cpus().length * 1000, memoryBytes: totalmem(), pods: maxPods, hugepages: hugepages(roots.sys) };
  const capacity = (): NodeCapacity => ({ ...fixed, ephemeralBytes: storageBytes() });
  const reserved = reservedOf(configuration ?? {});
  const { thresholds } = configuration === undefined ? { thresholds: [] } : parseEviction(evictionMaps(configuration));
  const allocatable = (): NodeCapacity => {
    const all = capacity();
    return allocatableOf(all, reserved, {
      memoryBytes: reservedByEviction(thresholds, 'memory.available', all.memoryBytes),
      ephemeralBytes: reservedByEviction(thresholds, 'nodefs.available', all.ephemeralBytes),
    });
  };
  // a disk that cannot be asked now is not checked by admission
  const { ephemeralBytes, ...rest } = allocatable();
  const forAdmission = { ...rest, ...(storageBytes() > 0 && { ephemeralBytes }) };
  const appArmor = textOf('/sys/module/apparmor/parameters/enabled').startsWith('Y');
  const all = () => nodeLabels({ name: nodeName, os: 'linux', arch: architecture, configured: labels() });
  return {
    architecture,
    pageBytes,
    hugepageSizes: hugepageSizes(foldersIn(`${roots.sys}/kernel/mm/hugepages`)),
    countsSwap: countsSwap({ cgroups: '/sys/fs/cgroup', proc: roots.proc }),
    thermalThrottlePaths: thermalThrottlePaths(roots.sys),
    facts: () => ({ name: nodeName, labels: all(), os: 'linux', allocatable: forAdmission, appArmor }),
    values: () => ({
      name: nodeName,
      arch: architecture,
      ...(model !== undefined && { model }),
      ...(serial !== undefined && { serial }),
      labels: all(),
    }),
    storageBytes,
    capacity,
    allocatable,
    reserved,
  };
}

/** `/sys/devices/system/cpu/cpuN/thermal_throttle` of those processors that have one (x86; a Pi's have none). `sys`: `/sys`. */
export function thermalThrottlePaths(sys: string): string[] {
  return foldersIn(join(sys, 'devices/system/cpu'))
    .flatMap((name) => /^cpu(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
    .filter((n) => existsSync(join(sys, `devices/system/cpu/cpu${n}/thermal_throttle`)))
    .map((n) => `/sys/devices/system/cpu/cpu${n}/thermal_throttle`);
}

/** Of the file system of `path`; 0 when it cannot be asked. */
function bytesOf(path: string): number {
  try {
    const { blocks, bsize } = statfsSync(path);
    return blocks * bsize;
  } catch {
    return 0;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // a kernel without it
  }
}

function foldersIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // a kernel without it
  }
}
