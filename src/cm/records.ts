/**
 * Which pods have a cgroup that was made here, and the limits that stand in it. Owns the entry `cgroups` of runDir: it ends with the boot, as
 * cgroups do, and losing it is never an error. What is not in it was made by somebody else, and is not killed.
 */
import type { PodUid } from '../api/objects.ts';
import type { CgroupDriver } from '../api/resources.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { CgroupName } from './names.ts';
import type { Limits } from './podLimits.ts';

export interface PodGroup {
  readonly uid: PodUid;
  readonly driver: CgroupDriver;
  readonly name: CgroupName;
  readonly limits: Limits;
}

export interface PodGroupsDeps {
  readonly log: Log;
  readonly store: Pick<Store, 'get' | 'put'>;
}

const storeKey = 'cgroups';

export class PodGroups {
  #groups = new Map<PodUid, PodGroup>();
  /** In which round of housekeeping each was wanted last. */
  #touched = new Map<PodUid, number>();
  #round = 0;

  constructor(private readonly deps: PodGroupsDeps) {}

  /** Never rejects. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store.get(storeKey);
      if (Array.isArray(stored)) for (const entry of stored) if (isGroup(entry)) this.#groups.set(entry.uid, entry);
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which cgroups were made here cannot be read');
    }
  }

  get(uid: PodUid): PodGroup | undefined {
    return this.#groups.get(uid);
  }

  all(): PodGroup[] {
    return [...this.#groups.values()];
  }

  async put(group: PodGroup): Promise<void> {
    this.#groups.set(group.uid, group);
    await this.#store();
  }

  async forget(uid: PodUid): Promise<void> {
    this.#touched.delete(uid);
    if (this.#groups.delete(uid)) await this.#store();
  }

  /** Somebody wants it now. */
  touch(uid: PodUid): void {
    this.#touched.set(uid, this.#round);
  }

  /** A round of housekeeping begins: what is touched from now on is wanted, whatever was known before. */
  nextRound(): number {
    this.#round += 1;
    return this.#round;
  }

  isWantedSince(uid: PodUid, round: number): boolean {
    return (this.#touched.get(uid) ?? 0) >= round;
  }

  async #store(): Promise<void> {
    try {
      await this.deps.store.put(storeKey, this.all());
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which cgroups were made here cannot be stored');
    }
  }
}

function isGroup(entry: unknown): entry is PodGroup {
  if (typeof entry !== 'object' || entry === null) return false;
  const { uid, driver, name, limits } = entry as Record<string, unknown>;
  const named = Array.isArray(name) && name.every((part) => typeof part === 'string') && name.at(-1) === `pod${String(uid)}`;
  return (
    typeof uid === 'string' && (driver === 'cgroupfs' || driver === 'systemd') && named && typeof limits === 'object' && limits !== null
  );
}
