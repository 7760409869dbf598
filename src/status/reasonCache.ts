/** Why things could not be done the last time, by pod. Mirrors kubelet v1.32 reason_cache.go: a failed start sets, a start forgets (facts 9.4). */
import type { PodUid } from '../api/objects.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { Reason } from './containers.ts';

export class ReasonCache {
  #containers = new Map<PodUid, Map<string, Reason>>();
  #blocked = new Map<PodUid, Reason>();

  /** The results of one sync. What stopped it as a whole (sandbox, kill) is known until the next sync. */
  set(uid: PodUid, results: readonly SyncResult[]): void {
    const reasons = this.#containers.get(uid) ?? new Map<string, Reason>();
    this.#blocked.delete(uid);
    for (const { action, target, error } of results) {
      if (action === 'StartContainer') {
        if (error === undefined) reasons.delete(target);
        else reasons.set(target, error);
      } else if (error !== undefined) this.#blocked.set(uid, error);
    }
    if (reasons.size > 0) this.#containers.set(uid, reasons);
    else this.#containers.delete(uid);
  }

  of(uid: PodUid): ReadonlyMap<string, Reason> {
    return this.#containers.get(uid) ?? new Map();
  }

  blocked(uid: PodUid): Reason | undefined {
    return this.#blocked.get(uid);
  }

  forget(uid: PodUid): void {
    this.#containers.delete(uid);
    this.#blocked.delete(uid);
  }
}
