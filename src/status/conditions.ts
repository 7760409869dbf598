// pure
/**
 * The conditions of a pod in the kubelet's order. Mirrors kubelet v1.32 status/generate.go (facts 9.3, 5.2). A transition time moves only
 * with the status of its condition.
 */
import { isSidecar } from '../api/resources.ts';
import type { PodCondition, PodPhase, V1ContainerStatus } from '../api/status.ts';
import type { PodSpec } from '../api/v1.ts';
import type { GoneDevice } from '../container/devices.ts';
import type { StaleImage } from '../container/ensureResult.ts';
import type { RuntimePodStatus } from '../container/words.ts';

type Untimed = Omit<PodCondition, 'lastTransitionTime'>;

/** podsched's own: fields of the manifest have no effect here. */
const fieldsIgnored = 'podsched.dev/FieldsIgnored';
/** podsched's own: a container was started with the image that was here, since its registry gave no answer (behaviour 20). */
const imageStale = 'podsched.dev/ImageStale';
/** podsched's own: a device of a running container is not there any more (behaviour 25). */
const deviceGone = 'podsched.dev/DeviceGone';
/** podsched's own: what of the pod's limits the node cannot enforce (behaviour 5, 24). */
const limitsNotEnforced = 'podsched.dev/LimitsNotEnforced';

const ownTypes: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  fieldsIgnored,
  imageStale,
  deviceGone,
  limitsNotEnforced,
]);

/** More than these are counted only. */
const mostPaths = 20;

function ignoredCondition(paths: readonly string[]): Untimed[] {
  if (paths.length === 0) return [];
  const more = paths.length > mostPaths ? ` and ${paths.length - mostPaths} more` : '';
  const message = `without effect: ${paths.slice(0, mostPaths).join(', ')}${more}`;
  return [{ type: fieldsIgnored, status: 'True', reason: 'FieldsWithoutEffect', message }];
}

function staleCondition(images: readonly StaleImage[]): Untimed[] {
  if (images.length === 0) return [];
  const message = images
    .map(({ container, image, why }) => `container ${container}: image "${image}" could not be refreshed: ${why}`)
    .join('; ');
  return [{ type: imageStale, status: 'True', reason: 'ImageStale', message }];
}

function goneCondition(devices: readonly GoneDevice[]): Untimed[] {
  if (devices.length === 0) return [];
  const message = devices
    .map(({ container, deviceClass, paths }) => `container ${container}: ${paths.join(', ')} (class ${deviceClass})`)
    .join('; ');
  return [{ type: deviceGone, status: 'True', reason: 'DeviceGone', message: `gone: ${message}` }];
}

const unenforcedCondition = (what: string | undefined): Untimed[] =>
  what === undefined ? [] : [{ type: limitsNotEnforced, status: 'True', reason: 'LimitsNotEnforced', message: what }];

/** One ready sandbox, the newest, in the wanted network, with an address if it has a network of its own: no new one is needed. */
function hasUsableSandbox(spec: PodSpec, runtime: RuntimePodStatus): boolean {
  const [newest] = runtime.sandboxes;
  if (newest === undefined || newest.state !== 'ready') return false;
  if (runtime.sandboxes.filter((s) => s.state === 'ready').length > 1) return false;
  if (newest.networkMode !== (spec.hostNetwork === true ? 'NODE' : 'POD')) return false;
  return spec.hostNetwork === true || newest.network === undefined || newest.network.ip !== '';
}

const hasBegun = (s: V1ContainerStatus | undefined): boolean => s?.state.running !== undefined || s?.state.terminated !== undefined;

/** `containers with unknown status: [a b], containers with unready status: [c]`; empty when there is nothing to say. */
function nameThem(unknown: readonly string[], kind: string, others: readonly string[]): string {
  const parts: string[] = [];
  if (unknown.length > 0) parts.push(`containers with unknown status: [${unknown.join(' ')}]`);
  if (others.length > 0) parts.push(`containers with ${kind} status: [${others.join(' ')}]`);
  return parts.join(', ');
}

