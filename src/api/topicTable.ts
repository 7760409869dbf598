// pure
/**
 * Every topic of the contract once, as data: who publishes it, what stands in it, how it is sent. The table in docs/mqtt.md and docs/asyncapi.yaml
 * are written from it; addresses come from topics.ts, so that they cannot be others than those in use.
 */
import {
  commandTopic,
  defaultPrefix,
  desiredMarkerTopic,
  desiredTopic,
  expirySeconds,
  homeAssistantTopic,
  indexTopic,
  nodeTopics,
  rolloutTopic,
} from './topics.ts';

/** Names of schemas. */
export type PayloadName =
  | 'NodeOnline'
  | 'Marker'
  | 'Node'
  | 'NodeSummary'
  | 'Pod'
  | 'SyncStatus'
  | 'FileStatus'
  | 'Event'
  | 'NodeMetrics'
  | 'LogLines'
  | 'Manifest'
  | 'Envelope'
  | 'DesiredIndex'
  | 'NodeConfig'
  | 'Rollout'
  | 'Command'
  | 'Reply'
  | 'HomeAssistantDevice';

export interface TopicRow {
  /** CamelCase, and no two have the same. */
  readonly id: string;
  /** With `{…}` for what varies. */
  readonly address: string;
  readonly by: 'node' | 'node, will' | 'operator';
  /** The first is what stands there mostly. */
  readonly payloads: readonly [PayloadName, ...PayloadName[]];
  /** For people. */
  readonly what: string;
  readonly qos: 0 | 1;
  readonly retained: boolean;
  /** What an empty retained payload means; absent: it does not come. */
  readonly empty?: string;
  /** For people. */
  readonly expiry: string;
  /** Seconds; absent: none, or it depends on the heartbeat. */
  readonly expirySeconds?: number;
}

/** What the parameters of addresses are. */
export const topicParameters: Readonly<Record<string, string>> = {
  node: 'name of the node, without dots',
  machine: 'hash of a board, 12 hex digits',
  namespace: 'namespace of the object',
  pod: 'name of the pod; a dot is written ~',
  name: 'a Pod is its name, other kinds are configmap:<name> and secret:<name>; a dot is written ~',
  file: 'name of the file; each byte outside [a-z0-9-] is ~hh',
  group: 'name of a group of nodes',
  part: 'part of the index, counted from 1',
  rollout: 'id of the rollout',
  verb: 'what is asked',
  requester: 'who asks: one level of its own',
};

const own = nodeTopics(defaultPrefix, '{node}');
const pod = { kind: 'Pod', namespace: '{namespace}', name: '{name}' } as const;
const group = { group: '{group}' };
const node = { node: '{node}' };
const days = (n: number): string => `${n / 86_400} d`;
const retained = { qos: 1, retained: true } as const;
const noExpiry = { expiry: 'none' } as const;

const desired = (id: string, scope: Parameters<typeof desiredTopic>[1], whose: string): TopicRow => ({
  id,
  address: desiredTopic(defaultPrefix, scope, pod),
  by: 'operator',
  payloads: ['Manifest', 'Envelope'],
  what: `an object ${whose} is to have: a manifest (YAML or JSON) or a signed envelope of one`,
  ...retained,
  empty: 'received: the object is to go',
  ...noExpiry,
});
const desiredMarker = (id: string, scope: Parameters<typeof indexTopic>[1]): TopicRow => ({
  id,
  address: desiredMarkerTopic(defaultPrefix, scope),
  by: 'operator',
  payloads: ['Marker'],
  what: 'nothing for nodes: by its return who publishes knows that all that is retained there has been read',
  qos: 1,
  retained: false,
  expiry: `${expirySeconds.marker} s`,
  expirySeconds: expirySeconds.marker,
});

const index = (id: string, scope: Parameters<typeof indexTopic>[1], whose: string, part: 0 | 1): TopicRow => ({
  id,
  address: part === 0 ? indexTopic(defaultPrefix, scope) : indexTopic(defaultPrefix, scope, 1).replace(/1$/, '{part}'),
  by: 'operator',
  payloads: ['DesiredIndex', 'Envelope'],
  what: part === 0 ? `what ${whose} is to have, all of it: what a newer one leaves out goes` : `further parts of the index of ${whose}`,
  ...retained,
  empty: 'there is no index',
  ...noExpiry,
});

