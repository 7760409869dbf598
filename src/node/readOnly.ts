// pure
/**
 * Which file systems the kernel lets nobody write to. Decided by the options of the file system itself (after the dash), never by those of
 * the mount: a service manager shows its services a writable disk as read-only on purpose.
 */

interface Mount {
  readonly point: string;
  readonly type: string;
  readonly superOptions: readonly string[];
}

/** `\040` and its like. */
const plain = (text: string): string => text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The lines of /proc/self/mountinfo, in order; what is no such line is left out. */
function mounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after] = line.split(' - ');
    const point = before.split(' ')[4];
    const [type, , options] = (after ?? '').split(' ');
    return point === undefined || type === undefined || options === undefined
      ? []
      : [{ point: plain(point), type, superOptions: options.split(',') }];
  });
}

/** After an error; newer kernels of ext4 say so instead of `ro`. */
const closed = ['ro', 'emergency_ro', 'shutdown'];
/** Read-only by nature: not a disk that has failed. */
const alwaysReadOnly = new Set(['squashfs', 'erofs', 'iso9660']);

/** The mount points that the paths lie on, where nobody can write. In the order of the paths, each once. */
export function readOnlyMounts(mountinfo: string, paths: readonly string[]): readonly string[] {
  const all = mounts(mountinfo);
  const holds = (point: string, path: string): boolean => path === point || path.startsWith(point === '/' ? '/' : `${point}/`);
  const found = paths.flatMap((path) => {
    // the longest that holds it; of several on one place the last, which is on top
    const mount = all.reduce<Mount | undefined>(
      (best, m) => (holds(m.point, path) && m.point.length >= (best?.point.length ?? 0) ? m : best),
      undefined,
    );
    return mount !== undefined && !alwaysReadOnly.has(mount.type) && mount.superOptions.some((o) => closed.includes(o))
      ? [mount.point]
      : [];
  });
  return [...new Set(found)];
}
