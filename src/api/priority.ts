// pure
/** How much a pod matters: its priority, and whether it is critical (behaviour: "A pod is not critical for being static"). */
import type { Pod } from './v1.ts';
import { systemPriorities } from './validate.ts';

const criticalFrom = 2_000_000_000;

/** Of its class where it names one of the two of the system, else as written; 0 without. */
export const podPriority = ({ spec }: Pick<Pod, 'spec'>): number => systemPriorities[spec.priorityClassName ?? ''] ?? spec.priority ?? 0;

export const isCriticalPod = (pod: Pick<Pod, 'spec'>): boolean => podPriority(pod) >= criticalFrom;
