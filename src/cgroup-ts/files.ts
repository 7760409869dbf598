/**
 * The door to cgroupfs. Reading is plain reading; what the kernel reacts to (writing, mkdir, rmdir) goes through `CgroupFs`, so that a
 * temporary folder can stand in for it (see testing.ts). A write never creates a file: a missing one is a missing controller.
 */
import { constants } from 'node:fs';
import { mkdir, open, readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { asCgroupError, CgroupError, codeOf } from './error.ts';
import { limitText, normalFlat } from './parse.ts';

export interface CgroupFs {
  /** One write(2) of the whole value into a file that exists. */
  write(file: string, value: string): Promise<void>;
  mkdir(dir: string): Promise<void>;
  rmdir(dir: string): Promise<void>;
}

/** The real thing. Errors are Node's. */
export const kernelFs: CgroupFs = {
  async write(file, value) {
    const handle = await open(file, constants.O_WRONLY);
    try {
      await handle.writeFile(value);
    } finally {
      await handle.close();
    }
  },
  mkdir: async (dir) => {
    await mkdir(dir, 0o755);
  },
  rmdir,
};

/** The text of a file, without its last line end. Throws CgroupError. */
export async function readText(dir: string, name: string): Promise<string> {
  const file = join(dir, name);
  try {
    return (await readFile(file, 'utf8')).trimEnd();
  } catch (error) {
    throw asCgroupError(error, file);
  }
}

/** What says "this kernel, this level or this configuration does not have the file": no error, an absence. */
const absent = new Set(['ENOENT', 'ENODEV', 'EOPNOTSUPP', 'ENOTSUP', 'ENOTDIR']);

/** As readText, undefined when the file is not there or its feature is off. */
export async function readIfThere(dir: string, name: string): Promise<string | undefined> {
  try {
    return await readText(dir, name);
  } catch (error) {
    if (absent.has(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Is this folder there? Errors other than its absence are thrown. */
export async function folderExists(dir: string): Promise<boolean> {
  try {
    await readdir(dir);
    return true;
  } catch (error) {
    if (absent.has(codeOf(error) ?? '')) return false;
    throw asCgroupError(error, dir);
  }
}

/** Names of the folders in a folder, sorted. Throws CgroupError. */
export async function childFolders(dir: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    return entries
      .filter((e) => e.isDirectory())
      .map((e) => e.name)
      .sort();
  } catch (error) {
    throw asCgroupError(error, dir);
  }
}

/** Writes, and throws a CgroupError that names file and value. */
export async function writeText(dir: string, name: string, value: string, fs: CgroupFs = kernelFs): Promise<void> {
  const file = join(dir, name);
  try {
    await fs.write(file, value);
  } catch (error) {
    throw asCgroupError(error, file, value);
  }
}

/** The folder must be there: `stat` of a group that is gone is an error, not an empty answer. */
export async function mustExist(dir: string): Promise<void> {
  if (!(await folderExists(dir))) throw new CgroupError({ code: 'ENOENT', file: dir, detail: 'no such cgroup' });
}

/** One setting: the file's name and the text it should hold. */
export type Setting = readonly [name: string, value: string];

/** Does a file that reads `now` hold `wanted` already? White space aside. */
export type Same = (now: string, wanted: string) => boolean;

const sameText: Same = (now, wanted) => normalFlat(now) === normalFlat(wanted);

/** Writes those settings whose file holds something else; answers the names of the files written. */
export async function writeChanged(
  dir: string,
  settings: readonly Setting[],
  fs: CgroupFs = kernelFs,
  same: Same = sameText,
): Promise<readonly string[]> {
  const written: string[] = [];
  for (const [name, value] of settings) {
    const now = await readIfThere(dir, name).catch(() => undefined); // write-only or unreadable: the write will say
    if (now !== undefined && same(now, value)) continue;
    await writeText(dir, name, value, fs);
    written.push(name);
  }
  return written;
}

/** A limit as text after a check: a whole number not below `min`. Throws CgroupError EINVAL that names the file. */
export function checkedLimit(name: string, value: number | 'max', min = 0, max = Number.MAX_SAFE_INTEGER): string {
  if (value === 'max') return value;
  if (!Number.isSafeInteger(value) || value < min || value > max)
    throw new CgroupError({ code: 'EINVAL', file: name, value: String(value), detail: `must be a whole number from ${min} to ${max}` });
  return limitText(value);
}
