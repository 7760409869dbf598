// pure
/**
 * Every field of a Pod, and whether it can get more than a container needs to be one: a table by type and field, as Kubernetes names them.
 * `harmless` holds for everything under a field, `inside` looks at what is under it, a function judges the value, `denied` is for what no
 * key allows. A field that no row names is denied as well: a later version that learns a field cannot open a door by it.
 */
import { deviceResource } from '../api/deviceClasses.ts';
import { entryPath, fieldPath, itemPath } from '../api/fieldPath.ts';
import { fieldsOf, type Shape } from '../api/fields.ts';
import type { Problem } from '../api/objects.ts';
import { shown } from '../api/scalars.ts';
import { dottedSysctl, safeSysctls } from '../api/sysctls.ts';
import type { Pod } from '../api/v1.ts';
import { judgeAnnotations } from './annotations.ts';
import { absent, beyond, lacks, type Switch } from './denials.ts';
import { isBelow } from './hostPaths.ts';
import type { Policy } from './policy.ts';
import { isFrom, namesDigest } from './registries.ts';

/** What surrounds a field. */
export interface Around {
  readonly policy: Policy;
  readonly pod: Pod;
  /** Inside a container that is privileged and may be: what it has by that is not asked for again. */
  readonly privileged: boolean;
}

type Judge = (value: unknown, path: string, around: Around) => readonly Problem[];
export type Row = 'harmless' | 'inside' | 'denied' | Judge;

const none: readonly Problem[] = [];

/** A value that needs a key when `asks` says so. */
const needs =
  (key: Switch, asks: (value: unknown) => boolean): Judge =>
  (value, path, { policy }) =>
    asks(value) && !policy[key] ? lacks(path, policy, key) : none;

const isTrue = (value: unknown): boolean => value === true;
const isSome = (value: unknown): boolean => value !== undefined && value !== '';
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const image: Judge = (value, path, { policy: { source, registries, digestOnly } }) => {
  const name = textOf(value);
  if (name === '') return none;
  const problems: Problem[] = [];
  if (registries !== undefined && !isFrom(name, registries)) {
    const from = registries.length === 0 ? ', which is empty' : `: ${registries.slice(0, 20).join(', ')}`;
    problems.push({ path, expected: `an image of policy.${source}.registries${from}`, got: shown(name) });
  }
  if (digestOnly && !namesDigest(name))
    problems.push({ path, expected: `an image with its digest (policy.${source}.digestOnly)`, got: shown(name) });
  return problems;
};

const hostPath: Judge = (value, path, { policy: { source, hostPath: allowed } }) => {
  const asked = textOf(value);
  if (isBelow(asked, allowed)) return none;
  if (allowed.length === 0) return absent(path, `policy.${source} does not allow it (hostPath)`);
  return [{ path, expected: `one of policy.${source}.hostPath or a path below: ${allowed.slice(0, 20).join(', ')}`, got: shown(asked) }];
};

const hostPort: Judge = (value, path, { policy, pod }) => {
  // on the host's network the port of the container is that of the host
  if (value === 0 || policy.hostPorts || (policy.hostNetwork && pod.spec.hostNetwork === true)) return none;
  return lacks(path, policy, 'hostPorts');
};

/** What the runtime gives to every container: asking for it again after `drop: [ALL]` is asking for less. */
const defaultCapabilities: ReadonlySet<string> = new Set(
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP SETGID SETPCAP SETUID SYS_CHROOT'.split(' '),
);

const capabilities: Judge = (value, path, { policy: { source, capabilities: allowed }, privileged }) => {
  if (privileged || allowed.includes('ALL') || !Array.isArray(value)) return none;
  return value.flatMap((item: unknown, i) => {
    const name = textOf(item).toUpperCase().replace(/^CAP_/, '');
    if (defaultCapabilities.has(name) || allowed.includes(name)) return [];
    const expected = `a capability of policy.${source}.capabilities${allowed.length === 0 ? '' : `: ${allowed.slice(0, 20).join(', ')}`}`;
    return [{ path: itemPath(path, i), expected, got: shown(item) }];
  });
};

const sysctls: Judge = (value, path, { policy: { source, sysctls: allowed } }) => {
  if (!Array.isArray(value)) return none;
  return value.flatMap((item: unknown, i) => {
    const written = typeof item === 'object' && item !== null && 'name' in item ? textOf(item.name) : '';
    const name = dottedSysctl(written);
    const taken = (pattern: string): boolean => {
      const text = dottedSysctl(pattern);
      return text.endsWith('*') ? name.startsWith(text.slice(0, -1)) : name === text;
    };
    if (safeSysctls.includes(name) || allowed.some(taken)) return [];
    const expected = `a safe sysctl, or one of policy.${source}.sysctls${allowed.length === 0 ? '' : `: ${allowed.slice(0, 20).join(', ')}`}`;
    return [{ path: `${itemPath(path, i)}.name`, expected, got: shown(written) }];
  });
};

