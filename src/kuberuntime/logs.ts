/**
 * The log folders of pods: made before the runtime writes into them, read for a restart count when no record is left, removed with what they
 * belong to. Owns the folders under the root of all logs that carry its mark: another agent on this machine may log there too.
 */
import { access, chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '../world/errno.ts';
import { type PodRef, podLogFolder, uidOfLogFolder } from './names.ts';

/** In a pod's log folder: podsched made it, so podsched may remove it when nothing else tells whose it was. */
const mark = '.podsched';

export interface LogFolders {
  /** The pod's folder, and the container's in it when one is named, 0755. */
  ensure(pod: PodRef, container?: string): Promise<void>;
  /** 1 + the highest N of `N.log*` in the container's folder; 0 when there is none. */
  nextAttempt(pod: PodRef, container: string): Promise<number>;
  /** One record's log with its rotated parts. */
  removeLog(pod: PodRef, container: string, attempt: number): Promise<void>;
  /** The pod's whole folder; what is not there is removed. */
  removePod(pod: PodRef): Promise<void>;
  /** The pods whose folders lie here and are ours. */
  list(): Promise<readonly PodRef[]>;
}

async function names(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (e) {
    if (isMissing(e)) return [];
    throw e;
  }
}

/** A folder that cannot be read is not known to be ours. */
const isMarked = (dir: string): Promise<boolean> =>
  access(join(dir, mark)).then(
    () => true,
    () => false,
  );

/** The folders under `root` on disk. Rejects with the file system's own errors. */
export function fsLogFolders(root: string): LogFolders {
  const folder = (pod: PodRef): string => join(root, podLogFolder(pod));
  const open = async (dir: string): Promise<void> => {
    if ((await mkdir(dir, { recursive: true, mode: 0o755 })) === undefined) return;
    await chmod(dir, 0o755); // whatever the agent's umask is: log shippers run as somebody else
  };
  return {
    async ensure(pod, container) {
      const dir = folder(pod);
      await open(dir);
      // also of a folder that an agent which was killed left without it: nobody would ever remove that one
      if (!(await isMarked(dir))) await writeFile(join(dir, mark), '', { mode: 0o644 });
      if (container !== undefined) await open(join(dir, container));
    },
    async nextAttempt(pod, container) {
      const numbers = (await names(join(folder(pod), container))).flatMap((n) => {
        const match = /^(\d+)\.log/.exec(n);
        return match === null ? [] : [Number(match[1])];
      });
      return Math.max(-1, ...numbers) + 1;
    },
    async removeLog(pod, container, attempt) {
      const dir = join(folder(pod), container);
      for (const name of await names(dir)) {
        if (name === `${attempt}.log` || name.startsWith(`${attempt}.log.`)) await rm(join(dir, name), { force: true });
      }
    },
    async removePod(pod) {
      await rm(folder(pod), { recursive: true, force: true });
    },
    async list() {
      const found: PodRef[] = [];
      for (const name of await names(root)) {
        const uid = uidOfLogFolder(name);
        if (uid === undefined || !(await isMarked(join(root, name)))) continue;
        const [namespace = '', pod = ''] = name.split('_');
        found.push({ uid, namespace, name: pod });
      }
      return found;
    },
  };
}
