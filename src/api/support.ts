// pure
/**
 * What this version does with each field: a table, so that a later version edits rows. A place is written as a path without indexes:
 * `spec.containers[].env[].value`, `metadata.annotations[podsched.dev/hold]`; a key that ends in `*` stands for all that begin so.
 *
 * Fields that would change what runs are refused by path until the part that carries them is here; what a single node has no use for is
 * ignored with a warning. A field nobody lists is refused: forgetting a row can never weaken a pod.
 */

/**
 * supported: taken, with everything under it. inside: look at what is under it, unlisted is refused.
 * ignored: told as a warning, without effect. refused: the object is not accepted.
 */
export type SupportLevel = 'supported' | 'inside' | 'ignored' | 'refused';

export interface SupportRow {
  readonly level: SupportLevel;
  /** Why, in words that stand after "absent:". */
  readonly reason?: string;
  /** The only values that are taken. */
  readonly only?: readonly (string | number | boolean)[];
  /** Values that say no more than absence does, and so are taken silently; '{}' stands for the empty mapping. */
  readonly harmless?: readonly (string | number | boolean)[];
}

export const notYet = 'not supported yet by this version';

const yes: SupportRow = { level: 'supported' };
const inside: SupportRow = { level: 'inside' };
const only = (...values: readonly string[]): SupportRow => ({ level: 'supported', only: values });
const later = (...harmless: readonly (string | number | boolean)[]): SupportRow => ({ level: 'refused', reason: notYet, harmless });
const refused = (reason: string): SupportRow => ({ level: 'refused', reason });
const ignored = (reason: string, ...harmless: readonly (string | number | boolean)[]): SupportRow => ({
  level: 'ignored',
  reason,
  harmless,
});

const scheduler = 'there is no scheduler on a single node';
const besideOthers = 'which pods may run beside which is a scheduler’s to say, and there is none on a single node';
const apiServer = 'kept by an API server, which there is none';

const metadataRows: Readonly<Record<string, SupportRow>> = {
  metadata: inside,
  'metadata.name': yes,
  'metadata.namespace': yes,
  'metadata.labels': yes,
  'metadata.annotations': yes,
  'metadata.generateName': ignored('the name is the one that is written'),
  'metadata.uid': ignored('each instance of a pod gets a UID of its own'),
  'metadata.selfLink': ignored(apiServer),
  'metadata.resourceVersion': ignored(apiServer),
  'metadata.generation': ignored(apiServer),
  'metadata.creationTimestamp': ignored(apiServer),
  'metadata.deletionTimestamp': ignored(apiServer),
  'metadata.deletionGracePeriodSeconds': ignored(apiServer),
  'metadata.ownerReferences': ignored(apiServer),
  'metadata.finalizers': ignored(apiServer),
  'metadata.managedFields': ignored(apiServer),
  'metadata.labels[podsched.dev/ha]': yes,
  'metadata.labels[podsched.dev/managed]': refused('the agent writes it itself'),
  'metadata.annotations[podsched.dev/crash-backoff]': yes,
  'metadata.annotations[podsched.dev/rollback]': yes,
  'metadata.annotations[podsched.dev/hold]': yes,
  'metadata.annotations[podsched.dev/restart-on-change]': only('true', 'false'),
  'metadata.annotations[podsched.dev/config-hash]': refused('the agent writes it itself'),
  'metadata.annotations[podsched.dev/wait-for]': yes,
  'metadata.annotations[podsched.dev/wait-timeout]': yes,
  'metadata.annotations[podsched.dev/memory-oom-group]': only('true', 'false'),
  'metadata.annotations[podsched.dev/state]': refused('it deletes what a topic says; a file is removed instead'),
  'metadata.annotations[podsched.dev/rollout]': yes,
  'metadata.annotations[podsched.dev/audience]': yes,
  'metadata.annotations[podsched.dev/generation]': yes,
  'metadata.annotations[podsched.dev/sealed]': only('x25519'),
  'metadata.annotations[podsched.dev/truncated]': refused('a pod as told is cut short and cannot be run from that'),
  'metadata.annotations[podsched.dev/source]': ignored('the agent writes it itself'),
  'metadata.annotations[podsched.dev/revision]': ignored('the agent writes it itself'),
  'metadata.annotations[podsched.dev/boot]': ignored('the agent writes it itself'),
  'metadata.annotations[podsched.dev/seq]': ignored('the agent writes it itself'),
  'metadata.annotations[podsched.dev/pod-hash]': refused('the agent writes it itself'),
  'metadata.annotations[podsched.dev/container-hash]': refused('the agent writes it itself'),
  'metadata.annotations[podsched.dev/started]': refused('the agent writes it itself'),
  'metadata.annotations[podsched.dev/devices]': refused('the agent writes it itself'),
  'metadata.annotations[kubernetes.io/config.*]': ignored('the agent writes it itself'),
  'metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]': yes,
  'metadata.annotations[seccomp.security.alpha.kubernetes.io/*]': ignored(
    'without effect since Kubernetes 1.27, see securityContext.seccompProfile',
  ),
  'metadata.annotations[container.seccomp.security.alpha.kubernetes.io/*]': ignored(
    'without effect since Kubernetes 1.27, see securityContext.seccompProfile',
  ),
};

