/** Which devices a class has now: the globs of its configuration, looked up in /dev. Remembers nothing. */
import { type DeviceFiles, type Node, realPath } from './deviceFiles.ts';

/** A device of a class, present now. */
export interface Member extends Node {
  /** As the globs of its class found it, links as they are; several links may lead to one device. */
  readonly paths: readonly string[];
  /** Its real node. */
  readonly node: string;
}

/** In a folder: names with a meaning there. */
export type Interest = ReadonlyMap<string, readonly RegExp[]>;

export interface Scan {
  /** In the order of their names, numbers in them by value. */
  readonly members: readonly Member[];
  /** Where a change may make it another one. */
  readonly interest: Interest;
}

/** More are not looked at: a glob over a folder that somebody fills must not stop the agent. */
const mostMatches = 256;

/** What the globs of one class find now. What cannot be read has nothing. */
export function scanClass(files: DeviceFiles, globs: readonly string[]): Scan {
  const interest = new Map<string, RegExp[]>();
  const found = new Map<string, { readonly node: Node; readonly paths: Set<string> }>();
  for (const glob of globs) {
    for (const path of expand(files, glob, interest)) {
      const real = realPath(files, path);
      const entry = real === undefined ? undefined : files.look(real);
      if (real === undefined || (entry?.kind !== 'char' && entry?.kind !== 'block')) continue;
      const known = found.get(real);
      if (known === undefined) found.set(real, { node: entry, paths: new Set([path]) });
      else known.paths.add(path);
      if (path !== real) noteNode(interest, real);
    }
  }
  const members = [...found].map(([node, { node: facts, paths }]) => ({ ...facts, node, paths: [...paths].sort(natural) }));
  return { members: members.sort((a, b) => natural(a.paths[0] ?? '', b.paths[0] ?? '')), interest };
}

/** Paths that a glob stands for now, at most so many. Each folder on the way, or the nearest that there is, is of interest. */
function expand(files: DeviceFiles, glob: string, interest: Map<string, RegExp[]>): string[] {
  let paths = ['/dev'];
  for (const part of glob.split('/').slice(2)) {
    const pattern = patternOf(part);
    const next: string[] = [];
    for (const folder of paths) {
      // a link to a folder is followed like any other, and not out of /dev
      const real = realPath(files, folder);
      const names = real === undefined ? undefined : files.names(real);
      if (real === undefined || names === undefined) continue;
      note(interest, real, pattern);
      for (const name of names) if (pattern.test(name) && next.length < mostMatches) next.push(`${folder}/${name}`);
    }
    paths = next.sort(natural);
  }
  return paths;
}

/** A device goes with its node, also one that was found by a link. */
export function noteNode(interest: Map<string, RegExp[]>, node: string): void {
  const at = node.lastIndexOf('/');
  note(interest, node.slice(0, at), patternOf(escaped(node.slice(at + 1))));
}

function note(interest: Map<string, RegExp[]>, folder: string, pattern: RegExp): void {
  const known = interest.get(folder) ?? [];
  if (!known.some((p) => p.source === pattern.source)) known.push(pattern);
  interest.set(folder, known);
}

const escaped = (name: string): string => name.replace(/[*?[\\]/g, '\\$&');

/** One name of a glob: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a sign that means itself. A name with a dot at its start is asked for by it. */
export function patternOf(glob: string): RegExp {
  let text = '';
  for (let i = 0; i < glob.length; i++) {
    const sign = glob[i] ?? '';
    const set = sign === '[' ? /^\[(!|\^)?(\]?[^\]]*)\]/.exec(glob.slice(i)) : null;
    if (sign === '*') text += text.endsWith('.*') ? '' : '.*';
    else if (sign === '?') text += '.';
    else if (set !== null && set[2] !== '') {
      text += `[${set[1] === undefined ? '' : '^'}${(set[2] ?? '').replace(/[\]\\^]/g, '\\$&')}]`;
      i += set[0].length - 1;
    } else {
      if (sign === '\\' && i + 1 < glob.length) i++;
      text += (glob[i] ?? '').replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
    }
  }
  try {
    return new RegExp(`^${/^[*?[]/.test(glob) ? '(?!\\.)' : ''}${text}$`, 's');
  } catch {
    return /^$/; // a range from high to low: no name fits
  }
}

/** `i2c-2` before `i2c-10`. */
export function natural(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x, y] = [left[i] ?? '', right[i] ?? ''];
    if (x === y) continue;
    const [n, m] = [Number(x), Number(y)];
    if (/^\d/.test(x) && /^\d/.test(y) && n !== m) return n - m;
    return x < y ? -1 : 1;
  }
  return left.length - right.length;
}

const partsOf = (text: string): string[] => text.match(/\d+|\D+/g) ?? [];
