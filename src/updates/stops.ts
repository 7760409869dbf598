/**
 * Pods that a person has stopped: their instances end by their grace, like those of removed pods, while the sources keep naming them, so that
 * their images stay and edits are taken over. Owns the entries `stops/…` of stateDir and their copy in memory, and of each pod what was sent on
 * last and what is kept back. A stop outlives reboots and upgrades, and goes with its pod: one that is removed and comes again runs.
 * Stands between the sources and the loop: what is stopped gets no further. Never ends or starts anything itself.
 */
import type { DesiredPod, PodUpdate } from '../api/desired.ts';
import { type KeyText, keyText } from '../api/objects.ts';
import type { SyncBody } from '../api/payloads.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';

export interface StopsDeps {
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
}

const prefix = 'stops/';

export class Stops {
  #stopped = new Set<KeyText>();
  /** Being started: what the sources send of them goes on already. */
  #starting = new Set<KeyText>();
  /** As the loop has them: every pod that is wanted and not stopped. */
  #sent = new Map<KeyText, DesiredPod>();
  /** One change after the other: the last word counts. */
  #changing: Promise<unknown> = Promise.resolve();

  constructor(private readonly deps: StopsDeps) {}

  /** An entry that cannot be read stops all the same: it was put there. Before any pod is known. */
  async load(): Promise<void> {
    try {
      for (const name of await this.deps.store.list(prefix)) this.#stopped.add(name.slice(prefix.length) as KeyText);
    } catch (e) {
      this.deps.log.error({ error: describeError(e) }, 'what is stopped cannot be listed');
    }
  }

  has(key: KeyText): boolean {
    return this.#stopped.has(key);
  }

  /** The pod as the loop has it; undefined: it has none of this name. */
  sent(key: KeyText): DesiredPod | undefined {
    return this.#sent.get(key);
  }

  /** What of an update goes on; undefined: nothing. A pod that was sent on and is stopped since is removed by `stop`, not here. */
  pass({ op, pods }: PodUpdate): PodUpdate | undefined {
    const passed = pods.filter((pod) => {
      if (op !== 'REMOVE') return !this.#stopped.has(pod.key) || this.#starting.has(pod.key);
      // what was kept back was never there
      return this.#sent.get(pod.key)?.uid === pod.uid;
    });
    for (const pod of passed) {
      if (op === 'REMOVE') this.#sent.delete(pod.key);
      else this.#sent.set(pod.key, pod);
    }
    return passed.length === 0 ? undefined : { op, pods: passed };
  }

  /**
   * On the card when it resolves, to what is to be sent on then: the removal of what runs. undefined: it was stopped already. Rejects when it
   * cannot be stored.
   */
  stop(key: KeyText): Promise<readonly PodUpdate[] | undefined> {
    return this.#inTurn(async () => {
      if (this.#stopped.has(key)) return undefined;
      await this.deps.store.put(prefix + key, { version: 1 });
      this.#stopped.add(key);
      const sent = this.#sent.get(key);
      this.#sent.delete(key);
      return sent === undefined ? [] : [{ op: 'REMOVE', pods: [sent] }];
    });
  }

  /**
   * False: it was not stopped. `renew` has the sources send a new instance, which goes on; when it rejects, the pod stays stopped, and the next
   * start tries again. Rejects with that, and when it cannot be stored.
   */
  start(key: KeyText, renew: () => Promise<void>): Promise<boolean> {
    return this.#inTurn(async () => {
      if (!this.#stopped.has(key)) return false;
      await this.deps.store.remove(prefix + key);
      this.#starting.add(key);
      try {
        await renew();
        this.#stopped.delete(key);
        return true;
      } finally {
        this.#starting.delete(key);
      }
    });
  }

  /** Stops of pods that are gone are forgotten. Never rejects: what cannot be removed is removed the next time. */
  async retain(known: (key: KeyText) => boolean): Promise<void> {
    for (const key of [...this.#stopped]) {
      if (known(key)) continue;
      await this.start(key, async () => {}).catch((e) =>
        this.deps.log.warn({ key, error: describeError(e) }, 'a stop cannot be forgotten'),
      );
    }
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.#changing.then(act);
    this.#changing = mine.catch(() => {}); // the failure is the caller's
    return mine;
  }

  /** The one answer on an object, as it is told: of a stopped pod that it is stopped, as soon as nothing of it ends any more. */
  told(body: SyncBody): SyncBody {
    const { kind, namespace, name } = body.object;
    if (kind !== 'Pod' || !this.#stopped.has(keyText({ kind, namespace, name }))) return body;
    return asStopped(body);
  }
}

/** What still ends is told as ending; a pod that no source wants is none that could be started. */
function asStopped(body: SyncBody): SyncBody {
  if (body.phase === 'Terminating' || body.desired === undefined) return body;
  const { nextRetrySeconds: _, running: __, ...rest } = body;
  return { ...rest, phase: 'Stopped', reason: 'Stopped', message: 'stopped by the command podsched stop' };
}
