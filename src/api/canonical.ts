// pure
/**
 * Scheme 1 of "Identity, exactly" (behaviour.md): the one spelling of a decoded object that hashes are made of. Hashes on running
 * sandboxes and containers cannot be changed, so nothing here may change what an old object comes to; a new rule is a new scheme.
 *
 * Left out: what the API server keeps, empty lists and maps, Go's zero of a plain field, and every field written with exactly its
 * default. So a field that gets a default in a later release changes no hash. Quantities are plain decimal numbers.
 */

import { defaultPullPolicy } from './defaults.ts';
import { fieldsOf, type Shape } from './fields.ts';
import { isPlain, type Plain } from './plain.ts';
import { compareQuantities, exactQuantity } from './quantity.ts';
import type { Quantity } from './v1.ts';

export type Canonical = string | number | boolean | null | readonly Canonical[] | CanonicalObject;
export interface CanonicalObject {
  readonly [key: string]: Canonical;
}

/** Never part of identity: what an API server keeps, and the UID a user writes. */
const left: ReadonlySet<string> = new Set([
  'ObjectMeta.uid',
  'ObjectMeta.creationTimestamp',
  'ObjectMeta.managedFields',
  'ObjectMeta.generation',
  'ObjectMeta.resourceVersion',
]);

const empty = '{}';
/** Defaults by type and field; `{}` is the empty mapping. Only what says exactly as much as absence does. */
const defaults: Readonly<Record<string, string | number | boolean>> = {
  'ObjectMeta.namespace': 'default',
  'ConfigMap.immutable': false,
  'Secret.immutable': false,
  'Secret.type': 'Opaque',
  'PodSpec.restartPolicy': 'Always',
  'PodSpec.terminationGracePeriodSeconds': 30,
  'PodSpec.dnsPolicy': 'ClusterFirst',
  'PodSpec.schedulerName': 'default-scheduler',
  'PodSpec.enableServiceLinks': true,
  'PodSpec.shareProcessNamespace': false,
  'PodSpec.setHostnameAsFQDN': false,
  'PodSpec.hostUsers': true,
  'PodSpec.preemptionPolicy': 'PreemptLowerPriority',
  'PodSpec.securityContext': empty,
  'PodSpec.affinity': empty,
  'PodSpec.dnsConfig': empty,
  'PodSecurityContext.runAsNonRoot': false,
  'PodSecurityContext.supplementalGroupsPolicy': 'Merge',
  'Container.terminationMessagePath': '/dev/termination-log',
  'Container.terminationMessagePolicy': 'File',
  'Container.resources': empty,
  'Container.securityContext': empty,
  'Container.lifecycle': empty,
  'ContainerPort.protocol': 'TCP',
  'SecurityContext.privileged': false,
  'SecurityContext.readOnlyRootFilesystem': false,
  'SecurityContext.allowPrivilegeEscalation': true,
  'SecurityContext.procMount': 'Default',
  'SecurityContext.capabilities': empty,
  'Probe.timeoutSeconds': 1,
  'Probe.periodSeconds': 10,
  'Probe.successThreshold': 1,
  'Probe.failureThreshold': 3,
  'HTTPGetAction.path': '/',
  'HTTPGetAction.scheme': 'HTTP',
  'GRPCAction.service': '',
  'Volume.emptyDir': empty,
  'HostPathVolumeSource.type': '',
  'SecretVolumeSource.defaultMode': 420,
  'SecretVolumeSource.optional': false,
  'ConfigMapVolumeSource.defaultMode': 420,
  'ConfigMapVolumeSource.optional': false,
  'ProjectedVolumeSource.defaultMode': 420,
  'DownwardAPIVolumeSource.defaultMode': 420,
  'SecretProjection.optional': false,
  'ConfigMapProjection.optional': false,
  'ServiceAccountTokenProjection.expirationSeconds': 3600,
  'ObjectFieldSelector.apiVersion': 'v1',
  'ConfigMapEnvSource.optional': false,
  'SecretEnvSource.optional': false,
  'ConfigMapKeySelector.optional': false,
  'SecretKeySelector.optional': false,
  'VolumeMount.mountPropagation': 'None',
  'VolumeMount.recursiveReadOnly': 'Disabled',
};

