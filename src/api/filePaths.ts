// pure
/** Paths of files inside a volume, as the items of configMap, secret and downwardAPI volumes name them (facts 15.5). */

const longestPath = 4096;
const longestName = 255;
/** Each folder costs a descriptor where one is walked through; nobody writes so many. */
const deepest = 64;

/** What is wrong with a path inside a volume; undefined: nothing. */
export function wrongFilePath(path: string): string | undefined {
  const names = path.split('/');
  const bytes = (text: string): number => new TextEncoder().encode(text).length;
  const right =
    !path.startsWith('/') &&
    !path.includes('\0') &&
    !names.includes('..') &&
    !path.startsWith('..') &&
    !cleanFilePath(path).startsWith('..') &&
    cleanFilePath(path) !== '' &&
    bytes(path) <= longestPath &&
    names.length <= deepest &&
    names.every((name) => bytes(name) <= longestName);
  return right
    ? undefined
    : `a path inside the volume: relative, without .., not beginning with .., at most ${longestPath} bytes and ${longestName} in each name`;
}

/** Without what says nothing: two spellings of one file are one text. */
export const cleanFilePath = (path: string): string =>
  path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/');

/** The first of these clean paths that would have to be a file and a folder at once. */
export function fileAndFolder(paths: Iterable<string>): string | undefined {
  const all = new Set(paths);
  for (const path of all) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      if (all.has(path.slice(0, end))) return path.slice(0, end);
    }
  }
  return undefined;
}
