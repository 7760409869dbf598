// pure
/**
 * Identity from content ("Identity, exactly", behaviour.md): revision, pod-hash, container-hash, work-hash. Input is the decoded object,
 * without defaults. Written on sandboxes and containers, these texts are a contract with every later release: scheme "1" stays as it is,
 * and test/api/hash.test.ts pins its results.
 */
import { createHash } from 'node:crypto';
import { type Canonical, type CanonicalObject, canonicalStruct, canonicalText, withoutOwnHostPorts } from './canonical.ts';
import type { ApiObject } from './objects.ts';
import { qosClass } from './resources.ts';
import type { Container, Pod } from './v1.ts';

/** The scheme of every hash made here, written before it: `1:…`. */
export const newestScheme = '1';

/** What an edit of a pod is judged by. */
export interface PodHashes {
  readonly revision: string;
  readonly podHash: string;
  readonly containerHashes: Readonly<Record<string, string>>;
  readonly workHash: string;
}

/** Fields of the spec that take effect without any restart (first row of "What an edit does"). */
const restless: ReadonlySet<string> = new Set([
  'terminationGracePeriodSeconds',
  'activeDeadlineSeconds',
  'tolerations',
  'imagePullSecrets',
  'priority',
  'nodeSelector',
  'affinity',
]);

/** Annotations that the runtime reads when it makes a sandbox or a container: changing one needs a new pod. */
const readAtCreation = [
  /^container\.apparmor\.security\.beta\.kubernetes\.io\//,
  /^kubernetes\.io\/(ingress|egress)-bandwidth$/,
  /^cdi\.k8s\.io\//,
  /^io\.kubernetes\.cri/,
];

const sha = (value: Canonical): string => createHash('sha256').update(canonicalText(value)).digest('hex').slice(0, 12);
const asObject = (value: Canonical | undefined): CanonicalObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as CanonicalObject) : {};
const asList = (value: Canonical | undefined): CanonicalObject[] => (Array.isArray(value) ? value.map(asObject) : []);
const pick = (o: CanonicalObject, wanted: (key: string) => boolean): CanonicalObject =>
  Object.fromEntries(Object.entries(o).filter(([key]) => wanted(key)));
const byName = (items: readonly CanonicalObject[]): CanonicalObject[] =>
  [...items].sort((a, b) => compare(String(a.name ?? ''), String(b.name ?? '')));
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The object in the one spelling that counts: typed, without defaults and without what an API server keeps. */
export const canonicalObject = (o: ApiObject): CanonicalObject =>
  canonicalStruct(o as unknown as Readonly<Record<string, unknown>>, o.kind);

/** First 12 hex digits of the canonical object's SHA-256. */
export const revision = (o: ApiObject): string => sha(canonicalObject(o));

/** The scheme a hash was written in; undefined for a text that is no hash. */
export const hashScheme = (text: string): string | undefined => /^([0-9a-z]+):[0-9a-f]+$/.exec(text)?.[1];

/**
 * What a desired pod hashes to in a scheme: the pod, or one of its containers. undefined: this release does not know the scheme. Older
 * schemes stay here when a newer one comes.
 */
export function hashIn(scheme: string, desired: PodHashes, container: string | undefined): string | undefined {
  if (scheme !== newestScheme) return undefined;
  return container === undefined ? desired.podHash : desired.containerHashes[container];
}

/** `1:…` over what needs a new pod when it changes. */
export const podHash = (pod: Pod): string => hashOfPod(canonicalObject(pod), pod);

/**
 * `1:…` over one container, as written or defaulted: what restarts that container when it changes. On the host's network a hostPort that
 * is the containerPort is a default.
 */
export function containerHash(container: Container, hostNetwork = false): string {
  const canonical = canonicalStruct(container as unknown as Readonly<Record<string, unknown>>, 'Container');
  return `${newestScheme}:${sha(hostNetwork ? withoutOwnHostPorts(canonical) : canonical)}`;
}

/** The hash of each container, app and init, by name. */
export const containerHashes = (pod: Pod): Readonly<Record<string, string>> => hashesOfContainers(canonicalObject(pod));

/** `1:…` over the work a pod does: a completed pod runs again only when it changes. */
export const workHash = (pod: Pod): string => hashOfWork(canonicalObject(pod));

/** All four, as a DesiredPod carries them. */
export function podHashes(pod: Pod): PodHashes {
  const o = canonicalObject(pod);
  return { revision: sha(o), podHash: hashOfPod(o, pod), containerHashes: hashesOfContainers(o), workHash: hashOfWork(o) };
}

const hashOfPod = (o: CanonicalObject, pod: Pod): string => `${newestScheme}:${sha(podProjection(o, pod))}`;

function hashesOfContainers(o: CanonicalObject): Readonly<Record<string, string>> {
  const spec = asObject(o.spec);
  return Object.fromEntries(
    [...asList(spec.initContainers), ...asList(spec.containers)].map((c) => [String(c.name ?? ''), `${newestScheme}:${sha(c)}`]),
  );
}

function hashOfWork(o: CanonicalObject): string {
  const metadata = asObject(o.metadata);
  const spec = asObject(o.spec);
  const annotations = creationAnnotations(metadata);
  const work = {
    ...o,
    metadata: {
      ...pick(metadata, (key) => key !== 'labels' && key !== 'annotations'),
      ...(annotations !== undefined && { annotations }),
    },
    spec: {
      ...pick(spec, (key) => !restless.has(key)),
      containers: byName(asList(spec.containers)),
      ...(spec.volumes !== undefined && { volumes: byName(asList(spec.volumes)) }),
    },
  };
  return `${newestScheme}:${sha(work)}`;
}

function creationAnnotations(metadata: CanonicalObject): CanonicalObject | undefined {
  const found = pick(asObject(metadata.annotations), (key) => readAtCreation.some((pattern) => pattern.test(key)));
  return Object.keys(found).length === 0 ? undefined : found;
}

/**
 * What makes a pod instance: container names as a set, init containers, volumes by name, the host's ports, whether a container is
 * privileged, the QoS class, and every other field of the spec that is not restless. Annotations read at creation belong to it where there
 * are any, so that a sandbox made under other ones is never taken for this pod.
 */
function podProjection(o: CanonicalObject, pod: Pod): CanonicalObject {
  const spec = asObject(o.spec);
  const containers = asList(spec.containers);
  const apart = new Set(['containers', 'initContainers', 'volumes']);
  const annotations = creationAnnotations(asObject(o.metadata));
  return {
    spec: pick(spec, (key) => !apart.has(key) && !restless.has(key)),
    containers: containers.map((c) => String(c.name ?? '')).sort(compare),
    initContainers: asList(spec.initContainers),
    volumes: byName(asList(spec.volumes)),
    hostPorts: hostPorts(containers),
    privileged: [...containers, ...asList(spec.initContainers)].some((c) => asObject(c.securityContext).privileged === true),
    qosClass: qosClass(pod),
    ...(annotations !== undefined && { annotations }),
  };
}

/**
 * The sandbox's port mappings. The port behind a hostPort is one of them: it is fixed when the sandbox is made, so a change needs a new one
 * or the host's port would lead nowhere.
 */
function hostPorts(containers: readonly CanonicalObject[]): readonly string[] {
  return containers
    .flatMap((c) => asList(c.ports))
    .filter((p) => p.hostPort !== undefined)
    .map((p) => `${p.protocol ?? 'TCP'} ${p.hostIP ?? ''}:${p.hostPort} ${p.containerPort}`)
    .sort(compare);
}
