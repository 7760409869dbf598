/**
 * Messages of the MQTT source until their turn: what was heard already costs a hash and no more, and of the rest a few MiB wait at most;
 * beyond that a topic is asked for again. Owns the queue. Looks into no payload.
 */
import { payloadHash } from '../api/delivery.ts';
import { maxRetainedBytes } from '../api/topics.ts';
import type { DesiredPlace, ObjectPlace } from './desiredTopics.ts';
import type { Generations } from './generations.ts';
import type { RemoteIndexes } from './remoteIndexes.ts';
import type { RemoteObjects } from './remoteObjects.ts';
import type { Arrival } from './remoteReader.ts';

const mostWaitingBytes = 4 << 20;
/** Of messages without a payload, too. */
const mostWaiting = 8000;
const empty = new Uint8Array();

export interface Waiting {
  readonly place: DesiredPlace;
  readonly topic: string;
  readonly arrival: Arrival;
}

export interface IntakeRooms {
  readonly objects: RemoteObjects;
  readonly generations: Generations;
  readonly indexes: RemoteIndexes;
}

/** known: nothing follows. back: nothing but that the broker has it again. full: it is to be asked for later. */
export type Heard = 'known' | 'back' | 'waits' | 'full';

export class RemoteIntake {
  #queue: Waiting[] = [];
  #queued = new Set<string>();
  #bytes = 0;

  constructor(private readonly rooms: IntakeRooms) {}

  get size(): number {
    return this.#queue.length;
  }

  hear(place: DesiredPlace, topic: string, payload: Uint8Array, retain: boolean): Heard {
    const hash = payload.length === 0 ? '' : payloadHash(payload);
    let back = false;
    if (place.of === 'object') {
      const record = this.rooms.objects.get(topic);
      if (record !== undefined && hash !== '') {
        record.seen = true;
        back = record.lost;
        record.lost = false;
      }
    }
    if (!this.#queued.has(topic) && this.#isKnown(place, topic, hash)) return back ? 'back' : 'known';
    const tooLarge = payload.length > maxRetainedBytes;
    const bytes = tooLarge ? 0 : payload.length;
    if (this.#bytes + bytes > mostWaitingBytes || this.#queue.length >= mostWaiting) return 'full';
    this.#bytes += bytes;
    this.#queued.add(topic);
    this.#queue.push({ place, topic, arrival: { payload: tooLarge ? empty : payload, bytes: payload.length, hash, retain } });
    return 'waits';
  }

  /** All that waits, in the order of coming. */
  take(): readonly Waiting[] {
    const queue = this.#queue;
    this.#queue = [];
    this.#queued.clear();
    this.#bytes = 0;
    return queue;
  }

  /** The same payload as before, or one that was struck off and stands there still. */
  #isKnown(place: DesiredPlace, topic: string, hash: string): boolean {
    if (place.of === 'index') return this.rooms.indexes.isKnown(place.source, place.part, hash);
    return place.of === 'object' && this.#isKnownObject(place, topic, hash);
  }

  #isKnownObject({ source }: ObjectPlace, topic: string, hash: string): boolean {
    const record = this.rooms.objects.get(topic);
    if (record !== undefined) return record.hash === hash;
    if (hash === '') return true;
    const deleted = this.rooms.generations.get(topic);
    if (deleted?.hash !== hash) return false;
    return deleted.by === 'tombstone' || (deleted.by === 'index' && !this.rooms.indexes.lists(source, topic, hash));
  }
}
