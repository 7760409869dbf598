/**
 * Containers that a person asked to be restarted in place. Owns who was asked for, by the very container: once another one of its name is there,
 * it is done. In memory only: an agent that ends forgets what it had not begun.
 * A restart is no crash: the container's back-off begins anew, before and after. It is asked of each container, whatever its restart policy says
 * of an end by itself.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Backoff } from '../async/backoff.ts';
import type { ContainerId, ContainerStatus, RuntimePodStatus } from '../container/words.ts';
import { restartBackoffKey } from './names.ts';
import { recordOf } from './records.ts';

export interface RestartsDeps {
  readonly backoff: Pick<Backoff, 'delete'>;
  /** The wish for this instance; undefined: nobody wants it any more. */
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  readonly statusOf: (uid: PodUid) => RuntimePodStatus | undefined;
  /** The pod is to be looked at. */
  readonly wake: (uid: PodUid) => void;
}

export class Restarts {
  #asked = new Map<PodUid, Map<string, ContainerId>>();

  constructor(private readonly deps: RestartsDeps) {}

  /** Each ends by its grace and starts again; one that waits for its back-off starts at once. False: one of them is not known of the runtime. */
  ask(uid: PodUid, containers: readonly string[]): boolean {
    const { backoff, desired, statusOf, wake } = this.deps;
    for (const known of this.#asked.keys()) if (desired(known) === undefined) this.#asked.delete(known);
    const [pod, status] = [desired(uid), statusOf(uid)];
    const records = containers.flatMap((name) => (status && recordOf(status, name)) ?? []);
    if (pod === undefined || records.length < containers.length) return false;
    const asked = this.#asked.get(uid) ?? new Map<string, ContainerId>();
    for (const { name, id } of records) {
      asked.set(name, id);
      backoff.delete(restartBackoffKey(pod, name));
    }
    this.#asked.set(uid, asked);
    wake(uid);
    return true;
  }

  /** It is the one that was asked for. */
  isAsked(uid: PodUid, record: Pick<ContainerStatus, 'name' | 'id'> | undefined): boolean {
    return record !== undefined && this.#asked.get(uid)?.get(record.name) === record.id;
  }

  /** Another one has taken its place: it is done. */
  review(uid: PodUid, status: RuntimePodStatus): void {
    const asked = this.#asked.get(uid);
    if (asked === undefined) return;
    for (const [name, id] of asked) if (recordOf(status, name)?.id !== id) asked.delete(name);
    if (asked.size === 0) this.#asked.delete(uid);
  }
}
