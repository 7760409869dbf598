// pure
/** A problem in one line for a person: `web.yaml:12:14: spec.containers[0].image: expected …, got …; did you mean …?`. */
import type { ToldProblem } from '../api/payloads.ts';

/** `folder` is put before the file's name. */
export function problemText(p: ToldProblem, folder = ''): string {
  const file = p.file === undefined ? undefined : `${folder}${p.file}`;
  const place = [file, p.line, p.column].filter((part) => part !== undefined).join(':');
  const parts = [place, p.path].filter((part) => part !== '');
  const said = p.expected === 'nothing' ? p.got : `expected ${p.expected}, got ${p.got}`;
  return [...parts, said + (p.nearest === undefined ? '' : `; did you mean ${p.nearest}?`)].join(': ');
}
