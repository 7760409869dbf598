// pure
/** Problems as they are told: with their place, without values that are nobody's business, and not more than a broker takes. */
import type { Problem } from '../api/objects.ts';
import type { FileBody, SyncBody, ToldProblem } from '../api/payloads.ts';
import { problemText, withoutValue } from '../api/problems.ts';
import { cutText, jsonBytes } from './cut.ts';

/** The first of a source's problems in one line, and how many more; else the source's own words. */
export function firstProblem(source: { readonly problems: readonly Problem[]; readonly message: string }): string {
  const [first, ...more] = source.problems;
  if (first === undefined) return source.message;
  return `${problemText(toldProblem(first, true))}${more.length === 0 ? '' : ` (and ${more.length} more)`}`;
}

/** `secret`: the object is a Secret, or may be one. */
export function toldProblem(p: Problem, secret: boolean): ToldProblem {
  return {
    path: p.path,
    ...(p.file !== undefined && { file: p.file }),
    ...(p.line !== undefined && { line: p.line }),
    ...(p.column !== undefined && { column: p.column }),
    expected: p.expected,
    got: cutText(withoutValue(p, secret).got, 256),
    ...(p.nearest !== undefined && { nearest: p.nearest }),
  };
}

/** At most `maxBytes` of JSON: problems go from the end of each list, and it is said. */
export function capSync(body: SyncBody, maxBytes: number): SyncBody {
  let capped = body;
  for (let keep = 64; jsonBytes(capped) > maxBytes; keep = Math.floor(keep / 2)) {
    capped = {
      ...body,
      message: cutText(body.message, 2048),
      sources: body.sources.map((s) => ({ ...s, message: cutText(s.message, 1024), problems: s.problems.slice(0, keep) })),
      truncated: 'problems',
    };
    if (keep === 0) return { ...capped, sources: capped.sources.slice(0, 20) };
  }
  return capped;
}

/** As capSync, for files. */
export function capFile(body: FileBody, maxBytes: number): FileBody {
  let capped = body;
  for (let keep = 64; jsonBytes(capped) > maxBytes; keep = Math.floor(keep / 2)) {
    capped = {
      ...body,
      problems: body.problems.slice(0, Math.max(1, keep)),
      objects: body.objects.slice(0, 4 * keep),
      truncated: 'problems',
    };
    if (keep === 0) return capped;
  }
  return capped;
}
