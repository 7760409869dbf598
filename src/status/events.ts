/**
 * Owns the events: what was said about each object, the last 500, kept in runDir. Repeats of one thing within ten minutes are one event with a
 * count; at most five a second are told, what is over waits in a bounded row and the oldest of it is dropped and counted.
 * Never decides anything: an event is for people. Mirrors client-go's correlator in shape (v1 Event, `<object>.<hex>`), not in its numbers.
 */
import type { EventSubject, ObjectReference, V1Event } from '../api/status.ts';
import { expirySeconds, type NodeTopics } from '../api/topics.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic, toRfc3339 } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { cutText } from './cut.ts';
import { Keeper } from './keeper.ts';

export interface EventRecorderDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly store: Store;
  readonly topics: NodeTopics;
  readonly nodeName: string;
  /** Not retained, QoS 1. */
  readonly tell: (topic: string, payload: string, o: { readonly expirySeconds: number }) => void;
  readonly boot: () => number;
  readonly seq: () => number;
}

interface Entry {
  event: V1Event;
  readonly key: string;
  /** Repeats until then are the same event. */
  mergeUntil: Monotonic;
  /** The count told last; 0: not told yet. */
  toldCount: number;
}

const mergeMs = 10 * 60_000;
const ringSize = 500;
const perSecond = 5;
const maxWaiting = 100;
const maxMessageBytes = 1024;
/** Of one thing said in other words each time (a probe that quotes the time), so many are events of their own; the rest is one event. */
const maxSimilar = 10;
const combined = '(combined from similar events)';
const storeKey = 'events';
const refill = Symbol('refill');

export class EventRecorder {
  /** Oldest first. */
  #ring: Entry[] = [];
  #open = new Map<string, Entry>();
  /** To be told when there is room. */
  #waiting: Entry[] = [];
  /** When the last ones were told, oldest first; no more than may be told in a second. */
  #toldAt: Monotonic[] = [];
  #dropped = 0;
  #keeper: Keeper;
  /** Before that nothing is stored: what an earlier agent said would be written over. */
  #loaded = false;
  #due: Deadlines<string | typeof refill>;

  constructor(private readonly deps: EventRecorderDeps) {
    this.#keeper = new Keeper({ ...deps, periodMs: 1000 });
    this.#due = new Deadlines(deps.clock, (key) => (key === refill ? this.#drain() : this.#windowEnded(key)));
  }

  /** The ring of the agent's last run in this boot; what it had told is not told again, repeats are still merged. */
  async load(): Promise<void> {
    const stored = (await this.#keeper.load(storeKey)).get(storeKey);
    this.#loaded = true;
    const early = this.#ring.length > 0;
    this.#takeOver(stored);
    if (early) this.#keep();
  }

  #takeOver(stored: unknown): void {
    if (!Array.isArray(stored)) return;
    const before = (stored as Entry[]).filter((e) => typeof e?.key === 'string' && typeof e.event?.reason === 'string');
    this.#ring = [...before, ...this.#ring].slice(-ringSize);
    for (const entry of before) {
      if (this.#open.has(entry.key) || entry.mergeUntil <= this.deps.clock.monotonic()) continue;
      this.#open.set(entry.key, entry);
      this.#due.set(entry.key, entry.mergeUntil);
      // it waited for its turn when the agent ended
      if (entry.toldCount === 0) this.#enqueue(entry);
    }
  }

  /** Something to know about `subject`. `fieldPath`: the container, as `spec.containers{web}`. */
  event(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string, fieldPath?: string): void {
    const involvedObject = reference(subject, fieldPath);
    const { kind, namespace, name, uid } = involvedObject;
    const keyOf = (what: string) => JSON.stringify([uid ?? `${kind}/${namespace}/${name}`, type, reason, what, fieldPath ?? '']);
    let text = cutText(message, maxMessageBytes);
    let key = keyOf(text);
    if (!this.#open.has(key) && this.#countSimilar(involvedObject, type, reason) >= maxSimilar) {
      text = cutText(`${combined}: ${message}`, maxMessageBytes);
      key = keyOf(combined);
    }
    const now = toRfc3339(this.deps.clock.now());
    const known = this.#open.get(key);
    if (known !== undefined) {
      known.event = { ...known.event, message: text, count: known.event.count + 1, lastTimestamp: now };
      this.#ring = [...this.#ring.filter((e) => e !== known), known].slice(-ringSize);
    } else this.#begin(key, involvedObject, { type, reason, message: text, now });
    this.#keep();
  }

  /** The last 500, oldest first; repeats counted up to this moment. */
  list(filter: { readonly namespace?: string; readonly name?: string } = {}): V1Event[] {
    return this.#ring
      .map((e) => e.event)
      .filter(({ involvedObject: o }) => filter.namespace === undefined || o.namespace === filter.namespace)
      .filter(({ involvedObject: o }) => filter.name === undefined || o.name === filter.name);
  }

  /** How many events were never told because too many came. */
  dropped(): number {
    return this.#dropped;
  }

  /** The ring is stored when it resolves. */
  async flush(): Promise<void> {
    await this.#keeper.flush();
  }

  stop(): void {
    this.#due.stop();
  }

  /** Mirrors client-go's aggregator: the same object, type and reason, whatever the words. */
  #countSimilar({ kind, namespace, name, uid, fieldPath }: ObjectReference, type: string, reason: string): number {
    let count = 0;
    for (const { event } of this.#open.values()) {
      if (event.reason !== reason || event.type !== type) continue;
      const o = event.involvedObject;
      if (o.uid === uid && o.name === name && o.namespace === namespace && o.kind === kind && o.fieldPath === fieldPath) count++;
    }
    return count;
  }

