// pure
/** What the downward API says of a pod, in variables and in files: fields of the pod and resources of its containers (facts 10.8). */
import type { KeyedFieldPath, PlainFieldPath } from './fieldRefs.ts';
import { parseQuantity } from './quantity.ts';
import { downwardResource, effectiveRequests } from './resources.ts';
import type { Container, Pod, Quantity, ResourceFieldSelector } from './v1.ts';

/** What a pod cannot say of itself. */
export interface DownwardFacts extends NodeResources {
  readonly nodeName: string;
  readonly hostIps?: readonly string[];
  /** Of the running sandbox; those of the host in its network. */
  readonly podIps?: readonly string[];
}

/** What stands for a limit that is not there. */
export interface NodeResources {
  readonly nodeMemoryBytes: number;
  readonly nodeCpus?: number;
  readonly nodeStorageBytes?: number;
}

/** A field as text; a label or annotation that is not there is empty. */
export function fieldValue({ metadata, spec }: Pod, path: PlainFieldPath | KeyedFieldPath, node: DownwardFacts): string {
  if (typeof path !== 'string') {
    const all = metadata[path.of] ?? {};
    return Object.hasOwn(all, path.key) ? (all[path.key] ?? '') : '';
  }
  const { hostIps = [], podIps = [] } = node;
  switch (path) {
    case 'metadata.name':
      return metadata.name;
    case 'metadata.namespace':
      return metadata.namespace || 'default';
    case 'metadata.uid':
      return metadata.uid ?? '';
    case 'spec.nodeName':
      return node.nodeName;
    case 'spec.serviceAccountName':
      return spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return hostIps[0] ?? '';
    case 'status.hostIPs':
      return hostIps.join(',');
    case 'status.podIP':
      return podIps[0] ?? '';
    case 'status.podIPs':
      return podIps.join(',');
  }
}

/**
 * A resource as text. A limit that is absent or 0 is what the node has. `own`: the container that asks, for a selector that names none.
 * Throws when the pod has no such container.
 */
export function resourceValue(
  { spec }: Pod,
  own: Container | undefined,
  { containerName, resource, divisor }: ResourceFieldSelector,
  node: NodeResources,
): string {
  const all = [...spec.containers, ...(spec.initContainers ?? [])];
  const container = containerName ? all.find((c) => c.name === containerName) : own;
  if (container === undefined) throw new Error(`container ${containerName} not found`);
  const dot = resource.indexOf('.');
  const name = resource.slice(dot + 1);
  const isLimit = resource.slice(0, dot) === 'limits';
  const written = (isLimit ? (container.resources?.limits ?? {}) : effectiveRequests(container))[name] ?? 0;
  const given = isLimit && (parseQuantity(written)?.nano ?? 0n) === 0n ? (ofNode(name, node) ?? 0) : written;
  return downwardResource(resource, given, divisor);
}

function ofNode(name: string, node: NodeResources): Quantity | undefined {
  switch (name) {
    case 'cpu':
      return node.nodeCpus ?? 1;
    case 'memory':
      return node.nodeMemoryBytes;
    case 'ephemeral-storage':
      return node.nodeStorageBytes;
    default:
      return undefined;
  }
}

/** All labels or annotations: a line `key="value"` each, in the order of their keys, the value quoted as Go does. */
export const mapText = (map: Readonly<Record<string, string>> = {}): string =>
  Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuoted(map[key] ?? '')}`)
    .join('\n');

const named: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

/** Go's %q. */
function goQuoted(text: string): string {
  const hex = (n: number, digits: number): string => n.toString(16).padStart(digits, '0');
  const one = (sign: string): string => {
    if (Object.hasOwn(named, sign)) return named[sign] ?? '';
    if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(sign)) return sign;
    const code = sign.codePointAt(0) ?? 0;
    if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
    if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd';
    return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
  };
  return `"${[...text].map(one).join('')}"`;
}
