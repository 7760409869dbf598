// pure
/** The accepted ConfigMaps and Secrets, as they may be shown to anybody who asks: names, keys and users, never a value. */
import type { DesiredPod } from '../api/desired.ts';
import { type ApiObject, type KeyText, keyText, type Source } from '../api/objects.ts';
import { podReferences } from '../api/references.ts';
import type { ConfigView } from '../config/view.ts';

export interface ListedObject {
  readonly apiVersion: 'podsched.dev/v1';
  readonly kind: 'ConfigMap' | 'Secret';
  /** `creationTimestamp`: when it was first accepted. */
  readonly metadata: { readonly namespace: string; readonly name: string; readonly creationTimestamp: string };
  /** Of a Secret. */
  readonly type?: string;
  readonly immutable: boolean;
  /** Sorted. */
  readonly keys: readonly string[];
  readonly source: Source;
  readonly revision: string;
  /** Names of the pods that name it, in its namespace and from its kind of source; sorted. */
  readonly usedBy: readonly string[];
}

/** By kind, namespace and name. `object`: what is accepted under a key. */
export function listObjects(
  view: ConfigView,
  object: (key: KeyText) => ApiObject | undefined,
  pods: Iterable<DesiredPod>,
): readonly ListedObject[] {
  const users = usersByObject(pods);
  return view.objects.flatMap(({ key, namespace, name, winner, since }): ListedObject[] => {
    const accepted = object(key);
    if (accepted === undefined || accepted.kind === 'Pod' || winner === undefined) return [];
    const others = accepted.kind === 'ConfigMap' ? accepted.binaryData : accepted.stringData;
    return [
      {
        apiVersion: 'podsched.dev/v1',
        kind: accepted.kind,
        metadata: { namespace, name, creationTimestamp: since ?? '' },
        ...(accepted.kind === 'Secret' && { type: accepted.type || 'Opaque' }),
        immutable: accepted.immutable === true,
        keys: [...new Set([...Object.keys(accepted.data ?? {}), ...Object.keys(others ?? {})])].sort(),
        source: winner.source,
        revision: winner.revision,
        usedBy: [...new Set(users.get(`${sideOf(winner.source)} ${key}`))].sort(),
      },
    ];
  });
}

/** Files see files, topics see topics. */
const sideOf = (source: Source): string => source.split(':')[0] ?? '';

function usersByObject(pods: Iterable<DesiredPod>): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, string[]>();
  for (const { pod, name, namespace, source } of pods) {
    for (const reference of podReferences(pod.spec)) {
      const id = `${sideOf(source)} ${keyText({ ...reference, namespace })}`;
      users.set(id, [...(users.get(id) ?? []), name]);
    }
  }
  return users;
}
