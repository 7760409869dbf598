/**
 * PodManager: which pods are desired now. One truth, in memory; whether a pod may run is the workers' to say, what runs is the cache's.
 * Mirrors kubelet v1.32 pod/pod_manager.go without mirror pods: here a static pod is its own status owner.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { KeyText, PodUid } from '../api/objects.ts';

export class PodManager {
  #pods = new Map<PodUid, DesiredPod>();
  #uids = new Map<KeyText, PodUid>();

  /** Desired from now on, or desired with new content. The latest instance set is the one its key names. */
  set(pod: DesiredPod): void {
    this.#pods.set(pod.uid, pod);
    this.#uids.set(pod.key, pod.uid);
  }

  /** No longer desired. Removing what is not there is success. */
  remove(uid: PodUid): void {
    const pod = this.#pods.get(uid);
    this.#pods.delete(uid);
    // the successor may have been set already
    if (pod !== undefined && this.#uids.get(pod.key) === uid) this.#uids.delete(pod.key);
  }

  get(uid: PodUid): DesiredPod | undefined {
    return this.#pods.get(uid);
  }

  byKey(key: KeyText): DesiredPod | undefined {
    const uid = this.#uids.get(key);
    return uid === undefined ? undefined : this.#pods.get(uid);
  }

  list(): readonly DesiredPod[] {
    return [...this.#pods.values()];
  }
}
