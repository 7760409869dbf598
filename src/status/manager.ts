/**
 * Owns what was last told: the status of each pod instance, and the sync answer of each object and file. Keeps statuses in runDir, so that
 * times of conditions and startTime outlive the agent, and stores before it tells: what was told is never unknown after a kill.
 * Never decides what runs and never computes a status itself (generate.ts, sync.ts). One topic belongs to one instance at a time: while a
 * predecessor of the same name ends, the topic is its own. Mirrors kubelet v1.32 status_manager.go and the reason cache of kubelet.go
 * (facts 9.4, 9.6); the retained topic is what a mirror pod is there.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { ObjectKey, PodUid } from '../api/objects.ts';
import type { FileBody, FileStatus, SyncBody, SyncStatus } from '../api/payloads.ts';
import type { PodStatus, ToldPod } from '../api/status.ts';
import { expirySeconds, maxRetainedBytes, type NodeTopics } from '../api/topics.ts';
import type { SyncResult } from '../container/syncResult.ts';
import { type Clock, toRfc3339, type WallTime } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { Reason } from './containers.ts';
import { Keeper } from './keeper.ts';
import { isTerminalPhase } from './phase.ts';
import { capFile, capSync } from './problems.ts';
import { ReasonCache } from './reasonCache.ts';
import { RestartCounter } from './restarts.ts';
import { type Stamp, Teller, type Value } from './teller.ts';
import { capPod, type Ending, runsContainers, tellableStatus, toldPod, wholePod } from './told.ts';
import { illegalReturn, terminatedPodStatus } from './transitions.ts';

export interface StatusManagerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly store: Store;
  readonly topics: NodeTopics;
  /** Retained, QoS 1; undefined clears the topic. */
  readonly tell: (topic: string, payload: string | undefined, o: { readonly expirySeconds: number }) => void;
  readonly boot: () => number;
  readonly seq: () => number;
  /** The largest payload, in bytes, when the broker takes less than the contract's 60 KiB. */
  readonly maxBytes?: () => number;
}

interface Entry {
  desired: DesiredPod | undefined;
  status: PodStatus;
  topic: string;
  ending: (Ending & { readonly requestedAt: number }) | undefined;
}

/** What runDir keeps of a pod. */
interface Stored {
  readonly status: PodStatus;
  readonly topic: string;
  readonly ending?: Ending & { readonly requestedAt: number };
}

const prefix = 'status/';
// room for boot and seq, which are added when it is told
const stampBytes = 128;
// a normal start has more answers than statuses: accepted, waiting for this and that, ready
const syncBurst = 8;

const stampPod = (pod: ToldPod, { boot, seq }: Stamp): ToldPod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    annotations: { ...pod.metadata.annotations, 'podsched.dev/boot': String(boot), 'podsched.dev/seq': String(seq) },
  },
});
const stampOwn = <T extends object>(body: T, { boot, seq }: Stamp): T & Stamp => ({ ...body, boot, seq });

export class StatusManager {
  #pods = new Map<PodUid, Entry>();
  /** Instances that use a topic, the one it belongs to first. */
  #owners = new Map<string, PodUid[]>();
  #reasons = new ReasonCache();
  #keeper: Keeper;
  #teller: Teller;
  #restarts: RestartCounter;

  constructor(private readonly deps: StatusManagerDeps) {
    this.#restarts = new RestartCounter(deps);
    this.#keeper = new Keeper({ ...deps, periodMs: 0 });
    this.#teller = new Teller(deps);
  }

  /** Statuses of the agent's last run in this boot. Nothing is told by it. */
  async load(): Promise<void> {
    for (const [key, value] of await this.#keeper.load(prefix)) {
      const { status, topic, ending } = (value ?? {}) as Partial<Stored>;
      if (topic === undefined || status?.phase === undefined) continue;
      this.#pods.set(key.slice(prefix.length) as PodUid, { desired: undefined, status, topic, ending });
    }
    await this.#restarts.load();
  }

