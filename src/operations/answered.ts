// pure
/** How a question about a pod is answered: by what was asked for, or by the code and the words of a refusal. And the path that asks it. */
import type { ToldPod } from '../api/status.ts';
import { findPod } from './target.ts';

export type Answered<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: number; readonly message: string };

export const refused = (code: number, message: string): Answered<never> => ({ ok: false, code, message });

/** The told pod of this name, or that there is none. */
export function askedFor(pods: readonly ToldPod[], namespace: string, name: string): Answered<ToldPod> {
  const pod = findPod(pods, { kind: 'Pod', namespace, name });
  return pod === undefined ? refused(404, `pod "${name}" not found in namespace "${namespace}"`) : { ok: true, value: pod };
}

/** What stands behind `prefix`, one part for each name, or what is meant: another number of parts, an empty one, one that is no text. */
export function pathParts<N extends string>(path: string, prefix: string, names: readonly N[]): Answered<Readonly<Record<N, string>>> {
  const parts = path.slice(prefix.length).split('/').map(decoded);
  if (parts.length !== names.length || parts.some((part) => !part))
    return refused(400, `${prefix}${names.map((name) => `{${name}}`).join('/')} is meant`);
  return { ok: true, value: Object.fromEntries(names.map((name, i) => [name, parts[i]])) as Record<N, string> };
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
