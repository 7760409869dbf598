// pure
/** How long ago, as kubectl writes it: two units at most, coarser as it grows. */

/** `5d3h` for a span of seconds; `<invalid>` when it lies in the future (a clock was wrong). */
export function spanText(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < -2) return '<invalid>';
  const s = Math.max(0, Math.floor(seconds));
  const [m, h, d, y] = [60, 3600, 86_400, 31_536_000].map((unit) => Math.floor(s / unit)) as [number, number, number, number];
  const two = (a: number, unit: string, b: number, small: string): string => (b === 0 ? `${a}${unit}` : `${a}${unit}${b}${small}`);
  if (s < 120) return `${s}s`;
  if (m < 10) return two(m, 'm', s % 60, 's');
  if (h < 3) return `${m}m`;
  if (h < 8) return two(h, 'h', m % 60, 'm');
  if (h < 48) return `${h}h`;
  if (d < 8) return two(d, 'd', h % 24, 'h');
  if (y < 2) return `${d}d`;
  if (y < 8) return two(y, 'y', d % 365, 'd');
  return `${y}y`;
}

/** From an RFC 3339 time to `nowMs`; `<unknown>` when there is none. */
export function ageText(time: string | undefined, nowMs: number): string {
  const from = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(from) ? '<unknown>' : spanText((nowMs - from) / 1000);
}
