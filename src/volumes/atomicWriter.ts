/**
 * A folder of files that change all at once under their readers. The files lie in a folder of the moment, `..data` is a link to it, and every
 * name of the volume is a link through `..data`; a change makes a new folder and renames a new `..data` over the old one.
 * Mirrors kubelet v1.32 volume/util/atomic_writer.go (facts 15.5); besides, what a crash left in the midst of a change is set right.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, readdir, readlink, rename, rmdir, symlink, unlink } from 'node:fs/promises';
import type { WallTime } from '../world/clock.ts';
import { codeOf } from '../world/errno.ts';
import { nameIn, openFolder, openPlace, pathOf } from './descriptor.ts';
import type { ProjectedFiles } from './projection.ts';
import { removeTree } from './remove.ts';

const data = '..data';
const newData = '..data_tmp';
const newLink = '..link_tmp';
/** `..2026_11_29_20_00_00.x1y2z3` */
const moment = /^\.\.\d{4}(_\d\d){5}\.[0-9a-z]+$/;
const folderMode = 0o755;

export interface WriteOptions {
  /** Only names the folder. */
  readonly now: WallTime;
  /** Names of the volume that are no files: folders in which something is mounted. */
  readonly kept: ReadonlySet<string>;
  /** Called with the path of the new folder before anybody can see it: gives it to its group. */
  readonly give?: (folder: string) => Promise<void>;
}

/**
 * Makes the content of an open folder these files. Whether they were written: when they are there already, and nothing of a crash, nothing
 * is. Rejects with what was there still there; the rejection has no content in it.
 */
export async function writeFiles(root: FileHandle, files: ProjectedFiles, o: WriteOptions): Promise<boolean> {
  const names = new Set([...files.keys()].map(topOf));
  for (const name of names) if (o.kept.has(name)) throw mountedThere(name);
  const before = await currentFolder(root);
  const same = before !== undefined && (await hasFiles(root, before, files));
  const current = same ? before : await writeFolder(root, files, o);
  await link(root, names);
  await clean(root, current);
  return !same;
}

/** Whether an open folder has content that was written whole, whatever it is. */
export async function isWritten(root: FileHandle): Promise<boolean> {
  const current = await currentFolder(root);
  const folder = current === undefined ? undefined : await openFolder(nameIn(root, current)).catch(notFolder);
  await folder?.close();
  return folder !== undefined;
}

const mountedThere = (name: string): Error => new Error(`"${name}" is a file of it, and another volume is mounted there`);

const topOf = (path: string): string => path.split('/')[0] ?? path;

/** The name of the folder that readers see. */
async function currentFolder(root: FileHandle): Promise<string | undefined> {
  const target = await linkIn(root, data);
  return target !== undefined && moment.test(target) ? target : undefined;
}

/** Where a link leads to; undefined: there is no link. */
async function linkIn(folder: FileHandle, name: string): Promise<string | undefined> {
  try {
    return await readlink(nameIn(folder, name));
  } catch (e) {
    if (codeOf(e) === 'ENOENT' || codeOf(e) === 'EINVAL') return undefined;
    throw e;
  }
}

/** Whether these files are in the folder, and nothing else. Modes are not looked at, as the kubelet does not. */
async function hasFiles(root: FileHandle, name: string, files: ProjectedFiles): Promise<boolean> {
  const folder = await openFolder(nameIn(root, name)).catch(notFolder);
  if (folder === undefined) return false;
  const found = new Set<string>();
  try {
    return (await compare(folder, '', files, found)) && found.size === files.size;
  } finally {
    await folder.close();
  }
}

async function compare(folder: FileHandle, above: string, files: ProjectedFiles, found: Set<string>): Promise<boolean> {
  for (const entry of await readdir(pathOf(folder), { withFileTypes: true })) {
    const path = above + entry.name;
    const place = nameIn(folder, entry.name);
    if (entry.isDirectory()) {
      const inner = await openFolder(place).catch(notFolder);
      if (inner === undefined) return false;
      const same = await compare(inner, `${path}/`, files, found).finally(() => inner.close());
      if (!same) return false;
      continue;
    }
    const wanted = files.get(path);
    if (wanted === undefined || !entry.isFile()) return false;
    if (!(await hasBytes(place, wanted.bytes))) return false;
    found.add(path);
  }
  return true;
}

async function hasBytes(path: string | Buffer, bytes: Uint8Array): Promise<boolean> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    return stat.isFile() && stat.size === bytes.length && (await file.readFile()).equals(bytes);
  } finally {
    await file.close();
  }
}

