// pure
/** Whether the node has a way out, from /proc/net/route and /proc/net/ipv6_route: a default route that is up, of any family. */

const up = 0x1;
const reject = 0x200;

/** Either text may be empty: a kernel without that family. */
export function hasDefaultRoute(route: string, route6: string): boolean {
  const v4 = rows(route).some(([device, destination, , flags, , , , mask]) => {
    return device !== 'lo' && isZero(destination) && isZero(mask) && isUsable(flags);
  });
  const v6 = rows(route6).some((row) => {
    const [destination, length] = row;
    // the kernel has one of its own on lo, which rejects
    return isZero(destination) && length === '00' && row[9] !== 'lo' && isUsable(row[8]);
  });
  return v4 || v6;
}

const rows = (text: string): string[][] => text.split('\n').map((line) => line.trim().split(/\s+/));
const isZero = (hex: string | undefined): boolean => hex !== undefined && /^0+$/.test(hex);
const isUsable = (flags: string | undefined): boolean => {
  const bits = Number.parseInt(flags ?? '0', 16);
  return (bits & up) !== 0 && (bits & reject) === 0;
};
