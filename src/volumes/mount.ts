/**
 * The door to mount(8) and umount(8): argv, never a shell; what is mounted is asked of the kernel. Nothing here knows of pods.
 */
import { spawn } from 'node:child_process';
import { type FileHandle, readFile } from 'node:fs/promises';

export interface Mounter {
  /** Binds what the descriptor has open, whatever its path names by now; `whole`: with what is mounted below it. */
  bind(source: FileHandle, target: string, whole?: boolean): Promise<void>;
  /** A file system in memory. Rejects with mount's own words. */
  mount(type: 'tmpfs' | 'hugetlbfs', target: string, options: readonly string[]): Promise<void>;
  /** Rejects while it is in use. */
  unmount(target: string): Promise<void>;
  /** What is mounted there, and all below it, has nothing to do with other mounts of the same file systems any more. */
  makePrivate(target: string): Promise<void>;
  /** Every mount point that this process sees, in the order in which they were mounted; one that is covered stands there as well. */
  mountPoints(): Promise<readonly string[]>;
}

/** They are done in milliseconds; a hung one must not hold up a pod for ever. */
const timeoutMs = 30_000;

/** The descriptor's number in the child. */
const inheritedFd = 3;

function run(command: string, args: readonly string[], source?: FileHandle): Promise<void> {
  return new Promise((resolve, reject) => {
    const inherited = source === undefined ? [] : [source.fd];
    const child = spawn(command, args, {
      stdio: ['ignore', 'ignore', 'pipe', ...inherited],
      timeout: timeoutMs,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    });
    let said = '';
    child.stderr?.on('data', (bytes: Buffer) => {
      if (said.length < 4096) said += bytes.toString('utf8');
    });
    child.on('error', (e) => reject(new Error(`${command} cannot be run`, { cause: e })));
    child.on('close', (code, signal) => {
      if (code === 0) return resolve();
      const text = said.trim().replace(/\s*\n\s*/g, ' ');
      reject(new Error(text === '' ? `${command} ended with ${signal ?? code}` : text));
    });
  });
}

/** `\040` is how the kernel writes a blank in a path. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The mount points of a /proc/PID/mountinfo (proc_pid_mountinfo(5)). */
export const parseMountPoints = (mountinfo: string): string[] =>
  mountinfo.split('\n').flatMap((line) => {
    const point = line.split(' ')[4];
    return point === undefined ? [] : [unescaped(point)];
  });

// --no-canonicalize: mount(8) would else turn the descriptor back into a path, which may name something else by now
export const systemMounter: Mounter = {
  bind: (source, target, whole = false) =>
    run('mount', ['--no-canonicalize', whole ? '--rbind' : '--bind', `/proc/self/fd/${inheritedFd}`, target], source),
  mount: (type, target, options) =>
    run('mount', ['--no-canonicalize', '-t', type, ...(options.length === 0 ? [] : ['-o', options.join(',')]), type, target]),
  makePrivate: (target) => run('mount', ['--no-canonicalize', '--make-rprivate', target]),
  unmount: (target) => run('umount', ['--no-canonicalize', target]),
  mountPoints: async () => parseMountPoints(await readFile('/proc/self/mountinfo', 'utf8')),
};
