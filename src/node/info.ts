// pure
/** The node as told in `info`: a `v1 Node` with what this version knows. Conditions are True when something is not as it should be. */
import { nodeLabels } from './labels.ts';

export interface TellableCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
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
}

export interface NodeObject {
  readonly apiVersion: 'v1';
  readonly kind: 'Node';
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status: object;
}

/** Without boot and seq: whoever tells it adds them, and compares without them. */
export function nodeObject(f: NodeFacts): NodeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: f.name,
      labels: nodeLabels({ name: f.name, os: 'linux', arch: f.architecture, configured: f.labels }),
      // a v1 Node has no field for it, and an image may be built for one size only
      ...(f.pageBytes !== undefined && { annotations: { 'podsched.dev/page-size': String(f.pageBytes) } }),
    },
    status: {
      addresses: [...f.addresses.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: f.name }],
      conditions: f.conditions,
      nodeInfo: {
        machineID: f.machine,
        bootID: f.bootId,
        kernelVersion: f.kernelVersion,
        containerRuntimeVersion: f.runtimeVersion,
        kubeletVersion: `podsched ${f.agentVersion}`,
        operatingSystem: 'linux',
        architecture: f.architecture,
      },
    },
  };
}