const podRows: Readonly<Record<string, SupportRow>> = {
  spec: inside,
  'spec.containers': inside,
  'spec.initContainers': inside,
  'spec.restartPolicy': yes,
  'spec.terminationGracePeriodSeconds': yes,
  'spec.activeDeadlineSeconds': yes,
  'spec.dnsPolicy': yes,
  'spec.dnsConfig': yes,
  'spec.hostNetwork': yes,
  'spec.hostPID': yes,
  'spec.hostIPC': yes,
  'spec.shareProcessNamespace': yes,
  'spec.hostname': yes,
  'spec.subdomain': yes,
  'spec.setHostnameAsFQDN': yes,
  'spec.hostAliases': yes,
  'spec.volumes': inside,
  'spec.volumes[]': inside,
  'spec.volumes[].name': yes,
  'spec.volumes[].hostPath': yes,
  'spec.volumes[].image': yes,
  'spec.volumes[].configMap': yes,
  'spec.volumes[].secret': yes,
  'spec.volumes[].downwardAPI': yes,
  'spec.volumes[].projected': inside,
  'spec.volumes[].projected.defaultMode': yes,
  'spec.volumes[].projected.sources': inside,
  'spec.volumes[].projected.sources[]': inside,
  'spec.volumes[].projected.sources[].configMap': yes,
  'spec.volumes[].projected.sources[].secret': yes,
  'spec.volumes[].projected.sources[].downwardAPI': yes,
  'spec.volumes[].projected.sources[].serviceAccountToken': refused('tokens are given by an API server, which there is none'),
  'spec.volumes[].projected.sources[].clusterTrustBundle': refused('trust bundles are kept by an API server, which there is none'),
  'spec.volumes[].emptyDir': inside,
  'spec.volumes[].emptyDir.medium': yes,
  'spec.volumes[].emptyDir.sizeLimit': yes,
  'spec.imagePullSecrets': yes,
  'spec.runtimeClassName': yes,
  'spec.priority': yes,
  'spec.priorityClassName': yes,
  'spec.os': inside,
  'spec.os.name': only('linux'),
  'spec.securityContext': inside,
  ...Object.fromEntries(
    [
      'runAsUser',
      'runAsGroup',
      'runAsNonRoot',
      'supplementalGroups',
      'fsGroup',
      'sysctls',
      'seccompProfile',
      'appArmorProfile',
      'seLinuxOptions',
    ].map((field) => [`spec.securityContext.${field}`, yes] as const),
  ),
  'spec.securityContext.fsGroupChangePolicy': yes,
  'spec.securityContext.supplementalGroupsPolicy': later('Merge'),
  'spec.nodeSelector': yes,
  'spec.affinity': inside,
  'spec.affinity.nodeAffinity': inside,
  'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution': yes,
  'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchFields[].operator': only(
    'In',
    'NotIn',
  ),
  'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution': ignored(scheduler),
  'spec.affinity.podAffinity': inside,
  'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution': refused(besideOthers),
  'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution': ignored(scheduler),
  'spec.affinity.podAntiAffinity': inside,
  'spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution': refused(besideOthers),
  'spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution': ignored(scheduler),
  'spec.hostUsers': later(true),
  'spec.nodeName': ignored('the pod runs on the node that has its manifest'),
  'spec.schedulerName': ignored(scheduler, 'default-scheduler'),
  'spec.tolerations': ignored('a node has no taints here'),
  'spec.topologySpreadConstraints': ignored(scheduler),
  'spec.preemptionPolicy': ignored(scheduler, 'PreemptLowerPriority'),
  'spec.enableServiceLinks': ignored('there are no Services', true, false),
  'spec.serviceAccountName': ignored('there are no service accounts', 'default'),
  'spec.serviceAccount': ignored('there are no service accounts', 'default'),
  'spec.automountServiceAccountToken': ignored('there are no service accounts', false),
};

