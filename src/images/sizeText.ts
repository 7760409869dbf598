// pure
/** Bytes as lists of images show them: `4.27MB`, three digits, powers of 1000. */
const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** Negative counts as 0. */
export function sizeText(bytes: number): string {
  let value = Math.max(0, bytes);
  let i = 0;
  // what would round to 1000 is 1 of the next
  while (value >= 999.5 && i < units.length - 1) {
    value /= 1000;
    i++;
  }
  return `${i === 0 ? Math.round(value) : Number(value.toPrecision(3))}${units[i]}`;
}
