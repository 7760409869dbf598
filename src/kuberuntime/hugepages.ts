// pure
/** Huge pages of a container: one limit for each size the machine has, 0 where the container asks for none (facts 10.6). */
import { quantityValue } from '../api/quantity.ts';
import type { Quantity } from '../api/v1.ts';

const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
const resourcePrefix = 'hugepages-';

/** Bytes as cgroups name a page size: `2MB`. */
function cgroupSize(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount = Math.floor(amount / 1024);
    unit += 1;
  }
  return `${amount}${units[unit] ?? ''}`;
}

/** In the order of `sizes`; a limit of a size that the machine does not have is nobody's (admission refuses such a pod). */
export function hugepageLimits(
  limits: Readonly<Record<string, Quantity>>,
  sizes: readonly string[],
): { readonly pageSize: string; readonly limitBytes: number }[] {
  const asked = new Map(
    Object.entries(limits).flatMap(([name, amount]) =>
      name.startsWith(resourcePrefix)
        ? [[cgroupSize(quantityValue(name.slice(resourcePrefix.length))), quantityValue(amount)] as const]
        : [],
    ),
  );
  return sizes.map((pageSize) => ({ pageSize, limitBytes: asked.get(pageSize) ?? 0 }));
}

/** The sizes behind the folders of /sys/kernel/mm/hugepages (`hugepages-2048kB`), smallest first. */
export const hugepageSizes = (folders: readonly string[]): string[] =>
  folders
    .flatMap((folder) => /^hugepages-(\d+)kB$/.exec(folder)?.[1] ?? [])
    .map((kib) => Number(kib) * 1024)
    .sort((a, b) => a - b)
    .map(cgroupSize);
