// pure
/**
 * `immutable: true` on a ConfigMap or Secret: its content stays as it was, and so does the word itself. Labels and annotations may change.
 * Mirrors kubelet v1.32 pkg/apis/core/validation (ValidateConfigMapUpdate, ValidateSecretUpdate), where content is what it means: a Secret's
 * values may be written another way.
 */
import { entryPath } from './fieldPath.ts';
import type { ApiObject, Problem } from './objects.ts';
import type { ConfigMap, Secret } from './v1.ts';

const expected = 'what it was: the object is immutable; remove it and add it again, or add one of another name';

/** What `after` would change of an immutable `before`, without values; undefined when it may take its place. */
export function immutableProblem(before: ApiObject, after: ApiObject): Problem | undefined {
  if (before.kind === 'Pod' || after.kind === 'Pod' || before.immutable !== true) return undefined;
  if (after.immutable !== true) return { path: 'immutable', expected, got: after.immutable === undefined ? 'nothing' : 'false' };
  if (before.kind === 'Secret' && after.kind === 'Secret' && (before.type ?? 'Opaque') !== (after.type ?? 'Opaque'))
    return { path: 'type', expected, got: 'another type' };
  const [was, is] = [contentOf(before), contentOf(after)];
  const missing = [...was.keys()].find((key) => !is.has(key));
  if (missing !== undefined) return { path: was.get(missing)?.path ?? 'data', expected, got: 'nothing' };
  for (const [key, { path, value }] of is) {
    const old = was.get(key);
    if (old?.value !== value) return { path, expected, got: old === undefined ? 'a new key' : 'another value' };
  }
  return undefined;
}

type Content = ReadonlyMap<string, { readonly path: string; readonly value: string }>;

function contentOf(object: ConfigMap | Secret): Content {
  const of = (field: string, map: Readonly<Record<string, string>> | undefined, value: (text: string) => string) =>
    Object.entries(map ?? {}).map(([key, text]) => [key, { path: entryPath(field, key), value: value(text) }] as const);
  // in a ConfigMap the two are different: bytes are in no environment
  if (object.kind === 'ConfigMap')
    return new Map([...of('data', object.data, (t) => `t${t}`), ...of('binaryData', object.binaryData, (t) => `b${t}`)]);
  return new Map([...of('data', object.data, (t) => t), ...of('stringData', object.stringData, (t) => Buffer.from(t).toString('base64'))]);
}
