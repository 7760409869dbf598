// pure
/** Which object a person means: `web`, `pod/web`, a namespace beside it; and when there is none, which was meant perhaps. */
import { nearest } from '../api/nearest.ts';
import type { SyncStatus } from '../api/payloads.ts';
import type { ToldPod } from '../api/status.ts';

export interface Target {
  readonly kind: 'Pod' | 'ConfigMap' | 'Secret';
  readonly namespace: string;
  readonly name: string;
}

const kinds: Readonly<Record<string, Target['kind']>> = {
  pod: 'Pod',
  pods: 'Pod',
  po: 'Pod',
  configmap: 'ConfigMap',
  configmaps: 'ConfigMap',
  cm: 'ConfigMap',
  secret: 'Secret',
  secrets: 'Secret',
};

const kindOf = (word: string): Target['kind'] | undefined =>
  Object.hasOwn(kinds, word.toLowerCase()) ? kinds[word.toLowerCase()] : undefined;

/** `pod`, `po`, `configmaps` …: a kind by one of its names. */
export const isKind = (word: string): boolean => kindOf(word) !== undefined;

/** `web`, `pod/web`; undefined when it is no such thing. */
export function parseTarget(text: string, namespace: string): Target | undefined {
  const parts = text.split('/');
  const name = parts.at(-1) ?? '';
  if (name === '' || parts.length > 2) return undefined;
  const kind = parts.length === 1 ? 'Pod' : kindOf(parts[0] ?? '');
  return kind === undefined ? undefined : { kind, namespace, name };
}

export const isTarget = (t: Target, o: { readonly kind: string; readonly namespace: string; readonly name: string }): boolean =>
  o.kind === t.kind && o.namespace === t.namespace && o.name === t.name;

export const findPod = (pods: readonly ToldPod[], t: Target): ToldPod | undefined =>
  pods.find((p) => p.metadata.name === t.name && (p.metadata.namespace ?? 'default') === t.namespace);

/** Why nothing was found, with what is there instead. */
export function notFoundText(
  t: Target,
  known: readonly { readonly kind: string; readonly namespace: string; readonly name: string }[],
): string {
  const what = `${t.kind.toLowerCase()} "${t.name}" not found in namespace "${t.namespace}"`;
  const same = known.filter((o) => o.kind === t.kind);
  const elsewhere = same.find((o) => o.name === t.name);
  if (elsewhere !== undefined) return `${what}; there is one in namespace "${elsewhere.namespace}" (-n ${elsewhere.namespace})`;
  const close = nearest(
    t.name,
    same.filter((o) => o.namespace === t.namespace).map((o) => o.name),
  );
  return close === undefined ? what : `${what}; did you mean "${close}"?`;
}

/** What is known by name: objects of sources, and pods that still end. */
export const knownObjects = (sync: readonly SyncStatus[], pods: readonly ToldPod[]): Target[] => [
  ...sync.map(({ object }): Target => ({ kind: kindOf(object.kind) ?? 'Pod', namespace: object.namespace, name: object.name })),
  ...pods.map((p): Target => ({ kind: 'Pod', namespace: p.metadata.namespace ?? 'default', name: p.metadata.name })),
];
