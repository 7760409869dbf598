/**
 * The file into which a container may write why it ends (facts 10.9): a new one for each attempt, found again by whoever reads the
 * container's mounts. Its name is the attempt in eight hexadecimal digits, so a second try of one attempt leaves no second file behind;
 * the files of attempts long gone are removed, since on a card they would only ever grow.
 */
import { chmod, mkdir, open, readdir, unlink } from 'node:fs/promises';
import { isMissing } from '../world/errno.ts';
import { pathOf } from './descriptor.ts';

/** The attempt itself and those whose records the runtime may still have. */
const keptAttempts = 4;

const nameOf = (attempt: number): string => attempt.toString(16).padStart(8, '0');

/** Makes the file of this attempt, empty and open to every user. Its path. */
export async function makeTerminationLog(dir: string, attempt: number): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o750 });
  const path = `${dir}/${nameOf(attempt)}`;
  await remove(path);
  const file = await open(path, 'wx', 0o666);
  try {
    await chmod(pathOf(file), 0o666); // whatever the agent's umask is
  } finally {
    await file.close();
  }
  for (const name of await readdir(dir)) {
    if (/^[0-9a-f]{8}$/.test(name) && Number.parseInt(name, 16) <= attempt - keptAttempts) await remove(`${dir}/${name}`);
  }
  return path;
}

async function remove(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (e) {
    if (!isMissing(e)) throw e;
  }
}
