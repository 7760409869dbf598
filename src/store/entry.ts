// pure
/**
 * How one entry lies on the disk: a line with the checksum and the key, then the JSON text. And how a key becomes a file name.
 */
import { createHash } from 'node:crypto';

const magic = 'podsched-entry 1';
const longestName = 200;
const prefixOfLong = 96;
const hashedName = /^(.*)~([0-9a-f]{64})$/s;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const encode = (text: string): string =>
  [...text]
    .map((c) => {
      if (c === '/') return '+';
      if (/[A-Za-z0-9_.-]/.test(c)) return c;
      return [...new TextEncoder().encode(c)].map((b) => `%${b.toString(16).padStart(2, '0')}`).join('');
    })
    .join('');

/**
 * The file name of a key, without suffix: readable for a person, never a dotfile, never longer than a file name may be. A long key is cut
 * and its hash added; the whole key then stands inside the file.
 */
export function fileNameOf(key: string): string {
  const lost = hashedName.exec(key);
  // the name under which `list` told an unreadable long entry: it finds its file again
  if (lost !== null) return `${encode(lost[1] ?? '').replace(/^\./, '%2e')}~${lost[2]}`;
  const name = encode(key).replace(/^\./, '%2e');
  if (name.length <= longestName) return name;
  let cut = '';
  for (const c of key) {
    if (encode(cut + c).length > prefixOfLong) break;
    cut += c;
  }
  return `${encode(cut).replace(/^\./, '%2e')}~${sha256(key)}`;
}

/** The key of a file name; of a long key only what `fileNameOf` finds again: its beginning and its hash. */
export function keyOfFileName(name: string): { readonly key: string; readonly whole: boolean } {
  const hashed = hashedName.exec(name);
  const plain = (text: string): string => decodeURIComponent(text.replaceAll('+', '/'));
  return hashed === null ? { key: plain(name), whole: true } : { key: `${plain(hashed[1] ?? '')}~${hashed[2]}`, whole: false };
}

/** The text of an entry. The checksum covers key and value: an entry copied over another one is not taken for it. */
export function entryText(key: string, value: unknown): string {
  const rest = `${JSON.stringify(key)}\n${JSON.stringify(value)}\n`;
  return `${magic} ${sha256(rest)} ${rest}`;
}

/** Reads an entry back. Throws with what is wrong when it is empty, cut, damaged or of another key. */
export function parseEntry(text: string, expectedKey?: string): { readonly key: string; readonly value: unknown } {
  const head = /^podsched-entry 1 ([0-9a-f]{64}) /.exec(text);
  if (head === null) throw new Error(text === '' ? 'the file is empty' : 'the first line is not that of an entry');
  const rest = text.slice(head[0].length);
  if (sha256(rest) !== head[1]) throw new Error('the checksum does not fit');
  const end = rest.indexOf('\n');
  const key: unknown = JSON.parse(rest.slice(0, end));
  if (typeof key !== 'string' || (expectedKey !== undefined && key !== expectedKey)) throw new Error(`it is the entry of ${String(key)}`);
  return { key, value: JSON.parse(rest.slice(end + 1)) as unknown };
}
