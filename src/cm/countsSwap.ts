/** Whether the kernel counts the swap of a cgroup, so that a container can be kept from it. Mirrors kubelet v1.32 swapControllerAvailable. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `cgroups`: /sys/fs/cgroup, `proc`: /proc. The root of cgroup v2 has no such file: our own cgroup is asked, then the first below the root. */
export function countsSwap({ cgroups, proc }: { readonly cgroups: string; readonly proc: string }): boolean {
  if (!existsSync(join(cgroups, 'cgroup.controllers'))) return existsSync(join(cgroups, 'memory', 'memory.memsw.limit_in_bytes'));
  try {
    const own = /^0::(\/.*)$/m.exec(readFileSync(join(proc, 'self', 'cgroup'), 'utf8'))?.[1] ?? '/';
    const folders = readdirSync(cgroups, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? e.name : []));
    return [own, ...folders].some((folder) => existsSync(join(cgroups, folder, 'memory.swap.max')));
  } catch {
    return false; // a machine that shows nothing
  }
}
