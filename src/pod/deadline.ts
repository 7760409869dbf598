// pure
/**
 * When activeDeadlineSeconds ends. It counts over agent restarts by what the instance's sandboxes say of their start; a new boot counts anew.
 * Mirrors kubelet v1.32 active_deadline.go, which counts from the wall clock and forgets at a restart.
 */
import type { Pod } from '../api/v1.ts';
import { startedAt } from '../container/started.ts';
import type { Sandbox } from '../container/words.ts';
import type { Monotonic } from '../world/clock.ts';

/** When the pod's time is over; undefined: it has no deadline, or has not started in this boot. */
export function podDeadline(pod: Pod, sandboxes: readonly Sandbox[], bootId: string): Monotonic | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  const started = seconds === undefined ? undefined : startedAt(sandboxes, bootId);
  return seconds === undefined || started === undefined ? undefined : ((started + seconds * 1000) as Monotonic);
}
