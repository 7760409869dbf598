/** The wiring of the node's status on a real machine: from whom it hears what. Owns nothing; node/status.ts does. */
import { release } from 'node:os';
import type { AgentNode } from './agentNode.ts';
import type { NodeConfig } from './api/messages.ts';
import type { Readiness } from './node/conditions.ts';
import type { Identity } from './node/identity.ts';
import type { DeviceCount } from './node/info.ts';
import type { RuntimeState } from './node/runtimeState.ts';
import { NodeStatus, type NodeStatusDeps } from './node/status.ts';
import type { NodeCondition } from './operations/agentView.ts';

export interface AgentNodeStatusDeps
  extends Pick<NodeStatusDeps, 'clock' | 'log' | 'store' | 'labels' | 'images' | 'heartbeatMs' | 'event' | 'changed' | 'pressures'> {
  readonly node: AgentNode;
  readonly identity: Pick<Identity, 'nodeName' | 'machine' | 'bootId'>;
  readonly version: string;
  readonly stateDir: string;
  readonly podLogsDir: string;
  readonly hostIps: () => readonly string[];
  /** Made after this. */
  readonly runtimeState: () => RuntimeState;
  /** What other parts found to be wrong, as it stands under the node's conditions. */
  readonly others: () => readonly NodeCondition[];
  /** By resource name. Left out: there are none. */
  readonly devices?: () => Readonly<Record<string, DeviceCount>>;
  /** What the fleet has to know of this node. Left out: nothing. */
  readonly fleet?: () => FleetFacts;
}

export interface FleetFacts {
  /** Whose desired state it follows, in the order of precedence. */
  readonly groups: readonly string[];
  /** Secrets may be sealed to it: the public key in base64; undefined: there is none. */
  readonly sealingKey: string | undefined;
  /** What was set from afar, as it is in force; undefined: nothing was. */
  readonly config: NodeConfig | undefined;
}

export function buildNodeStatus(deps: AgentNodeStatusDeps): NodeStatus {
  const { node, identity, runtimeState } = deps;
  return new NodeStatus({
    ...deps,
    roots: { proc: '/proc', sys: '/sys', etc: '/etc', run: '/run' },
    bootId: identity.bootId,
    node: {
      name: identity.nodeName,
      machine: identity.machine,
      agentVersion: deps.version,
      architecture: node.architecture,
      kernelVersion: release(),
      ...(node.pageBytes !== undefined && { pageBytes: node.pageBytes }),
    },
    annotations: () => (deps.fleet === undefined ? {} : fleetAnnotations(deps.fleet())),
    addresses: deps.hostIps,
    runtimeVersion: () => versionText(runtimeState()),
    capacity: node.capacity,
    allocatable: node.allocatable,
    ready: () => readiness(runtimeState(), node.capacity().ephemeralBytes > 0),
    writable: ['/', deps.stateDir],
    disk: deps.podLogsDir,
  });
}

/** A v1 Node has no fields for them. */
export function fleetAnnotations({ groups, sealingKey, config }: FleetFacts): Readonly<Record<string, string>> {
  const { apiVersion: _, kind: __, ...set } = config ?? {};
  return {
    ...(groups.length > 0 && { groups: groups.join(',') }),
    ...(sealingKey !== undefined && { 'sealing-key': sealingKey }),
    ...(Object.keys(set).length > 0 && { config: JSON.stringify(set) }),
  };
}

const versionText = (state: RuntimeState): string =>
  state.runtimeVersion() === '' ? '' : `${state.runtimeName()}://${state.runtimeVersion()}`;

/** As the kubelet words what keeps it from being ready. */
function readiness(state: RuntimeState, hasDisk: boolean): Readiness {
  if (!state.asked) return { problems: undefined, network: undefined };
  const down = state.down();
  const network = down === undefined ? state.networkError() : undefined;
  return {
    problems: [
      ...(down === undefined ? [] : [`container runtime is down: ${down}`]),
      ...(network === undefined ? [] : [`container runtime network not ready: ${network}`]),
      ...(hasDisk ? [] : ['missing node capacity for resources: ephemeral-storage']),
    ],
    network: down !== undefined ? undefined : network === undefined ? 'ready' : { error: network },
  };
}
