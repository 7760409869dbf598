/**
 * Who is left over: workers, runtime pods, statuses, containers, back-off entries of pods nobody wants, and wanted pods without a worker.
 * Runs 2 s after the last change and every 60 s, and only when all sources are ready: before that, "unknown" proves nothing.
 * Owns nothing. Mirrors kubelet v1.32 kubelet_pods.go HandlePodCleanups (facts 2.5).
 */
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { RuntimePod } from './container/words.ts';
import type { WorkerUpdate } from './pod/workers.ts';

export interface HousekeepingDeps {
  /** Sources were read and the runtime was listed: what is unknown now is nobody's. */
  readonly ready: () => boolean;
  readonly desired: () => readonly DesiredPod[];
  /** The runtime's pods that are ours. */
  readonly runtimePods: () => readonly RuntimePod[];
  readonly workers: {
    syncKnownPods(desired: ReadonlySet<PodUid>): ReadonlyMap<PodUid, unknown>;
    updatePod(update: WorkerUpdate): void;
  };
  /** Refused ones have no worker on purpose. */
  readonly isRefused: (uid: PodUid) => boolean;
  /** What rooms keep of other pods goes. */
  readonly retain: (known: ReadonlySet<PodUid>) => void;
  readonly collectContainers: () => Promise<void>;
  readonly collectBackoff: () => void;
  readonly report: (e: unknown) => void;
}

const lives = (p: RuntimePod): boolean =>
  p.sandboxes.some((s) => s.state === 'ready') || p.containers.some((c) => c.state === 'running' || c.state === 'unknown');

export class Housekeeping {
  #collecting = false;
  /** Asked for while the slow part was under way: what ended meanwhile may have been passed by. */
  #again = false;

  constructor(private readonly deps: HousekeepingDeps) {}

  /** One pass; the slow part (the runtime's garbage) goes on beside the loop and never overlaps itself. */
  run(): void {
    const { deps } = this;
    if (!deps.ready()) return;
    const desired = deps.desired();
    const wanted = new Set(desired.map((p) => p.uid));
    const working = deps.workers.syncKnownPods(wanted);

    for (const pod of desired) {
      if (!working.has(pod.uid) && !deps.isRefused(pod.uid)) deps.workers.updatePod({ type: 'create', pod });
    }
    // an orphan that has ended already is garbage, not a pod to end
    const orphans = deps.runtimePods().filter((p) => !working.has(p.uid) && !wanted.has(p.uid) && lives(p));
    for (const runtimePod of orphans) deps.workers.updatePod({ type: 'kill', runtimePod, reason: 'nobody wants it' });
    // what an orphan has of the node is its own until it has ended
    const known = new Set([...wanted, ...working.keys(), ...orphans.map((p) => p.uid)]);
    deps.retain(known);
    deps.collectBackoff();
    this.#collect();
  }

  #collect(): void {
    this.#again = this.#collecting;
    if (this.#collecting) return;
    this.#collecting = true;
    this.deps
      .collectContainers()
      .catch(this.deps.report)
      .finally(() => {
        this.#collecting = false;
        if (this.#again) this.#collect();
      });
  }
}
