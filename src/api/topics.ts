// pure
/**
 * Every topic of the MQTT contract, both ways: built for telling, parsed for reading. The prefix (`podsched/v1`) has at most two levels, so
 * that no topic has more than six slashes. Dots of names become `~` (NATS closes a connection on a dot); `_` first is the contract's.
 */
import type { Kind, ObjectKey } from './objects.ts';

export const defaultPrefix = 'podsched/v1';

const second = 1;
const hour = 3600 * second;
const day = 24 * hour;

/** Message expiry in seconds (MQTT 5) of what the node tells; heartbeat-bound topics are the heartbeat's business. */
export const expirySeconds = {
  pod: 7 * day,
  sync: 30 * day,
  file: 30 * day,
  info: 30 * day,
  event: hour,
  will: 30 * day,
  duplicate: 7 * day,
  marker: 60,
  logs: 60,
  command: 30,
  reply: 60,
} as const;

/** The largest retained payload, in bytes: the smallest limit of the brokers the contract counts. */
export const maxRetainedBytes = 60 * 1024;
/** The largest other payload, in bytes. */
export const maxMessageBytes = 120 * 1024;

const kindInTopic: Readonly<Record<Kind, string>> = { Pod: '', ConfigMap: 'configmap:', Secret: 'secret:' };

/** One or two levels, no wildcard, no empty level, not the broker's own `$…`. */
export const isTopicPrefix = (prefix: string): boolean => /^[^/+#$\0][^/+#\0]*(\/[^/+#\0]+)?$/.test(prefix);

const escapeName = (name: string): string => name.replaceAll('.', '~');
const unescapeName = (level: string): string => level.replaceAll('~', '.');

/** Each byte outside `[a-z0-9-]` as `~hh`. */
export function escapeFileName(name: string): string {
  let out = '';
  for (const byte of new TextEncoder().encode(name)) {
    const char = String.fromCharCode(byte);
    out += /[a-z0-9-]/.test(char) ? char : `~${byte.toString(16).padStart(2, '0')}`;
  }
  return out;
}

/** The file name a level stands for; undefined when it is no escaped name. */
export function unescapeFileName(level: string): string | undefined {
  if (!/^(?:[a-z0-9-]|~[0-9a-f]{2})+$/.test(level)) return undefined;
  const bytes = (level.match(/~..|./g) ?? []).map((part) => (part.length === 3 ? Number.parseInt(part.slice(1), 16) : part.charCodeAt(0)));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes));
  } catch {
    return undefined; // bytes that no UTF-8 name has: not ours
  }
}

/** `web` for a Pod, `configmap:app`, `secret:tls`; dots as `~`. */
const objectLevel = (kind: Kind, name: string): string => kindInTopic[kind] + escapeName(name);

/** The kind and name of an object level; undefined for a kind this version does not know. */
function parseObjectLevel(level: string): { readonly kind: Kind; readonly name: string } | undefined {
  if (level === '' || level.startsWith('_')) return undefined;
  const colon = level.indexOf(':');
  if (colon < 0) return { kind: 'Pod', name: unescapeName(level) };
  for (const kind of ['ConfigMap', 'Secret'] as const) {
    if (level.startsWith(kindInTopic[kind]) && level.length > colon + 1) return { kind, name: unescapeName(level.slice(colon + 1)) };
  }
  return undefined;
}

/** Where desired state is published: for one node, a group, or all. */
export type DesiredScope = { readonly node: string } | { readonly group: string } | 'all';

/** The topics one node writes, and what it listens to. */
export interface NodeTopics {
  readonly online: string;
  readonly marker: string;
  readonly info: string;
  readonly summary: string;
  readonly metrics: string;
  /** Filter over everything this node tells: where ghosts are looked for. */
  readonly subtree: string;
  duplicate(machine: string): string;
  pod(namespace: string, name: string): string;
  sync(key: ObjectKey): string;
  file(name: string): string;
  events(namespace: string): string;
  logs(namespace: string, pod: string): string;
  /** Filter over the commands for this node. */
  readonly commands: string;
  reply(requester: string): string;
  /** `_config` of this node. */
  readonly config: string;
  /** Filters of all desired state this node follows, in the order of precedence. */
  desiredFilters(groups: readonly string[]): string[];
}

/** The topics of `node` below `prefix`. Node names have no dots; nothing is checked here. */
export function nodeTopics(prefix: string, node: string): NodeTopics {
  const own = `${prefix}/nodes/${node}`;
  return {
    online: `${own}/online`,
    marker: `${own}/_marker`,
    info: `${own}/info`,
    summary: `${own}/summary`,
    metrics: `${own}/metrics`,
    subtree: `${own}/#`,
    duplicate: (machine) => `${own}/duplicates/${machine}`,
    pod: (namespace, name) => `${own}/pods/${namespace}/${escapeName(name)}`,
    sync: (key) => `${own}/sync/${key.namespace}/${objectLevel(key.kind, key.name)}`,
    file: (name) => `${own}/sync/_files/${escapeFileName(name)}`,
    events: (namespace) => `${own}/events/${namespace}`,
    logs: (namespace, pod) => `${own}/logs/${namespace}/${escapeName(pod)}`,
    commands: `${prefix}/cmd/${node}/+`,
    reply: (requester) => `${prefix}/reply/${requester}/${node}`,
    config: `${desiredBase(prefix, { node })}/_config`,
    desiredFilters: (groups) => [
      `${desiredBase(prefix, { node })}/#`,
      ...groups.map((group) => `${desiredBase(prefix, { group })}/#`),
      `${desiredBase(prefix, 'all')}/#`,
    ],
  };
}

