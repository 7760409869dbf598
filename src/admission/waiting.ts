// pure
/** What is told of a critical pod while others end for it. The kubelet tells nothing: it stands still until they have ended. */
import type { DesiredPod } from '../api/desired.ts';
import { qosClass } from '../api/resources.ts';
import type { PodStatus } from '../api/status.ts';

const waiting = 'WaitingForRoom';

/** `now`: RFC 3339. `ending`: the pods it waits for. */
export function waitingStatus({ pod }: DesiredPod, ending: readonly DesiredPod[], now: string): PodStatus {
  const names = ending.map(({ namespace, name }) => `${namespace}/${name}`).sort();
  const message = `room is being made for this critical pod: it starts when ${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} ended`;
  return {
    phase: 'Pending',
    conditions: [{ type: 'Ready', status: 'False', reason: waiting, message, lastTransitionTime: now }],
    startTime: now,
    qosClass: qosClass(pod),
  };
}

/** It says that the pod was not let in yet. */
export const isWaiting = ({ phase, conditions }: Pick<PodStatus, 'phase' | 'conditions'>): boolean =>
  phase === 'Pending' && conditions?.some((c) => c.type === 'Ready' && c.reason === waiting) === true;
