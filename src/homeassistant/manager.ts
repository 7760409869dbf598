/**
 * Announces the node to Home Assistant: one retained device message. Owns what was announced last, kept on the card so that what leaves while
 * the agent is away is still taken back, and nothing else: states live on the topics of the contract, presses of buttons are commands there.
 *
 * Announces when what is desired is known, when the entities change, and again 0 to 30 s after Home Assistant says that it is online (a
 * fleet must not answer at once). A component that left is announced once with only its platform; the message goes when it is switched off.
 * Never decides anything about pods, and never sends what is unchanged but to that one call.
 */
import { homeAssistantTopic } from '../api/topics.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { type DiscoveryFacts, discovery, maxComponents, type Platform } from './discovery.ts';

export interface HomeAssistantDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** 0…1. */
  readonly random: () => number;
  /** stateDir's. */
  readonly store: Store;
  readonly enabled: boolean;
  /** `homeassistant` */
  readonly haPrefix: string;
  readonly nodeName: string;
  readonly facts: () => DiscoveryFacts;
  /** Retained, QoS 1, without expiry; undefined clears. */
  readonly tell: (topic: string, payload: string | undefined) => void;
  /** Tells the last value once more, unchanged as it is. */
  readonly again: (topic: string) => void;
  /** All that was told has been acknowledged. */
  readonly told: () => boolean;
  /** There is no room for these; empty: there is room for all again. */
  readonly leftOut: (what: readonly string[]) => void;
}

interface Entry {
  readonly topic: string;
  /** Announced, and not taken back yet. */
  readonly components: Readonly<Record<string, Platform>>;
}

const key = 'homeassistant';
/** Several changes of one moment are one message. */
const settleMs = 1_000;
const longestAnswerMs = 30_000;

export class HomeAssistant {
  /** Home Assistant's birth and last will. */
  readonly statusTopic: string;
  /** What is to be listened to: that topic, or nothing where it is switched off. */
  readonly filters: readonly string[];
  readonly #topic: string;
  #components: Readonly<Record<string, Platform>> = {};
  /** In the message as what goes. */
  #leaving: ReadonlySet<string> = new Set();
  #payload: string | undefined;
  #leftOut = '';
  #ready = false;
  /** Switched off, and the message of before may still be at the broker. */
  #clearing = false;
  #stored = '';
  #due: Deadlines<'changed' | 'answer'>;

  constructor(private readonly deps: HomeAssistantDeps) {
    this.statusTopic = `${deps.haPrefix}/status`;
    this.filters = deps.enabled ? [this.statusTopic] : [];
    this.#topic = homeAssistantTopic(deps.haPrefix, deps.nodeName);
    this.#due = new Deadlines(deps.clock, (what) => this.#announce(what === 'answer'));
  }

  /** What an earlier run announced; what nobody wants any more is taken back. Never rejects. */
  async load(): Promise<void> {
    const { enabled, store, tell } = this.deps;
    const before = entry(await store.get(key).catch(() => undefined)); // unreadable: what was announced stays until it changes
    if (before === undefined) return;
    this.#stored = JSON.stringify(before);
    if (enabled && before.topic === this.#topic) {
      this.#components = before.components;
      return;
    }
    tell(before.topic, undefined);
    this.#clearing = !enabled;
  }

  /** What is desired is known: before that, pods would seem to have left. */
  ready(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.changed();
  }

  /** The entities may be others: pods and their labels, what commands may do, what the board tells. */
  changed(): void {
    if (this.#ready && this.deps.enabled) this.#due.setEarlier('changed', after(this.deps.clock.monotonic(), settleMs));
  }

  /** A message on `statusTopic`. */
  message(payload: Uint8Array): void {
    const { clock, random, enabled } = this.deps;
    // it says one of two words
    if (!enabled || payload.length > 64 || new TextDecoder().decode(payload).trim() !== 'online') return;
    this.#due.set('answer', after(clock.monotonic(), Math.floor(random() * longestAnswerMs)));
  }

  /** The node leaves for good: its message is cleared. Rejects when the card cannot be written. */
  async remove(): Promise<void> {
    this.#due.stop();
    this.deps.tell(this.#topic, undefined);
    await this.#keep(undefined);
  }

  /** Nothing is announced any more. A message that was to go and did not is cleared by the next run. Rejects as `remove`. */
  async stop(): Promise<void> {
    this.#due.stop();
    if (this.#clearing && this.deps.told()) await this.#keep(undefined);
  }

  #announce(again: boolean): void {
    const { deps } = this;
    if (!this.#ready || !deps.enabled) return;
    // what was taken back in the last message need not be again, once that has arrived
    const takenBack = deps.told() ? this.#leaving : new Set<string>();
    const known = Object.entries(this.#components).filter(([id]) => !takenBack.has(id));
    const { components, leftOut, payload } = discovery(deps.facts(), Object.fromEntries(known));
    const platforms = Object.entries(components).map(([id, { p }]) => [id, p] as const);
    this.#leaving = new Set(platforms.filter(([id]) => isGone(components[id])).map(([id]) => id));
    // what had no room is still to be taken back, with a bound: it may have been many
    const all = new Map([...platforms, ...known].slice(0, 2 * maxComponents));
    this.#components = Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
    if (payload !== this.#payload) deps.tell(this.#topic, payload);
    else if (again) deps.again(this.#topic);
    this.#payload = payload;
    this.#sayLeftOut(leftOut);
    this.#keep({ topic: this.#topic, components: this.#components }).catch((e) =>
      deps.log.warn({ error: describeError(e) }, 'what was announced to Home Assistant could not be stored'),
    );
  }

  #sayLeftOut(leftOut: readonly string[]): void {
    const text = leftOut.join();
    if (text !== this.#leftOut) this.deps.leftOut(leftOut);
    this.#leftOut = text;
  }

  /** Writes nothing where nothing changed. */
  async #keep(value: Entry | undefined): Promise<void> {
    const text = value === undefined ? '' : JSON.stringify(value);
    if (text === this.#stored) return;
    this.#stored = text;
    await (value === undefined ? this.deps.store.remove(key) : this.deps.store.put(key, value));
  }
}

const isGone = (component: object | undefined): boolean => component !== undefined && Object.keys(component).length === 1;

const platforms: readonly unknown[] = ['binary_sensor', 'sensor', 'button'];

/** undefined: nothing of use. */
function entry(value: unknown): Entry | undefined {
  const v = value as Partial<Entry> | null | undefined;
  if (typeof v?.topic !== 'string' || typeof v.components !== 'object' || v.components === null) return undefined;
  return { topic: v.topic, components: Object.fromEntries(Object.entries(v.components).filter(([, p]) => platforms.includes(p))) };
}
