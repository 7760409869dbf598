/** `validate FILE…`: reads files, folders and standard input, and prints each mistake as path:line:column. Needs no agent. */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { problemText } from '../api/problems.ts';
import { configurationFile, isManifestName } from '../config/names.ts';
import { type FileToValidate, validateFiles } from '../operations/validate.ts';
import { loadOptions } from '../options.ts';
import { codeOf } from '../world/errno.ts';
import { harmless } from '../world/terminal.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

export async function validate(
  paths: readonly string[],
  o: { readonly strict: boolean; readonly stdin: () => Promise<Uint8Array> },
  print: Pick<Printer, 'out'>,
): Promise<number> {
  const files: FileToValidate[] = [];
  for (const path of paths) {
    if (path === '-') files.push({ path, content: { ok: true, bytes: await o.stdin() } });
    else files.push(...(await readPath(path)));
  }
  const results = validateFiles(files, {
    strict: o.strict,
    checkConfiguration: (file) => loadOptions({ flags: {}, env: {}, file }),
  });
  for (const { path, problems, warnings, objects } of results) {
    for (const p of problems) print.out(`${harmless(problemText(p))}\n`);
    for (const w of warnings) print.out(`warning: ${harmless(problemText(w))}\n`);
    if (problems.length === 0) print.out(`${harmless(path)}: ok${objects.length === 0 ? '' : ` (${objects.join(', ')})`}\n`);
  }
  return results.some((r) => r.problems.length > 0) ? exitCodes.failed : exitCodes.done;
}

/** A folder stands for what the agent would read in it. */
export async function readPath(path: string): Promise<readonly FileToValidate[]> {
  const unreadable = (message: string): FileToValidate => ({ path, content: { ok: false, reason: 'SourceUnreadable', message } });
  try {
    // a FIFO would block the open without this
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (stats.isFile()) return [{ path, content: { ok: true, bytes: await file.readFile() } }];
      if (!stats.isDirectory()) return [unreadable('it is no regular file; standard input is written -')];
    } finally {
      await file.close();
    }
    const names = (await readdir(path)).filter((name) => isManifestName(name) || name === configurationFile).sort();
    if (names.length === 0) throw new CommandError(exitCodes.notFound, `${path} has no .yaml, .yml or .json in it`);
    return (await Promise.all(names.map((name) => readPath(join(path, name))))).flat();
  } catch (e) {
    if (e instanceof CommandError) throw e;
    const code = codeOf(e);
    return [unreadable(code === 'ENOENT' ? 'no such file' : code)];
  }
}
