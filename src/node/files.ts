/** Small files of /proc and /sys as text. A file that is not there, or cannot be read, says nothing: '' and never an error. */
import { readFile } from 'node:fs/promises';

/** More than this is no value of a sensor: a file that somebody put there is cut. */
const mostBytes = 1 << 20;

/** Whole, with zero bytes and outer spaces taken off (strings of the device tree end with one). */
export async function fileText(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.slice(0, mostBytes).replaceAll('\0', '').trim();
}

/** A whole number, decimal; undefined: the file does not hold one. */
export async function fileNumber(path: string): Promise<number | undefined> {
  const text = await fileText(path);
  return /^-?[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}