  /**
   * The newest status of an instance: kept, stored, told if it changed. `deletionGraceSeconds`: the pod is being removed; the grace only
   * shrinks, and the first one sets the deletion time. A step against the restart policy is not taken (kubelet: ignored, logged).
   */
  setPod(desired: DesiredPod, status: PodStatus, o: { readonly deletionGraceSeconds?: number } = {}): void {
    const { uid } = desired;
    const before = this.#pods.get(uid);
    let next = status;
    if (before !== undefined) {
      const container = illegalReturn(desired.pod.spec, before.status, status);
      if (container !== undefined) {
        this.deps.log.error(
          { pod: desired.key, uid, container },
          'a container that had ended for good would be told as not ended; ignored',
        );
        return;
      }
      if (isTerminalPhase(before.status.phase) && status.phase !== before.status.phase) next = keepPhase(before.status, status);
    }
    this.#restarts.changed(before?.status, next);
    const ending = this.#ending(before?.ending, next, o.deletionGraceSeconds);
    const entry: Entry = { desired, status: next, topic: this.deps.topics.pod(desired.namespace, desired.name), ending };
    this.#pods.set(uid, entry);
    this.#own(entry.topic, uid);
    this.#storeAndTell(uid, entry);
  }

  get(uid: PodUid): PodStatus | undefined {
    return this.#pods.get(uid)?.status;
  }

  /** The last words on an instance that has ended for good (kubelet TerminatePod). */
  terminate(uid: PodUid): void {
    const entry = this.#pods.get(uid);
    if (entry?.desired === undefined) return;
    const status = terminatedPodStatus(entry.desired.pod.spec, entry.status);
    this.setPod(entry.desired, status);
  }

