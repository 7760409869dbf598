// pure
/**
 * How worn an SD card or eMMC says it is. SD cards say nothing; eMMC does (JESD84-B51): `life_time` in steps of ten percent for its two kinds
 * of memory, `pre_eol_info` for its spare blocks.
 */
export interface StorageCard {
  /** `mmcblk0` */
  readonly device: string;
  /** As the card calls itself: `SC32G`. */
  readonly name: string;
  readonly kind: 'SD' | 'MMC' | '';
  /** `0x000003` */
  readonly manufacturer: string;
  /** Month of manufacture, `03/2021`. */
  readonly made: string;
  /** Percent of its life that is used, at least and at most; undefined: it does not say. */
  readonly usedPercent: { readonly from: number; readonly to: number } | undefined;
  /** Of its spare blocks; undefined: it does not say. */
  readonly spare: 'normal' | 'warning' | 'urgent' | undefined;
}

/** `0x02 0x01`: the worse of the two; 0 is "not defined", 11 is "beyond its life". */
export function lifeUsed(text: string): StorageCard['usedPercent'] {
  const steps = text
    .split(/\s+/)
    .map((word) => (/^0x[0-9a-f]{1,2}$/i.test(word) ? Number.parseInt(word, 16) : 0))
    .filter((step) => step >= 1 && step <= 11);
  const worst = Math.max(0, ...steps);
  return worst === 0 ? undefined : { from: (worst - 1) * 10, to: Math.min(worst * 10, 100) };
}

const wornPercent = 90;

/** Why a card is to be replaced; undefined: nothing speaks for it. */
export function wornText({ device, name, usedPercent, spare }: StorageCard): string | undefined {
  const what = name === '' ? device : `${device} (${name})`;
  if (spare === 'urgent') return `${what} says that its spare blocks are all but used up`;
  if (usedPercent !== undefined && usedPercent.from >= wornPercent) {
    return `${what} says that ${usedPercent.from === 100 ? 'all' : `more than ${usedPercent.from} %`} of its life is used`;
  }
  return spare === 'warning' ? `${what} says that four fifths of its spare blocks are used` : undefined;
}

/** One line for a person: `SD card mmcblk0 SC32G (03/2021), wear not told`. */
export function cardText({ device, name, kind, made, usedPercent, spare }: StorageCard): string {
  const what = [kind === 'MMC' ? 'eMMC' : kind === 'SD' ? 'SD card' : 'card', device, name].filter((part) => part !== '').join(' ');
  const wear = usedPercent === undefined ? 'wear not told' : `${usedPercent.from} to ${usedPercent.to} % of its life used`;
  return `${what}${made === '' ? '' : ` (${made})`}, ${wear}${spare === undefined || spare === 'normal' ? '' : `, spare blocks: ${spare}`}`;
}
