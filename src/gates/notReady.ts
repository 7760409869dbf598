// pure
/** What keeps a pod from being ready, from its status as it was told: words that stand after its name. */
import type { PodStatus } from '../api/status.ts';

/** undefined: it is ready. */
export function notReadyText(status: Pick<PodStatus, 'phase' | 'reason' | 'conditions'> | undefined): string | undefined {
  if (status === undefined) return 'is not started yet';
  const { phase, reason } = status;
  if (phase === 'Succeeded' || phase === 'Failed') return `has ended (${reason ?? phase}), so it is not ready`;
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  return ready?.status === 'True' ? undefined : 'is not ready';
}
