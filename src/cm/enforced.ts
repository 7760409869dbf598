// pure
/**
 * Which limits cannot be kept here, of a pod and of the node as a whole, in words. Decided by what the kernel offers, never by its command
 * line: that only says what to change. The kubelet has nothing of the kind; it does not start, or keeps silent.
 */
import { quantityValue } from '../api/quantity.ts';
import { podResources } from '../api/resources.ts';
import type { Pod } from '../api/v1.ts';
import { periodUs } from './podLimits.ts';

/** `v2`: cgroups are made here; everywhere else only the runtime makes some. */
export type CgroupVersion = 'v2' | 'v1' | 'hybrid' | 'none';

export interface CgroupFacts {
  readonly version: CgroupVersion;
  /** Those that can be used, in whatever version. */
  readonly controllers: ReadonlySet<string>;
  /** Why no cgroup can be made although it is v2 (a read-only file system, a cgroup that is not ours to divide). */
  readonly refused?: string;
}

/** Those that a limit of a pod needs. */
const limitControllers = ['cpu', 'memory', 'pids', 'hugetlb'] as const;
type LimitController = (typeof limitControllers)[number];

function isLimited({ spec }: Pick<Pod, 'spec'>, controller: LimitController, podPidsLimit: number): boolean {
  if (controller === 'pids') return podPidsLimit > 0;
  const all = [...spec.containers, ...(spec.initContainers ?? [])].map((c) => c.resources?.limits ?? {});
  const names = (list: object) =>
    Object.keys(list).filter((name) => (controller === 'hugetlb' ? name.startsWith('hugepages-') : name === controller));
  return all.some((list) => names(list).some((name) => quantityValue(list[name]) > 0));
}

/** A limit of the pod as a whole, over those of its containers. */
function hasPodLimit(pod: Pick<Pod, 'spec'>, podPidsLimit: number): boolean {
  const { cpuQuota, memoryBytes } = podResources(pod, { enforceCpuLimits: true, periodUs });
  return cpuQuota !== undefined || memoryBytes !== undefined || podPidsLimit > 0 || isLimited(pod, 'hugetlb', podPidsLimit);
}

export interface PodPlace {
  readonly podPidsLimit: number;
  /** `cgroupsPerQOS`: pods have cgroups at all. */
  readonly perQos: boolean;
  /** It runs in another cgroup than the one it should be in. */
  readonly elsewhere: boolean;
}

/** What of a pod's limits is not enforced; undefined: nothing. `memory`, `cpu, pids`, `pod level`, `cgroup differs`. */
export function limitsNotEnforced(pod: Pick<Pod, 'spec'>, facts: CgroupFacts, o: PodPlace): string | undefined {
  const missing = limitControllers.filter((name) => !facts.controllers.has(name) && isLimited(pod, name, o.podPidsLimit));
  const none = facts.version !== 'v2' || facts.refused !== undefined || !o.perQos;
  const words = [
    ...missing,
    ...(none && hasPodLimit(pod, o.podPidsLimit) ? ['pod level'] : []),
    ...(!none && o.elsewhere ? ['cgroup differs'] : []),
  ];
  return words.length === 0 ? undefined : words.join(', ');
}

export interface NodeProblem {
  readonly type: 'MemoryCgroupOff' | 'LimitsNotEnforced';
  readonly reason: string;
  readonly message: string;
}

export interface KernelLine {
  /** The file that holds it, or words for where it may be. */
  readonly place: string;
  /** `/proc/cmdline` */
  readonly booted: string;
}

const memoryWords = 'cgroup_enable=memory cgroup_memory=1';

/** What to change, if anything; the exact line and the file. */
export function nodeProblems(facts: CgroupFacts, line: KernelLine): NodeProblem[] {
  const add = (words: string): string => `add ${words} to ${line.place} and reboot`;
  const disabled = /(?:^|\s)(cgroup_disable=\S*memory\S*)/.exec(line.booted)?.[1];
  const problems: NodeProblem[] = [];
  if (!facts.controllers.has('memory')) {
    const takeOut = disabled === undefined ? '' : ` (and take ${disabled} out of it, if it is there)`;
    problems.push({
      type: 'MemoryCgroupOff',
      reason: 'MemoryCgroupOff',
      message: `memory limits are not enforced: the kernel has no memory controller; ${add(memoryWords)}${takeOut}`,
    });
  }
  const others = limitControllers.filter((name) => name !== 'memory' && name !== 'hugetlb' && !facts.controllers.has(name));
  if (others.length > 0 && facts.version !== 'none') {
    problems.push({
      type: 'LimitsNotEnforced',
      reason: 'CgroupControllerMissing',
      message: `limits of ${others.join(' and ')} are not enforced: the kernel offers no such controller; take cgroup_disable=… out of ${line.place} and reboot, or use a kernel that has it`,
    });
  } else if (facts.version === 'v1' || facts.version === 'hybrid') {
    problems.push({
      type: 'LimitsNotEnforced',
      reason: 'CgroupV1',
      message: `limits of whole pods are not enforced, those of containers are: this machine uses cgroup v1; ${add('systemd.unified_cgroup_hierarchy=1')}`,
    });
  } else if (facts.version === 'none' || facts.refused !== undefined) {
    problems.push({
      type: 'LimitsNotEnforced',
      reason: 'CgroupsNotWritable',
      message: `limits of whole pods are not enforced, those of containers are as far as the runtime can: ${facts.refused ?? 'there is no cgroup file system'}`,
    });
  }
  return problems;
}
