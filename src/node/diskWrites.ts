/** What was written to the machine's own disks since it started, from the kernel's counters. Read at each heartbeat: one small file per disk. */
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileText } from './files.ts';

/** The kernel counts sectors of 512 bytes, whatever those of the disk are. */
const sectorBytes = 512;
/** A machine with more disks is no board of ours; nobody waits for them all. */
const mostDisks = 32;

/** Of all disks with a device behind them: no loop, zram or device mapper, which end on those. undefined: none is told. `sys`: `/sys`. */
export async function diskWrittenBytes(sys: string): Promise<number | undefined> {
  const names = await readdir(join(sys, 'block')).catch(() => []); // not Linux, or a kernel without block devices
  const written = await Promise.all(names.slice(0, mostDisks).map((name) => writtenTo(join(sys, 'block', name))));
  const known = written.filter((bytes) => bytes !== undefined);
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0);
}

async function writtenTo(folder: string): Promise<number | undefined> {
  const real = await access(join(folder, 'device')).then(
    () => true,
    () => false,
  );
  if (!real) return undefined;
  // reads: done, merged, sectors, ms; then the same of writes
  const sectors = (await fileText(join(folder, 'stat'))).split(/\s+/)[6] ?? '';
  return /^[0-9]{1,15}$/.test(sectors) ? Number(sectors) * sectorBytes : undefined;
}
