// pure
/** What variables and files of the downward API may take from a pod: fieldRef paths and resourceFieldRef resources (facts 10.8). */
import { wrongQualifiedName } from './names.ts';
import { nearest } from './nearest.ts';
import { canonicalQuantity } from './quantity.ts';
import type { Quantity } from './v1.ts';

/** The paths without a key. */
export const plainFieldPaths = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
] as const;
export type PlainFieldPath = (typeof plainFieldPaths)[number];

/** Those without a key that a file may have: what is known before the pod has a sandbox, and whole maps. */
export const fileFieldPaths = ['metadata.name', 'metadata.namespace', 'metadata.uid', 'metadata.labels', 'metadata.annotations'] as const;

/** `metadata.labels['k']` and `metadata.annotations['k']` in parts. */
export interface KeyedFieldPath {
  readonly of: 'labels' | 'annotations';
  readonly key: string;
}

/** The path in words this version knows; undefined: no such path. */
export function readFieldPath(path: string): PlainFieldPath | KeyedFieldPath | undefined {
  const plain = plainFieldPaths.find((p) => p === path);
  if (plain !== undefined) return plain;
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(path);
  const [, of, key = ''] = keyed ?? [];
  return of === 'labels' || of === 'annotations' ? { of, key } : undefined;
}

interface Wrong {
  readonly expected: string;
  readonly nearest?: string;
}

/** What is wrong with a fieldRef's path. A file may have other ones than a variable. */
export function wrongFieldPath(path: string, of: 'variable' | 'file' = 'variable'): Wrong | undefined {
  const paths: readonly string[] = of === 'file' ? fileFieldPaths : plainFieldPaths;
  if (paths.includes(path)) return undefined;
  const known = readFieldPath(path);
  if (typeof known === 'object') {
    const key = known.of === 'annotations' ? known.key.toLowerCase() : known.key;
    const wrong = wrongQualifiedName(key);
    return wrong === undefined ? undefined : { expected: `metadata.${known.of}['<key>'] with ${wrong}` };
  }
  const where = known === undefined ? '' : 'in a file ';
  const expected = `${where}one of ${paths.join(', ')}, metadata.labels['<key>'], metadata.annotations['<key>']`;
  // a key without its quotes, in double ones, or after a dot
  const meant = /^metadata\.(labels|annotations)(?:\["?([^'"\]]+)"?\]|\.(.+))$/.exec(path);
  const close = meant !== null ? `metadata.${meant[1]}['${meant[2] ?? meant[3]}']` : known === undefined ? nearest(path, paths) : undefined;
  return { expected, ...(close !== undefined && { nearest: close }) };
}

export const fieldResources: readonly string[] = ['limits', 'requests'].flatMap((list) =>
  ['cpu', 'memory', 'ephemeral-storage'].map((name) => `${list}.${name}`),
);

/** What is wrong with a resourceFieldRef's resource. */
export function wrongFieldResource(resource: string): Wrong | undefined {
  if (fieldResources.includes(resource) || /^(limits|requests)\.hugepages-./.test(resource)) return undefined;
  const close = nearest(resource, fieldResources);
  return { expected: `one of ${fieldResources.join(', ')}`, ...(close !== undefined && { nearest: close }) };
}

const cpuDivisors: readonly string[] = ['1m', '1'];
const byteDivisors: readonly string[] = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];

/** What is wrong with a divisor of a known resource; 0 counts as 1. */
export function wrongDivisor(resource: string, divisor: Quantity): Wrong | undefined {
  const text = canonicalQuantity(divisor);
  const known = resource.endsWith('.cpu') ? cpuDivisors : byteDivisors;
  return text === '0' || known.includes(text) ? undefined : { expected: `one of ${known.join(', ')}` };
}
