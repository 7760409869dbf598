/**
 * containerd's configuration file, changed for one setting: read, changed as text (containerdConfig.ts), tried with containerd itself, and put
 * in its place whole, with what was there kept beside it. Never restarts anything.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { chmod, chown, copyFile, mkdir, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, isMissing } from '../world/errno.ts';
import { readConfig, sandboxImageLines, setSandboxImage } from './containerdConfig.ts';

export type ConfigFix =
  | { readonly done: 'already' }
  | { readonly done: 'changed'; readonly file: string; readonly backup?: string }
  /** Left to a person: why, and what to write. */
  | { readonly done: 'refused'; readonly why: string; readonly lines: readonly string[] };

/** The file's text; undefined: there is none. */
export async function readConfigFile(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (e) {
    if (isMissing(e)) return undefined;
    throw e;
  }
}

/** Sets the image of sandboxes in the file; a missing one is made. `containerd`: the program that is asked whether it can read the result. */
export async function fixSandboxImage(path: string, image: string, containerd = 'containerd'): Promise<ConfigFix> {
  const text = await readConfigFile(path);
  const version = text === undefined ? await defaultVersion(containerd) : readConfig(text).version;
  const refused = (why: string): ConfigFix => ({ done: 'refused', why, lines: sandboxImageLines(version, image) });
  if (text !== undefined && readConfig(text).sandboxImage === image) return { done: 'already' };
  const minimal = `version = ${version}\n\n${sandboxImageLines(version, image).join('\n')}\n`;
  // byte for byte: a comment in an old encoding would be written back as another one
  if (text !== undefined && !Buffer.from(text).equals(await readFile(path))) return refused('it has bytes that are no UTF-8');
  const edit = text === undefined ? { ok: true as const, text: minimal } : setSandboxImage(text, image);
  if (!edit.ok) return refused(edit.why);
  // a link stays one: the file that it names is changed
  const file = text === undefined ? path : await realpath(path);
  const tried = `${file}.podsched-new`;
  await mkdir(dirname(file), { recursive: true });
  try {
    // passwords of registries may stand in it: nobody else reads it before it has the mode that the file has
    await rm(tried, { force: true });
    const handle = await open(tried, 'wx', 0o600);
    try {
      await handle.writeFile(edit.text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const complaint = await complaintOf(containerd, tried);
    if (complaint !== undefined) return refused(`containerd does not take the file with it: ${complaint}`);
    if (text === undefined) {
      await chmod(tried, 0o644);
      await rename(tried, file);
      return { done: 'changed', file };
    }
    const { uid, gid, mode } = await stat(file);
    await chown(tried, uid, gid);
    await chmod(tried, mode & 0o7777);
    const backup = await keepCopy(file);
    await rename(tried, file);
    return { done: 'changed', file, backup };
  } finally {
    await rm(tried, { force: true });
  }
}

/** Beside it; an older copy is not lost. */
async function keepCopy(file: string): Promise<string> {
  for (let n = 0; ; n++) {
    const backup = `${file}.before-podsched${n === 0 ? '' : `-${n}`}`;
    try {
      await copyFile(file, backup, constants.COPYFILE_EXCL);
      return backup;
    } catch (e) {
      if (codeOf(e) !== 'EEXIST') throw e;
    }
  }
}

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** undefined: the program is not there. */
const run = (program: string, args: readonly string[]): Promise<Said | undefined> =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: 20_000, maxBuffer: 4 << 20 }, (e, out, err) => {
      if (e?.code === 'ENOENT') resolve(undefined);
      else resolve({ code: e === null ? 0 : 1, out, err });
    });
  });

/** Which version of the file this containerd writes itself; 2 where it does not say. */
async function defaultVersion(containerd: string): Promise<number> {
  const said = await run(containerd, ['config', 'default']);
  const found = Number(/^version\s*=\s*(\d+)/m.exec(said?.out ?? '')?.[1] ?? 2);
  return found === 3 ? 3 : 2;
}

/** What containerd says against a file; undefined: nothing, or there is nobody to ask. */
async function complaintOf(containerd: string, file: string): Promise<string | undefined> {
  const said = await run(containerd, ['--config', file, 'config', 'dump']);
  if (said === undefined || said.code === 0) return undefined;
  return said.err.trim().split('\n').at(-1) ?? 'it ended with an error';
}
