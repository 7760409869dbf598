// pure
/** How much the containers of a pod may say at their end: 12 KiB together, so that a status stays of a size that can be sent (facts 9.5). */
import type { ContainerState, V1ContainerStatus } from '../api/status.ts';
import { firstBytes } from './cut.ts';

const podMessageBytes = 12_288;

/** The statuses with each termination message cut to its container's share of the pod's 12 KiB. `containers`: how many the pod has. */
export function cutMessages(statuses: readonly V1ContainerStatus[], containers: number): V1ContainerStatus[] {
  const limit = Math.floor(podMessageBytes / Math.max(1, containers));
  return statuses.map((s) => {
    const state = cutState(s.state, limit);
    const lastState = cutState(s.lastState, limit);
    return state === s.state && lastState === s.lastState ? s : { ...s, state, lastState };
  });
}

function cutState(state: ContainerState, limit: number): ContainerState {
  const message = state.terminated?.message;
  if (state.terminated === undefined || message === undefined) return state;
  const cut = firstBytes(message, limit);
  return cut === message ? state : { terminated: { ...state.terminated, message: cut } };
}
