// pure
/**
 * The node as a `v1 Node`. Told in `info` without what moves all the time (images, times of heartbeats, usage), whole to whoever asks the
 * local API. What a v1 Node has no field for stands in annotations.
 */
import { type NodeCapacity, resourceList } from '../api/nodeResources.ts';
import { nodeLabels } from './labels.ts';

export interface TellableCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime?: string;
  readonly lastHeartbeatTime?: string;
}

/** As `v1 ContainerImage`. */
export interface NodeImage {
  readonly names: readonly string[];
  readonly sizeBytes: number;
}

/** How many devices of a resource there are, and how many of them may be given away. */
export interface DeviceCount {
  readonly capacity: number;
  readonly allocatable: number;
}

export interface NodeFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly machine: string;
  readonly bootId: string;
  readonly agentVersion: string;
  readonly architecture: string;
  /** Bytes of a memory page; absent: not known. */
  readonly pageBytes?: number;
  readonly kernelVersion: string;
  /** `containerd://1.6.20` */
  readonly runtimeVersion: string;
  readonly addresses: readonly string[];
  readonly conditions: readonly TellableCondition[];
  readonly systemUUID?: string;
  readonly osImage?: string;
  readonly resources?: {
    readonly capacity: NodeCapacity;
    readonly allocatable: NodeCapacity;
    /** By resource name: `devices.podsched.dev/gpio`. */
    readonly devices: Readonly<Record<string, DeviceCount>>;
  };
  /** Of our own, by name without the prefix. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly images?: readonly NodeImage[];
}

export interface NodeObject {
  readonly apiVersion: 'v1';
  readonly kind: 'Node';
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status: NodeObjectStatus;
}

export interface NodeObjectStatus {
  readonly capacity?: Readonly<Record<string, string>>;
  readonly allocatable?: Readonly<Record<string, string>>;
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  readonly conditions: readonly TellableCondition[];
  readonly nodeInfo: Readonly<Record<string, string>>;
  readonly images?: readonly NodeImage[];
}

/** Without boot and seq: whoever tells it adds them, and compares without them. */
export function nodeObject(f: NodeFacts): NodeObject {
  const { resources } = f;
  const devices = (of: keyof DeviceCount): Readonly<Record<string, number>> =>
    Object.fromEntries(Object.entries(resources?.devices ?? {}).map(([name, count]) => [name, count[of]]));
  const own = {
    // a v1 Node has no field for it, and an image may be built for one size only
    ...(f.pageBytes !== undefined && { 'page-size': String(f.pageBytes) }),
    ...f.annotations,
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: f.name,
      labels: nodeLabels({ name: f.name, os: 'linux', arch: f.architecture, configured: f.labels }),
      ...(Object.keys(own).length > 0 && {
        annotations: Object.fromEntries(Object.entries(own).map(([name, text]) => [`podsched.dev/${name}`, text])),
      }),
    },
    status: {
      ...(resources && {
        capacity: resourceList(resources.capacity, devices('capacity')),
        allocatable: resourceList(resources.allocatable, devices('allocatable')),
      }),
      addresses: [...f.addresses.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: f.name }],
      conditions: f.conditions,
      nodeInfo: {
        machineID: f.machine,
        ...(f.systemUUID !== undefined && f.systemUUID !== '' && { systemUUID: f.systemUUID }),
        bootID: f.bootId,
        kernelVersion: f.kernelVersion,
        ...(f.osImage !== undefined && f.osImage !== '' && { osImage: f.osImage }),
        containerRuntimeVersion: f.runtimeVersion,
        kubeletVersion: `podsched ${f.agentVersion}`,
        operatingSystem: 'linux',
        architecture: f.architecture,
      },
      ...(f.images && { images: f.images }),
    },
  };
}

const mostImages = 50;
const mostNames = 5;

/** The largest images, each by at most five names, digests first, as the kubelet tells them. */
export function nodeImages(
  images: readonly { readonly tags: readonly string[]; readonly digests: readonly string[]; readonly sizeBytes?: number }[],
): readonly NodeImage[] {
  return images
    .map(({ tags, digests, sizeBytes = 0 }) => ({ names: [...digests, ...tags].slice(0, mostNames), sizeBytes }))
    .sort((a, b) => b.sizeBytes - a.sizeBytes)
    .slice(0, mostImages);
}