  #begin(key: string, involvedObject: ObjectReference, e: { type: V1Event['type']; reason: string; message: string; now: string }): void {
    const { deps } = this;
    // boot and seq together never come again, whatever the wall clock says
    const id = `${deps.boot().toString(16)}${deps.seq().toString(16).padStart(13, '0')}`;
    const entry: Entry = {
      key,
      toldCount: 0,
      mergeUntil: after(deps.clock.monotonic(), mergeMs),
      event: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: `${involvedObject.name.slice(0, 230)}.${id}`, namespace: involvedObject.namespace },
        involvedObject,
        type: e.type,
        reason: e.reason,
        message: e.message,
        source: { component: 'podsched', host: deps.nodeName },
        firstTimestamp: e.now,
        lastTimestamp: e.now,
        count: 1,
      },
    };
    this.#open.set(key, entry);
    this.#ring = [...this.#ring, entry].slice(-ringSize);
    this.#due.set(key, entry.mergeUntil);
    this.#enqueue(entry);
    this.#closeOldest();
  }

  /** A flood of events of their own is merged with nothing: no more stay open than the ring holds. */
  #closeOldest(): void {
    const [oldest] = this.#open.keys();
    if (this.#open.size <= ringSize || oldest === undefined) return;
    this.#open.delete(oldest);
    this.#due.delete(oldest);
  }

  /** Ten minutes later: what was repeated is told once with its count and merged on; what was not is closed. */
  #windowEnded(key: string): void {
    const entry = this.#open.get(key);
    if (entry === undefined) return;
    if (entry.event.count === entry.toldCount || this.#waiting.includes(entry)) {
      this.#open.delete(key);
      return;
    }
    entry.mergeUntil = after(this.deps.clock.monotonic(), mergeMs);
    this.#due.set(key, entry.mergeUntil);
    this.#enqueue(entry);
    this.#keep();
  }

  #enqueue(entry: Entry): void {
    this.#waiting.push(entry);
    if (this.#waiting.length > maxWaiting) {
      this.#waiting.shift();
      this.#dropped++;
      if (this.#dropped === 1 || this.#dropped % 100 === 0)
        this.deps.log.warn({ dropped: this.#dropped }, 'too many events: some are not told');
    }
    this.#drain();
  }

  #drain(): void {
    const now = this.deps.clock.monotonic();
    for (let entry = this.#waiting[0]; entry !== undefined; entry = this.#waiting[0]) {
      // no second has more than five in it, wherever it begins; timers count whole milliseconds
      const fifthLast = this.#toldAt.length < perSecond ? undefined : this.#toldAt[0];
      if (fifthLast !== undefined && now - fifthLast < 999) {
        this.#due.set(refill, after(fifthLast, 1000));
        return;
      }
      this.#toldAt = [...this.#toldAt, now].slice(-perSecond);
      this.#waiting.shift();
      this.#tell(entry);
      this.#keep();
    }
  }

  #tell(entry: Entry): void {
    const { deps } = this;
    const { event } = entry;
    entry.toldCount = event.count;
    const annotations = { 'podsched.dev/boot': String(deps.boot()), 'podsched.dev/seq': String(deps.seq()) };
    const payload = JSON.stringify({ ...event, metadata: { ...event.metadata, annotations } });
    deps.tell(deps.topics.events(event.metadata.namespace), payload, { expirySeconds: expirySeconds.event });
  }

  #keep(): void {
    if (this.#loaded) void this.#keeper.put(storeKey, this.#ring); // never rejects
  }
}

/** As Kubernetes does, what belongs to no namespace is told in `default`. */
function reference(subject: EventSubject, fieldPath: string | undefined): ObjectReference {
  if ('file' in subject) return { kind: 'File', namespace: 'default', name: subject.file };
  return {
    kind: subject.kind,
    namespace: subject.namespace,
    name: subject.name,
    ...(subject.uid !== undefined && { uid: subject.uid }),
    apiVersion: 'v1',
    ...(fieldPath !== undefined && { fieldPath }),
  };
}
