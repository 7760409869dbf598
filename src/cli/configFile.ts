/** The configuration file as the commands find it, and the store of the last good one. */

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Problem } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import { FileStore } from '../store/fileStore.ts';
import { codeOf } from '../world/errno.ts';
import { isStoreCorrupt } from '../world/store.ts';
import type { LastGood } from './choose.ts';

export const defaultConfigFile = '/etc/podsched/podsched.yaml';
const maxBytes = 1 << 20;
const entry = 'configuration';

export type ConfigText =
  | { readonly ok: true; readonly file?: { readonly path: string; readonly text: string } }
  | { readonly ok: false; readonly problem: Problem };

/** Reads it. The default file may be absent (everything has a default); another one was asked for by name. */
export async function readConfigFile(path: string): Promise<ConfigText> {
  const refuse = (expected: string, got: string): ConfigText => ({ ok: false, problem: { path: '', file: path, expected, got } });
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (e) {
    if (codeOf(e) === 'ENOENT' && resolve(path) === defaultConfigFile) return { ok: true };
    return refuse('a file that can be read', codeOf(e) === 'ENOENT' ? 'no such file' : codeOf(e));
  }
  if (bytes.length > maxBytes) return refuse(`at most ${maxBytes} bytes`, `${bytes.length} bytes`);
  try {
    return { ok: true, file: { path, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) } };
  } catch {
    return refuse('UTF-8', 'bytes that are no UTF-8');
  }
}

/** In a folder of its own: the agent's store tidies its folder, and so does this one. */
const storeOf = (stateDir: string): FileStore => new FileStore(join(stateDir, entry), { durable: true });

/** The last good configuration; undefined when there is none, or none that can be read. */
export async function readLastGood(stateDir: string): Promise<LastGood | undefined> {
  try {
    const value = await storeOf(stateDir).get(entry);
    return isPlain(value) && isPlain(value.file) && isPlain(value.overrides) ? { file: value.file, overrides: value.overrides } : undefined;
  } catch (e) {
    if (isStoreCorrupt(e)) return undefined; // the next good start writes it anew
    throw e;
  }
}

/**
 * Keeps a configuration that runs. A file that names its own stateDir would, once damaged, hide where the last good one is: a line beside it
 * says so. (A dotfile is never taken for a manifest.)
 */
export async function keepLastGood(configFile: string, stateDir: string, keep: LastGood): Promise<void> {
  await storeOf(stateDir).put(entry, keep);
  const pointer = pointerOf(configFile);
  const wanted = keep.file.stateDir === undefined ? undefined : stateDir;
  if ((await readPointer(configFile)) === wanted) return;
  if (wanted === undefined) return rm(pointer, { force: true });
  await writeFile(`${pointer}.tmp`, `${wanted}\n`, { mode: 0o600, flush: true });
  await rename(`${pointer}.tmp`, pointer);
}

const pointerOf = (configFile: string): string => join(dirname(configFile), `.${basename(configFile)}.state-dir`);

/** The stateDir that the file named when it was last good. */
export async function readPointer(configFile: string): Promise<string | undefined> {
  const text = await readFile(pointerOf(configFile), 'utf8').catch(() => ''); // most files have none
  const path = text.trim();
  return path.startsWith('/') ? path : undefined;
}
