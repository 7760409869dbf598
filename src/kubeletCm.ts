/**
 * The wiring's half of cgroups: the manager of this node's cgroups and what they use, with what both must know of pods and the runtime. Owns
 * nothing of its own; cm/ does. Left out of a world without cgroups, where the runtime alone makes some.
 */
import type { AgentNode } from './agentNode.ts';
import type { DesiredPod } from './api/desired.ts';
import type { NodeAmounts } from './api/nodeResources.ts';
import type { PodUid } from './api/objects.ts';
import { type CgroupDriver, qosClass } from './api/resources.ts';
import type { CgroupFacts } from './cm/enforced.ts';
import { leftForPods, type PodsAmounts } from './cm/hierarchy.ts';
import { kernelLine, type MachineRoots, makeDriver, readCgroups } from './cm/machine.ts';
import { ContainerManager } from './cm/manager.ts';
import { rootName, sandboxParent } from './cm/names.ts';
import { Protection } from './cm/protect.ts';
import { readMaxPids, Usage } from './cm/usage.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import { hugepageLimits } from './kuberuntime/hugepages.ts';

/** What of this machine cgroups are made of. */
export interface CmWorld {
  readonly roots: MachineRoots;
  /** As the kernel says it. */
  readonly facts: CgroupFacts;
  readonly capacity: PodsAmounts;
  /** What the configuration keeps from pods. */
  readonly reserved: NodeAmounts;
  /** Of one page of memory; undefined: the kernel does not say. */
  readonly pageBytes: number | undefined;
  /** Whom to keep alive when memory is short. Left out: nobody. */
  readonly protect?: { readonly pid: number; readonly endpoint: string };
}

/** What this machine has, for `CmWorld`. `endpoint`: the runtime's. */
export async function readCmWorld(node: Pick<AgentNode, 'capacity' | 'reserved' | 'pageBytes'>, endpoint: string): Promise<CmWorld> {
  const roots = { cgroups: '/sys/fs/cgroup', proc: '/proc', boot: '/boot' };
  const [facts, pids] = await Promise.all([readCgroups(roots), readMaxPids(roots.proc)]);
  const { cpuMilli, memoryBytes, hugepages } = node.capacity();
  return {
    ...{ roots, facts, reserved: node.reserved, pageBytes: node.pageBytes },
    capacity: { cpuMilli, memoryBytes, hugepages, ...(pids !== undefined && { pids }) },
    protect: { pid: process.pid, endpoint },
  };
}

export interface CmSettings {
  readonly cgroupRoot: string;
  readonly cgroupsPerQos: boolean;
  readonly podPidsLimit: number;
}

export interface CmParts {
  readonly pods: { list(): readonly DesiredPod[] };
  readonly admission: () => { isAdmitted(uid: PodUid): boolean };
  readonly status: () => { get(uid: PodUid): { readonly phase?: string } | undefined };
  readonly event: (pod: DesiredPod, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly nodeEvent: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** `driver`: how the runtime makes cgroups; undefined: it has not answered yet. */
  readonly runtime: () => { driver(): Promise<CgroupDriver | undefined> };
}

export class CmSide {
  readonly manager: ContainerManager;
  readonly usage: Usage;
  readonly #mayBytes: number;

  constructor(
    world: Pick<KubeletWorld, 'clock' | 'log' | 'runStore' | 'conditionsChanged' | 'hugepageSizes'>,
    cm: CmWorld,
    o: CmSettings,
    parts: CmParts,
  ) {
    const { clock, log, runStore: store, conditionsChanged } = world;
    const { roots, protect } = cm;
    const root = rootName(o.cgroupRoot);
    const may = leftForPods(cm.capacity, cm.reserved);
    this.#mayBytes = may.memoryBytes;
    const protection =
      protect &&
      new Protection({
        ...{ log, ...protect },
        root: roots.cgroups,
        proc: roots.proc,
        nodeMemoryBytes: cm.capacity.memoryBytes,
        unified: () => this.manager.facts().version === 'v2' && this.manager.facts().refused === undefined,
      });
    this.manager = new ContainerManager({
      ...{ clock, log, store, conditionsChanged },
      settings: {
        ...{ root, may },
        perQos: o.cgroupsPerQos,
        podPidsLimit: o.podPidsLimit,
        pageBytes: cm.pageBytes ?? 4096,
        hugepages: (amounts) => hugepageLimits(amounts, world.hugepageSizes ?? []),
      },
      facts: cm.facts,
      kernelLine: () => kernelLine(roots),
      driver: () => parts.runtime().driver(),
      makeDriver: (kind) => makeDriver(kind, roots),
      active: () =>
        parts.pods.list().filter((pod) => parts.admission().isAdmitted(pod.uid) && !hasEnded(parts.status().get(pod.uid)?.phase)),
      event: parts.event,
      nodeEvent: parts.nodeEvent,
      ...(protection && { protect: (again: boolean) => protection.look(again) }),
    });
    this.usage = new Usage({
      ...{ root: roots.cgroups, proc: roots.proc, cgroupRoot: root },
      ...{ version: () => this.manager.facts().version, driver: () => this.manager.kind() },
    });
  }

  load(): Promise<void> {
    return this.manager.load();
  }

  retain(known: ReadonlySet<PodUid>): void {
    this.usage.retain(known);
    void this.manager.retain(known); // in the background: it never rejects
  }

  brake(uid: PodUid): Promise<void> {
    return this.manager.brake(uid);
  }

  /** Of all pods together; undefined: their cgroup has no limit. */
  podsMemory(): { readonly limitBytes: number; readonly workingSetBytes: number } | undefined {
    const workingSetBytes = this.manager.makes() ? this.usage.podsWorkingSet() : undefined;
    return workingSetBytes === undefined ? undefined : { limitBytes: this.#mayBytes, workingSetBytes };
  }
}

const hasEnded = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

const settingsOf = ({ cgroupRoot = '', cgroupsPerQos = true, podPidsLimit = -1 }: Partial<CmSettings>): CmSettings => ({
  ...{ cgroupRoot, cgroupsPerQos, podPidsLimit },
});

/** `cgroup_parent` of a pod's sandbox, by these settings. */
export function sandboxParents(settings: Partial<CmSettings>): (desired: DesiredPod, driver: CgroupDriver) => string {
  const { cgroupRoot, cgroupsPerQos } = settingsOf(settings);
  const root = rootName(cgroupRoot);
  return ({ pod, uid }, driver) => sandboxParent({ driver, root, perQos: cgroupsPerQos }, qosClass(pod), uid);
}

/** undefined: a world without cgroups. */
export const buildCm = (
  world: KubeletWorld & { readonly cgroups?: CmWorld },
  settings: Partial<CmSettings>,
  parts: CmParts,
): CmSide | undefined => world.cgroups && new CmSide(world, world.cgroups, settingsOf(settings), parts);