/** Of one container, app or init. */
const containerRows: Readonly<Record<string, SupportRow>> = {
  '': inside,
  '.name': yes,
  '.image': yes,
  '.command': yes,
  '.args': yes,
  '.workingDir': yes,
  '.ports': yes,
  '.env': inside,
  '.env[]': inside,
  '.env[].name': yes,
  '.env[].value': yes,
  '.env[].valueFrom': inside,
  '.env[].valueFrom.fieldRef': yes,
  '.env[].valueFrom.resourceFieldRef': yes,
  '.env[].valueFrom.configMapKeyRef': yes,
  '.env[].valueFrom.secretKeyRef': yes,
  '.envFrom': yes,
  '.resources': inside,
  '.resources.limits': inside,
  '.resources.limits[cpu]': yes,
  '.resources.limits[memory]': yes,
  '.resources.limits[hugepages-*]': yes,
  '.resources.limits[devices.podsched.dev/*]': yes,
  '.resources.limits[ephemeral-storage]': yes,
  '.resources.requests': inside,
  '.resources.requests[cpu]': yes,
  '.resources.requests[memory]': yes,
  '.resources.requests[hugepages-*]': yes,
  '.resources.requests[devices.podsched.dev/*]': yes,
  '.resources.requests[ephemeral-storage]': yes,
  '.resizePolicy': ignored('a change of resources restarts the container'),
  '.imagePullPolicy': yes,
  '.stdin': yes,
  '.stdinOnce': yes,
  '.tty': yes,
  '.volumeMounts': inside,
  '.volumeMounts[]': inside,
  '.volumeMounts[].name': yes,
  '.volumeMounts[].mountPath': yes,
  '.volumeMounts[].readOnly': yes,
  '.volumeMounts[].recursiveReadOnly': yes,
  '.volumeMounts[].subPath': yes,
  '.volumeMounts[].subPathExpr': yes,
  '.volumeMounts[].mountPropagation': yes,
  '.terminationMessagePath': yes,
  '.terminationMessagePolicy': yes,
  '.restartPolicy': yes,
  '.lifecycle': yes,
  '.livenessProbe': yes,
  '.readinessProbe': yes,
  '.startupProbe': yes,
  '.securityContext': inside,
  '.securityContext.privileged': yes,
  '.securityContext.runAsUser': yes,
  '.securityContext.runAsGroup': yes,
  '.securityContext.runAsNonRoot': yes,
  '.securityContext.capabilities': yes,
  '.securityContext.readOnlyRootFilesystem': yes,
  '.securityContext.allowPrivilegeEscalation': yes,
  '.securityContext.procMount': yes,
  '.securityContext.seccompProfile': yes,
  '.securityContext.appArmorProfile': yes,
  '.securityContext.seLinuxOptions': yes,
};

const dataRows: Readonly<Record<string, SupportRow>> = {
  apiVersion: yes,
  kind: yes,
  immutable: yes,
  data: yes,
  binaryData: yes,
  stringData: yes,
  type: yes,
};

const under = (place: string) => Object.entries(containerRows).map(([key, row]) => [`${place}${key}`, row] as const);

/** Every row, by place. */
export const supportTable: ReadonlyMap<string, SupportRow> = new Map([
  ...Object.entries(dataRows),
  ...Object.entries(metadataRows),
  ...Object.entries(podRows),
  ...under('spec.containers[]'),
  ...under('spec.initContainers[]'),
]);

const prefixes = [...supportTable].filter(([place]) => place.endsWith('*]')).map(([place, row]) => [place.slice(0, -2), row] as const);
const unlisted = later();

/** What holds at a place whose parent has the given level. */
export function supportOf(place: string, parent: SupportLevel): SupportRow {
  const row = supportTable.get(place);
  if (row !== undefined) return row;
  if (place.endsWith(']')) for (const [start, of] of prefixes) if (place.startsWith(start)) return of;
  return parent === 'inside' ? unlisted : yes;
}

/** podsched's own annotations and labels that may stand at a place, for "did you mean". */
export const ownKeys = (place: 'metadata.annotations' | 'metadata.labels'): string[] =>
  [...supportTable.keys()].filter((key) => key.startsWith(`${place}[podsched.dev/`)).map((key) => key.slice(place.length + 1, -1));
