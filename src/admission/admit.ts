// pure
/**
 * May this pod run on this node now? The checks of kubelet v1.32 (lifecycle/predicate.go and the AppArmor handler, facts 12.1 and 12.2), in
 * its order and with its reasons: a pod's label and field of the operating system first and alone, then pods, CPU, memory, disk and huge
 * pages, then the place, then ports, then AppArmor. Resources that the node does not have at all, but huge pages, are nobody's business.
 * Taints are not checked: every pod here tolerates them. Sysctls are judged when the object is read.
 */
import type { DesiredPod } from '../api/desired.ts';
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import { effectiveRequests, podRequest } from '../api/resources.ts';
import type { PodStatus } from '../api/status.ts';
import type { Pod } from '../api/v1.ts';
import { claimText, type HostSocket, type PortHolder, type PortOwner, portConflicts } from './hostPorts.ts';
import { fitsPlace } from './place.ts';

export interface NodeFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `linux` */
  readonly os: string;
  readonly allocatable: {
    readonly cpuMilli: number;
    readonly memoryBytes: number;
    /** Absent: not known, not checked. */
    readonly ephemeralBytes?: number;
    readonly pods: number;
    /** Bytes by resource name (`hugepages-2Mi`); what is missing is none. */
    readonly hugepages?: Readonly<Record<string, number>>;
  };
  /** False: the kernel has no AppArmor, so a profile cannot hold. Absent: not known, not checked. */
  readonly appArmor?: boolean;
  /** What listens on the host, but our own pods' sockets. */
  readonly hostPortsInUse: readonly HostSocket[];
}

/** resources: too little is left. ports: somebody has them. place: not meant for this node. other: the node cannot do what it asks for. */
export type RefusalKind = 'resources' | 'ports' | 'place' | 'other';

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
 * any more: their requests do not count, as with the kubelet, and their ports do.
 */
export function admit(pod: DesiredPod, others: readonly DesiredPod[], node: NodeFacts, ending: readonly PortOwner[] = []): Verdict {
  const holders = [...others.map((o) => ({ pod: o, ending: false })), ...ending.map((o) => ({ pod: o, ending: true }))];
  const [first] = refusals(pod, others, holders, node);
  return first === undefined ? { admit: true } : { admit: false, ...first };
}

const rejected = 'Pod was rejected: ';

/** What a told status says of admission: the refusal, as it was given, or that the pod was let in. undefined: nothing was told. */
export function toldVerdict(status: Pick<PodStatus, 'phase' | 'reason' | 'message'> | undefined): 'admitted' | Refusal | undefined {
  if (status === undefined) return undefined;
  const { phase, reason = '', message = '' } = status;
  if (phase !== 'Failed' || !message.startsWith(rejected)) return 'admitted';
  const kind = reason.startsWith('OutOf') ? 'resources' : reason === 'NodePorts' ? 'ports' : placeReasons.has(reason) ? 'place' : 'other';
  return { reason, message: message.slice(rejected.length), kind };
}

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
  const system = systemRefusals(pod, node);
  if (system.length > 0) return system;
  return [
    ...resourceRefusals(
      pod,
      others.map((o) => o.pod),
      node.allocatable,
    ),
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

function resourceRefusals(pod: Pod, others: readonly Pod[], allocatable: NodeFacts['allocatable']): Refusal[] {
  const tooMuch = (name: string, requested: number, used: number, capacity: number): Refusal[] =>
    requested <= 0 || requested <= capacity - used
      ? []
      : [
          {
            reason: `OutOf${name}`,
            message: `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
            kind: 'resources',
          },
        ];
  const amount = (name: string, capacity: number | undefined): Refusal[] => {
    const requested = capacity === undefined ? 0 : request(pod, name);
    // what nobody asks for is not summed up
    if (capacity === undefined || requested === 0) return [];
    return tooMuch(
      name,
      requested,
      others.reduce((sum, other) => sum + request(other, name), 0),
      capacity,
    );
  };
  const hugePages = allocatable.hugepages ?? {};
  return [
    ...tooMuch('pods', 1, others.length, allocatable.pods),
    ...amount('cpu', allocatable.cpuMilli),
    ...amount('memory', allocatable.memoryBytes),
    ...amount('ephemeral-storage', allocatable.ephemeralBytes),
    ...hugePageNames(pod).flatMap((name) => amount(name, Object.hasOwn(hugePages, name) ? hugePages[name] : 0)),
  ];
}

/** Thousandths of a CPU, or bytes. */
const request = (pod: Pod, name: string): number =>
  podRequest(pod, name) + (name === 'cpu' ? quantityMilliValue : quantityValue)(pod.spec.overhead?.[name]);

const hugePageNames = ({ spec }: Pod): string[] => {
  const names = [...spec.containers, ...(spec.initContainers ?? [])].flatMap((c) => Object.keys(effectiveRequests(c)));
  return [...new Set(names.filter((name) => name.startsWith('hugepages-')))].sort();
};

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
  const conflicts = portConflicts(pod, holders, node.hostPortsInUse);
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