function initializedCondition(spec: PodSpec, statuses: readonly V1ContainerStatus[], phase: PodPhase): Untimed {
  const type = 'Initialized';
  const inits = spec.initContainers ?? [];
  if (statuses.length === 0 && inits.length > 0) return { type, status: 'False', reason: 'UnknownContainerStatuses' };
  const byName = new Map(statuses.map((s) => [s.name, s]));
  const unknown = inits.filter((c) => !byName.has(c.name)).map((c) => c.name);
  const incomplete = inits
    .filter((c) => {
      const s = byName.get(c.name);
      return s !== undefined && !(isSidecar(c) ? s.started === true : s.ready);
    })
    .map((c) => c.name);
  if (phase === 'Succeeded' && unknown.length === 0) return { type, status: 'True', reason: 'PodCompleted' };
  if (spec.containers.some((c) => hasBegun(byName.get(c.name)))) return { type, status: 'True' };
  const message = nameThem(unknown, 'incomplete', incomplete);
  return message === '' ? { type, status: 'True' } : { type, status: 'False', reason: 'ContainersNotInitialized', message };
}

function containersReadyCondition(spec: PodSpec, statuses: readonly V1ContainerStatus[], phase: PodPhase): Untimed {
  const type = 'ContainersReady';
  if (statuses.length === 0) return { type, status: 'False', reason: 'UnknownContainerStatuses' };
  const byName = new Map(statuses.map((s) => [s.name, s]));
  const counted = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers].map((c) => c.name);
  const unknown = counted.filter((name) => !byName.has(name));
  const unready = counted.filter((name) => byName.get(name)?.ready === false);
  if (phase === 'Succeeded' && unknown.length === 0) return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  const message = nameThem(unknown, 'unready', unready);
  return message === '' ? { type, status: 'True' } : { type, status: 'False', reason: 'ContainersNotReady', message };
}

export interface ConditionInputs {
  readonly spec: PodSpec;
  readonly runtime: RuntimePodStatus;
  /** Init and app containers. */
  readonly statuses: readonly V1ContainerStatus[];
  readonly phase: PodPhase;
  readonly old: readonly PodCondition[] | undefined;
  /** Paths of the manifest that have no effect; absent: not known now, and what was told stays. */
  readonly ignored?: readonly string[] | undefined;
  /** Absent: none. */
  readonly staleImages?: readonly StaleImage[] | undefined;
  /** Absent: none. */
  readonly goneDevices?: readonly GoneDevice[] | undefined;
  /** What of its limits is not enforced: `memory`, `pod level`; absent: nothing. */
  readonly unenforced?: string | undefined;
  /** RFC 3339. */
  readonly now: string;
}

/** All conditions, those of others (DisruptionTarget …) first and as they were. */
export function podConditions({
  spec,
  runtime,
  statuses,
  phase,
  old = [],
  ignored,
  staleImages = [],
  goneDevices = [],
  unenforced,
  now,
}: ConditionInputs): PodCondition[] {
  const containersReady = containersReadyCondition(spec, statuses, phase);
  const computed: Untimed[] = [
    { type: 'PodReadyToStartContainers', status: hasUsableSandbox(spec, runtime) ? 'True' : 'False' },
    initializedCondition(spec, statuses, phase),
    { ...containersReady, type: 'Ready' },
    containersReady,
    { type: 'PodScheduled', status: 'True' },
    ...(ignored === undefined ? old.filter((c) => c.type === fieldsIgnored) : ignoredCondition(ignored)),
    ...staleCondition(staleImages),
    ...goneCondition(goneDevices),
    ...unenforcedCondition(unenforced),
  ];
  const before = new Map(old.map((c) => [c.type, c]));
  return [
    ...old.filter((c) => !ownTypes.has(c.type)),
    ...computed.map(({ type, status, ...why }) => {
      const last = before.get(type);
      return { type, status, lastTransitionTime: last?.status === status ? last.lastTransitionTime : now, ...why };
    }),
  ];
}
