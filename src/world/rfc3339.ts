// pure
import type { WallTime } from './clock.ts';

/** RFC 3339 in whole seconds, as Kubernetes writes times in a status. */
export const toRfc3339 = (t: WallTime): string => `${new Date(Math.floor(t / 1000) * 1000).toISOString().slice(0, 19)}Z`;