const desiredBase = (prefix: string, scope: DesiredScope): string =>
  scope === 'all'
    ? `${prefix}/desired/all`
    : 'node' in scope
      ? `${prefix}/desired/nodes/${scope.node}`
      : `${prefix}/desired/groups/${scope.group}`;

/** Topic of one desired object. */
export const desiredTopic = (prefix: string, scope: DesiredScope, key: ObjectKey): string =>
  `${desiredBase(prefix, scope)}/${key.namespace}/${objectLevel(key.kind, key.name)}`;

/** Topic of an index; `part` 0 is `_index` itself, further parts are `_index/<n>`. */
export const indexTopic = (prefix: string, scope: DesiredScope, part = 0): string =>
  `${desiredBase(prefix, scope)}/_index${part === 0 ? '' : `/${part}`}`;

/**
 * Where whoever changes desired state publishes a marker of their own, not retained: when it comes back, all that is retained there has been read,
 * and this user may read it. Nodes pass it over.
 */
export const desiredMarkerTopic = (prefix: string, scope: DesiredScope): string => `${desiredBase(prefix, scope)}/_marker`;

export const rolloutTopic = (prefix: string, id: string): string => `${prefix}/rollouts/${id}`;
export const commandTopic = (prefix: string, node: string, verb: string): string => `${prefix}/cmd/${node}/${verb}`;
export const homeAssistantTopic = (haPrefix: string, node: string): string => `${haPrefix}/device/${node}/config`;

/** What a topic of the contract is about. */
export type Topic =
  | { readonly of: 'online' | 'marker' | 'info' | 'summary' | 'metrics'; readonly node: string }
  | { readonly of: 'duplicate'; readonly node: string; readonly machine: string }
  | { readonly of: 'pod' | 'logs'; readonly node: string; readonly namespace: string; readonly name: string }
  | { readonly of: 'sync'; readonly node: string; readonly kind: Kind; readonly namespace: string; readonly name: string }
  | { readonly of: 'file'; readonly node: string; readonly file: string }
  | { readonly of: 'events'; readonly node: string; readonly namespace: string }
  | { readonly of: 'desired'; readonly scope: DesiredScope; readonly kind: Kind; readonly namespace: string; readonly name: string }
  | { readonly of: 'index'; readonly scope: DesiredScope; readonly part: number }
  | { readonly of: 'desiredMarker'; readonly scope: DesiredScope }
  | { readonly of: 'config'; readonly node: string }
  | { readonly of: 'rollout'; readonly id: string }
  | { readonly of: 'command'; readonly node: string; readonly verb: string }
  | { readonly of: 'reply'; readonly requester: string; readonly node: string };

/** What `topic` is about; undefined for whatever the contract does not know. */
export function parseTopic(prefix: string, topic: string): Topic | undefined {
  if (!topic.startsWith(`${prefix}/`)) return undefined;
  const [head, ...rest] = topic.slice(prefix.length + 1).split('/');
  if (rest.includes('')) return undefined;
  const [a = '', b = ''] = rest;
  switch (head) {
    case 'nodes':
      return parseNodeTopic(a, rest.slice(1));
    case 'desired':
      if (a === 'all') return parseDesired('all', rest.slice(1));
      if (rest.length < 3) return undefined;
      if (a === 'nodes') return parseDesired({ node: b }, rest.slice(2));
      return a === 'groups' ? parseDesired({ group: b }, rest.slice(2)) : undefined;
    case 'rollouts':
      return rest.length === 1 ? { of: 'rollout', id: a } : undefined;
    case 'cmd':
      return rest.length === 2 ? { of: 'command', node: a, verb: b } : undefined;
    case 'reply':
      return rest.length === 2 ? { of: 'reply', requester: a, node: b } : undefined;
    default:
      return undefined;
  }
}

function parseNodeTopic(node: string, levels: readonly string[]): Topic | undefined {
  const [head, a, b] = levels;
  if (levels.length === 1) {
    switch (head) {
      case 'online':
      case 'info':
      case 'summary':
      case 'metrics':
        return { of: head, node };
      case '_marker':
        return { of: 'marker', node };
      default:
        return undefined;
    }
  }
  if (a === undefined || levels.length > 3) return undefined;
  if (b === undefined) {
    if (head === 'duplicates') return { of: 'duplicate', node, machine: a };
    return head === 'events' ? { of: 'events', node, namespace: a } : undefined;
  }
  switch (head) {
    case 'pods':
      return { of: 'pod', node, namespace: a, name: unescapeName(b) };
    case 'logs':
      return { of: 'logs', node, namespace: a, name: unescapeName(b) };
    case 'sync': {
      if (a === '_files') {
        const file = unescapeFileName(b);
        return file === undefined ? undefined : { of: 'file', node, file };
      }
      const object = parseObjectLevel(b);
      return object === undefined || a.startsWith('_') ? undefined : { of: 'sync', node, namespace: a, ...object };
    }
    default:
      return undefined;
  }
}

function parseDesired(scope: DesiredScope, levels: readonly string[]): Topic | undefined {
  const [a = '', b] = levels;
  if (a === '_index') {
    if (b === undefined) return { of: 'index', scope, part: 0 };
    return levels.length === 2 && /^[1-9][0-9]*$/.test(b) ? { of: 'index', scope, part: Number(b) } : undefined;
  }
  if (a === '_marker') return levels.length === 1 ? { of: 'desiredMarker', scope } : undefined;
  if (a === '_config') return levels.length === 1 && scope !== 'all' && 'node' in scope ? { of: 'config', node: scope.node } : undefined;
  if (b === undefined || levels.length > 2 || a.startsWith('_')) return undefined;
  const object = parseObjectLevel(b);
  return object === undefined ? undefined : { of: 'desired', scope, namespace: a, ...object };
}
