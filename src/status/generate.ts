// pure
/**
 * The status of a pod from its manifest, what the runtime shows, and what was told before. Mirrors kubelet v1.32 kubelet_pods.go
 * generateAPIPodStatus (facts 9.2, 9.5). What is sticky: a terminal phase, startTime, the QoS class, addresses of a pod whose sandbox is gone.
 */
import { everyContainer } from '../api/containers.ts';
import type { DesiredPod } from '../api/desired.ts';
import { qosClass } from '../api/resources.ts';
import type { PodPhase, PodStatus } from '../api/status.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import type { GoneDevice } from '../container/devices.ts';
import type { StaleImage } from '../container/ensureResult.ts';
import type { ProbeView } from '../container/probes.ts';
import type { RuntimePodStatus } from '../container/words.ts';
import type { WallTime } from '../world/clock.ts';
import { podConditions } from './conditions.ts';
import { containerStatuses, type Reason } from './containers.ts';
import { cutMessages } from './messages.ts';
import { getPhase, isTerminalPhase } from './phase.ts';
import { volumeMountStatuses } from './volumeMounts.ts';

export interface StatusInputs {
  readonly desired: DesiredPod;
  readonly runtime: RuntimePodStatus;
  /** The last status of this very instance. */
  readonly old?: PodStatus | undefined;
  /** Why containers could not be started the last time, by container name. */
  readonly reasons: ReadonlyMap<string, Reason>;
  /** RFC 3339 in whole seconds. */
  readonly now: string;
  /** All containers have stopped for good. */
  readonly terminal: boolean;
  /** The pod is being ended: nothing starts again. */
  readonly deleting?: boolean;
  /** The node's addresses, the primary one first. */
  readonly hostIps: readonly string[];
  /** Scheme of container ids: `containerd`. */
  readonly runtimeName: string;
  readonly probes?: ProbeView | undefined;
  /** Paths of the manifest that have no effect; absent: not known now. */
  readonly ignored?: readonly string[] | undefined;
  /** Containers whose image could not be refreshed when they were started; absent: none. */
  readonly staleImages?: readonly StaleImage[] | undefined;
  /** What of its limits is not enforced here; absent: nothing. */
  readonly unenforced?: string | undefined;
  /** Devices of running containers that are not there any more; absent: none. */
  readonly goneDevices?: readonly GoneDevice[] | undefined;
  /** The pod's runtime handler mounts read-only all the way down; absent: no. */
  readonly recursiveReadOnly?: boolean;
  /** The pod's own end, whatever its containers do: Failed with this reason (DeadlineExceeded, NodeRebooted …). */
  readonly failed?: Reason | undefined;
}

export function generatePodStatus(inputs: StatusInputs): PodStatus {
  const { desired, runtime, old, now } = inputs;
  const { spec } = desired.pod;
  const deleting = inputs.terminal || inputs.deleting === true;
  const count = everyContainer(spec).length;
  const list = (
    kind: 'app' | 'init' | 'ephemeral',
    containers: readonly (Container | EphemeralContainer)[],
    before: PodStatus['containerStatuses'],
  ) =>
    cutMessages(
      containerStatuses({
        list: kind,
        wanted: containers.map((c) => ({
          name: c.name,
          image: c.image ?? '',
          sidecar: kind === 'init' && c.restartPolicy === 'Always',
          volumeMounts: volumeMountStatuses(c, inputs.recursiveReadOnly ?? false),
        })),
        records: runtime.containers,
        old: before,
        restartPolicy: spec.restartPolicy ?? 'Always',
        hasInit: (spec.initContainers ?? []).length > 0,
        reasons: inputs.reasons,
        deleting,
        runtimeName: inputs.runtimeName,
        now: Date.parse(now) as WallTime,
        probes: inputs.probes,
      }),
      count,
    );
  const initContainerStatuses = list('init', spec.initContainers ?? [], old?.initContainerStatuses);
  const appStatuses = list('app', spec.containers, old?.containerStatuses);
  const ephemeralContainerStatuses = list('ephemeral', spec.ephemeralContainers ?? [], old?.ephemeralContainerStatuses);
  const statuses = [...initContainerStatuses, ...appStatuses];

  const counted = getPhase(spec, statuses, { terminal: inputs.terminal, static: true });
  const { phase, ...why } = stickyPhase(counted, old, inputs.failed);
  return {
    phase,
    conditions: podConditions({
      ...{ spec, runtime, statuses, phase, old: old?.conditions, now },
      ignored: inputs.ignored,
      staleImages: inputs.staleImages,
      unenforced: inputs.unenforced,
      goneDevices: inputs.goneDevices,
    }),
    ...why,
    ...hostAddresses(inputs.hostIps),
    ...podAddresses(inputs),
    startTime: old?.startTime ?? now,
    ...(initContainerStatuses.length > 0 && { initContainerStatuses }),
    containerStatuses: appStatuses,
    ...(ephemeralContainerStatuses.length > 0 && { ephemeralContainerStatuses }),
    qosClass: old?.qosClass ?? qosClass(desired.pod),
  };
}

/** A pod that was not let in (kubelet rejectPod): Failed, why, and nothing of containers. */
export function rejectedPodStatus(desired: DesiredPod, why: Reason, now: string): PodStatus {
  return {
    phase: 'Failed',
    message: `Pod was rejected: ${why.message}`,
    reason: why.reason,
    startTime: now,
    qosClass: qosClass(desired.pod),
  };
}

/** A terminal phase is kept for the life of the instance, and reason and message as long as the phase. */
function stickyPhase(
  counted: PodPhase,
  old: PodStatus | undefined,
  failed: Reason | undefined,
): Pick<PodStatus, 'phase' | 'reason' | 'message'> {
  const kept = old !== undefined && (isTerminalPhase(old.phase) || (failed === undefined && old.phase === counted));
  if (kept) {
    return {
      phase: old.phase,
      ...(old.message !== undefined && { message: old.message }),
      ...(old.reason !== undefined && { reason: old.reason }),
    };
  }
  return failed === undefined ? { phase: counted } : { phase: 'Failed', message: failed.message, reason: failed.reason };
}

const isIpv6 = (ip: string): boolean => ip.includes(':');

/** At most one address of each family, the primary family first. */
function onePerFamily(ips: readonly string[], primaryIsV6: boolean): string[] {
  const first = ips.find((ip) => isIpv6(ip) === primaryIsV6);
  const second = ips.find((ip) => isIpv6(ip) !== primaryIsV6);
  return [first, second].filter((ip) => ip !== undefined);
}

function hostAddresses(hostIps: readonly string[]): Pick<PodStatus, 'hostIP' | 'hostIPs'> {
  const [hostIP] = hostIps;
  return hostIP === undefined ? {} : { hostIP, hostIPs: onePerFamily(hostIps, isIpv6(hostIP)).map((ip) => ({ ip })) };
}

function podAddresses({ desired, runtime, old, hostIps }: StatusInputs): Pick<PodStatus, 'podIP' | 'podIPs'> {
  const sandboxIsReady = runtime.sandboxes.some((s) => s.state === 'ready');
  const kept = sandboxIsReady ? [] : (old?.podIPs ?? []).map(({ ip }) => ip);
  const known = desired.pod.spec.hostNetwork === true ? hostIps : runtime.ips.length > 0 ? runtime.ips : kept;
  const ips = onePerFamily(known, isIpv6(hostIps[0] ?? ''));
  const [podIP] = ips;
  return podIP === undefined ? {} : { podIP, podIPs: ips.map((ip) => ({ ip })) };
}
