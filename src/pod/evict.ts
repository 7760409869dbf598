/**
 * Ending a pod against its will: eviction and preemption. From the moment of the decision the instance is told Failed with the reason, for good,
 * and stored so, which is what an agent that is started meanwhile goes by; then its worker ends it. Owns nothing.
 * Mirrors kubelet v1.32 pod_workers.go killPodNow (facts 3.10).
 */
import type { DesiredPod } from '../api/desired.ts';
import { type Eviction, evictedStatus, wasEvicted } from '../api/evicted.ts';
import type { PodUid } from '../api/objects.ts';
import type { PodStatus } from '../api/status.ts';
import { type Clock, toRfc3339 } from '../world/clock.ts';
import type { PodWorkers } from './workers.ts';

export interface EvictDeps {
  readonly clock: Clock;
  readonly workers: Pick<PodWorkers, 'updatePod' | 'whenDown' | 'state'>;
  /** Wanted now; undefined: it goes anyway. */
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  readonly status: (uid: PodUid) => PodStatus | undefined;
  readonly setStatus: (desired: DesiredPod, status: PodStatus) => void;
  readonly event: (desired: DesiredPod, type: 'Warning', reason: string, message: string) => void;
}

const leastPatienceMs = 10_000;

/**
 * Resolves when nothing of the pod runs any more; at once for one that is not wanted or has no worker. Rejects when it did not end within one
 * and a half of its grace, at least 10 s: its worker goes on trying.
 */
export async function evictPod(deps: EvictDeps, uid: PodUid, o: Eviction & { readonly graceSeconds: number | undefined }): Promise<void> {
  const desired = deps.desired(uid);
  const state = deps.workers.state(uid);
  if (desired === undefined || state === undefined || state === 'finished' || state === 'terminated') return;
  const own = desired.pod.spec.terminationGracePeriodSeconds ?? 30;
  const grace = o.graceSeconds ?? own;
  // what is ending already, for another reason, is only waited for; what was ended more patiently ends sooner now
  if (state !== 'terminating') {
    // first the worker, so that no step takes the new status for the pod's own end; both in one turn of the loop
    deps.workers.updatePod({ type: 'kill', pod: desired, evict: true, killGraceSeconds: grace, reason: o.message });
    deps.setStatus(desired, evictedStatus(deps.status(uid), o, toRfc3339(deps.clock.now())));
    deps.event(desired, 'Warning', o.reason, o.message);
  } else if (o.graceSeconds !== undefined && wasEvicted(deps.status(uid))) {
    deps.workers.updatePod({ type: 'kill', pod: desired, evict: true, killGraceSeconds: o.graceSeconds, reason: o.message });
  }

  const over = new AbortController();
  const patience = deps.clock.sleep(Math.max(leastPatienceMs, grace * 1500), over.signal).then(
    () => true,
    () => false, // it ended in time
  );
  const late = await Promise.race([patience, deps.workers.whenDown(uid).then(() => false)]);
  over.abort();
  if (!late) return;
  const message = `Container runtime did not kill the pod within specified grace period: ${grace} s and a half of it`;
  deps.event(desired, 'Warning', 'ExceededGracePeriod', message);
  throw new Error(message);
}
