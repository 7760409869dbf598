/** systemd's slice names. Nothing here reads a file. */
import { type CgroupName, checkName } from './driver.ts';
import { CgroupError } from './error.ts';

/** ['kubepods', 'burstable', 'pod12-34'] → `kubepods-burstable-pod12_34.slice`; [] → `-.slice`, the root. */
export function sliceName(name: CgroupName): string {
  checkName(name, true);
  return name.length === 0 ? '-.slice' : `${name.map((part) => part.replaceAll('-', '_')).join('-')}.slice`;
}

/** The way back: `kubepods-burstable-pod12_34.slice` → ['kubepods', 'burstable', 'pod12-34']. undefined: no name that sliceName makes. */
export function parseSliceName(slice: string): CgroupName | undefined {
  if (slice === '-.slice') return [];
  const parts = /^([^/]+)\.slice$/.exec(slice)?.[1]?.split('-');
  if (parts === undefined || parts.some((part) => part === '')) return undefined;
  return parts.map((part) => part.replaceAll('_', '-'));
}

/** `a-b-c.slice` → `a.slice/a-b.slice/a-b-c.slice`: where systemd puts it, below the root. `-.slice` → ``. CgroupError EINVAL for wrong names. */
export function expandSlice(slice: string): string {
  if (slice === '-.slice') return '';
  const stem = /^([^/]+)\.slice$/.exec(slice)?.[1];
  const parts = stem?.split('-') ?? [''];
  if (parts.some((part) => part === '')) throw new CgroupError({ code: 'EINVAL', file: slice, detail: 'no name of a slice' });
  return parts.map((_, i) => `${parts.slice(0, i + 1).join('-')}.slice`).join('/');
}

/** `a-b-c.slice` → `a-b.slice`; a first-level slice → `-.slice`. */
export function parentSlice(slice: string): string {
  const at = slice.lastIndexOf('-');
  return at <= 0 ? '-.slice' : `${slice.slice(0, at)}.slice`;
}