export const topicTable: readonly TopicRow[] = [
  {
    id: 'online',
    address: own.online,
    by: 'node, will',
    payloads: ['NodeOnline'],
    what: 'that the node is there: `online` at each heartbeat, `offline` at a clean stop, `lost` said by the broker (the will)',
    ...retained,
    expiry: `3 heartbeats; the will ${days(expirySeconds.will)}`,
  },
  {
    id: 'duplicate',
    address: own.duplicate('{machine}'),
    by: 'node, will',
    payloads: ['NodeOnline'],
    what: 'a board that found its name taken by another says so, and nothing else',
    ...retained,
    empty: 'it has taken the name, or is gone',
    expiry: days(expirySeconds.duplicate),
    expirySeconds: expirySeconds.duplicate,
  },
  {
    id: 'marker',
    address: own.marker,
    by: 'node',
    payloads: ['Marker'],
    what: 'nothing for readers: by its return the node knows that a snapshot has ended',
    qos: 1,
    retained: false,
    expiry: `${expirySeconds.marker} s`,
    expirySeconds: expirySeconds.marker,
  },
  {
    id: 'info',
    address: own.info,
    by: 'node',
    payloads: ['Node'],
    what: '`v1 Node`: labels, versions, capacity, allocatable, addresses, conditions; groups, sealing key and what `_config` set as annotations',
    ...retained,
    expiry: days(expirySeconds.info),
    expirySeconds: expirySeconds.info,
  },
  {
    id: 'summary',
    address: own.summary,
    by: 'node',
    payloads: ['NodeSummary'],
    what: 'the node in 2 KiB: pods desired, running and ready, restarts, alerts, use; at each heartbeat and when counts or alerts change',
    qos: 0,
    retained: true,
    expiry: `3 heartbeats; quiet: ${days(expirySeconds.info)}`,
  },
  {
    id: 'pod',
    address: own.pod('{namespace}', '{pod}'),
    by: 'node',
    payloads: ['Pod'],
    what: '`v1 Pod` with its whole status; of its spec names, images, ports and resources',
    ...retained,
    empty: 'the pod is gone',
    expiry: days(expirySeconds.pod),
    expirySeconds: expirySeconds.pod,
  },
  {
    id: 'sync',
    address: own.sync(pod),
    by: 'node',
    payloads: ['SyncStatus'],
    what: 'why an object does or does not run, with the word of each source',
    ...retained,
    empty: 'the object is gone',
    expiry: days(expirySeconds.sync),
    expirySeconds: expirySeconds.sync,
  },
  {
    id: 'file',
    address: own.file('x').replace(/x$/, '{file}'),
    by: 'node',
    payloads: ['FileStatus'],
    what: 'what is wrong in a file, with line and column; only while something is',
    ...retained,
    empty: 'the file is in order, or gone',
    expiry: days(expirySeconds.file),
    expirySeconds: expirySeconds.file,
  },
  {
    id: 'events',
    address: own.events('{namespace}'),
    by: 'node',
    payloads: ['Event'],
    what: '`v1 Event`; repeats within 10 minutes are one event that counts, at most 5 a second are told',
    qos: 1,
    retained: false,
    expiry: '1 h',
    expirySeconds: expirySeconds.event,
  },
  {
    id: 'metrics',
    address: own.metrics,
    by: 'node',
    payloads: ['NodeMetrics'],
    what: 'use of node and pods in the shape of stats/summary, at each heartbeat; not in the quiet profile',
    qos: 0,
    retained: false,
    expiry: '2 heartbeats',
  },
  {
    id: 'logs',
    address: own.logs('{namespace}', '{pod}'),
    by: 'node',
    payloads: ['LogLines'],
    what: 'lines of logs, while a lease from a `logs` command runs',
    qos: 0,
    retained: false,
    expiry: `${expirySeconds.logs} s`,
    expirySeconds: expirySeconds.logs,
  },
  desired('desiredNode', node, 'this node'),
  desired('desiredGroup', group, 'each node of the group'),
  desired('desiredAll', 'all', 'each node'),
  index('indexNode', node, 'this node', 0),
  index('indexNodePart', node, 'this node', 1),
  index('indexGroup', group, 'each node of the group', 0),
  index('indexGroupPart', group, 'each node of the group', 1),
  index('indexAll', 'all', 'each node', 0),
  index('indexAllPart', 'all', 'each node', 1),
  {
    id: 'config',
    address: own.config,
    by: 'operator',
    payloads: ['NodeConfig', 'Envelope'],
    what: 'what may change from afar: groups, labels, heartbeat, log level; over those of the file',
    ...retained,
    empty: 'what the file says holds again',
    ...noExpiry,
  },
  desiredMarker('desiredNodeMarker', node),
  desiredMarker('desiredGroupMarker', group),
  desiredMarker('desiredAllMarker', 'all'),
  {
    id: 'rollout',
    address: rolloutTopic(defaultPrefix, '{rollout}'),
    by: 'operator',
    payloads: ['Rollout'],
    what: 'waves of nodes and the gate up to which they take a new revision',
    ...retained,
    empty: 'there is no such rollout',
    ...noExpiry,
  },
  {
    id: 'command',
    address: commandTopic(defaultPrefix, '{node}', '{verb}'),
    by: 'operator',
    payloads: ['Command', 'Envelope'],
    what: 'a request; a retained one is dropped',
    qos: 1,
    retained: false,
    expiry: `${expirySeconds.command} s`,
    expirySeconds: expirySeconds.command,
  },
  {
    id: 'reply',
    address: own.reply('{requester}'),
    by: 'node',
    payloads: ['Reply'],
    what: 'the answer, in chunks of at most 48 KiB',
    qos: 1,
    retained: false,
    expiry: `${expirySeconds.reply} s`,
    expirySeconds: expirySeconds.reply,
  },
  {
    id: 'homeAssistant',
    address: homeAssistantTopic('homeassistant', '{node}'),
    by: 'node',
    payloads: ['HomeAssistantDevice'],
    what: 'Home Assistant’s device discovery, where `homeAssistant.enabled` says so',
    ...retained,
    empty: 'the device is gone',
    ...noExpiry,
  },
];
