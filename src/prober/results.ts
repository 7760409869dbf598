/**
 * Owns what probes have found, by container id. Kept in runDir, one entry per pod, so that a restart of the agent flips nothing: a result
 * stands until a probe says otherwise. Losing the folder is never an error. Nothing is written where nothing changed.
 */
import type { PodUid } from '../api/objects.ts';
import type { ProbeResult } from '../container/probes.ts';
import type { ContainerId } from '../container/words.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { isStoreCorrupt, type Store } from '../world/store.ts';
import { initialResult, type ProbeType, probeTypes } from './turn.ts';

export interface ResultsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly store: Store;
}

interface Entry {
  readonly uid: PodUid;
  /** When an agent of this boot first saw it run. */
  seenAt: Monotonic;
  /** Of the probes it has: 'unknown' while one has found nothing yet. The next agent may not know its definition any more. */
  readonly results: { [T in ProbeType]?: ProbeResult };
  /** Its liveness probe has succeeded at least once. */
  answered: boolean;
}

const prefix = 'probes/';
const isResult = (v: unknown): v is ProbeResult => v === 'success' || v === 'failure' || v === 'unknown';

export class Results {
  #entries = new Map<ContainerId, Entry>();
  #byPod = new Map<PodUid, Set<ContainerId>>();
  #dirty = new Set<PodUid>();
  #writing: Promise<void> | undefined;

  constructor(private readonly deps: ResultsDeps) {}

  /** What an earlier agent of this boot found. Never rejects. */
  async load(): Promise<void> {
    const { store, log } = this.deps;
    try {
      for (const key of await store.list(prefix)) {
        const stored = await store.get(key).catch((e) => {
          if (!isStoreCorrupt(e)) throw e;
          log.warn({ key }, 'stored probe results cannot be read and are left out');
          return undefined;
        });
        this.#read(key.slice(prefix.length) as PodUid, stored);
      }
    } catch (e) {
      log.warn({ error: describeError(e) }, 'stored probe results cannot be read');
    }
  }

  /** A container with these probes is seen running; what is known of it stays. */
  begin(uid: PodUid, id: ContainerId, types: readonly ProbeType[], seenAt: Monotonic, answered: boolean): void {
    if (this.#entries.has(id)) return;
    const results: Entry['results'] = {};
    for (const type of types) results[type] = 'unknown';
    this.#add(id, { uid, seenAt, results, answered });
    this.#write(uid);
  }

  seenAt(id: ContainerId): Monotonic | undefined {
    return this.#entries.get(id)?.seenAt;
  }

  /** Its probes begin later than it ran: at the end of its postStart hook. */
  setSeenAt(id: ContainerId, seenAt: Monotonic): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.seenAt === seenAt) return;
    entry.seenAt = seenAt;
    this.#write(entry.uid);
  }

  /** What was found, or what is taken for known until something is; undefined: nobody has seen this container. */
  get(id: ContainerId, type: ProbeType): ProbeResult | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const { [type]: result = 'unknown' } = entry.results;
    return result === 'unknown' ? initialResult[type] : result;
  }

  /** Only what a probe has found; 'unknown': it has such a probe, which has found nothing yet. */
  found(id: ContainerId, type: ProbeType): ProbeResult | undefined {
    return this.#entries.get(id)?.results[type];
  }

  /** True: it is another result than before. */
  set(id: ContainerId, type: ProbeType, result: ProbeResult): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    const before = this.get(id, type);
    if (entry.results[type] === result) return false;
    entry.results[type] = result;
    this.#write(entry.uid);
    return before !== result;
  }

  hasAnswered(id: ContainerId): boolean {
    return this.#entries.get(id)?.answered ?? true;
  }

  setAnswered(id: ContainerId): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.answered) return;
    entry.answered = true;
    this.#write(entry.uid);
  }

  /** The container is gone, or has been followed by another one. */
  drop(id: ContainerId): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#byPod.get(entry.uid)?.delete(id);
    this.#write(entry.uid);
  }

  dropPod(uid: PodUid): void {
    const ids = this.#byPod.get(uid);
    if (ids === undefined) return;
    for (const id of ids) this.#entries.delete(id);
    this.#byPod.delete(uid);
    this.#write(uid);
  }

  /** Drops those of a pod's containers that `isKept` does not name. */
  keep(uid: PodUid, isKept: (id: ContainerId) => boolean): void {
    for (const id of [...(this.#byPod.get(uid) ?? [])]) if (!isKept(id)) this.drop(id);
  }

  uids(): readonly PodUid[] {
    return [...this.#byPod.keys()];
  }

  /** What was found is stored, or could not be, when it resolves. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #add(id: ContainerId, entry: Entry): void {
    this.#entries.set(id, entry);
    const ids = this.#byPod.get(entry.uid) ?? new Set();
    this.#byPod.set(entry.uid, ids.add(id));
  }

  #read(uid: PodUid, stored: unknown): void {
    if (typeof stored !== 'object' || stored === null) return;
    const now = this.deps.clock.monotonic();
    for (const [id, value] of Object.entries(stored as Record<string, unknown>)) {
      if (typeof value !== 'object' || value === null) continue;
      const { seenAt, answered, ...rest } = value as Record<string, unknown>;
      const results: Entry['results'] = {};
      for (const type of probeTypes) {
        const result = rest[type];
        if (isResult(result)) results[type] = result;
      }
      const at = typeof seenAt === 'number' ? Math.min(seenAt, now) : now;
      this.#add(id as ContainerId, { uid, seenAt: at as Monotonic, results, answered: answered === true });
    }
  }

  #write(uid: PodUid): void {
    this.#dirty.add(uid);
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    const { store, log } = this.deps;
    // the changes of this very turn go together
    await Promise.resolve();
    while (this.#dirty.size > 0) {
      const uids = [...this.#dirty];
      this.#dirty.clear();
      await Promise.all(
        uids.map(async (uid) => {
          const ids = [...(this.#byPod.get(uid) ?? [])];
          try {
            await (ids.length === 0 ? store.remove(`${prefix}${uid}`) : store.put(`${prefix}${uid}`, this.#stored(ids)));
          } catch (e) {
            log.warn({ uid, error: describeError(e) }, 'probe results cannot be stored');
          }
        }),
      );
    }
    this.#writing = undefined;
  }

  #stored(ids: readonly ContainerId[]): unknown {
    return Object.fromEntries(
      ids.flatMap((id) => {
        const entry = this.#entries.get(id);
        return entry === undefined ? [] : [[id, { seenAt: entry.seenAt, ...entry.results, ...(entry.answered && { answered: true }) }]];
      }),
    );
  }
}
