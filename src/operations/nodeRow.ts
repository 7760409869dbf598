// pure
/** This node in one row, as `kubectl get nodes` has it. Nobody registers a node here: in place of an age stands how long its kernel runs. */
import type { NodeObject } from '../node/info.ts';
import { spanText } from './age.ts';

export interface NodeRow {
  readonly name: string;
  /** `Ready`, `NotReady` or `Unknown`. */
  readonly status: string;
  readonly uptime: string;
  readonly version: string;
  /** Types of the conditions that are not as they should be. */
  readonly problems: string;
  readonly ip: string;
  readonly osImage: string;
  readonly kernel: string;
  readonly runtime: string;
  readonly model: string;
  readonly temperature: string;
}

const none = '<none>';
const shown = (text: string | undefined): string => (text === undefined || text === '' ? none : text);

/** Everything of a v1 Node but its readiness is a problem when it is True. */
export const problemsOf = ({ status }: NodeObject): readonly string[] =>
  status.conditions.filter((c) => c.type !== 'Ready' && c.status === 'True').map((c) => c.type);

export function nodeRow(node: NodeObject): NodeRow {
  const { metadata, status } = node;
  const own = (name: string): string | undefined => metadata.annotations?.[`podsched.dev/${name}`];
  const ready = status.conditions.find((c) => c.type === 'Ready')?.status;
  const seconds = Number(own('uptime-seconds') ?? Number.NaN);
  const degrees = own('cpu-temperature');
  return {
    name: metadata.name,
    status: ready === undefined || ready === 'Unknown' ? 'Unknown' : ready === 'True' ? 'Ready' : 'NotReady',
    uptime: Number.isNaN(seconds) ? '<unknown>' : spanText(seconds),
    version: shown(status.nodeInfo.kubeletVersion?.replace(/^podsched /, '')),
    problems: shown(problemsOf(node).join(',')),
    ip: shown(status.addresses.find((a) => a.type === 'InternalIP')?.address),
    osImage: shown(status.nodeInfo.osImage),
    kernel: shown(status.nodeInfo.kernelVersion),
    runtime: shown(status.nodeInfo.containerRuntimeVersion),
    model: shown(own('model')),
    temperature: degrees === undefined ? none : `${degrees} °C`,
  };
}
