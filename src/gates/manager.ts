/**
 * Start gates: what must be so before a pod instance is started (`podsched.dev/wait-for`, behaviour.md 26).
 *
 * Owns since when each instance is held, in memory and in runDir: the moment outlives the agent, and a new boot counts anew. What it waits
 * for is asked each time and never remembered: a disk that went away again closes its gate again.
 * Never stops or holds what was started, never mounts anything, never decides when a pod is looked at again: it says in how many
 * milliseconds, and wakes who waits for a pod that is ready now. The kernel tells a change of the mount table only by poll(2), which Node
 * has not: so who waits for a mount, and nobody else, is looked at every few seconds.
 * The kubelet has nothing of the kind.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import { cycleThrough, type Gate, gateText, podsWaitedFor, waitFor } from '../api/waitFor.ts';
import { goDuration } from '../container/goDuration.ts';
import { HeldBack } from '../container/heldBack.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { MountTable } from './mountTable.ts';

export interface GatesDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. Left out: the time that was waited is forgotten with the agent. */
  readonly store?: Pick<Store, 'get' | 'put'>;
  readonly mounts: Pick<MountTable, 'has' | 'realPath'>;
  /** What keeps this pod from being ready, in words that stand after its name; undefined: it is ready. */
  readonly podNotReady: (key: KeyText) => string | undefined;
  readonly desired: (key: KeyText) => DesiredPod | undefined;
  readonly timeSynced: () => boolean | Promise<boolean>;
  /** There is a way out of this node. */
  readonly networkUp: () => boolean | Promise<boolean>;
  /** Why no device of a class is there, in words; undefined: one is. The pod is woken when one comes. Left out: one always is. */
  readonly deviceAbsent?: (desired: DesiredPod, deviceClass: string) => string | undefined;
  /** These waited for a pod and may go on. */
  readonly wake: (uids: readonly PodUid[]) => void;
  readonly event: (desired: DesiredPod, type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

/** Why a pod is not started now. */
export interface Held {
  readonly reason: 'WaitingForMount' | 'WaitingForPod' | 'WaitingForTimeSync' | 'WaitingForNetwork' | 'WaitingForDevice' | 'WaitCycle';
  readonly message: string;
  /** When it is to be looked at again; absent: when it is woken, or as usual. */
  readonly retryAfterMs?: number;
}

interface Record {
  readonly since: Monotonic;
  /** Its time-out passed: it starts, and is not held again in this boot. */
  over: boolean;
  pods: ReadonlySet<KeyText>;
  told: string;
  stored: boolean;
}

const lookAgainMs = 5_000;
const storeKey = 'gates';

export class Gates {
  #held = new Map<PodUid, Record>();
  #storing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: GatesDeps) {}

  /** What an earlier agent of this boot held. Never rejects. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store?.get(storeKey);
      for (const [uid, entry] of Object.entries((stored ?? {}) as { [uid: string]: { since?: unknown; over?: unknown } })) {
        if (typeof entry?.since !== 'number' || entry.since > this.deps.clock.monotonic()) continue;
        this.#held.set(uid as PodUid, {
          since: entry.since as Monotonic,
          over: entry.over === true,
          pods: new Set(),
          told: '',
          stored: true,
        });
      }
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'since when pods wait cannot be read');
    }
  }

  /** Asked before an instance is started that was not started in this boot. undefined: nothing holds it. Never rejects. */
  async check(desired: DesiredPod): Promise<Held | undefined> {
    const { gates, timeoutMs } = waitFor(desired.pod);
    if (gates.length === 0) return this.#pass(desired.uid);
    if (this.#held.get(desired.uid)?.over === true) return undefined;
    const cycle = cycleThrough(desired.key, (key) => this.#waitsFor(desired, key));
    if (cycle !== undefined) return this.#hold(desired, gates, { ...inCycle(cycle), retryAfterMs: lookAgainMs });
    // known as waiting before anybody is asked: what becomes ready meanwhile wakes it
    const record = this.#record(desired.uid, gates);
    let closed: Held | undefined;
    for (const gate of gates) {
      closed = await this.#closed(desired, gate);
      if (closed !== undefined) break;
    }
    if (closed === undefined) return this.#pass(desired.uid);
    const leftMs = timeoutMs === undefined ? undefined : record.since + timeoutMs - this.deps.clock.monotonic();
    if (timeoutMs !== undefined && leftMs !== undefined && leftMs <= 0) {
      record.over = true;
      this.#store();
      this.deps.event(desired, 'Warning', 'WaitTimeout', `started after waiting ${goDuration(timeoutMs)}, although ${closed.message}`);
      return undefined;
    }
    const waits = [closed.retryAfterMs, leftMs].filter((ms) => ms !== undefined);
    return this.#hold(desired, gates, { ...closed, ...(waits.length > 0 && { retryAfterMs: Math.max(1, Math.min(...waits)) }) });
  }

  /**
   * Rejects with HeldBack when a path of the node lies behind a mount gate of the pod and nothing is mounted there now: it would be another
   * folder, on the card. Asked before each start of a container, also of pods that were started long ago. A pod that started by its time-out
   * is let through.
   */
  async checkPath(desired: DesiredPod, path: string): Promise<void> {
    const mounts = waitFor(desired.pod).gates.flatMap((gate) => (gate.kind === 'mount' ? [gate.path] : []));
    if (mounts.length === 0 || this.#held.get(desired.uid)?.over === true) return;
    const real = await this.deps.mounts.realPath(path);
    for (const mount of mounts) {
      const behind = [path, real].some((p) => p !== undefined && (p === mount || p.replace(/\/{2,}/g, '/').startsWith(`${mount}/`)));
      if (behind && !(await this.deps.mounts.has(mount))) throw new HeldBack('WaitingForMount', notMounted(mount), lookAgainMs);
    }
  }

  /** A pod was told as it is now: if it is ready, who waits for it goes on, and if it is not for another reason than before, says so. */
  told(key: KeyText): void {
    const waiting = [...this.#held].filter(([, { over, pods }]) => !over && pods.has(key));
    if (waiting.length === 0) return;
    const why = this.deps.podNotReady(key);
    const news = waiting.filter(([, { told }]) => {
      return why === undefined || (told.startsWith(textOf(podHeld(key, ''))) && told !== textOf(podHeld(key, why)));
    });
    if (news.length > 0) this.deps.wake(news.map(([uid]) => uid));
  }

  /** Instances that nobody knows any more are forgotten. */
  retain(known: ReadonlySet<PodUid>): void {
    const gone = [...this.#held.keys()].filter((uid) => !known.has(uid));
    for (const uid of gone) this.#held.delete(uid);
    if (gone.length > 0) this.#store();
  }

  /** What is known is stored when it resolves. */
  async flush(): Promise<void> {
    await this.#storing;
  }

  async #closed(desired: DesiredPod, gate: Gate): Promise<Held | undefined> {
    const { deps } = this;
    switch (gate.kind) {
      case 'mount':
        if (await deps.mounts.has(gate.path)) return undefined;
        return { reason: 'WaitingForMount', message: notMounted(gate.path), retryAfterMs: lookAgainMs };
      case 'pod': {
        const why = deps.podNotReady(gate.key);
        return why === undefined ? undefined : podHeld(gate.key, why);
      }
      case 'time-sync':
        if (await deps.timeSynced()) return undefined;
        return { reason: 'WaitingForTimeSync', message: 'the clock of the node is not synchronized yet', retryAfterMs: lookAgainMs };
      case 'network':
        if (await deps.networkUp()) return undefined;
        return { reason: 'WaitingForNetwork', message: 'the node has no default route yet', retryAfterMs: lookAgainMs };
      case 'device': {
        const why = deps.deviceAbsent?.(desired, gate.name);
        return why === undefined ? undefined : { reason: 'WaitingForDevice', message: why };
      }
    }
  }

  #waitsFor(self: DesiredPod, key: KeyText): readonly KeyText[] {
    const pod = key === self.key ? self : this.deps.desired(key);
    return pod === undefined ? [] : podsWaitedFor(pod.pod);
  }

  #record(uid: PodUid, gates: readonly Gate[]): Record {
    const pods = new Set(gates.flatMap((gate) => (gate.kind === 'pod' ? [gate.key] : [])));
    const known = this.#held.get(uid);
    if (known !== undefined) {
      known.pods = pods;
      return known;
    }
    const record: Record = { since: this.deps.clock.monotonic(), over: false, pods, told: '', stored: false };
    this.#held.set(uid, record);
    return record;
  }

  #hold(desired: DesiredPod, gates: readonly Gate[], held: Held): Held {
    const record = this.#record(desired.uid, gates);
    const text = textOf(held);
    if (record.told !== text) {
      // since when is all that is stored, so one write is enough
      if (!record.stored) this.#store();
      record.told = text;
      const type = held.reason === 'WaitCycle' ? 'Warning' : 'Normal';
      this.deps.event(desired, type, held.reason, held.message);
      this.deps.log.info({ pod: desired.name, gates: gates.map(gateText).join(', '), why: held.message }, 'a pod waits for its gates');
    }
    return held;
  }

  #pass(uid: PodUid): undefined {
    const record = this.#held.get(uid);
    if (record === undefined) return;
    this.#held.delete(uid);
    if (record.stored) this.#store();
  }

  /** One write after the other; what is newest by then is written. Losing it is never an error. */
  #store(): void {
    const { store, log } = this.deps;
    if (store === undefined) return;
    const put = (): Promise<void> => {
      for (const record of this.#held.values()) record.stored = true;
      const entries = [...this.#held].map(([uid, { since, over }]) => [uid, { since, over }] as const);
      return store.put(storeKey, Object.fromEntries(entries));
    };
    this.#storing = this.#storing.then(put).catch((e) => log.warn({ error: describeError(e) }, 'since when pods wait cannot be stored'));
  }
}

const notMounted = (path: string): string => `${path} is not a mount point`;

const textOf = ({ reason, message }: Held): string => `${reason} ${message}`;

const podHeld = (key: KeyText, why: string): Held => ({ reason: 'WaitingForPod', message: `pod ${podName(key)} ${why}` });

const podName = (key: KeyText): string => key.slice('Pod/'.length);

const inCycle = (way: readonly KeyText[]): Pick<Held, 'reason' | 'message'> => ({
  reason: 'WaitCycle',
  message: `${[...way, ...way.slice(0, 1)].map(podName).join(' waits for ')}: none of them can ever start`,
});
