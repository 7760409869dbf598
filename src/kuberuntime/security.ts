// pure
/** Who a container runs as and what of the host it sees (facts 10.7). Mirrors kubelet v1.32 kuberuntime/security_context.go. */
import type { Container, Pod } from '../api/v1.ts';
import type { ImageInfo, NamespaceOptions } from '../container/runtime.ts';
import type { ContainerId } from '../container/words.ts';

const maskedByDefault = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const readonlyByDefault = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** `thermalThrottle`: the /sys/devices/system/cpu/cpuN/thermal_throttle folders that this machine has. */
export function hiddenPaths(
  container: Container,
  thermalThrottle: readonly string[],
): { readonly maskedPaths: readonly string[]; readonly readonlyPaths: readonly string[] } {
  if (container.securityContext?.procMount === 'Unmasked') return { maskedPaths: [], readonlyPaths: [] };
  return { maskedPaths: [...maskedByDefault, ...thermalThrottle], readonlyPaths: readonlyByDefault };
}

/** The namespaces of a pod; with `targetId` those of an ephemeral container that looks into another one's processes. */
export function namespaceOptions(pod: Pod, targetId?: ContainerId): NamespaceOptions {
  const { hostNetwork, hostIPC, hostPID, shareProcessNamespace } = pod.spec;
  const network = hostNetwork ? 'NODE' : 'POD';
  const ipc = hostIPC ? 'NODE' : 'POD';
  if (targetId !== undefined) return { network, ipc, pid: 'TARGET', targetId };
  return { network, ipc, pid: hostPID ? 'NODE' : shareProcessNamespace ? 'POD' : 'CONTAINER' };
}

export interface RunAs {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly runAsUserName?: string;
}

/** The user of a container: the manifest's, else the image's (a number, else a name), else root. */
export function runAs(pod: Pod, container: Container, image: ImageInfo): RunAs {
  const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  const group = container.securityContext?.runAsGroup ?? pod.spec.securityContext?.runAsGroup;
  const runAsGroup = group === undefined ? {} : { runAsGroup: group };
  if (user !== undefined) return { ...runAsGroup, runAsUser: user };
  if (image.uid === undefined && image.username !== '') return { ...runAsGroup, runAsUserName: image.username };
  return { ...runAsGroup, runAsUser: image.uid ?? 0 };
}

/** What is wrong with `runAsNonRoot`; undefined when nothing is. `where` names the pod as the kubelet does: `web_default(uid)`. */
export function nonRootProblem(pod: Pod, container: Container, image: ImageInfo, where: string): string | undefined {
  if (!(container.securityContext?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot)) return undefined;
  const place = `(pod: "${where}", container: ${container.name})`;
  const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  if (user !== undefined) return user === 0 ? `container's runAsUser breaks non-root policy ${place}` : undefined;
  if (image.uid === undefined && image.username !== '') {
    return `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${place}`;
  }
  return (image.uid ?? 0) === 0 ? `container has runAsNonRoot and image will run as root ${place}` : undefined;
}
