/** What this machine's cgroups are, as the kernel says it, and who writes into them. Owns nothing. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CgroupfsDriver, type Detection, type Driver, detect, SystemdDriver } from 'cgroup-ts';
import type { CgroupDriver } from '../api/resources.ts';
import { describeError } from '../world/log.ts';
import type { CgroupFacts, KernelLine } from './enforced.ts';

export interface MachineRoots {
  /** `/sys/fs/cgroup` */
  readonly cgroups: string;
  /** `/proc` */
  readonly proc: string;
  /** `/boot` */
  readonly boot: string;
}

/** Never rejects: where the kernel's files cannot be read nothing is offered. */
export async function readCgroups({ cgroups, proc }: Pick<MachineRoots, 'cgroups' | 'proc'>): Promise<CgroupFacts> {
  let found: Detection;
  try {
    found = await detect({ root: cgroups, procRoot: proc, wanted: ['cpu', 'memory', 'pids', 'hugetlb'] });
  } catch (e) {
    return { version: 'none', controllers: new Set(), refused: describeError(e) };
  }
  return {
    version: found.mode,
    controllers: new Set([...found.available, ...(found.mode === 'v2' ? [] : found.v1)]),
    ...(found.mode === 'v2' &&
      !found.writable && { refused: `${found.mountPoint ?? cgroups} cannot be written (${found.notWritable ?? 'no permission'})` }),
  };
}

/** Who makes the cgroups of pods, as the runtime makes those of containers. */
export const makeDriver = (kind: CgroupDriver, { cgroups }: MachineRoots): Driver =>
  kind === 'systemd' ? new SystemdDriver({ root: cgroups }) : new CgroupfsDriver({ root: cgroups });

/** Where the kernel command line of this machine is written, and what it was at boot. */
export function kernelLine({ boot, proc }: MachineRoots): KernelLine {
  const firmware = join(boot, 'firmware');
  const older = join(boot, 'cmdline.txt');
  const place = existsSync(firmware)
    ? `the line in ${join(firmware, 'cmdline.txt')}`
    : existsSync(older)
      ? `the line in ${older}`
      : 'the kernel command line of the boot loader (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)';
  return { place, booted: textOf(join(proc, 'cmdline')) };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return ''; // it does not say
  }
}
