// pure
/**
 * Instances that the agent itself ended, as their status says: evicted, or preempted for a critical pod. The status is what outlives the
 * agent, so it says to the next one too that such an instance is to be ended, and not to be run.
 */
import type { PodCondition, PodStatus } from './status.ts';

const rejected = 'Pod was rejected: ';
const ours: ReadonlySet<string> = new Set(['Evicted', 'Preempting']);

/** It was let in and then ended by the agent; one that was refused for a pressure of the node has the same reason, and is not meant. */
export const wasEvicted = (status: Pick<PodStatus, 'phase' | 'reason' | 'message'> | undefined): boolean =>
  status?.phase === 'Failed' && ours.has(status.reason ?? '') && !(status.message ?? '').startsWith(rejected);

/** Why an instance is ended. */
export interface Eviction {
  /** `Evicted` or `Preempting`. */
  readonly reason: string;
  readonly message: string;
  /** Also tells DisruptionTarget (TerminationByKubelet); false where the pod broke a limit of its own. */
  readonly disrupts: boolean;
}

/** What is told from the moment on in which its end was decided (kubelet v1.32 eviction_manager.go, preemption.go). `now`: RFC 3339. */
export function evictedStatus(before: PodStatus | undefined, { reason, message, disrupts }: Eviction, now: string): PodStatus {
  const { message: _, reason: __, ...rest } = before ?? { phase: 'Failed' as const, startTime: now };
  const last = before?.conditions?.find((c) => c.type === 'DisruptionTarget');
  const target: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: last?.status === 'True' ? last.lastTransitionTime : now,
    reason: 'TerminationByKubelet',
    message,
  };
  const others = before?.conditions?.filter((c) => c.type !== 'DisruptionTarget') ?? [];
  const conditions = disrupts ? [target, ...others] : before?.conditions;
  return { ...rest, phase: 'Failed', reason, message, ...(conditions && { conditions }) };
}

const statusesOf = (s: PodStatus) => [...(s.initContainerStatuses ?? []), ...(s.containerStatuses ?? [])];

/** A container of it was made: it may have half run. */
export const hasBegun = (status: PodStatus | undefined): boolean =>
  status !== undefined && statusesOf(status).some((c) => c.containerID !== undefined);

/** The last exit of each container that has one, by name. */
export const exitCodes = (status: PodStatus): Record<string, number> =>
  Object.fromEntries(statusesOf(status).flatMap((c) => (c.state.terminated === undefined ? [] : [[c.name, c.state.terminated.exitCode]])));
