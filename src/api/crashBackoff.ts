// pure
/** The annotation `podsched.dev/crash-backoff`. */
import { parseDuration } from './quantity.ts';

/** `podsched.dev/crash-backoff: "first,max"`: the first and the longest wait between restarts; undefined when it is not two such durations. */
export function parseCrashBackoff(text: string): { readonly firstMs: number; readonly maxMs: number } | undefined {
  const parts = text.split(',').map((part) => parseDuration(part.trim()));
  const [firstMs, maxMs] = parts;
  if (parts.length !== 2 || firstMs === undefined || maxMs === undefined) return undefined;
  // under 100 ms a crash loop would be a busy loop; over a day it is a stop
  return firstMs >= 100 && firstMs <= maxMs && maxMs <= 86_400_000 ? { firstMs, maxMs } : undefined;
}
