// pure
/**
 * When activeDeadlineSeconds ends. It counts over agent restarts by the annotation on the instance's sandboxes,
 * `podsched.dev/started: <boot id>/<CLOCK_MONOTONIC ms>`; a new boot counts anew. Mirrors kubelet v1.32 active_deadline.go, which counts
 * from the wall clock and forgets at a restart.
 */
import type { Pod } from '../api/v1.ts';
import { annotations, type Sandbox } from '../container/words.ts';
import type { Monotonic } from '../world/clock.ts';

/** The annotation's value for an instance whose first sandbox of this boot is made at `at`. Whole milliseconds. */
export const startedText = (bootId: string, at: Monotonic): string => `${bootId}/${Math.floor(at)}`;

/** The moment in the annotation; undefined when it is of another boot, or not one of ours. */
export function parseStarted(text: string | undefined, bootId: string): Monotonic | undefined {
  if (text === undefined || !text.startsWith(`${bootId}/`)) return undefined;
  const ms = text.slice(bootId.length + 1);
  return /^\d{1,15}$/.test(ms) ? (Number(ms) as Monotonic) : undefined;
}

/** When the instance started in this boot: the earliest its sandboxes name; undefined when none does. */
export function startedAt(sandboxes: readonly Sandbox[], bootId: string): Monotonic | undefined {
  const moments = sandboxes.map((s) => parseStarted(s.annotations[annotations.started], bootId)).filter((at) => at !== undefined);
  return moments.length === 0 ? undefined : (Math.min(...moments) as Monotonic);
}

/** When the pod's time is over; undefined: it has no deadline, or has not started in this boot. */
export function podDeadline(pod: Pod, sandboxes: readonly Sandbox[], bootId: string): Monotonic | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  const started = seconds === undefined ? undefined : startedAt(sandboxes, bootId);
  return seconds === undefined || started === undefined ? undefined : ((started + seconds * 1000) as Monotonic);
}
