/** The wiring's half of CPUs: the CPU manager with what it must know of pods and the runtime, and what a container may be limited by. Owns nothing. */
import type { PodschedConfiguration } from './api/configuration.ts';
import type { DesiredPod } from './api/desired.ts';
import { reservedOf } from './api/nodeResources.ts';
import { CpuManager, type CpuManagerDeps } from './cm/cpuManager.ts';
import { readCpuTopology } from './cm/cpuTopology.ts';
import type { CgroupFacts } from './cm/enforced.ts';
import type { Instances } from './instances.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import type { NodeCgroups } from './kuberuntime/resources.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { Completions } from './pod/completions.ts';
import type { PodWorkers } from './pod/workers.ts';
import type { EventRecorder } from './status/events.ts';

/** The configuration's and the machine's part. */
export type CpuSettings = Pick<CpuManagerDeps, 'policy' | 'reservedCpus' | 'reservedMilli' | 'cpuset' | 'topology'>;

/** `sys`: /sys */
export const cpuSettings = (
  config: PodschedConfiguration,
  { controllers }: Pick<CgroupFacts, 'controllers'>,
  sys: string,
): CpuSettings => ({
  policy: config.cpuManagerPolicy,
  reservedCpus: config.reservedSystemCPUs,
  reservedMilli: reservedOf({ systemReserved: config.systemReserved, kubeReserved: config.kubeReserved }).cpuMilli,
  cpuset: controllers.has('cpuset'),
  topology: () => readCpuTopology({ sys }),
});

/** What the runtime may be asked to limit. */
export const nodeCgroups = ({ version, controllers }: Pick<CgroupFacts, 'version' | 'controllers'>): NodeCgroups => ({
  unified: version === 'v2',
  cpu: controllers.has('cpu'),
  memory: controllers.has('memory'),
});

export interface CpuParts extends Pick<CpuManagerDeps, 'wake' | 'statusOf'> {
  readonly instances: Instances;
  readonly pleg: () => Pleg;
  readonly workers: () => PodWorkers;
  readonly completions: () => Completions;
  readonly events: EventRecorder;
}

/** In a world without settings the policy is `none`. */
export function buildCpus(
  { log, stateStore, runtime, cpus }: Pick<KubeletWorld, 'log' | 'stateStore' | 'runtime'> & { readonly cpus?: CpuSettings },
  { nodeName }: Pick<KubeletSettings, 'nodeName'>,
  { instances, pleg, workers, completions, events, wake, statusOf }: CpuParts,
): CpuManager {
  const none: CpuSettings = { policy: 'none', reservedCpus: '', reservedMilli: 0, cpuset: false, topology: async () => [] };
  const hasEnded = (pod: DesiredPod): boolean => {
    const state = workers().state(pod.uid);
    return state === 'terminated' || state === 'finished' || (state === undefined && completions().has(pod));
  };
  const node = { kind: 'Node', namespace: 'default', name: nodeName } as const;
  return new CpuManager({
    ...{ log, runtime, wake, statusOf, store: stateStore, ...(cpus ?? none) },
    active: () => instances.list().filter((pod) => !hasEnded(pod)),
    statuses: () =>
      pleg()
        .pods()
        .flatMap(({ uid }) => statusOf(uid) ?? []),
    event: (reason, message) => events.event(node, 'Warning', reason, message),
  });
}
