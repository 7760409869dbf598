/** The wiring's half that lets in: admission with what it must know of pods, workers and the runtime. Owns nothing of its own. */
import { toldVerdict } from './admission/admit.ts';
import { Admission } from './admission/manager.ts';
import type { DesiredPod } from './api/desired.ts';
import { wasEvicted } from './api/evicted.ts';
import { keyText, type PodUid } from './api/objects.ts';
import type { PodStatus } from './api/status.ts';
import type { CpuManager } from './cm/cpuManager.ts';
import type { DeviceManager } from './cm/devices.ts';
import type { Config } from './config/manager.ts';
import type { Instances } from './instances.ts';
import type { EvictionSide } from './kubeletEviction.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import { portsOfAnnotations } from './kuberuntime/marks.ts';
import { isAlive } from './pleg/adoption.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { Completions } from './pod/completions.ts';
import type { PodManager } from './pod/manager.ts';
import type { PodWorkers } from './pod/workers.ts';
import type { StatusManager } from './status/manager.ts';
import { describeError } from './world/log.ts';

/** Functions, since most of them are built after admission. */
export interface AdmissionParts {
  readonly config: () => Config;
  readonly pleg: () => Pleg;
  readonly workers: () => PodWorkers;
  readonly pods: PodManager;
  readonly instances: Instances;
  readonly completions: () => Completions;
  readonly status: () => StatusManager;
  readonly reject: (pod: DesiredPod, reason: string, message: string) => void;
  /** Left out with `readmit`: nobody is preempted. */
  readonly setStatus?: (pod: DesiredPod, status: PodStatus) => void;
  /** Is judged once more, through the loop. */
  readonly readmit?: (uid: PodUid) => void;
  /** Left out: nobody counts CPUs or devices, and the node is never short of anything. */
  readonly resources?: () => {
    /** undefined: nobody is ever evicted. */
    readonly eviction: EvictionSide | undefined;
    readonly cpus: Pick<CpuManager, 'exclusiveCpus'>;
    readonly devices: Pick<DeviceManager, 'present'>;
  };
}

/** The runtime has, or may have, something alive of it. What was refused has nothing, also before the runtime was listed. */
export function mayLive(pleg: Pick<Pleg, 'listed' | 'pods'>, uid: PodUid, told: PodStatus | undefined): boolean {
  const verdict = toldVerdict(told);
  if (verdict !== undefined && verdict !== 'admitted') return false;
  return !pleg.listed() || pleg.pods().some((p) => p.uid === uid && isAlive(p));
}

/** The node as it is now, with what its other managers know. */
function nodeNow(nodeFacts: KubeletWorld['nodeFacts'], resources: AdmissionParts['resources']): ReturnType<KubeletWorld['nodeFacts']> {
  if (resources === undefined) return nodeFacts();
  const { eviction, cpus, devices } = resources();
  const exclusiveCpus = cpus.exclusiveCpus();
  return {
    ...nodeFacts(),
    devices: (deviceClass) => devices.present(deviceClass),
    ...(eviction && { pressures: eviction.manager.pressures() }),
    ...(exclusiveCpus !== undefined && { exclusiveCpus }),
  };
}

const preempted = { reason: 'Preempting', message: 'Preempted in order to admit critical pod', disrupts: true, graceSeconds: undefined };

export function buildAdmission(world: KubeletWorld, parts: AdmissionParts): Admission {
  const { clock, log, nodeFacts, hostSockets, socketHolder } = world;
  const { pods, instances, resources, readmit, setStatus } = parts;
  const lives = (uid: PodUid): boolean =>
    parts
      .pleg()
      .pods()
      .some((p) => p.uid === uid && isAlive(p));
  return new Admission({
    clock,
    node: () => nodeNow(nodeFacts, resources),
    hostSockets,
    socketHolder,
    orphans: () =>
      parts
        .pleg()
        .pods()
        .filter((p) => isAlive(p) && instances.get(p.uid) === undefined && !parts.workers().hasEnded(p.uid))
        .map(({ namespace, name, containers: records }) => {
          const running = records.filter((c) => c.state === 'running' || c.state === 'unknown');
          const containers = running.map((c) => ({ name: c.name, image: c.image, ports: portsOfAnnotations(c.annotations) }));
          return { key: keyText({ kind: 'Pod', namespace, name }), namespace, name, pod: { spec: { containers } } };
        }),
    known: () => instances.list(),
    isDesired: (uid) => pods.get(uid) !== undefined,
    hasEnded: (pod) => {
      const state = parts.workers().state(pod.uid);
      return state === 'terminated' || state === 'finished' || (state === undefined && parts.completions().has(pod));
    },
    earlier: (uid) => toldVerdict(parts.status().get(uid)),
    lives: (uid) => (parts.pleg().listed() ? lives(uid) : 'unknown'),
    renew: (uid) => parts.config().renewInstance(uid),
    retryEdits: () => parts.config().retryBlocked(),
    retell: (pod, { reason, message }) => parts.reject(pod, reason, message),
    failed: (e) => log.warn({ error: describeError(e) }, 'what admission asked for could not be done'),
    // who cannot be evicted cannot be preempted
    preemption:
      world.eviction && readmit && setStatus
        ? {
            ...{ readmit, tell: setStatus },
            evict: async (uid) => resources?.().eviction?.evictPod(uid, preempted),
            wasEvicted: (uid) => wasEvicted(parts.status().get(uid)),
            isEnding: (uid) => parts.workers().state(uid) === 'terminating',
          }
        : undefined,
  });
}
