// pure
/**
 * The pod as told: `v1 Pod` cut to what a reader of status needs. Never env, commands, volumes or last-applied-configuration; a payload that
 * would be too large loses its least telling parts first and says so.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { ContainerState, PodStatus, ToldPod, V1ContainerStatus } from '../api/status.ts';
import type { Container, EphemeralContainer, ObjectMeta, PodSpec } from '../api/v1.ts';
import { bytesOf, cutText, jsonBytes } from './cut.ts';
import { isTerminalPhase } from './phase.ts';

export interface Ending {
  /** RFC 3339: when the grace ends. */
  readonly deletionTimestamp: string;
  readonly graceSeconds: number;
}

const maxAnnotationBytes = 256;
const neverTold: ReadonlySet<string> = new Set(['kubectl.kubernetes.io/last-applied-configuration']);
const stampKeys: ReadonlySet<string> = new Set(['podsched.dev/boot', 'podsched.dev/seq']);
const truncatedKey = 'podsched.dev/truncated';

/** The told pod, without boot and seq, which are of the moment of telling. */
export function toldPod(desired: DesiredPod, status: PodStatus, ending: Ending | undefined): ToldPod {
  const { metadata, spec } = desired.pod;
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([k, v]) => !neverTold.has(k) && bytesOf(v) <= maxAnnotationBytes);
  const told: ObjectMeta = {
    name: desired.name,
    namespace: desired.namespace,
    uid: desired.uid,
    creationTimestamp: desired.firstSeen,
    ...(ending && { deletionTimestamp: ending.deletionTimestamp, deletionGracePeriodSeconds: ending.graceSeconds }),
    ...(metadata.labels && { labels: metadata.labels }),
    annotations: {
      ...Object.fromEntries(annotations),
      'podsched.dev/source': desired.source,
      'podsched.dev/revision': desired.revision,
    },
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata: told, spec: toldSpec(spec), status };
}

/**
 * The pod whole, for who asks on this machine (kubelet v1.32 GET /pods): metadata, spec after defaults, status. Boot and seq are those of
 * `told`, what was told last of it.
 */
export function wholePod(desired: DesiredPod, status: PodStatus, ending: Ending | undefined, told: ToldPod): ToldPod {
  // as the kubelet's, which knows a static pod's first moment as config.seen and startTime
  const { creationTimestamp: _, ...metadata } = toldPod(desired, status, ending).metadata;
  const stamp = Object.entries(told.metadata.annotations ?? {}).filter(([key]) => stampKeys.has(key));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, annotations: { ...desired.pod.metadata.annotations, ...metadata.annotations, ...Object.fromEntries(stamp) } },
    spec: desired.pod.spec,
    status,
  };
}

const toldContainer = <C extends Container | EphemeralContainer>(c: C) => ({
  name: c.name,
  image: c.image ?? '',
  ...(c.ports && { ports: c.ports }),
  ...(c.resources && { resources: c.resources }),
  // what tells a sidecar from an init container
  ...(c.restartPolicy && { restartPolicy: c.restartPolicy }),
});

/** What leaves the machine of a spec: never environment, commands or volumes. */
export const toldSpec = (spec: PodSpec): PodSpec => ({
  ...(spec.initContainers && { initContainers: spec.initContainers.map(toldContainer) }),
  containers: spec.containers.map(toldContainer),
  ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(toldContainer) }),
  ...(spec.restartPolicy && { restartPolicy: spec.restartPolicy }),
  ...(spec.nodeName !== undefined && { nodeName: spec.nodeName }),
  ...(spec.hostNetwork && { hostNetwork: true }),
});

const allStatuses = (s: PodStatus): V1ContainerStatus[] => [
  ...(s.initContainerStatuses ?? []),
  ...(s.containerStatuses ?? []),
  ...(s.ephemeralContainerStatuses ?? []),
];

export const runsContainers = (status: PodStatus): boolean => allStatuses(status).some((c) => c.state.running !== undefined);

/**
 * What may be told of a status now. A terminal phase is held back while a container still runs (facts 9.6): whoever reads Failed may rely on
 * nothing running. Ready is False all the same.
 */
export function tellableStatus(status: PodStatus, toldPhase: PodStatus['phase'] | undefined): PodStatus {
  if (!isTerminalPhase(status.phase) || isTerminalPhase(toldPhase) || !runsContainers(status)) return status;
  const { reason: _, message: __, ...rest } = status;
  return { ...rest, phase: toldPhase ?? 'Running' };
}