  /** Forgets an instance; its topic goes to the next instance of the name, or is cleared. `keepTopic`: left as it is, somebody else tells it. */
  remove(uid: PodUid, o: { readonly keepTopic?: boolean } = {}): void {
    this.#reasons.forget(uid);
    const entry = this.#pods.get(uid);
    if (entry === undefined) return;
    this.#pods.delete(uid);
    void this.#keeper.put(prefix + uid, undefined);
    const owners = (this.#owners.get(entry.topic) ?? []).filter((u) => u !== uid);
    if (owners.length > 0) this.#owners.set(entry.topic, owners);
    else this.#owners.delete(entry.topic);
    const [heir] = owners;
    if (heir !== undefined) this.#tell(heir, true);
    else if (o.keepTopic === true) this.#teller.forget(entry.topic);
    else this.#teller.set(entry.topic, undefined);
  }

  /** Forgets instances that nobody knows any more (housekeeping). */
  removeOrphans(known: ReadonlySet<PodUid>): void {
    for (const uid of [...this.#pods.keys()]) if (!known.has(uid)) this.remove(uid);
  }

  /** Why containers could not be started, and what stopped the sync as a whole; a success forgets. */
  setReasons(uid: PodUid, results: readonly SyncResult[]): void {
    this.#reasons.set(uid, results);
  }

  /** By container name: what generatePodStatus asks for. */
  reasons(uid: PodUid): ReadonlyMap<string, Reason> {
    return this.#reasons.of(uid);
  }

  /** What stopped the last sync as a whole (sandbox, kill); undefined: nothing. */
  blocked(uid: PodUid): Reason | undefined {
    return this.#reasons.blocked(uid);
  }

  /** The answer for an object; undefined: the object is gone. */
  setSync(key: ObjectKey, body: SyncBody | undefined): void {
    const topic = this.deps.topics.sync(key);
    if (body === undefined) this.#clear(topic);
    else {
      const capped = capSync(body, this.#maxBytes());
      const value = { body: capped, stamp: stampOwn, expirySeconds: expirySeconds.sync, volatile: ['nextRetrySeconds'], burst: syncBurst };
      this.#teller.set(topic, value, { urgent: body.phase === 'Terminating' });
    }
  }

  /** The problems of a file; undefined: it has none, or is gone. */
  setFile(file: string, body: FileBody | undefined): void {
    const topic = this.deps.topics.file(file);
    if (body === undefined) this.#clear(topic);
    else this.#teller.set(topic, { body: capFile(body, this.#maxBytes()), stamp: stampOwn, expirySeconds: expirySeconds.file });
  }

  /** The pods as told, by namespace and name. */
  told(): ToldPod[] {
    return this.#all<ToldPod>((kind) => kind === 'Pod');
  }

  /** The same pods whole, with what is known of them now: nothing is cut, and nobody waits for a slowed down topic. */
  whole(): ToldPod[] {
    return this.told().map((told) => {
      const entry = this.#pods.get(told.metadata.uid as PodUid);
      if (entry?.desired === undefined) return told;
      return wholePod(entry.desired, tellableStatus(entry.status, told.status.phase), entry.ending, told);
    });
  }

  sync(): SyncStatus[] {
    return this.#all<SyncStatus>((kind) => kind === 'SyncStatus');
  }

  files(): FileStatus[] {
    return this.#all<FileStatus>((kind) => kind === 'FileStatus');
  }

  /** How often containers were started again within the last hour, by the monotonic clock. */
  restartsLastHour(): number {
    return this.#restarts.lastHour();
  }

  /** Everything once more under a new stamp: the boot turned out to have another number. */
  retell(): void {
    this.#teller.retell();
  }

  /** All that is known is stored when it resolves. */
  async flush(): Promise<void> {
    await Promise.all([this.#keeper.flush(), this.#restarts.flush()]);
  }

  /** Nothing is told any more. */
  stop(): void {
    this.#teller.stop();
  }

  #all<T>(isKind: (kind: string) => boolean): T[] {
    return this.#teller
      .topics()
      .map((topic) => this.#teller.get(topic) as T & { kind: string })
      .filter((payload) => isKind(payload.kind));
  }

  #maxBytes(): number {
    return Math.min(maxRetainedBytes, this.deps.maxBytes?.() ?? maxRetainedBytes) - stampBytes;
  }

  /** A file or object that never had a topic needs no clearing. */
  #clear(topic: string): void {
    if (this.#teller.has(topic)) this.#teller.set(topic, undefined);
  }

  #own(topic: string, uid: PodUid): void {
    const owners = this.#owners.get(topic) ?? [];
    if (!owners.includes(uid)) this.#owners.set(topic, [...owners, uid]);
  }

  #ending(before: Entry['ending'], status: PodStatus, graceSeconds: number | undefined): Entry['ending'] {
    if (graceSeconds === undefined) return before;
    // the worker's last rounds, when nothing runs any more, tell no shorter grace
    if (before !== undefined && (graceSeconds >= before.graceSeconds || !runsContainers(status))) return before;
    const requestedAt = before?.requestedAt ?? this.deps.clock.now();
    return { requestedAt, graceSeconds, deletionTimestamp: toRfc3339((requestedAt + graceSeconds * 1000) as WallTime) };
  }

  #storeAndTell(uid: PodUid, entry: Entry): void {
    const stored: Stored = { status: entry.status, topic: entry.topic, ...(entry.ending && { ending: entry.ending }) };
    // put never rejects; whatever is newest by then is told
    void this.#keeper.put(prefix + uid, stored).then(() => this.#tell(uid, false));
  }

  #tell(uid: PodUid, urgent: boolean): void {
    const entry = this.#pods.get(uid);
    if (entry?.desired === undefined || this.#owners.get(entry.topic)?.[0] !== uid) return;
    const last = this.#teller.get(entry.topic) as ToldPod | undefined;
    const lastOfThis = last?.metadata.uid === uid ? last : undefined;
    const status = tellableStatus(entry.status, lastOfThis?.status.phase);
    const value: Value<ToldPod> = {
      body: capPod(toldPod(entry.desired, status, entry.ending), this.#maxBytes()),
      stamp: stampPod,
      expirySeconds: expirySeconds.pod,
    };
    const beginsToEnd = entry.ending !== undefined && lastOfThis?.metadata.deletionTimestamp === undefined;
    this.#teller.set(entry.topic, value, { urgent: urgent || beginsToEnd });
  }
}

const keepPhase = (before: PodStatus, now: PodStatus): PodStatus => {
  const { reason: _, message: __, ...rest } = now;
  return {
    ...rest,
    phase: before.phase,
    ...(before.reason !== undefined && { reason: before.reason }),
    ...(before.message !== undefined && { message: before.message }),
  };
};
