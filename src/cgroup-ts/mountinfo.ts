/** /proc/<pid>/mountinfo, as far as cgroups need it. Nothing here reads a file. */

export interface Mount {
  readonly mountPoint: string;
  /** Path inside the file system that is mounted there: `/` unless it is a bind mount of a part, or seen from a cgroup namespace. */
  readonly root: string;
  readonly type: string;
  /** Of the mount: rw, relatime, … */
  readonly options: readonly string[];
  /** Of the file system; for v1 hierarchies the controllers are among them. */
  readonly superOptions: readonly string[];
}

/** The kernel writes blanks, tabs, line ends and backslashes as three octal digits. */
const decoded = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** In the kernel's order: of two mounts on one point the later one is seen. Lines of another form are left out. */
export function parseMountinfo(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const words = line.split(' ');
    const dash = words.indexOf('-', 6); // before it stand any number of optional words
    const [root, mountPoint, options] = [words[3], words[4], words[5]];
    const [type, superOptions] = [words[dash + 1], words[dash + 3]];
    if (dash < 0 || root === undefined || mountPoint === undefined || options === undefined || type === undefined) return [];
    return [
      {
        mountPoint: decoded(mountPoint),
        root: decoded(root),
        type,
        options: options.split(','),
        superOptions: (superOptions ?? '').split(','),
      },
    ];
  });
}
