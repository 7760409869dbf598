// pure
/**
 * May this pod run on this node now? The checks of kubelet v1.32 (facts 12.1 and 12.2), in its order and with its reasons: pressures of the
 * node, CPUs of the pod's own, a pod's label and field of the operating system (alone), pods, CPU, memory, disk, huge pages and devices, the
 * place, ports, AppArmor. Taints are not checked: every pod here tolerates them. Sysctls are judged when the object is read.
 */
import type { DesiredPod } from '../api/desired.ts';
import { cpuRefusal } from '../api/exclusiveCpus.ts';
import type { PodStatus } from '../api/status.ts';
import type { Pod } from '../api/v1.ts';
import { claimText, type HostSocket, type PortHolder, type PortOwner, portConflicts, type SocketHolder } from './hostPorts.ts';
import { fitsPlace } from './place.ts';
import { pressureRefusal } from './pressure.ts';
import { type ResourceFacts, shortages } from './shortages.ts';
import { isWaiting } from './waiting.ts';

export interface NodeFacts extends ResourceFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `linux` */
  readonly os: string;
  /** What the node is short of now, as its conditions name it. */
  readonly pressures?: readonly string[];
  /** False: the kernel has no AppArmor, so a profile cannot hold. Absent: not known, not checked. */
  readonly appArmor?: boolean;
  /** What listens on the host, but our own pods' sockets. */
  readonly hostPortsInUse: readonly HostSocket[];
  /** Absent: nobody knows whose they are. */
  readonly socketHolder?: SocketHolder;
}

/**
 * resources: too little is left. ports: somebody has them. place: not meant for this node. pressure: the node is short of something now.
 * other: the node cannot do what it asks for.
 */
export type RefusalKind = 'resources' | 'ports' | 'place' | 'pressure' | 'other';

export interface Refusal {
  readonly reason: string;
  /** As the event has it; the status says "Pod was rejected: " before it. */
  readonly message: string;
  readonly kind: RefusalKind;
  /** A process of the host is in the way: nobody tells when it is gone. */
  readonly byHost?: true;
}

export type Verdict = { readonly admit: true } | ({ readonly admit: false } & Refusal);

/**
 * `others`: pods that were let in and have not ended, this one and its predecessor not among them. `ending`: of these those that nobody wants
 * any more: their requests do not count, as with the kubelet, and their ports do. `awaited`: those for which room is kept.
 */
export function admit(
  pod: DesiredPod,
  others: readonly DesiredPod[],
  node: NodeFacts,
  ending: readonly PortOwner[] = [],
  awaited: readonly DesiredPod[] = [],
): Verdict {
  const holders = [...others.map((o) => ({ pod: o, ending: false })), ...ending.map((o) => ({ pod: o, ending: true }))];
  const [first] = refusals(pod, [...others, ...awaited], holders, node);
  return first === undefined ? { admit: true } : { admit: false, ...first };
}

const rejected = 'Pod was rejected: ';

/**
 * What a told status says of admission: the refusal, as it was given, or that the pod was let in. undefined: nothing was told, or that it waits
 * for room.
 */
export function toldVerdict(
  status: Pick<PodStatus, 'phase' | 'reason' | 'message' | 'conditions'> | undefined,
): 'admitted' | Refusal | undefined {
  if (status === undefined || isWaiting(status)) return undefined;
  const { phase, reason = '', message = '' } = status;
  if (phase !== 'Failed' || !message.startsWith(rejected)) return 'admitted';
  return { reason, message: message.slice(rejected.length), kind: kindOf(reason) };
}

function kindOf(reason: string): RefusalKind {
  if (reason.startsWith('OutOf') || reason === unexpected) return 'resources';
  if (reason === 'NodePorts') return 'ports';
  if (reason === 'Evicted') return 'pressure';
  return placeReasons.has(reason) ? 'place' : 'other';
}

const unexpected = 'UnexpectedAdmissionError';
const placeReasons: ReadonlySet<string> = new Set(['NodeAffinity', 'NodeName', 'PodOSSelectorNodeLabelDoesNotMatch', 'PodOSNotSupported']);

/**
 * All that speaks against it, the first of which is told. `others` use resources; `holders` have ports: also those that nobody wants any
 * more and that are still ending.
 */
