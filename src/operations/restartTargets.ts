// pure
/** Which containers of a pod a restart is about, and when there is nothing to restart, what would help instead. */
import { isSidecar } from '../api/resources.ts';
import type { ToldPod, V1ContainerStatus } from '../api/status.ts';
import { type Answered, refused } from './answered.ts';
import { statusOf } from './logTarget.ts';

/** It ran before, and waits for its turn to run again. */
const waitsAgain = (s: V1ContainerStatus | undefined): boolean => s?.state.waiting !== undefined && s.lastState.terminated !== undefined;
const runs = (s: V1ContainerStatus | undefined): boolean => s?.state.running !== undefined;

/** By name, in the order of starting. `named` undefined: all that run, or wait to run again. */
export function restartTargets(pod: ToldPod, named: string | undefined): Answered<readonly string[]> {
  const { name } = pod.metadata;
  const { phase, reason } = pod.status;
  if (phase === 'Succeeded' || phase === 'Failed') {
    const how = reason === undefined ? phase : `${phase}: ${reason}`;
    return refused(409, `pod "${name}" has ended (${how}): podsched restart ${name} --new runs it again, as a new instance`);
  }
  if (pod.metadata.deletionTimestamp !== undefined) return refused(409, `pod "${name}" is being ended`);
  return named === undefined ? all(pod) : one(pod, named);
}

function all(pod: ToldPod): Answered<readonly string[]> {
  const { name } = pod.metadata;
  const { initContainers = [], containers } = pod.spec;
  const of = (container: string) => statusOf(pod.status, container);
  const targets = [
    // an init container that fails again and again is tried at once
    ...initContainers.filter((c) => waitsAgain(of(c.name)) || (isSidecar(c) && runs(of(c.name)))),
    ...containers.filter((c) => waitsAgain(of(c.name)) || runs(of(c.name))),
  ].map((c) => c.name);
  if (targets.length > 0) return { ok: true, value: targets };
  return refused(409, `of pod "${name}" nothing runs that could be restarted; podsched why ${name} says more`);
}

function one(pod: ToldPod, container: string): Answered<readonly string[]> {
  const { name } = pod.metadata;
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec;
  const told = statusOf(pod.status, container);
  const target: Answered<readonly string[]> = { ok: true, value: [container] };
  if (ephemeralContainers.some((c) => c.name === container))
    return refused(409, `container "${container}" was added to look with, and starts once; podsched debug adds another`);
  const init = initContainers.find((c) => c.name === container);
  if (init === undefined && !containers.some((c) => c.name === container)) {
    const there = [...initContainers.filter((c) => isSidecar(c)), ...containers].map((c) => c.name);
    return refused(404, `container not found ("${container}") in pod "${name}"; there are ${there.join(', ')}`);
  }
  if (waitsAgain(told)) return target;
  if (init !== undefined && !isSidecar(init)) {
    const how = runs(told) ? 'does its work now' : 'has done its work, or has yet to';
    return refused(409, `init container "${container}" ${how}: podsched restart ${name} --new begins with it again, as a new instance`);
  }
  // one that ended for good under its restart policy runs again when it is named
  if (runs(told) || told?.state.terminated !== undefined) return target;
  const why = told?.state.waiting?.reason ?? 'it was not told of yet';
  return refused(409, `container "${container}" has not started yet (${why}); podsched why ${name} says more`);
}
