/**
 * The loop: one event in, a few calls out; it never waits for a pod. Everything that happens (sources, the runtime, deadlines)
 * arrives here through one mailbox, so two events are never handled at once. Owns no truth of its own.
 * Mirrors kubelet v1.32 kubelet.go syncLoopIteration and its Handle… functions; there are no ticks: who has something to say says it.
 */
import type { DesiredPod, PodUpdate } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { Mailbox } from './async/mailbox.ts';
import type { PodLifecycleEvent } from './pleg/events.ts';
import type { WorkerUpdate } from './pod/workers.ts';
import type { Log } from './world/log.ts';

export type SyncEvent =
  | { readonly from: 'config'; readonly update: PodUpdate }
  | { readonly from: 'pleg'; readonly event: PodLifecycleEvent }
  /** What a pod waited for may have come: the runtime, its network. */
  | { readonly from: 'sync'; readonly uids: readonly PodUid[] }
  /** Admission judges these once more: others have ended for them. */
  | { readonly from: 'admit'; readonly uids: readonly PodUid[] }
  | { readonly from: 'finished'; readonly uid: PodUid }
  | { readonly from: 'housekeeping' };

/** later: it cannot be judged yet, and is added again when it can. */
export type Admission = { readonly admit: true } | { readonly admit: false; readonly reason: string; readonly message: string } | 'later';

export interface SyncLoopDeps {
  readonly log: Log;
  readonly pods: { set(pod: DesiredPod): void; remove(uid: PodUid): void; get(uid: PodUid): DesiredPod | undefined };
  readonly workers: { updatePod(update: WorkerUpdate): void };
  readonly admit: (pod: DesiredPod) => Admission;
  readonly reject: (pod: DesiredPod, reason: string, message: string) => void;
  /** A container died: the dead ones of its name beyond the newest may go. */
  readonly cleanUpContainers: (uid: PodUid, containerId: string) => void;
  /** The worker of a pod has ended for good. */
  readonly finished: (uid: PodUid) => void;
  readonly housekeeping: () => void;
  /** Something changed: housekeeping soon. */
  readonly changed: () => void;
}

export class SyncLoop {
  constructor(private readonly deps: SyncLoopDeps) {}

  /** Handles events in order until aborted. */
  async run(mailbox: Mailbox<SyncEvent>, signal: AbortSignal): Promise<void> {
    for await (const event of mailbox.read(signal)) this.dispatch(event);
  }

  dispatch(event: SyncEvent): void {
    const { deps } = this;
    switch (event.from) {
      case 'config':
        this.#config(event.update);
        deps.changed();
        return;
      case 'pleg': {
        const { uid, type, id } = event.event;
        // Removed is our own doing and nothing to decide on (kubelet: isSyncPodWorthy)
        if (type === 'ContainerRemoved') return;
        const pod = deps.pods.get(uid);
        if (pod === undefined) deps.changed();
        else deps.workers.updatePod({ type: 'sync', pod });
        if (type === 'ContainerDied') deps.cleanUpContainers(uid, id);
        return;
      }
      case 'sync':
        for (const uid of event.uids) {
          const pod = deps.pods.get(uid);
          if (pod !== undefined) deps.workers.updatePod({ type: 'sync', pod });
        }
        return;
      case 'admit':
        for (const uid of event.uids) {
          const pod = deps.pods.get(uid);
          if (pod !== undefined) this.#add(pod);
        }
        return;
      case 'finished':
        deps.finished(event.uid);
        deps.changed();
        return;
      case 'housekeeping':
        deps.housekeeping();
        return;
    }
  }

  #config(update: PodUpdate): void {
    switch (update.op) {
      case 'ADD': {
        const pods = [...update.pods].sort((a, b) => (a.firstSeen < b.firstSeen ? -1 : a.firstSeen > b.firstSeen ? 1 : 0));
        // all are known before the first is judged: one that runs already has its place, whatever its age
        for (const pod of pods) this.deps.pods.set(pod);
        for (const pod of pods) this.#add(pod);
        return;
      }
      case 'UPDATE':
      case 'RECONCILE':
        for (const pod of update.pods) {
          this.deps.pods.set(pod);
          this.deps.workers.updatePod({ type: 'update', pod });
        }
        return;
      case 'REMOVE':
        for (const pod of update.pods) {
          this.deps.pods.remove(pod.uid);
          this.deps.workers.updatePod({ type: 'kill', pod, reason: 'removed' });
        }
        return;
    }
  }

  #add(pod: DesiredPod): void {
    const verdict = this.deps.admit(pod);
    if (verdict === 'later') return;
    if (!verdict.admit) {
      this.deps.reject(pod, verdict.reason, verdict.message);
      return;
    }
    this.deps.workers.updatePod({ type: 'create', pod });
  }
}
