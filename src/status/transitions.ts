// pure
/** Steps a status may not take (kubelet v1.32 status_manager.go, facts 9.6), and the last words on a pod that has ended. */
import { isSidecar } from '../api/resources.ts';
import type { ContainerStateTerminated, PodStatus, V1ContainerStatus } from '../api/status.ts';
import type { PodSpec } from '../api/v1.ts';

/**
 * The name of a container that would come back from its end against the restart policy; undefined: the step is allowed.
 * An init container that runs again in a new sandbox shows as a new container id; that is the truth and allowed.
 */
export function illegalReturn(spec: PodSpec, before: PodStatus, now: PodStatus): string | undefined {
  const policy = spec.restartPolicy ?? 'Always';
  if (policy === 'Always') return undefined;
  const returns = (old: readonly V1ContainerStatus[] | undefined, next: readonly V1ContainerStatus[] | undefined, isInit: boolean) =>
    old?.find((o) => {
      const ended = o.state.terminated;
      if (ended === undefined || (policy === 'OnFailure' && ended.exitCode !== 0)) return false;
      const n = next?.find((s) => s.name === o.name);
      if (n === undefined || n.state.terminated !== undefined) return false;
      return !(isInit && n.containerID !== undefined && n.containerID !== o.containerID);
    })?.name;
  const sidecars = new Set((spec.initContainers ?? []).filter(isSidecar).map((c) => c.name));
  const plain = before.initContainerStatuses?.filter((s) => !sidecars.has(s.name));
  return returns(before.containerStatuses, now.containerStatuses, false) ?? returns(plain, now.initContainerStatuses, true);
}

const gone: ContainerStateTerminated = {
  exitCode: 137,
  reason: 'ContainerStatusUnknown',
  message: 'the container could not be found in the runtime when the pod had ended',
};

/**
 * The status of a pod that has ended for good (kubelet TerminatePod): containers that never showed an end are told ended, if their turn had
 * come: app containers once the pod was initialised, init containers up to the one that was at work.
 */
export function terminatedPodStatus(spec: PodSpec, status: PodStatus): PodStatus {
  const end = (s: V1ContainerStatus): V1ContainerStatus =>
    s.state.terminated ? s : { ...s, ready: false, started: false, state: { terminated: gone } };
  const inits = status.initContainerStatuses;
  const begun = (s: V1ContainerStatus): boolean =>
    s.state.running !== undefined || s.state.terminated !== undefined || s.lastState.terminated !== undefined;
  const plainDone = (spec.initContainers ?? []).every((c) => {
    const s = inits?.find((i) => i.name === c.name);
    return isSidecar(c) ? s !== undefined && begun(s) : s?.state.terminated?.exitCode === 0;
  });
  const initialised = plainDone || (status.containerStatuses ?? []).some(begun);
  return {
    ...status,
    ...(inits && { initContainerStatuses: inits.map((s) => (begun(s) ? end(s) : s)) }),
    ...(initialised && status.containerStatuses && { containerStatuses: status.containerStatuses.map(end) }),
  };
}
