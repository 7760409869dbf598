// pure
/** What an archive's first bytes and the words of `ctr images import` mean. */
import { harmless } from '../world/terminal.ts';
import { fullName } from './fullName.ts';

export type Packing = 'plain' | 'gzip' | 'zstd';

/** By its first bytes: a name promises nothing. */
export function packingOf(first: Uint8Array): Packing {
  const begins = (...bytes: readonly number[]): boolean => bytes.every((b, i) => first[i] === b);
  if (begins(0x1f, 0x8b)) return 'gzip';
  return begins(0x28, 0xb5, 0x2f, 0xfd) ? 'zstd' : 'plain';
}

/** The names in the words of containerd 1.x (`unpacking NAME (sha256:…)...done`) and 2.x (`NAME  saved`). */
export function namesIn(output: string): string[] {
  const found = output.matchAll(/^(?:unpacking (\S+) \(sha256:[0-9a-f]+\)|(\S+)\s+saved\b)/gm);
  return [...new Set([...found].map((m) => m[1] ?? m[2] ?? ''))];
}

/** What makes an image's name useless for pods, in words; undefined: a pod can ask for it by this name. */
export function nameProblem(name: string): string | undefined {
  const shown = `"${harmless(name).slice(0, 200)}"`;
  if (/^import-\d{4}-\d\d-\d\d[:@]/.test(name)) return `an image in it has no name, only a tag or none (${shown}): no pod can ask for it`;
  const full = fullName(name);
  if (full === undefined) return `an image in it has a name that is none (${shown})`;
  return full === name ? undefined : `the name ${shown} in it is not complete, so that no pod finds it: name it ${full} in the archive`;
}

/** Nothing in the archive is for this node, says `ctr` of containerd 1.x. */
export const isOtherPlatform = (words: string): boolean => /might be filtered out/.test(words);

/** What such words mean, where a person would not know. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/unexpected EOF|premature end|unexpected end of file/i, 'the file is cut short'],
  [/invalid tar header|unrecognized image format|missing index\.json|missing manifest\.json/i, 'it is no archive of images, or damaged'],
];

/** The last line that says something, for one line of a message, with its meaning. */
export function lastWords(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  const last = harmless(lines.at(-1) ?? '').trim();
  const words = last.replace(/^(ctr|gzip|zstd): (stdin: )?|^\/\*stdin\*\\ *: /g, '').slice(0, 500);
  const meaning = meanings.find(([pattern]) => pattern.test(words))?.[1];
  return meaning === undefined ? words : `${words} (${meaning})`;
}