type Cut = readonly [name: string, cut: (pod: ToldPod) => ToldPod];

const cutState = (state: ContainerState, maxBytes: number): ContainerState => ({
  ...state,
  ...(state.waiting?.message !== undefined && { waiting: { ...state.waiting, message: cutText(state.waiting.message, maxBytes) } }),
  ...(state.terminated?.message !== undefined && {
    terminated: { ...state.terminated, message: cutText(state.terminated.message, maxBytes) },
  }),
});

const mapStatuses = (pod: ToldPod, f: (s: V1ContainerStatus) => V1ContainerStatus): ToldPod => ({
  ...pod,
  status: {
    ...pod.status,
    ...(pod.status.initContainerStatuses && { initContainerStatuses: pod.status.initContainerStatuses.map(f) }),
    ...(pod.status.containerStatuses && { containerStatuses: pod.status.containerStatuses.map(f) }),
    ...(pod.status.ephemeralContainerStatuses && { ephemeralContainerStatuses: pod.status.ephemeralContainerStatuses.map(f) }),
  },
});

const mapMetadata = (pod: ToldPod, f: (m: ObjectMeta) => ObjectMeta): ToldPod => ({ ...pod, metadata: f(pod.metadata) });
const mapSpec = (pod: ToldPod, f: (c: Container) => Container): ToldPod => ({
  ...pod,
  spec: {
    ...pod.spec,
    ...(pod.spec.initContainers && { initContainers: pod.spec.initContainers.map(f) }),
    containers: pod.spec.containers.map(f),
  },
});

const identity: ReadonlySet<string> = new Set(['podsched.dev/source', 'podsched.dev/revision']);

const cutMessages =
  (maxBytes: number) =>
  (pod: ToldPod): ToldPod =>
    mapStatuses(pod, (s) => ({ ...s, state: cutState(s.state, maxBytes), lastState: cutState(s.lastState, maxBytes / 2) }));

/** The first of the app containers; the conditions name the others that are not ready. */
const keepStatuses =
  (count: number) =>
  (pod: ToldPod): ToldPod => {
    const { initContainerStatuses: _, ephemeralContainerStatuses: __, containerStatuses, ...status } = pod.status;
    return { ...pod, status: { ...status, ...(containerStatuses && { containerStatuses: containerStatuses.slice(0, count) }) } };
  };

/** From the least telling part to the most; each is tried on top of those before it. */
const cuts: readonly Cut[] = [
  ['messages', cutMessages(512)],
  [
    'annotations',
    (pod) =>
      mapMetadata(pod, (m) => ({
        ...m,
        annotations: Object.fromEntries(Object.entries(m.annotations ?? {}).filter(([k]) => identity.has(k))),
      })),
  ],
  ['messages', cutMessages(64)],
  ['ports', (pod) => mapSpec(pod, ({ ports: _, ...c }) => c)],
  ['resources', (pod) => mapSpec(pod, ({ resources: _, ...c }) => c)],
  ['lastState', (pod) => mapStatuses(pod, (s) => ({ ...s, lastState: {} }))],
  ['labels', (pod) => mapMetadata(pod, ({ labels: _, ...m }) => m)],
  [
    'conditions',
    (pod) => ({
      ...pod,
      status: {
        ...pod.status,
        ...(pod.status.message !== undefined && { message: cutText(pod.status.message, 512) }),
        ...(pod.status.conditions && {
          conditions: pod.status.conditions.map((c) => (c.message === undefined ? c : { ...c, message: cutText(c.message, 128) })),
        }),
      },
    }),
  ],
  [
    'spec',
    (pod) => {
      const { initContainers: _, ephemeralContainers: __, ...spec } = pod.spec;
      return { ...pod, spec: { ...spec, containers: [] } };
    },
  ],
  ['containerStatuses', keepStatuses(50)],
  ['containerStatuses', keepStatuses(10)],
  ['containerStatuses', keepStatuses(0)],
];

/** The pod in at most `maxBytes` of JSON; what was cut stands in `podsched.dev/truncated`. */
export function capPod(pod: ToldPod, maxBytes: number): ToldPod {
  let cut = pod;
  const names: string[] = [];
  for (const [name, step] of cuts) {
    if (jsonBytes(cut) <= maxBytes) break;
    if (!names.includes(name)) names.push(name);
    cut = mapMetadata(step(cut), (m) => ({ ...m, annotations: { ...m.annotations, [truncatedKey]: names.join(',') } }));
  }
  return cut;
}
