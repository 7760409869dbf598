/** `get nodes` and `describe node`: the one node there is here, as the agent tells it. */
import type { NodeObject } from '../node/info.ts';
import { describeNode } from '../operations/describeNode.ts';
import { nodeRow } from '../operations/nodeRow.ts';
import { harmlessLines } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Found, GetOptions, Printer } from './get.ts';

/** `node`, `nodes` or `no`. */
export const isNodeKind = (word: string): boolean => ['node', 'nodes', 'no'].includes(word.toLowerCase());

/** An agent knows itself alone: another name is another machine's. */
async function ask(names: readonly string[], client: Pick<AgentClient, 'node'>): Promise<NodeObject> {
  const node = await client.node();
  const other = names.find((name) => name !== node.metadata.name);
  if (other === undefined) return node;
  throw otherNode(other, node.metadata.name);
}

export const otherNode = (asked: string, own: string): CommandError =>
  new CommandError(exitCodes.notFound, `node ${JSON.stringify(asked)} is not this one, which is ${own}`);

/** The rows of `get nodes`. */
export async function findNodes(
  names: readonly string[],
  { output, watch }: Pick<GetOptions, 'output' | 'watch'>,
  client: Pick<AgentClient, 'node'>,
): Promise<Found> {
  const node = await ask(names, client);
  const wide = output === 'wide';
  const r = nodeRow(node);
  return {
    head: [
      ...['NAME', 'STATUS', 'UPTIME', 'VERSION', 'PROBLEMS'],
      ...(wide ? ['INTERNAL-IP', 'OS-IMAGE', 'KERNEL-VERSION', 'CONTAINER-RUNTIME', 'MODEL', 'TEMPERATURE'] : []),
    ],
    items: [
      {
        name: `node/${r.name}`,
        object: watch ? resting(node) : node,
        row: [
          ...[r.name, r.status, r.uptime, r.version, r.problems],
          ...(wide ? [r.ip, r.osImage, r.kernel, r.runtime, r.model, r.temperature] : []),
        ],
      },
    ],
  };
}

/** Without what moves all the time: else every look would be a change. */
export function resting(node: NodeObject): NodeObject {
  const { metadata, status } = node;
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => !moving.has(name));
  return {
    ...node,
    metadata: { ...metadata, annotations: Object.fromEntries(annotations) },
    status: { ...status, conditions: status.conditions.map(({ lastHeartbeatTime: _, ...c }) => c) },
  };
}

const moving: ReadonlySet<string> = new Set(
  ['cpu-temperature', 'uptime-seconds', 'load', 'memory-available', 'swap', 'disk-available'].map((name) => `podsched.dev/${name}`),
);

/** Without a name it is this node. */
export async function showNode(
  name: string | undefined,
  client: Pick<AgentClient, 'node' | 'pods' | 'events' | 'describe'>,
  print: Printer,
): Promise<number> {
  if (client.describe !== undefined) {
    print.out(harmlessLines(await client.describe({ kind: 'Node', namespace: '', name: name ?? '' })));
    return exitCodes.done;
  }
  const node = await ask(name === undefined ? [] : [name], client);
  const [pods, events] = await Promise.all([client.pods(), client.events({ name: node.metadata.name })]);
  const ofNode = events.filter((e) => e.involvedObject.kind === 'Node');
  print.out(harmlessLines(describeNode({ node, pods, events: ofNode, nowMs: print.nowMs() })));
  return exitCodes.done;
}