export function refusals(
  { pod }: DesiredPod,
  others: readonly DesiredPod[],
  holders: readonly PortHolder[],
  node: NodeFacts,
): readonly Refusal[] {
  const rest = others.map((o) => o.pod);
  const before = [...pressureRefusals(pod, node), ...cpuRefusals(pod, rest, node)];
  const system = systemRefusals(pod, node);
  if (system.length > 0) return [...before, ...system];
  return [
    ...before,
    ...resourceRefusals(pod, rest, node),
    ...placeRefusals(pod, node),
    ...portRefusals(pod, holders, node),
    ...appArmorRefusals(pod, node),
  ];
}

/** Only what may make a pod be moved off this node. */
export const moves = (pod: Pod, node: NodeFacts): boolean => systemRefusals(pod, node).length + placeRefusals(pod, node).length > 0;

function systemRefusals({ metadata, spec }: Pod, node: NodeFacts): Refusal[] {
  const label = metadata.labels?.['kubernetes.io/os'];
  if (label !== undefined && label !== node.os) {
    const message = `the pod's label kubernetes.io/os is ${label}, and the node runs ${node.os}`;
    return [{ reason: 'PodOSSelectorNodeLabelDoesNotMatch', message, kind: 'place' }];
  }
  const field = spec.os?.name;
  if (field === undefined || field === node.os) return [];
  return [{ reason: 'PodOSNotSupported', message: `the pod is for ${field} (spec.os.name), and the node runs ${node.os}`, kind: 'place' }];
}

function pressureRefusals(pod: Pod, { pressures = [] }: NodeFacts): Refusal[] {
  const message = pressureRefusal(pod, pressures);
  return message === undefined ? [] : [{ reason: 'Evicted', message, kind: 'pressure' }];
}

function cpuRefusals(pod: Pod, others: readonly Pod[], node: NodeFacts): Refusal[] {
  const refusal = cpuRefusal(pod, others, node.exclusiveCpus);
  return refusal === undefined ? [] : [{ ...refusal, kind: 'resources' }];
}

const resourceRefusals = (pod: Pod, others: readonly Pod[], node: NodeFacts): Refusal[] =>
  shortages(pod, others, node).map(({ resource, requested, used, capacity }) => ({
    reason: `OutOf${resource}`,
    message: `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
    kind: 'resources',
  }));

function placeRefusals({ spec }: Pod, node: NodeFacts): Refusal[] {
  const predicate = (reason: string, why: string): Refusal => ({ reason, message: `Predicate ${reason} failed: ${why}`, kind: 'place' });
  return [
    ...(fitsPlace(spec, node) ? [] : [predicate('NodeAffinity', "node(s) didn't match Pod's node affinity/selector")]),
    ...(spec.nodeName === undefined || spec.nodeName === '' || spec.nodeName === node.name
      ? []
      : [predicate('NodeName', `the pod is for node ${spec.nodeName}, and this is ${node.name}`)]),
  ];
}

function portRefusals(pod: Pod, holders: readonly PortHolder[], node: NodeFacts): Refusal[] {
  const conflicts = portConflicts(pod, holders, node.hostPortsInUse, node.socketHolder);
  if (conflicts.length === 0) return [];
  const held = conflicts.map(({ claim, holder }) => `${claimText(claim)} is used by ${holder}`);
  return [
    {
      reason: 'NodePorts',
      message: `Predicate NodePorts failed: ${held.join('; ')}`,
      kind: 'ports',
      ...(conflicts.some((c) => c.byHost) && { byHost: true as const }),
    },
  ];
}

function appArmorRefusals({ spec }: Pod, node: NodeFacts): Refusal[] {
  if (node.appArmor !== false) return [];
  const contexts = [spec, ...spec.containers, ...(spec.initContainers ?? [])].map((o) => o.securityContext);
  const wanted = contexts.some((c) => c?.appArmorProfile !== undefined && c.appArmorProfile.type !== 'Unconfined');
  return wanted
    ? [{ reason: 'AppArmor', message: 'Cannot enforce AppArmor: the kernel of this node has it not enabled', kind: 'other' }]
    : [];
}
