/**
 * SD cards and eMMC as the kernel tells of them. The kernel asks a card once, when it finds it, so it is read once here too.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lifeUsed, type StorageCard } from './cardWear.ts';
import { fileText } from './files.ts';

/** All cards, by name. */
export async function storageCards(sys: string): Promise<readonly StorageCard[]> {
  const names = (await readdir(join(sys, 'block')).catch(() => [])).filter((name) => /^mmcblk[0-9]+$/.test(name));
  return Promise.all(names.sort().map((device) => readCard(join(sys, 'block', device, 'device'), device)));
}

async function readCard(folder: string, device: string): Promise<StorageCard> {
  const read = (name: string): Promise<string> => fileText(join(folder, name));
  const [name, type, manufacturer, made, life, eol] = await Promise.all(
    ['name', 'type', 'manfid', 'date', 'life_time', 'pre_eol_info'].map(read),
  );
  return {
    device,
    name: printable(name),
    kind: type === 'SD' || type === 'MMC' ? type : '',
    manufacturer: printable(manufacturer),
    made: printable(made),
    usedPercent: lifeUsed(life ?? ''),
    spare: spares[Number(/^0x0?([123])$/.exec(eol ?? '')?.[1] ?? 0)],
  };
}

const spares = [undefined, 'normal', 'warning', 'urgent'] as const;

/** What a card calls itself is its own business: only letters, digits and a few signs of it are shown. */
const printable = (text = ''): string => text.replace(/[^A-Za-z0-9 /_.-]/g, '').slice(0, 32);
