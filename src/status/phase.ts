// pure
/**
 * The phase of a pod, counted from its container states. Mirrors kubelet v1.32 kubelet_pods.go getPhase (facts 9.1): the counting step only;
 * what is sticky (terminal phases, deadlines) is added in generate.ts.
 */
import { isSidecar } from '../api/resources.ts';
import type { PodPhase, V1ContainerStatus } from '../api/status.ts';
import type { PodSpec } from '../api/v1.ts';

export const isTerminalPhase = (phase: PodPhase | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

export interface PhaseOptions {
  /** The worker ended the pod: all its containers have stopped for good. */
  readonly terminal: boolean;
  /** A pod without an API server (ours all are): an Always pod that ends keeps the phase Running and is told Terminating, then gone. */
  readonly static: boolean;
}

/** `statuses`: init and app containers together, found by name; a missing name is a container nothing is known of. */
export function getPhase(spec: PodSpec, statuses: readonly V1ContainerStatus[], options: PhaseOptions): PodPhase {
  const byName = new Map(statuses.map((s) => [s.name, s]));
  let pendingInit = 0;
  let failedInit = 0;
  let pendingSide = 0;
  let running = 0;
  let waiting = 0;
  let stopped = 0;
  let succeeded = 0;
  let unknown = 0;
  let appSeen = false;

  for (const container of spec.initContainers ?? []) {
    const status = byName.get(container.name);
    const state = status?.state;
    const exited = state?.terminated ?? (state?.running === undefined ? status?.lastState.terminated : undefined);
    if (isSidecar(container)) {
      if (status === undefined) unknown++;
      else if (state?.running) {
        running++;
        if (status.started !== true) pendingSide++;
      } else if (exited === undefined) {
        pendingSide++;
        if (state?.waiting) waiting++;
        else unknown++;
      }
    } else if (exited === undefined) pendingInit++;
    else if (exited.exitCode !== 0) failedInit++;
  }

  for (const container of spec.containers) {
    const status = byName.get(container.name);
    const state = status?.state;
    if (status === undefined) unknown++;
    else if (state?.running) {
      running++;
      appSeen = true;
    } else if (state?.terminated) {
      stopped++;
      appSeen = true;
      if (state.terminated.exitCode === 0) succeeded++;
    } else if (state?.waiting) {
      if (status.lastState.terminated) stopped++;
      else waiting++;
    } else unknown++;
  }

  const policy = spec.restartPolicy ?? 'Always';
  if (failedInit > 0 && policy === 'Never') return 'Failed';
  if (pendingInit > 0) return 'Pending';
  // sidecars that come back later do not make a pod that had begun pending again
  if (pendingSide > 0 && !appSeen) return 'Pending';
  if (waiting > 0) return 'Pending';
  if (unknown > 0) return 'Pending';
  if (running > 0) return 'Running';
  if (stopped === 0) return 'Pending';
  const allSucceeded = stopped === succeeded;
  if (options.terminal && !options.static) return allSucceeded ? 'Succeeded' : 'Failed';
  if (policy === 'Always') return 'Running';
  if (allSucceeded) return 'Succeeded';
  return policy === 'Never' ? 'Failed' : 'Running';
}
