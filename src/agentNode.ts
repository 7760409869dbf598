/** What this machine is, as the agent read it at its start: for `info`, for admission, and for manifests that name their node. Owns nothing. */
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { arch, cpus, totalmem } from 'node:os';
import type { NodeFacts } from './admission/admit.ts';
import type { NodeValues } from './api/nodeValues.ts';
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
}

export interface AgentNode {
  readonly architecture: string;
  /** Sizes of huge pages that the kernel knows, as cgroups name them. */
  readonly hugepageSizes: readonly string[];
  readonly countsSwap: boolean;
  /** Of one page of memory; undefined: the kernel does not say. */
  readonly pageBytes: number | undefined;
  readonly facts: () => Omit<NodeFacts, 'hostPortsInUse'>;
  readonly values: () => NodeValues;
  /** Bytes of the file system that pods write to; 0 when it cannot be asked. */
  readonly storageBytes: () => number;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', arm: 'arm' };

export async function readNode({ nodeName, maxPods, podLogsDir, labels }: NodeSettings): Promise<AgentNode> {
  const roots = { proc: '/proc', sys: '/sys' };
  const [{ serial }, model, pageBytes] = await Promise.all([readHardware(roots), readModel(roots), readPageBytes(roots)]);
  const architecture = architectures[arch()] ?? arch();
  const storageBytes = () => bytesOf(podLogsDir);
  const ephemeralBytes = storageBytes();
  const allocatable = {
    cpuMilli: cpus().length * 1000,
    memoryBytes: totalmem(),
    ...(ephemeralBytes > 0 && { ephemeralBytes }),
    pods: maxPods,
    hugepages: hugepages(roots.sys),
  };
  const appArmor = textOf('/sys/module/apparmor/parameters/enabled').startsWith('Y');
  const all = () => nodeLabels({ name: nodeName, os: 'linux', arch: architecture, configured: labels() });
  return {
    architecture,
    pageBytes,
    hugepageSizes: hugepageSizes(foldersIn(`${roots.sys}/kernel/mm/hugepages`)),
    countsSwap: existsSync('/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes'),
    facts: () => ({ name: nodeName, labels: all(), os: 'linux', allocatable, appArmor }),
    values: () => ({
      name: nodeName,
      arch: architecture,
      ...(model !== undefined && { model }),
      ...(serial !== undefined && { serial }),
      labels: all(),
    }),
    storageBytes,
  };
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
