/**
 * Desired state on the broker, read, changed and written back. Owns the order of it: objects before the index that lists them, and the index before
 * what it no longer lists is cleared, so that at no moment anything says more than was meant.
 * Never writes an index it has not read whole: a user that may not read there sees nothing, and an index made of nothing would delete everything.
 * Two who write at once see one another, and the later one puts both changes together.
 */

import { generationAnnotation, generationOf, payloadHash } from '../api/delivery.ts';
import { keyText, type ObjectKey } from '../api/objects.ts';
import type { Plain } from '../api/plain.ts';
import { type DesiredScope, desiredMarkerTopic, desiredTopic, indexTopic, maxRetainedBytes, parseTopic } from '../api/topics.ts';
import { parseObject } from '../broker/online.ts';
import { takeDelivery } from '../config/delivery.ts';
import { type IndexPart, type Listed, readIndex, wholeIndex } from '../config/desiredIndex.ts';
import { changedEntries, type IndexChange, indexParts, scopeText } from './desiredPlan.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { annotationsOf, rawObject, signedPayload } from './rawObjects.ts';
import type { RemoteBroker } from './remoteBroker.ts';

/** What is retained on one topic. */
export interface RetainedObject {
  readonly bytes: Uint8Array;
  /** As it was written; undefined: nobody can read it. */
  readonly raw: Plain | undefined;
  readonly generation: number | undefined;
  readonly signed: boolean;
}

export interface ScopeState {
  readonly objects: ReadonlyMap<string, RetainedObject>;
  /** Undefined: there is none. */
  readonly index: { readonly generation: number; readonly entries: readonly Listed[]; readonly parts: number } | undefined;
}

/** Signs bytes of a kind. */
export type Sign = (payload: string, kind: 'manifest' | 'index') => string;

const tries = 5;
const echoMs = 10_000;
const stillMs = 300;
/** Brokers drop from a snapshot what is over about a thousand. */
const surelyWhole = 900;

const objectAt = (bytes: Uint8Array): RetainedObject => {
  const inner = signedPayload(bytes);
  const raw = rawObject(inner ?? bytes);
  return { bytes, raw, generation: generationOf(annotationsOf(raw)[generationAnnotation]), signed: inner !== undefined };
};

/** Whether it says that the object is to be gone. */
export const isTombstone = ({ raw }: RetainedObject): boolean => takeDelivery(raw).delivery.absent === true;

export class DesiredTopics {
  /** Index topics as they are now: others may write meanwhile. */
  #index = new Map<string, Uint8Array>();
  #news = new AbortController();

  private constructor(
    private readonly remote: RemoteBroker,
    private readonly scope: DesiredScope,
  ) {}

  /** Listens to the index of the scope from now on. Rejects when it cannot be read. */
  static async open(remote: RemoteBroker, scope: DesiredScope): Promise<DesiredTopics> {
    const topics = new DesiredTopics(remote, scope);
    await remote.listen([topics.#indexTopic(0), `${topics.#indexTopic(0)}/+`], ({ topic, payload }) => {
      if (payload.length === 0) topics.#index.delete(topic);
      else topics.#index.set(topic, payload);
      topics.#news.abort();
    });
    // the marker is published after the subscription, so what comes back before it is all there was
    await topics.#snapshot([]);
    return topics;
  }

