// pure
/** What a topic of desired state is about, for one node: whose, and which object; or why nothing can stand there. */
import { wrongLabel, wrongSubdomain } from '../api/names.ts';
import { type KeyText, keyText, type ObjectKey, type Source } from '../api/objects.ts';
import { type DesiredScope, desiredTopic, indexTopic, nodeTopics, parseTopic, rolloutTopic } from '../api/topics.ts';

export interface Listener {
  readonly prefix: string;
  readonly nodeName: string;
  /** In the order of precedence. */
  readonly groups: readonly string[];
}

export interface ObjectPlace {
  readonly of: 'object';
  readonly topic: string;
  readonly source: Source;
  readonly key: ObjectKey;
  readonly text: KeyText;
}

export type DesiredPlace =
  | ObjectPlace
  | { readonly of: 'index'; readonly source: Source; readonly part: number }
  | { readonly of: 'config' }
  | { readonly of: 'rollout'; readonly id: string }
  /** Ours to follow, and nothing that the contract knows. */
  | { readonly of: 'wrong'; readonly expected: string }
  /** Of another node, or of a group this one is not in. */
  | { readonly of: 'foreign' };

export const sourceOf = (scope: DesiredScope): Source =>
  scope === 'all' ? 'mqtt:all' : 'node' in scope ? 'mqtt:node' : `mqtt:group/${scope.group}`;

/** The scope of an MQTT source; undefined for a file. */
function scopeOf(source: Source, nodeName: string): DesiredScope | undefined {
  if (source === 'mqtt:all') return 'all';
  if (source === 'mqtt:node') return { node: nodeName };
  return source.startsWith('mqtt:group/') ? { group: source.slice('mqtt:group/'.length) } : undefined;
}

export const groupOf = (source: Source): string | undefined =>
  source.startsWith('mqtt:group/') ? source.slice('mqtt:group/'.length) : undefined;

/** The topic at which a source has an object; undefined for a file. */
export function topicOf({ prefix, nodeName }: Listener, source: Source, key: ObjectKey): string | undefined {
  const scope = scopeOf(source, nodeName);
  return scope && desiredTopic(prefix, scope, key);
}

/** What a topic is about. */
export function placeOf(listener: Listener, topic: string): DesiredPlace {
  const { prefix, nodeName, groups } = listener;
  const parsed = parseTopic(prefix, topic);
  if (parsed === undefined) {
    const mine = listener.groups.map((group) => `${prefix}/desired/groups/${group}/`);
    const ours = [`${prefix}/desired/nodes/${nodeName}/`, `${prefix}/desired/all/`, ...mine].some((start) => topic.startsWith(start));
    return ours
      ? { of: 'wrong', expected: '<namespace>/<name>, with configmap: or secret: before the name of another kind than Pod' }
      : { of: 'foreign' };
  }
  switch (parsed.of) {
    case 'rollout':
      return wrongLabel(parsed.id) === undefined
        ? { of: 'rollout', id: parsed.id }
        : { of: 'wrong', expected: `an id: ${wrongLabel(parsed.id)}` };
    case 'config':
      return parsed.node === nodeName ? { of: 'config' } : { of: 'foreign' };
    case 'index':
    case 'desired': {
      const { scope } = parsed;
      if (scope !== 'all' && ('node' in scope ? scope.node !== nodeName : !groups.includes(scope.group))) return { of: 'foreign' };
      if (parsed.of === 'index') {
        return parsed.part < 100
          ? { of: 'index', source: sourceOf(scope), part: parsed.part }
          : { of: 'wrong', expected: 'a part below 100' };
      }
      const { kind, namespace, name } = parsed;
      const wrong = wrongLabel(namespace) ?? wrongSubdomain(name);
      if (wrong !== undefined) return { of: 'wrong', expected: wrong };
      const key = { kind, namespace, name };
      const right = desiredTopic(prefix, scope, key);
      if (right !== topic) return { of: 'wrong', expected: `the topic ${right}: a dot is written ~` };
      return { of: 'object', topic, source: sourceOf(scope), key, text: keyText(key) };
    }
    default:
      return { of: 'foreign' };
  }
}

/** What a node follows, the strongest source first: rollouts before what may wait for them. */
export function desiredFilters({ prefix, nodeName, groups }: Listener): string[] {
  const [node = '', ...rest] = nodeTopics(prefix, nodeName).desiredFilters(groups);
  return [node, rolloutTopic(prefix, '+'), ...rest];
}

/** The source whose objects a filter of desired state brings; undefined: it brings rollouts. */
export function sourceOfFilter(listener: Listener, filter: string): Source | undefined {
  const { prefix, nodeName, groups } = listener;
  const base = (scope: DesiredScope): string => indexTopic(prefix, scope).slice(0, -'_index'.length);
  const scopes: DesiredScope[] = [{ node: nodeName }, ...groups.map((group) => ({ group })), 'all'];
  const scope = scopes.find((s) => `${base(s)}#` === filter);
  return scope && sourceOf(scope);
}
