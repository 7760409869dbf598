// pure
/**
 * Whether a container ended because files of its image are damaged, as a power cut soon after a pull leaves them: empty, or full of zeros.
 * What is taken for a sign was seen with containerd 1.6.20, runc 1.1 and glibc 2.36: the start succeeds, the container ends at once with
 * exit code 1 (127 from the dynamic loader), and the one line of its log names the file. An empty file, one of zeros and one cut inside its
 * header look alike, and so do a program of another architecture and a script without `#!`; so the sign alone is no proof. A program that
 * was cut further on dies of SIGSEGV without a word, like any other that is wrong: that is not taken for a sign.
 */

export interface Ended {
  readonly exitCode: number;
  /** The runtime's own words, where the start itself failed. */
  readonly message: string;
  /** All that it logged, or the end of it. */
  readonly log: string;
  /** Where something of the host is mounted into it: files below are not the image's. */
  readonly mounts: readonly string[];
  /** As the manifest has it; absent: the image's. */
  readonly workingDir?: string;
}

/** The file's path is the first group. */
const signs: readonly RegExp[] = [
  // runc, the kernel's word: no program (ENOEXEC), its loader is cut short (EIO), its loader is no program (ELIBBAD)
  /^exec (\S.*?): (?:exec format error|input\/output error|accessing a corrupted shared library)$/,
  // crun
  /^exec container process `(.+?)`: Exec format error$/,
  // runc before 1.1
  /^standard_init_linux\.go:\d+: exec user process caused:? "?()exec format error"?$/,
  // glibc's loader, of a library that is empty or zeros
  /^.+?: error while loading shared libraries: (\S.*?): (?:file too short|invalid ELF header)$/,
  // musl's loader
  /^Error loading shared library (\S.*?): Exec format error(?: \(needed by .*\))?$/,
];

/** Nothing else needs to be looked at when it ended well. */
export const mayBeDamage = ({ exitCode }: Pick<Ended, 'exitCode'>): boolean => exitCode !== 0;

/** The line that says it; undefined: it ended for another reason, or the file it names is not the image's. */
export function damageSign(ended: Ended): string | undefined {
  if (!mayBeDamage(ended)) return undefined;
  // what could not begin has said nothing else
  const line = ended.log.trim() || startError(ended.message);
  if (line.includes('\n')) return undefined;
  const path = signs.map((sign) => sign.exec(line)?.[1]).find((found) => found !== undefined);
  if (path === undefined) return undefined;
  return ended.mounts.some((mount) => isBelow(absolute(path, ended.workingDir), mount)) ? undefined : line;
}

/** The runtime's last words: before them it says what it was about to do. */
function startError(message: string): string {
  const at = message.lastIndexOf('exec container process ');
  return (at < 0 ? message : message.slice(at)).trim();
}

const absolute = (path: string, workingDir = ''): string => (path.startsWith('/') ? path : `${workingDir}/${path.replace(/^\.\//, '')}`);

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
