/**
 * The way back: an evicted pod runs again, as a new instance, when the pressure that ended it is over (behaviour 22; the kubelet leaves it down
 * for good). Owns the ledger of evictions by object, in runDir: an agent that is started anew knows what it was ending, and how patiently.
 * A pod that is evicted again soon after it came back waits longer each time, since it would only be evicted again: 10 s, doubled up to 30
 * minutes. They come one after another, for all at once would be the next pressure. Never decides who is evicted, and starts nothing itself.
 */

import type { DesiredPod } from '../api/desired.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import type { PressureType } from '../api/pressures.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';

export interface ComeBackDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly store: Store;
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  readonly pressures: () => readonly PressureType[];
  /** It goes on as a new instance. */
  readonly renew: (uid: PodUid) => Promise<void>;
  /** When it is looked at again, in ms from now; undefined: nobody can say. */
  readonly waits: (uid: PodUid, ms: number | undefined) => void;
}

interface Entry {
  readonly uid: PodUid;
  readonly workHash: string;
  /** The pressure that must be over; absent: none, it broke a limit of its own, or made room for another. */
  readonly until?: PressureType;
  readonly graceSeconds?: number;
  /** Evictions without a long life between them. */
  readonly count: number;
  readonly decidedAt: Monotonic;
  /** Its end; absent: it is still ending. */
  readonly endedAt?: Monotonic;
}

const storeKey = 'evicted';
const firstMs = 10_000;
const longestMs = 30 * 60_000;
/** A pod that lived so long since it came back begins anew. */
const longLifeMs = 60 * 60_000;
/** Between two that come back. */
const apartMs = 10_000;
const retryMs = 30_000;

export class ComeBack {
  #entries = new Map<KeyText, Entry>();
  #due: Deadlines<KeyText>;
  #earliest: Monotonic | undefined;

  constructor(private readonly deps: ComeBackDeps) {
    this.#due = new Deadlines(deps.clock, (key) => this.#look(key));
  }

  /** Never rejects; losing it costs only patience. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store.get(storeKey);
      if (typeof stored !== 'object' || stored === null) return;
      for (const [key, entry] of Object.entries(stored)) if (isEntry(entry)) this.#entries.set(key as KeyText, entry);
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'what was evicted before cannot be read');
    }
  }

  /** The end of an instance is decided. Stored before it begins, as far as it can be. Never rejects. */
  async decided(
    { key, uid, workHash }: DesiredPod,
    o: { readonly until: PressureType | undefined; readonly graceSeconds: number | undefined },
  ) {
    const before = this.#entries.get(key);
    const now = this.deps.clock.monotonic();
    const again = before !== undefined && before.uid !== uid && before.workHash === workHash && now - (before.endedAt ?? now) < longLifeMs;
    this.#entries.set(key, {
      ...{ uid, workHash, decidedAt: now, count: before?.uid === uid ? before.count : again ? before.count + 1 : 1 },
      ...(o.until !== undefined && { until: o.until }),
      ...(o.graceSeconds !== undefined && { graceSeconds: o.graceSeconds }),
    });
    await this.#keep();
  }

  /** How patiently an earlier agent was ending this instance. */
  graceOf(uid: PodUid): number | undefined {
    return [...this.#entries.values()].find((e) => e.uid === uid)?.graceSeconds;
  }

  /** An instance that was ended is over, and its pod is still wanted and to run again. */
  ended({ key, uid, workHash }: DesiredPod): void {
    const now = this.deps.clock.monotonic();
    const known = this.#entries.get(key);
    const entry: Entry = known?.uid === uid ? { ...known, endedAt: now } : { uid, workHash, count: 1, decidedAt: now, endedAt: now };
    this.#entries.set(key, entry);
    const ms = Math.min(longestMs, firstMs * 2 ** (entry.count - 1));
    this.deps.waits(uid, ms);
    this.#due.set(key, after(now, ms));
    void this.#keep(); // it never rejects
  }

  /** A pressure began or ended: whoever waited for it may come. */
  pressureChanged(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.endedAt !== undefined && this.#due.get(key) === undefined && this.deps.desired(entry.uid) !== undefined) this.#look(key);
    }
  }

  /** Forgets what nobody wants any more. */
  retain(wanted: (key: KeyText) => boolean): void {
    let gone = false;
    for (const key of [...this.#entries.keys()]) {
      if (wanted(key)) continue;
      this.#entries.delete(key);
      this.#due.delete(key);
      gone = true;
    }
    if (gone) void this.#keep(); // as above
  }

  stop(): void {
    this.#due.stop();
  }

  #look(key: KeyText): void {
    const { deps } = this;
    const { clock } = deps;
    const entry = this.#entries.get(key);
    // edited or removed meanwhile: another instance is there, or none is wanted
    if (entry === undefined || deps.desired(entry.uid) === undefined) return;
    if (entry.until !== undefined && deps.pressures().includes(entry.until)) {
      deps.waits(entry.uid, undefined);
      return;
    }
    const now = clock.monotonic();
    if (this.#earliest !== undefined && now < this.#earliest) {
      this.#due.set(key, this.#earliest);
      return;
    }
    this.#earliest = after(now, apartMs);
    deps.renew(entry.uid).catch((e) => {
      deps.log.warn({ uid: entry.uid, error: describeError(e) }, 'an evicted pod could not be brought back yet');
      this.#due.set(key, after(clock.monotonic(), retryMs));
    });
  }

  async #keep(): Promise<void> {
    try {
      await this.deps.store.put(storeKey, Object.fromEntries(this.#entries));
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'what is evicted cannot be stored');
    }
  }
}

function isEntry(value: unknown): value is Entry {
  const v = value as Partial<Entry> | null;
  return typeof v === 'object' && v !== null && typeof v.uid === 'string' && typeof v.count === 'number' && typeof v.decidedAt === 'number';
}
