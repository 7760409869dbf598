// pure
/**
 * What sources bring: objects with their key, their source, and every problem with its place. The words between config/, pod/, status/.
 */
import type { ConfigMap, Pod, Secret } from './v1.ts';

/** A random UUID for each pod instance: stored before the sandbox, never derived from content, never used again. */
export type PodUid = string & { readonly kind: 'PodUid' };

export type ApiObject = Pod | ConfigMap | Secret;
export type Kind = ApiObject['kind'];

/** The key of an object is kind, namespace and name, as written (behaviour 1). */
export interface ObjectKey {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}
/** `Pod/default/web`: a map key, and what people read. */
export type KeyText = string & { readonly kind: 'KeyText' };
export const keyText = (k: ObjectKey): KeyText => `${k.kind}/${k.namespace}/${k.name}` as KeyText;
export const keyOf = (o: ApiObject): ObjectKey => ({ kind: o.kind, namespace: o.metadata.namespace ?? 'default', name: o.metadata.name });

/** `file:web.yaml`, `mqtt:node`, `mqtt:group/attic`, `mqtt:all`. */
export type Source = `file:${string}` | 'mqtt:node' | `mqtt:group/${string}` | 'mqtt:all';

/** One mistake, or one thing to know, with its place. `path` is a field path as kubectl writes it: `spec.containers[0].image`. */
export interface Problem {
  readonly path: string;
  readonly expected: string;
  readonly got: string;
  readonly nearest?: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}
