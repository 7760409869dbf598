// pure
/** Who a container runs as and what of the host it sees (facts 10.7). Mirrors kubelet v1.32 kuberuntime/security_context.go. */
import { dottedSysctl } from '../api/sysctls.ts';
import type { AppArmorProfile, Container, Pod, SELinuxOptions, SeccompProfile } from '../api/v1.ts';
import { annotatedProfile, appArmorAnnotation } from '../api/validateSecurity.ts';
import type {
  ContainerConfig,
  NamespaceOptions,
  RunnableImage,
  SandboxConfig,
  SecurityProfile,
  SeLinuxOptions,
} from '../container/runtime.ts';
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
export function runAs(pod: Pod, container: Container, image: RunnableImage): RunAs {
  const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  const group = container.securityContext?.runAsGroup ?? pod.spec.securityContext?.runAsGroup;
  const runAsGroup = group === undefined ? {} : { runAsGroup: group };
  if (user !== undefined) return { ...runAsGroup, runAsUser: user };
  if (image.uid === undefined && image.username !== '') return { ...runAsGroup, runAsUserName: image.username };
  return { ...runAsGroup, runAsUser: image.uid ?? 0 };
}

export interface SeccompSettings {
  /** RuntimeDefault where nobody says anything. */
  readonly seccompDefault?: boolean;
  /** Where Localhost profiles lie. */
  readonly seccompFolder?: string;
}

type SandboxSecurity = Pick<SandboxConfig, 'runAsUser' | 'runAsGroup' | 'supplementalGroups' | 'seLinux' | 'sysctls'>;
type ContainerSecurity = Pick<
  ContainerConfig,
  'seccomp' | 'appArmor' | 'seLinux' | 'capabilities' | 'supplementalGroups' | 'readonlyRootFilesystem' | 'noNewPrivileges'
>;

/** What the pod's security context says to the sandbox. */
export function sandboxSecurity(pod: Pod): SandboxSecurity {
  const { runAsUser, runAsGroup, seLinuxOptions, sysctls = [] } = pod.spec.securityContext ?? {};
  return {
    ...(runAsUser !== undefined && { runAsUser }),
    ...(runAsGroup !== undefined && { runAsGroup }),
    ...(seLinuxOptions !== undefined && { seLinux: seLinux(seLinuxOptions) }),
    ...(sysctls.length > 0 && { sysctls: Object.fromEntries(sysctls.map(({ name, value }) => [dottedSysctl(name), value])) }),
    ...groups(pod),
  };
}

/** What both contexts together say to a container, but for its user and what it sees of the host. */
export function containerSecurity(pod: Pod, container: Container, o: SeccompSettings): ContainerSecurity {
  const ofPod = pod.spec.securityContext ?? {};
  const own = container.securityContext ?? {};
  const annotation = pod.metadata.annotations?.[appArmorAnnotation + container.name];
  const annotated = annotation === undefined ? undefined : annotatedProfile(annotation);
  const appArmor = own.appArmorProfile ?? annotated ?? ofPod.appArmorProfile;
  const label = own.seLinuxOptions ?? ofPod.seLinuxOptions;
  const { add = [], drop = [] } = own.capabilities ?? {};
  return {
    seccomp: seccomp(own.seccompProfile ?? ofPod.seccompProfile, o),
    ...(appArmor !== undefined && { appArmor: appArmorProfile(appArmor) }),
    ...(label !== undefined && { seLinux: seLinux(label) }),
    ...(own.capabilities !== undefined && { capabilities: { add, drop } }),
    ...groups(pod),
    ...(own.readOnlyRootFilesystem && { readonlyRootFilesystem: true }),
    ...(own.allowPrivilegeEscalation === false && { noNewPrivileges: true }),
  };
}

/** fsGroup is a group of every process too. */
function groups(pod: Pod): { readonly supplementalGroups?: readonly number[] } {
  const { fsGroup, supplementalGroups = [] } = pod.spec.securityContext ?? {};
  const all = [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups];
  return all.length === 0 ? {} : { supplementalGroups: all };
}

const seLinux = ({ user = '', role = '', type = '', level = '' }: SELinuxOptions): SeLinuxOptions => ({ user, role, type, level });

function seccomp(profile: SeccompProfile | undefined, { seccompDefault = false, seccompFolder = '' }: SeccompSettings): SecurityProfile {
  if (profile === undefined) return { type: seccompDefault ? 'RuntimeDefault' : 'Unconfined' };
  if (profile.type !== 'Localhost') return { type: profile.type };
  return { type: 'Localhost', localhostRef: `${seccompFolder}/${profile.localhostProfile ?? ''}` };
}

const appArmorProfile = ({ type, localhostProfile }: AppArmorProfile): SecurityProfile => ({
  type,
  ...(type === 'Localhost' && { localhostRef: localhostProfile ?? '' }),
});

/** What is wrong with `runAsNonRoot`; undefined when nothing is. `where` names the pod as the kubelet does: `web_default(uid)`. */
export function nonRootProblem(pod: Pod, container: Container, image: RunnableImage, where: string): string | undefined {
  if (!(container.securityContext?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot)) return undefined;
  const place = `(pod: "${where}", container: ${container.name})`;
  const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  if (user !== undefined) return user === 0 ? `container's runAsUser breaks non-root policy ${place}` : undefined;
  if (image.uid === undefined && image.username !== '') {
    return `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${place}`;
  }
  return (image.uid ?? 0) === 0 ? `container has runAsNonRoot and image will run as root ${place}` : undefined;
}
