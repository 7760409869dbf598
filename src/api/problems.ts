// pure
/** The making of problems, for every check of this room. */
import type { Problem } from './objects.ts';
import { shown } from './scalars.ts';

/** A problem when `expected` says that something is wrong. */
export const problemIf = (expected: string | undefined, path: string, got: unknown): Problem[] =>
  expected === undefined ? [] : [{ path, expected, got: shown(got) }];

/** Names that stand twice: the second and later ones, with the place of the first. */
export function duplicates(names: readonly { readonly path: string; readonly name: string | undefined }[]): Problem[] {
  const first = new Map<string, string>();
  const problems: Problem[] = [];
  for (const { path, name } of names) {
    if (name === undefined || name === '') continue;
    const before = first.get(name);
    if (before === undefined) first.set(name, path);
    else problems.push({ path, expected: `another name than ${before} has`, got: shown(name) });
  }
  return problems;
}

// Values of environment variables, ConfigMaps and Secrets are nobody's business in a topic, an event or a log.
const envValue = /(^|\.)env(\[\d+\](\.value)?)?$/;
const secretData = /(^|\.)(data|stringData|binaryData)([.[]|$)/;

/** The problem without a value that must not be shown. `secret`: the object is a Secret or ConfigMap, or may be one. */
export function withoutValue(p: Problem, secret: boolean): Problem {
  return envValue.test(p.path) || (secret && secretData.test(p.path)) ? { ...p, got: 'a value that is not shown' } : p;
}
