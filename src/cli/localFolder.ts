/** The manifest folder of this machine as `apply`, `delete` and `diff` see it: which file holds what, and files written whole or not at all. */

import { open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readKey } from '../api/decode.ts';
import { type KeyText, keyText, type ObjectKey } from '../api/objects.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { isManifestName } from '../config/names.ts';
import { parseDocuments } from '../config/yaml.ts';
import { codeOf } from '../world/errno.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { itemsOf } from './rawObjects.ts';

export interface FolderFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Every object in it, also what is wrong. */
  readonly objects: readonly { readonly key: KeyText | undefined; readonly raw: Plain }[];
  /** Nothing else is in it that could be read otherwise. */
  readonly readable: boolean;
}

/** `default.web.pod.yaml`. */
export const manifestName = ({ kind, namespace, name }: ObjectKey): string => `${namespace}.${name}.${kind.toLowerCase()}.yaml`;

/** Every manifest in the folder. Rejects when it cannot be read. */
export async function readFolder(dir: string): Promise<readonly FolderFile[]> {
  try {
    const names = (await readdir(dir)).filter(isManifestName).sort();
    return await Promise.all(names.map(async (name) => fileOf(name, await readFile(join(dir, name)))));
  } catch (cause) {
    const why = codeOf(cause) === 'ENOENT' ? 'there is no such folder' : codeOf(cause);
    throw new CommandError(exitCodes.failed, `the manifest folder ${dir} cannot be read: ${why}`, { cause });
  }
}

function fileOf(name: string, bytes: Uint8Array): FolderFile {
  const { documents, broken, problems } = parseDocuments(new TextDecoder().decode(bytes));
  const values = [...documents, ...broken].map((d) => d.value).filter((value) => value !== null);
  const objects = values.flatMap(itemsOf);
  return {
    name,
    bytes,
    objects: objects.filter(isPlain).map((raw) => {
      const key = readKey(raw);
      return { key: key && keyText(key), raw };
    }),
    readable: objects.every(isPlain) && (problems.length === 0 || broken.length > 0),
  };
}

/** Which file holds an object, and whether it holds nothing else. */
export function holderOf(
  files: readonly FolderFile[],
  key: ObjectKey,
): { readonly file: FolderFile; readonly raw: Plain; readonly alone: boolean } | undefined {
  for (const file of files) {
    const found = file.objects.find((o) => o.key === keyText(key));
    if (found !== undefined) return { file, raw: found.raw, alone: file.objects.length === 1 && file.readable };
  }
  return undefined;
}

export interface FileToWrite {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Of the signature beside it; undefined: there is none, and an old one goes. */
  readonly signature?: Uint8Array | undefined;
  readonly secret: boolean;
}

/** Writes all of them beside, and then puts each in its place: the agent never sees half of one. Rejects with nothing in place when it cannot. */
export async function writeFiles(dir: string, files: readonly FileToWrite[]): Promise<void> {
  const placed: { readonly from: string; readonly to: string }[] = [];
  const write = async (name: string, bytes: Uint8Array, mode: number): Promise<void> => {
    // a dotfile is never taken for a manifest
    const from = join(dir, `.${name}.${process.pid}.tmp`);
    placed.push({ from, to: join(dir, name) });
    const file = await open(from, 'w', mode);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  };
  try {
    for (const { name, bytes, signature, secret } of files) {
      if (signature !== undefined) await write(`${name}.sig`, signature, 0o644);
      await write(name, bytes, secret ? 0o600 : 0o644);
    }
    for (const { name, signature } of files) if (signature === undefined) await rm(join(dir, `${name}.sig`), { force: true });
    for (const { from, to } of placed) await rename(from, to);
    await syncFolder(dir);
  } catch (cause) {
    for (const { from } of placed) await rm(from, { force: true });
    throw new CommandError(exitCodes.failed, `the manifest folder ${dir} cannot be written: ${codeOf(cause)}`, { cause });
  }
}

/** Removes a manifest and the signature beside it. */
export async function removeFile(dir: string, name: string): Promise<void> {
  try {
    await rm(join(dir, name));
    await rm(join(dir, `${name}.sig`), { force: true });
    await syncFolder(dir);
  } catch (cause) {
    throw new CommandError(exitCodes.failed, `${join(dir, name)} cannot be removed: ${codeOf(cause)}`, { cause });
  }
}

async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
