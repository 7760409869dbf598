// pure
/**
 * A duration as Go prints it (`10s`, `1m20s`, `5m0s`, `1.25s`, `350ms`): kubectl's readers and scripts know this spelling from
 * messages of the kubelet. Milliseconds in, cut to whole ones; negative counts as 0.
 */
export function goDuration(ms: number): string {
  const whole = Math.max(0, Math.trunc(ms));
  if (whole === 0) return '0s';
  if (whole < 1000) return `${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = (whole % 60_000) / 1000;
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}
