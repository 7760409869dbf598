/** Huge pages that the kernel has set aside: bytes by resource name. Read from files, so a folder is its fake. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `root`: `/sys`. Sizes of which there are none are left out; without the folder there are none at all. */
export function hugepages(root: string): Readonly<Record<string, number>> {
  const folder = join(root, 'kernel/mm/hugepages');
  try {
    return Object.fromEntries(
      readdirSync(folder).flatMap((name) => {
        const kibibytes = Number(/^hugepages-([0-9]+)kB$/.exec(name)?.[1] ?? 0);
        const pages = Number(readFileSync(join(folder, name, 'nr_hugepages'), 'utf8'));
        return kibibytes > 0 && pages > 0 ? [[`hugepages-${resourceSize(kibibytes)}`, pages * kibibytes * 1024]] : [];
      }),
    );
  } catch {
    return {}; // a kernel without huge pages
  }
}

/** As Kubernetes writes it in the resource's name. */
function resourceSize(kibibytes: number): string {
  if (kibibytes % 2 ** 20 === 0) return `${kibibytes / 2 ** 20}Gi`;
  return kibibytes % 1024 === 0 ? `${kibibytes / 1024}Mi` : `${kibibytes}Ki`;
}
