// pure
/**
 * Why a program cannot run on a kernel with other memory pages than it was built for, as a Pi 5 has them: jemalloc says it in its first
 * words, and the program dies of what it cannot allocate, some lines later and each in its own way. The kubelet says nothing of it.
 */

const usualBytes = 4096;
const sign = /^<jemalloc>: Unsupported system page size/m;

/** Whether a log is worth a look: on a kernel with usual pages nothing can be wrong with them. */
export const mayBePageSize = (pageBytes: number | undefined, exitCode: number): pageBytes is number =>
  pageBytes !== undefined && pageBytes !== usualBytes && exitCode !== 0;

/** The hint for what a container logged at its end; undefined: it ended of something else. */
export function pageSizeHint(log: string, pageBytes: number): string | undefined {
  if (!sign.test(log)) return undefined;
  const pages = `${pageBytes / 1024} KiB`;
  return `the image expects 4 KiB pages and this kernel has ${pages}: boot with kernel=kernel8.img in config.txt or use an image built for ${pages}`;
}
