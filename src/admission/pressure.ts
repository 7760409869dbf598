// pure
/** Whether a pressure of the node keeps a pod out. Mirrors kubelet v1.32 eviction_manager.go Admit (facts 12.1), also for pods that are not critical. */
import { isCriticalPod } from '../api/priority.ts';
import { qosClass } from '../api/resources.ts';
import type { Pod, Toleration } from '../api/v1.ts';

/** Why it stays out, as the kubelet says it; undefined: it may come in. `pressures`: conditions of the node, as `MemoryPressure`. */
export function pressureRefusal(pod: Pick<Pod, 'spec'>, pressures: readonly string[]): string | undefined {
  if (pressures.length === 0 || isCriticalPod(pod)) return undefined;
  const onlyMemory = pressures.every((p) => p === 'MemoryPressure');
  // who asked for memory may have it: those who did not go first
  if (onlyMemory && (qosClass(pod) !== 'BestEffort' || pod.spec.tolerations?.some(toleratesMemoryPressure))) return undefined;
  return `The node had condition: [${pressures.join(' ')}]. `;
}

/** The taint `node.kubernetes.io/memory-pressure:NoSchedule`, which has no value. */
function toleratesMemoryPressure({ key = '', operator = 'Equal', value = '', effect }: Toleration): boolean {
  if (effect !== undefined && effect !== 'NoSchedule') return false;
  if (key === '') return operator === 'Exists';
  return key === 'node.kubernetes.io/memory-pressure' && (operator === 'Exists' || value === '');
}
