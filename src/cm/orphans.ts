/**
 * Cgroups of pods that nobody knows any more: those that were made here are ended and removed. One that somebody else made below the same parents
 * is removed only when it stays empty for a minute, and nothing in it is ever killed, also not what comes into it in the last moment. Runs
 * beside everything else, one round at a time.
 * Mirrors kubelet v1.32 kubelet_pods.go cleanupOrphanedPodCgroups (facts 11.6), which takes every cgroup of a pod's name for its own.
 */
import type { Driver } from 'cgroup-ts';
import type { PodUid } from '../api/objects.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { type CgroupName, qosClasses, qosGroup, uidOf } from './names.ts';
import type { PodGroups } from './records.ts';

export interface OrphansDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** `cgroupRoot`, in components. */
  readonly root: CgroupName;
  readonly groups: PodGroups;
  readonly remove: (uid: PodUid) => Promise<void>;
}

/** Rounds may follow each other in seconds; somebody else's pod may be about to start in it for as long as an image is pulled. */
const emptyMs = 60_000;

export class Orphans {
  #busy = false;
  /** Nobody's here, and empty each time they were seen since then. */
  #empty = new Map<PodUid, Monotonic>();

  constructor(private readonly deps: OrphansDeps) {}

  /** `known`: pods that are wanted or ending. Never rejects; what cannot go yet is tried in the next round. */
  round(known: ReadonlySet<PodUid>, driver: () => Promise<Driver | undefined>): Promise<void> {
    // what is wanted from here on is no orphan, although `known` does not have it yet
    const round = this.deps.groups.nextRound();
    if (this.#busy) return Promise.resolve();
    this.#busy = true;
    return this.#run(known, round, driver)
      .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'cgroups of pods that are gone cannot be looked for'))
      .finally(() => {
        this.#busy = false;
      });
  }

  async #run(known: ReadonlySet<PodUid>, round: number, driverNow: () => Promise<Driver | undefined>): Promise<void> {
    const { groups, root, clock, remove } = this.deps;
    const isOrphan = (uid: PodUid): boolean => !known.has(uid) && !groups.isWantedSince(uid, round);
    for (const { uid } of groups.all()) if (isOrphan(uid)) await this.#remove(uid, () => remove(uid));

    const driver = await driverNow();
    if (driver === undefined) return;
    const now = clock.monotonic();
    const empty = new Map<PodUid, Monotonic>();
    for (const qos of qosClasses) {
      for (const name of await driver.list(qosGroup(root, qos))) {
        const uid = uidOf(name);
        if (uid === undefined || groups.get(uid) !== undefined || !isOrphan(uid) || (await driver.procs(name)).length > 0) continue;
        const since = this.#empty.get(uid) ?? now;
        if (now >= after(since, emptyMs)) await this.#remove(uid, () => driver.remove(name, { kill: false }));
        else empty.set(uid, since);
      }
    }
    this.#empty = empty;
  }

  async #remove(uid: PodUid, remove: () => Promise<void>): Promise<void> {
    try {
      await remove();
      this.deps.log.info({ uid }, 'removed the cgroup of a pod that is gone');
    } catch (e) {
      this.deps.log.warn({ uid, error: describeError(e) }, 'the cgroup of a pod that is gone cannot be removed yet');
    }
  }
}
