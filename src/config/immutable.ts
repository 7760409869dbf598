// pure
/**
 * What a file says of an immutable ConfigMap or Secret that it had before: a changed one is refused like any other mistake, so that the last
 * good goes on. An object that the file did not name in between is a new one.
 */
import { immutableProblem } from '../api/immutable.ts';
import type { KeyText, Problem } from '../api/objects.ts';
import { inFileOrder } from '../api/problems.ts';
import type { DecodedFile, DecodedObject } from './decode.ts';
import { type Entry, fileSource } from './merge.ts';

/** The files as they are to be taken, next to what is accepted. Files without such a mistake are the same as before. */
export function refuseChanged(files: readonly DecodedFile[], entries: ReadonlyMap<KeyText, Entry>): readonly DecodedFile[] {
  return files.map((file) => {
    const refused = new Map<DecodedObject, Problem>();
    for (const decoded of file.objects) {
      const problem = problemOf(decoded, file.name, entries.get(decoded.key));
      if (problem !== undefined) refused.set(decoded, problem);
    }
    if (refused.size === 0) return file;
    const more = [...refused].map(([{ key }, problem]) => ({ key, problems: [problem] }));
    return {
      ...file,
      objects: file.objects.filter((o) => !refused.has(o)),
      problems: inFileOrder([...file.problems, ...refused.values()]),
      refused: [...file.refused, ...more],
      refusedKeys: [...file.refusedKeys, ...more.map((r) => r.key)],
      whole: false,
    };
  });
}

function problemOf({ object, revision, places }: DecodedObject, file: string, entry: Entry | undefined): Problem | undefined {
  if (object.kind === 'Pod') return undefined;
  const before = entry?.candidates.find((c) => c.source === fileSource(file));
  if (before === undefined || before.revision === revision) return undefined;
  const problem = immutableProblem(before.object, object);
  return problem && { ...problem, file, ...(places?.get(problem.path) ?? places?.get('immutable')) };
}