/** A struct of the field table in canonical form. */
export function canonicalStruct(value: Plain, type: string): CanonicalObject {
  const fields = fieldsOf(type);
  const entries: [string, Canonical][] = [];
  for (const [name, raw] of Object.entries(value)) {
    const field = fields.get(name);
    const key = `${type}.${name}`;
    if (field === undefined || raw === undefined || raw === null || left.has(key)) continue;
    const is = canonicalValue(raw, field.shape);
    const byDefault = Object.hasOwn(defaults, key) ? defaults[key] : undefined;
    if (is === byDefault || (byDefault === empty && isPlain(is) && Object.keys(is).length === 0)) continue;
    if (!field.pointer && (is === '' || is === false || is === 0) && field.shape.kind !== 'intOrString') continue;
    if ((field.shape.kind === 'list' || field.shape.kind === 'map') && Object.keys(Object(is)).length === 0) continue;
    entries.push([name, is]);
  }
  return computed(type, Object.fromEntries(entries));
}

function canonicalValue(value: unknown, shape: Shape): Canonical {
  if (shape.kind === 'struct' && isPlain(value)) return canonicalStruct(value, shape.type);
  if (shape.kind === 'list' && Array.isArray(value)) return value.map((item: unknown) => canonicalValue(item, shape.of));
  if (shape.kind === 'map' && isPlain(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, canonicalValue(inner, shape.of)]));
  }
  if (shape.kind === 'quantity') return exactQuantity(value as Quantity);
  return value as Canonical; // scalars, and what the table leaves open: plain JSON
}

/** Defaults that are worked out: hostPort on the host's network, the pull policy, requests that are the limits. */
function computed(type: string, o: CanonicalObject): CanonicalObject {
  if (type === 'PodSpec' && o.hostNetwork === true) {
    const own = (containers: Canonical | undefined): Canonical | undefined =>
      Array.isArray(containers) ? containers.map((c: CanonicalObject) => withoutOwnHostPorts(c)) : undefined;
    const containers = own(o.containers);
    const initContainers = own(o.initContainers);
    return { ...o, ...(containers !== undefined && { containers }), ...(initContainers !== undefined && { initContainers }) };
  }
  if (type === 'Container' && typeof o.image === 'string' && o.imagePullPolicy === defaultPullPolicy(o.image)) {
    return without(o, 'imagePullPolicy');
  }
  if (type === 'ResourceRequirements' && isPlain(o.requests) && isPlain(o.limits)) {
    const limits = o.limits;
    const requests = Object.entries(o.requests).filter(
      ([name, amount]) => !Object.hasOwn(limits, name) || compareQuantities(String(amount), String(limits[name])) !== 0,
    );
    return requests.length === 0 ? without(o, 'requests') : { ...o, requests: Object.fromEntries(requests) as CanonicalObject };
  }
  return o;
}

const without = (o: CanonicalObject, name: string): CanonicalObject =>
  Object.fromEntries(Object.entries(o).filter(([key]) => key !== name));

/** A container of a pod on the host's network: there a hostPort that is the containerPort is a default. */
export function withoutOwnHostPorts(container: CanonicalObject): CanonicalObject {
  const ports = container.ports;
  if (!Array.isArray(ports)) return container;
  const plain = ports.map((p: CanonicalObject) => (p.hostPort === p.containerPort ? without(p, 'hostPort') : p));
  return { ...container, ports: plain };
}

/** RFC 8785: keys by UTF-16 code units, no blanks, numbers and strings as ECMAScript writes them. */
export function canonicalText(value: Canonical): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (isPlain(value)) {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText((value as CanonicalObject)[key] ?? null)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}
