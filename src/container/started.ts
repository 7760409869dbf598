// pure
/**
 * When an instance started, as its sandboxes say it: `podsched.dev/started: <boot id>/<CLOCK_MONOTONIC ms>`. It outlives the agent, and a new boot
 * counts anew.
 */
import type { Monotonic } from '../world/clock.ts';
import { annotations, type Sandbox } from './words.ts';

/** The annotation's value. Whole milliseconds. */
export const startedText = (bootId: string, at: Monotonic): string => `${bootId}/${Math.floor(at)}`;

/** The moment in the annotation; undefined when it is of another boot, or not one of ours. */
export function parseStarted(text: string | undefined, bootId: string): Monotonic | undefined {
  if (text === undefined || !text.startsWith(`${bootId}/`)) return undefined;
  const ms = text.slice(bootId.length + 1);
  return /^\d{1,15}$/.test(ms) ? (Number(ms) as Monotonic) : undefined;
}

/** When the instance started in this boot: the earliest its sandboxes name; undefined when none does. */
export function startedAt(sandboxes: readonly Pick<Sandbox, 'annotations'>[], bootId: string): Monotonic | undefined {
  const moments = sandboxes.map((s) => parseStarted(s.annotations[annotations.started], bootId)).filter((at) => at !== undefined);
  return moments.length === 0 ? undefined : (Math.min(...moments) as Monotonic);
}