const typeOf = (value: unknown): string => (typeof value === 'object' && value !== null && 'type' in value ? textOf(value.type) : '');

const seccomp: Judge = (value, path, { policy, privileged }) =>
  typeOf(value) !== 'Unconfined' || policy.unconfined || privileged ? none : lacks(`${path}.type`, policy, 'unconfined');

/** A profile of the node's own may be for anything, also for nothing at all (`flags=(unconfined)`): it is no profile for containers. */
const appArmor: Judge = (value, path, { policy, privileged }) =>
  ['RuntimeDefault', ''].includes(typeOf(value)) || policy.unconfined || privileged ? none : lacks(`${path}.type`, policy, 'unconfined');

/** A label of one's choice is that of another container, or of the host. */
const seLinux: Judge = (value, path, { policy, privileged }) => {
  const some = typeof value === 'object' && value !== null && Object.values(value).some(isSome);
  return !some || policy.unconfined || privileged ? none : lacks(path, policy, 'unconfined');
};

const plainResources: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage']);
const devicePrefix = deviceResource('');

const resources: Judge = (value, path, { policy }) => {
  if (typeof value !== 'object' || value === null) return none;
  return Object.keys(value).flatMap((name) => {
    if (plainResources.has(name) || name.startsWith('hugepages-')) return [];
    const at = entryPath(path, name);
    if (!name.startsWith(devicePrefix)) return beyond(at, policy);
    const { source, devices } = policy;
    if (devices.includes('*') || devices.includes(name.slice(devicePrefix.length))) return [];
    return absent(at, `policy.${source} does not allow it (devices${devices.length === 0 ? '' : `: ${devices.slice(0, 20).join(', ')}`})`);
  });
};

/** Probes and hooks are carried out by the agent, from the host's network: a host of one's choice reaches what only the host may. */
const otherHost: Judge = (value, path, { policy }) => (isSome(value) && !policy.hostNetwork ? lacks(path, policy, 'hostNetwork') : none);

/** Critical pods preempt those of other sources. */
const criticalFrom = 2_000_000_000;
const priority: Judge = (value, path, { policy }) => (typeof value === 'number' && value >= criticalFrom ? beyond(path, policy) : none);
const priorityClass: Judge = (value, path, { policy }) => (isSome(value) ? beyond(path, policy) : none);

const annotations: Judge = (value, path, around) => judgeAnnotations(value, path, around);

const rowsOf = (type: string, of: Readonly<Record<string, Row>>, harmless = ''): [string, Row][] => [
  ...Object.entries(of).map(([field, row]): [string, Row] => [`${type}.${field}`, row]),
  ...harmless.split(' ').flatMap((field): [string, Row][] => (field === '' ? [] : [[`${type}.${field}`, 'harmless']])),
];

const container: Readonly<Record<string, Row>> = {
  image,
  ports: 'inside',
  resources: 'inside',
  volumeMounts: 'inside',
  volumeDevices: 'denied',
  livenessProbe: 'inside',
  readinessProbe: 'inside',
  startupProbe: 'inside',
  lifecycle: 'inside',
  securityContext: 'inside',
};
/** What objects are read by env is for `mayRead` to say. */
const containerHarmless =
  'name command args workingDir envFrom env resizePolicy restartPolicy terminationMessagePath terminationMessagePolicy imagePullPolicy ' +
  'stdin stdinOnce tty';

/** Volumes that attach what lies elsewhere, by drivers of the host; no key allows them. */
const foreignVolumes =
  'gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs persistentVolumeClaim rbd flexVolume cinder cephfs flocker fc ' +
  'azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi ephemeral';