  /** What is retained of these objects, and the index. Rejects when the index there is none that can be carried on. */
  async read(keys: readonly ObjectKey[]): Promise<ScopeState> {
    const found = await this.#snapshot(keys.map((key) => this.#topic(key)));
    const objects = new Map([...found].map(([topic, bytes]) => [topic, objectAt(bytes)] as const));
    return {
      objects: new Map(
        keys.flatMap((key): [string, RetainedObject][] => {
          const object = objects.get(this.#topic(key));
          return object === undefined ? [] : [[keyText(key), object]];
        }),
      ),
      index: this.#readIndex(),
    };
  }

  /** Publishes an object, retained. Rejects when it is not taken. */
  async put(key: ObjectKey, payload: string | Uint8Array): Promise<void> {
    await this.remote.publish(this.#topic(key), payload, { retain: true });
  }

  async clear(key: ObjectKey): Promise<void> {
    await this.remote.publish(this.#topic(key), '', { retain: true });
  }

  /**
   * Carries a change into the index, and into what another one makes of it meanwhile. Where there is none yet, the new one lists all that is
   * retained. Resolves with its generation.
   */
  async changeIndex(change: IndexChange, o: { readonly sign?: Sign; readonly audience?: string } = {}): Promise<number> {
    const first = this.#readIndex() === undefined ? await this.#everything() : [];
    for (let i = 0; i < tries; i++) {
      const before = this.#readIndex();
      const entries = changedEntries(before?.entries ?? first, change);
      const generation = (before?.generation ?? 0) + 1;
      const parts = indexParts(entries, generation, o.audience).map((part) => {
        const text = JSON.stringify(part);
        return o.sign?.(text, 'index') ?? text;
      });
      if (await this.#writeIndex(parts, before?.parts ?? 0)) return generation;
    }
    throw new CommandError(exitCodes.failed, `the index of ${scopeText(this.scope)} is being changed by others all the time: try again`);
  }

  /** The generation that the next index will have. */
  nextGeneration(): number {
    return (this.#readIndex()?.generation ?? 0) + 1;
  }

  /** False: another one wrote at the same time, and what is there now is not ours. */
  async #writeIndex(parts: readonly string[], before: number): Promise<boolean> {
    const topic = this.#indexTopic(0);
    const seen = this.#index.get(topic);
    // nothing of a new generation counts before its first part is here
    for (const [part, payload] of [...parts.entries()].reverse()) {
      if (part === 0 && !same(this.#index.get(topic), seen)) return false;
      await this.remote.publish(this.#indexTopic(part), payload, { retain: true });
    }
    for (let part = parts.length; part < before; part++) await this.remote.publish(this.#indexTopic(part), '', { retain: true });
    const own = Buffer.from(parts[0] ?? '');
    await this.#until(echoMs, () => !same(this.#index.get(topic), seen));
    // 3.1.1 acknowledges what the ACL forbids
    if (same(this.#index.get(topic), seen))
      throw new CommandError(
        exitCodes.failed,
        `the broker has not taken ${topic}: this user may not write it, and the index stays as it was`,
      );
    await this.#until(stillMs, () => false);
    return same(this.#index.get(topic), own);
  }

  async #until(ms: number, isTrue: () => boolean): Promise<void> {
    const { clock } = this.remote;
    const end = clock.monotonic() + ms;
    while (!isTrue()) {
      const left = end - clock.monotonic();
      if (left <= 0) return;
      this.#news = new AbortController();
      await this.remote.wait(left, this.#news.signal);
    }
  }

  /** An index of what is there, where nobody kept one. */
  async #everything(): Promise<readonly Listed[]> {
    const base = this.#indexTopic(0).slice(0, -'/_index'.length);
    const found = await this.#snapshot([`${base}/+/+`]);
    const listed = [...found].flatMap(([topic, bytes]): Listed[] => {
      const about = parseTopic(this.remote.prefix, topic);
      if (about?.of !== 'desired') return [];
      const { kind, namespace, name } = about;
      const object = objectAt(bytes);
      if (isTombstone(object)) return [];
      const { generation } = object;
      return [{ key: { kind, namespace, name }, sha256: payloadHash(bytes), ...(generation !== undefined && { generation }) }];
    });
    if (listed.length <= surelyWhole) return listed;
    throw new CommandError(
      exitCodes.failed,
      `${scopeText(this.scope)} has ${listed.length} objects and no index: brokers do not show so many at once, so none is made (--no-index leaves it so)`,
    );
  }

  #readIndex(): ScopeState['index'] {
    if (!this.#index.has(this.#indexTopic(0))) return undefined;
    const parts = new Map<number, IndexPart>();
    for (const [topic, bytes] of this.#index) {
      const about = parseTopic(this.remote.prefix, topic);
      const read = readIndex(parseObject(signedPayload(bytes) ?? bytes));
      if (about?.of === 'index' && read.ok) parts.set(about.part, read.part);
    }
    const whole = wholeIndex(parts);
    if (whole !== undefined) return { ...whole, parts: this.#index.size };
    throw new CommandError(
      exitCodes.failed,
      `the index of ${scopeText(this.scope)} cannot be read whole: somebody is changing it, or broke it (--no-index leaves it as it is)`,
    );
  }

  async #snapshot(filters: readonly string[]): Promise<Map<string, Uint8Array>> {
    const marker = desiredMarkerTopic(this.remote.prefix, this.scope);
    const found = await this.remote.snapshot(filters, marker);
    if (found !== undefined) return found;
    throw new CommandError(
      exitCodes.failed,
      `this user may not read (or not write) ${marker.slice(0, -'_marker'.length)}#: without what is there now, desired state cannot be changed safely (--no-index publishes unseen)`,
    );
  }

  #topic(key: ObjectKey): string {
    return desiredTopic(this.remote.prefix, this.scope, key);
  }

  #indexTopic(part: number): string {
    return indexTopic(this.remote.prefix, this.scope, part);
  }
}

const same = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0;

/** Rejects what no broker keeps. */
export function checkSize(key: ObjectKey, payload: string | Uint8Array): void {
  const bytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
  if (bytes <= maxRetainedBytes) return;
  const what = `${key.kind.toLowerCase()}/${key.name} has ${bytes} bytes as a message, and brokers keep at most ${maxRetainedBytes}`;
  throw new CommandError(exitCodes.failed, key.kind === 'Pod' ? what : `${what}: split it`);
}