/** Writes a new folder and makes it the one that readers see. Its name. */
async function writeFolder(root: FileHandle, files: ProjectedFiles, o: WriteOptions): Promise<string> {
  const name = `..${stamp(o.now)}.${randomBytes(4).toString('hex')}`;
  try {
    await mkdir(nameIn(root, name), { mode: 0o700 });
    const folder = await openFolder(nameIn(root, name));
    if (folder === undefined) throw new Error('a folder went away while it was made');
    try {
      await writeInto(folder, files);
    } finally {
      await folder.close();
    }
    await o.give?.(`${pathOf(root)}/${name}`);
    await replaceLink(root, data, name, newData);
  } catch (e) {
    await removeTree(root, name).catch(() => {}); // the next call finds it
    if (codeOf(e) === 'ENOSPC' || codeOf(e) === 'EDQUOT') throw new Error('no space left for its files');
    throw new Error(`its files cannot be written (${codeOf(e)})`);
  }
  return name;
}

/** Nobody else can be in the folder yet. */
async function writeInto(folder: FileHandle, files: ProjectedFiles): Promise<void> {
  const top = pathOf(folder);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const folders = new Set<string>();
  for (const [path, { bytes, mode }] of files) {
    const above = foldersOf(path).filter((f) => !folders.has(f));
    for (const inner of above) {
      await mkdir(`${top}/${inner}`, { mode: 0o700 });
      folders.add(inner);
    }
    const file = await open(`${top}/${path}`, flags, 0o600);
    try {
      await file.writeFile(bytes);
      // whatever the agent's umask is
      await file.chmod(mode);
    } finally {
      await file.close();
    }
  }
  for (const inner of folders) await chmod(`${top}/${inner}`, folderMode);
  await folder.chmod(folderMode);
}

/** Those above a file, the outermost first. */
const foldersOf = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, i, names) => names.slice(0, i + 1).join('/'));

/** A link that leads to `target` at every moment, to its former place before. */
async function replaceLink(root: FileHandle, name: string, target: string, by: string): Promise<void> {
  await removeTree(root, by);
  await symlink(target, nameIn(root, by));
  await rename(nameIn(root, by), nameIn(root, name));
}

/** Each name leads through `..data`, and nothing that is no longer a name of the volume. */
async function link(root: FileHandle, names: ReadonlySet<string>): Promise<void> {
  for (const name of names) {
    const target = `${data}/${name}`;
    if ((await linkIn(root, name)) === target) continue;
    // a subPath of this name was mounted when there was no such file
    await rmdir(nameIn(root, name)).catch(noEmptyFolder);
    await replaceLink(root, name, target, newLink).catch((e: unknown) => {
      throw new Error(`"${name}" cannot be made in it (${codeOf(e)})`);
    });
  }
  for (const entry of await readdir(pathOf(root), { withFileTypes: true })) {
    if (entry.name.startsWith('..') || names.has(entry.name) || !entry.isSymbolicLink()) continue;
    if ((await linkIn(root, entry.name)) === `${data}/${entry.name}`) await unlink(nameIn(root, entry.name));
  }
}

/** Folders of former moments go, and what a crash left. */
async function clean(root: FileHandle, current: string): Promise<void> {
  for (const name of await readdir(pathOf(root))) {
    if (name === newData || name === newLink || (moment.test(name) && name !== current)) await removeTree(root, name);
  }
}

/** Makes folders in an open one, with all above them. What is there stays. */
export async function makeFolders(root: FileHandle, paths: readonly string[]): Promise<void> {
  for (const path of paths) await makeFolder(root, path.split('/'));
}

async function makeFolder(folder: FileHandle, names: readonly string[]): Promise<void> {
  const [name, ...rest] = names;
  if (name === undefined) return;
  if (name === '..' || name === '.' || name === '') throw new Error('a mount path inside it leads out of it');
  const path = nameIn(folder, name);
  const place = await openPlace(path);
  await place?.close();
  if (place === undefined) await mkdir(path, { mode: 0o700 });
  const inner = await openFolder(path).catch(notFolder);
  if (inner === undefined) throw mountedThere(name);
  try {
    if (place === undefined) await inner.chmod(folderMode);
    await makeFolder(inner, rest);
  } finally {
    await inner.close();
  }
}

/** UTC, in the order of years to seconds. */
function stamp(now: WallTime): string {
  return new Date(now).toISOString().slice(0, 19).replace(/[-T:]/g, '_');
}

/** A link or a file: what is no folder. */
function notFolder(e: unknown): undefined {
  if (codeOf(e) === 'ENOTDIR' || codeOf(e) === 'ELOOP') return undefined;
  throw e;
}

/** Nothing there, or a file or link, which is replaced; a folder that has something in it stays, and the rename says so. */
function noEmptyFolder(e: unknown): void {
  if (!['ENOENT', 'ENOTDIR', 'ENOTEMPTY'].includes(codeOf(e))) throw e;
}