/** By `Type.field`. */
export const privilegeTable: ReadonlyMap<string, Row> = new Map<string, Row>([
  ...rowsOf('Pod', { metadata: 'inside', spec: 'inside' }, 'kind apiVersion'),
  ...rowsOf(
    'ObjectMeta',
    { annotations },
    'name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds ' +
      'labels ownerReferences finalizers managedFields',
  ),
  ...rowsOf(
    'PodSpec',
    {
      volumes: 'inside',
      initContainers: 'inside',
      containers: 'inside',
      ephemeralContainers: 'inside',
      hostNetwork: needs('hostNetwork', isTrue),
      hostPID: needs('hostPID', isTrue),
      hostIPC: needs('hostIPC', isTrue),
      securityContext: 'inside',
      resources: 'inside',
      priority,
      priorityClassName: priorityClass,
      resourceClaims: 'denied',
    },
    'restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount ' +
      'automountServiceAccountToken nodeName shareProcessNamespace imagePullSecrets hostname subdomain affinity schedulerName tolerations ' +
      'hostAliases dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead topologySpreadConstraints ' +
      'setHostnameAsFQDN os hostUsers schedulingGates',
  ),
  ...rowsOf(
    'Volume',
    {
      hostPath: 'inside',
      image: 'inside',
      projected: 'inside',
      ...Object.fromEntries(foreignVolumes.split(' ').map((kind) => [kind, 'denied'] as const)),
    },
    'name emptyDir secret configMap downwardAPI',
  ),
  ...rowsOf('HostPathVolumeSource', { path: hostPath }, 'type'),
  ...rowsOf('ImageVolumeSource', { reference: image }, 'pullPolicy'),
  ...rowsOf('ProjectedVolumeSource', { sources: 'inside' }, 'defaultMode'),
  ...rowsOf('VolumeProjection', { serviceAccountToken: 'denied', clusterTrustBundle: 'denied' }, 'secret downwardAPI configMap'),
  ...rowsOf('Container', container, containerHarmless),
  ...rowsOf('EphemeralContainer', container, `${containerHarmless} targetContainerName`),
  ...rowsOf('ContainerPort', { hostPort }, 'name containerPort protocol hostIP'),
  ...rowsOf('ResourceRequirements', { limits: resources, requests: resources, claims: 'denied' }),
  ...rowsOf(
    'VolumeMount',
    // what is mounted in the container comes to be mounted on the host
    { mountPropagation: needs('privileged', (value) => value === 'Bidirectional') },
    'name readOnly recursiveReadOnly mountPath subPath subPathExpr',
  ),
  ...rowsOf(
    'Probe',
    { httpGet: 'inside', tcpSocket: 'inside' },
    'exec grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold terminationGracePeriodSeconds',
  ),
  ...rowsOf('Lifecycle', { postStart: 'inside', preStop: 'inside' }),
  ...rowsOf('LifecycleHandler', { httpGet: 'inside', tcpSocket: 'inside' }, 'exec sleep'),
  ...rowsOf('HTTPGetAction', { host: otherHost }, 'path port scheme httpHeaders'),
  ...rowsOf('TCPSocketAction', { host: otherHost }, 'port'),
  ...rowsOf(
    'SecurityContext',
    {
      privileged: needs('privileged', isTrue),
      capabilities: 'inside',
      procMount: needs('privileged', (value) => value === 'Unmasked'),
      seccompProfile: seccomp,
      appArmorProfile: appArmor,
      seLinuxOptions: seLinux,
      windowsOptions: 'denied',
    },
    'runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation',
  ),
  ...rowsOf('Capabilities', { add: capabilities }, 'drop'),
  ...rowsOf(
    'PodSecurityContext',
    { sysctls, seccompProfile: seccomp, appArmorProfile: appArmor, seLinuxOptions: seLinux, windowsOptions: 'denied' },
    'runAsUser runAsGroup runAsNonRoot supplementalGroups supplementalGroupsPolicy fsGroup fsGroupChangePolicy seLinuxChangePolicy',
  ),
]);

/** Everything of a Pod that a policy does not allow, in the order of its fields. */
export const judgePod = (pod: Pod, policy: Policy): readonly Problem[] => judgeStruct('Pod', pod, '', { policy, pod, privileged: false });

function judgeStruct(type: string, value: object, path: string, around: Around): Problem[] {
  const fields = fieldsOf(type);
  return Object.entries(value).flatMap(([name, of]: [string, unknown]): readonly Problem[] => {
    if (of === undefined || of === null) return none;
    const at = fieldPath(path, name);
    const row = privilegeTable.get(`${type}.${name}`) ?? 'denied';
    if (row === 'harmless') return none;
    if (row === 'denied') return beyond(at, around.policy);
    return row === 'inside' ? judgeInside(fields.get(name)?.shape, of, at, around) : row(of, at, around);
  });
}

function judgeInside(shape: Shape | undefined, value: unknown, path: string, around: Around): readonly Problem[] {
  if (shape?.kind === 'list') {
    if (!Array.isArray(value)) return beyond(path, around.policy);
    return value.flatMap((item: unknown, i) => judgeInside(shape.of, item, itemPath(path, i), around));
  }
  if (shape?.kind !== 'struct' || typeof value !== 'object' || value === null) return beyond(path, around.policy);
  const within = shape.type === 'Container' || shape.type === 'EphemeralContainer' ? ofContainer(value, around) : around;
  return judgeStruct(shape.type, value, path, within);
}

const ofContainer = (value: object, around: Around): Around => ({
  ...around,
  privileged:
    around.policy.privileged &&
    (value as { readonly securityContext?: { readonly privileged?: unknown } }).securityContext?.privileged === true,
});
