// pure
/** The making of problems, for every check of this room, and their one line for a person. */
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

const absent = 'absent: ';

/** `web.yaml:12:14: spec.containers[0].image: expected …, got …; did you mean …?`. `folder` is put before the file's name. */
export function problemText(p: Problem, folder = ''): string {
  const file = p.file === undefined ? undefined : `${folder}${p.file}`;
  const place = [file, p.line, p.column].filter((part) => part !== undefined).join(':');
  const said = saidOf(p) + (p.nearest === undefined ? '' : `; did you mean ${p.nearest}?`);
  return [place, p.path, said].filter((part) => part !== '').join(': ');
}

function saidOf({ expected, got }: Problem): string {
  if (expected === 'nothing') return got;
  // what must not be there at all: only the reason says something
  if (expected.startsWith(absent) && got === 'set') return expected.slice(absent.length);
  if (expected.startsWith(absent) && got === 'ignored') return `ignored: ${expected.slice(absent.length)}`;
  return `expected ${expected}, got ${got}`;
}

/** In the order of the file, as a reader goes through it; what has no line comes first. */
export const inFileOrder = (problems: readonly Problem[]): Problem[] =>
  [...problems].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));

// Values of environment variables, ConfigMaps and Secrets are nobody's business in a topic, an event or a log.
const envValue = /(^|\.)env(\[\d+\](\.value)?)?$/;
const envName = /(^|\.)env\[\d+\]\.name$/;
const secretData = /(^|\.)(data|stringData|binaryData)([.[]|$)/;
// a value is never told in such words: texts are quoted
const noValue =
  /^(nothing|null|text|text that is none|a list|a mapping|a single value|a number|a boolean|\d+ bytes|the same key|a new key|another value)$/;

/** The problem without a value that must not be shown. `secret`: the object is a Secret or ConfigMap, or may be one. */
export function withoutValue(p: Problem, secret: boolean): Problem {
  // `- name: PASSWORD=…`, as other tools write it
  if (envName.test(p.path)) return { ...p, got: p.got.replace(/=.*/s, '=…') };
  if (noValue.test(p.got)) return p;
  return envValue.test(p.path) || (secret && secretData.test(p.path)) ? { ...p, got: 'a value that is not shown' } : p;
}
