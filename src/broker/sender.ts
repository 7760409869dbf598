/**
 * What may be on the wire now. At most 20 messages wait for their PUBACK; urgent ones (online, markers) go first, then replies, retained topics
 * and events; a message that may have ended a connection goes alone, so that a second end names it. Owns the messages in flight and the limits
 * learned from the broker. Never decides what is told, and never waits: every answer and every due moment is a `kick`.
 */

import { maxMessageBytes, maxRetainedBytes } from '../api/topics.ts';
import { type BrokerConnection, BrokerError, type PublishOptions } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import { after, type Monotonic } from '../world/clock.ts';
import type { ReplyOptions } from './inbox.ts';
import { codeMeaning, quietMs } from './reconnect.ts';
import type { Outgoing, RetainedTopics } from './retained.ts';
import type { MessageRing, RingMessage } from './ring.ts';
import { payloadBytes, trimPayload } from './trim.ts';

const maxInFlight = 20;
/** Header, packet id and MQTT 5 properties around topic and payload. */
const packetOverheadBytes = 64;
const smallestCapBytes = 512;
/** A status that was given up is tried once more after this, alone: what ended the connections may have been the broker's own trouble. */
const droppedMs = 60 * 60_000;
/** The pause between messages after the first "quota exceeded"; doubled with each further one. */
const firstGapMs = 100;
const longestGapMs = 60_000;
/** Who replies waits for PUBACKs, so this many only wait when many ask at once. */
const mostReplies = 256;

/** The MQTT 5 codes for what is not even sent. */
const tooLargeOrMany = { packet: 0x95, quota: 0x97 } as const;

/** Something a person should know about one message. */
export interface MessageReport {
  readonly reason: 'MessageDropped' | 'MessageTooLarge' | 'PublishRefused';
  readonly topic: string;
  readonly message: string;
}

export interface SenderDeps {
  readonly clock: Clock;
  readonly retained: RetainedTopics;
  readonly ring: MessageRing;
  readonly report: (r: MessageReport) => void;
  /** Call `kick` at this moment (Infinity: no need). */
  readonly wakeAt: (at: number) => void;
}

type Item =
  | { readonly kind: 'urgent'; readonly topic: string; readonly bytes: number; readonly reject: (e: unknown) => void }
  | { readonly kind: 'reply'; readonly topic: string; readonly bytes: number; readonly reply: Urgent }
  | { readonly kind: 'retained'; readonly topic: string; readonly bytes: number; readonly out: Outgoing }
  | { readonly kind: 'event'; readonly topic: string; readonly bytes: number; readonly message: RingMessage };

interface Urgent {
  readonly topic: string;
  readonly payload: string;
  readonly options: PublishOptions;
  readonly resolve: () => void;
  readonly reject: (e: unknown) => void;
}

export class Sender {
  #connection: BrokerConnection | undefined;
  #open = false;
  #inFlight = new Set<Item>();
  #urgent: Urgent[] = [];
  #replies: Urgent[] = [];
  /** Learned from "packet too large" for as long as the agent lives. */
  #capBytes = Number.POSITIVE_INFINITY;
  #gapMs = 0;
  #lastQuotaAt = 0;
  #notBefore = 0;
  #refusalTold = false;

  constructor(private readonly deps: SenderDeps) {}

  attach(connection: BrokerConnection): void {
    this.#connection = connection;
    this.#inFlight = new Set();
    this.#notBefore = 0;
    this.#refusalTold = false;
  }

  /** Retained topics and events may flow (not before `online` was said, never for a duplicate). */
  open(): void {
    this.#open = true;
    this.kick();
  }

  close(): void {
    this.#open = false;
  }

  /** A message ahead of all others; resolves at PUBACK, rejects with the connection. Never counted as a cause of a disconnect. */
  urgent(topic: string, payload: string, options: PublishOptions): Promise<void> {
    if (this.#connection === undefined) return Promise.reject(new BrokerError('not connected'));
    return new Promise((resolve, reject) => {
      this.#urgent.push({ topic, payload, options, resolve, reject });
      this.kick();
    });
  }

  /**
   * An answer to a command: as fast as the broker takes messages. Resolves at PUBACK; rejects with BrokerError when the connection ends, the broker
   * refuses it, or it is larger than `largestMessage` (0x95). Nothing of it outlives the connection.
   */
  reply(topic: string, payload: string, o: ReplyOptions): Promise<void> {
    const refused = this.#refusedReply(topic, payload, o);
    if (refused !== undefined) return Promise.reject(refused);
    const { correlationData, expirySeconds, qos = 1 } = o;
    const options: PublishOptions = { qos, retain: false, expirySeconds, ...(correlationData !== undefined && { correlationData }) };
    return new Promise((resolve, reject) => {
      this.#replies.push({ topic, payload, options, resolve, reject });
      this.kick();
    });
  }

  /** How large a payload that is not retained may be now, in bytes. */
  largestMessage(topic: string): number {
    return Math.max(0, this.#capOf(topic, maxMessageBytes));
  }

  /** The connection is gone. What was in flight is to be told again; `blame`: one of it may be the cause; `code`: what the broker said. */
  detach(code: number | undefined, blame: boolean): void {
    this.#connection = undefined;
    this.#open = false;
    const items = [...this.#inFlight];
    this.#inFlight = new Set();
    if (codeMeaning(code) === 'tooLarge') this.#lowerCap(Math.max(0, ...items.map((i) => i.bytes)));
    if (codeMeaning(code) === 'quota') this.#halveRate();
    const back: RingMessage[] = [];
    for (const item of items) {
      if (item.kind === 'urgent') item.reject(new BrokerError('the connection is gone'));
      else if (item.kind === 'reply') item.reply.reject(new BrokerError('the connection is gone'));
      else if (item.kind === 'event') {
        const strikes = item.message.strikes + (blame ? 1 : 0);
        if (strikes < 2) back.push({ ...item.message, strikes });
        else this.#reportDropped(item.topic);
      } else {
        this.deps.retained.failed(item.topic, { strike: blame });
        if (blame && item.out.strikes > 0 && this.#drop(item.out)) this.#reportDropped(item.topic);
      }
    }
    this.deps.ring.putBack(back);
    for (const u of [...this.#urgent, ...this.#replies]) u.reject(new BrokerError('the connection is gone'));
    this.#urgent = [];
    this.#replies = [];
  }

  /** Sends what may be sent now and arranges for the next moment something may be. */
  kick(): void {
    const { clock, retained } = this.deps;
    if (this.#connection === undefined) return;
    const limit = Math.min(maxInFlight, this.#connection.receiveMaximum ?? maxInFlight);
    let now = clock.monotonic();
    while (this.#inFlight.size < limit && this.#startOne(this.#connection, now)) now = clock.monotonic();
    let at = this.#open ? retained.nextAt(now) : Number.POSITIVE_INFINITY;
    if ((this.#open || this.#replies.length > 0) && this.#notBefore > now) at = Math.min(at, this.#notBefore);
    this.deps.wakeAt(at);
  }

  #startOne(connection: BrokerConnection, now: Monotonic): boolean {
    const u = this.#urgent.shift();
    if (u !== undefined) {
      const item: Item = { kind: 'urgent', topic: u.topic, bytes: payloadBytes(u.payload), reject: u.reject };
      this.#publish(connection, item, u.payload, u.options, u.resolve);
      return true;
    }
    if (now < this.#notBefore) return false;
    // a message under suspicion travels alone
    if ([...this.#inFlight].some((i) => (i.kind === 'retained' && i.out.strikes > 0) || (i.kind === 'event' && i.message.strikes > 0)))
      return false;
    const reply = this.#replies.shift();
    if (reply !== undefined) {
      const item: Item = { kind: 'reply', topic: reply.topic, bytes: payloadBytes(reply.payload), reply };
      this.#publish(connection, item, reply.payload, reply.options, reply.resolve);
      return true;
    }
    if (!this.#open) return false;
    for (const suspects of this.#inFlight.size === 0 ? [false, true] : [false]) {
      const out = this.deps.retained.next(now, suspects);
      if (out !== undefined) return this.#startRetained(connection, out);
      const message = this.deps.ring.take(now, suspects);
      if (message !== undefined) return this.#startEvent(connection, message, now);
    }
    return false;
  }

  #startRetained(connection: BrokerConnection, out: Outgoing): boolean {
    const payload = this.#fitting(out.topic, out.payload, maxRetainedBytes);
    if (payload === undefined) {
      this.#drop(out);
      return true;
    }
    this.deps.retained.sent(out.topic);
    const item: Item = { kind: 'retained', topic: out.topic, bytes: payloadBytes(payload), out };
    this.#publish(connection, item, payload, out.options, () => this.deps.retained.acked(out, this.deps.clock.monotonic()));
    return true;
  }

  #startEvent(connection: BrokerConnection, message: RingMessage, now: Monotonic): boolean {
    const payload = this.#fitting(message.topic, message.payload, maxMessageBytes);
    if (payload === undefined) return true;
    const { qos, expirySeconds } = message.options;
    const left = expirySeconds === undefined ? undefined : Math.max(1, Math.round(expirySeconds - (now - message.since) / 1000));
    const item: Item = { kind: 'event', topic: message.topic, bytes: payloadBytes(payload), message };
    this.#publish(connection, item, payload, { qos, retain: false, ...(left !== undefined && { expirySeconds: left }) }, () => {});
    return true;
  }

  /** The payload, cut where it must be; undefined (and told) when that does not help. */
  #fitting(topic: string, payload: string, contractBytes: number): string | undefined {
    const cap = this.#capOf(topic, contractBytes);
    const fitting = trimPayload(payload, cap);
    if (fitting === undefined) {
      this.deps.report({
        reason: 'MessageTooLarge',
        topic,
        message: `${payloadBytes(payload)} bytes, and the broker takes ${cap}: not told`,
      });
    }
    return fitting;
  }

  #capOf(topic: string, contractBytes: number): number {
    const broker = (this.#connection?.maximumPacketBytes ?? Number.POSITIVE_INFINITY) - payloadBytes(topic) - packetOverheadBytes;
    return Math.min(contractBytes, broker, this.#capBytes);
  }

  #refusedReply(topic: string, payload: string, { correlationData }: ReplyOptions): BrokerError | undefined {
    if (this.#connection === undefined) return new BrokerError('not connected');
    if (this.#replies.length >= mostReplies) return new BrokerError('too many replies wait', tooLargeOrMany.quota);
    const bytes = payloadBytes(payload) + (correlationData?.length ?? 0);
    const cap = this.largestMessage(topic);
    return bytes > cap ? new BrokerError(`${bytes} bytes, and the broker takes ${cap}`, tooLargeOrMany.packet) : undefined;
  }

  #publish(connection: BrokerConnection, item: Item, payload: string, options: PublishOptions, done: () => void): void {
    this.#inFlight.add(item);
    if (this.#gapMs > 0) this.#notBefore = after(this.deps.clock.monotonic(), this.#currentGapMs());
    connection.publish(item.topic, payload, options).then(
      () => {
        if (!this.#inFlight.delete(item)) return;
        done();
        this.kick();
      },
      (e: unknown) => {
        // no code: the connection is going, and `detach` will judge everything in flight together
        const code = e instanceof BrokerError ? e.code : undefined;
        if (code === undefined || !this.#inFlight.delete(item)) return;
        this.#refused(item, code);
        this.kick();
      },
    );
  }

  /** The broker answered one message with an error and keeps the connection. */
  #refused(item: Item, code: number): void {
    const meaning = codeMeaning(code);
    if (meaning === 'quota') this.#halveRate();
    if (meaning === 'tooLarge') this.#lowerCap(item.bytes);
    const again = meaning === 'quota' || (meaning === 'tooLarge' && this.#capBytes >= smallestCapBytes);
    // once for each connection: a broker that refuses one topic of a node mostly refuses them all
    if (!again && !this.#refusalTold) {
      this.#refusalTold = true;
      const message = `the broker refuses it (0x${code.toString(16)})`;
      this.deps.report({ reason: 'PublishRefused', topic: item.topic, message });
    }
    switch (item.kind) {
      case 'urgent':
        item.reject(new BrokerError('refused', code));
        return;
      case 'reply':
        if (meaning === 'quota') this.#replies.unshift(item.reply);
        else item.reply.reject(new BrokerError('refused', code));
        return;
      case 'event':
        if (again) this.deps.ring.putBack([item.message]);
        return;
      case 'retained':
        this.deps.retained.failed(item.topic, again ? {} : { refusedUntil: after(this.deps.clock.monotonic(), quietMs) });
    }
  }

  #lowerCap(bytes: number): void {
    this.#capBytes = Math.max(smallestCapBytes, Math.floor(Math.min(this.#capBytes, bytes || maxRetainedBytes) / 2));
  }

  #halveRate(): void {
    this.#gapMs = this.#currentGapMs() === 0 ? firstGapMs : Math.min(longestGapMs, this.#gapMs * 2);
    this.#lastQuotaAt = this.deps.clock.monotonic();
    this.#notBefore = this.#lastQuotaAt + this.#gapMs;
  }

  /** A quota is a matter of load: ten minutes without a complaint end the pause. */
  #currentGapMs(): number {
    if (this.deps.clock.monotonic() - this.#lastQuotaAt > 10 * 60_000) this.#gapMs = 0;
    return this.#gapMs;
  }

  #drop(out: Outgoing): boolean {
    return this.deps.retained.drop(out.topic, out.version, after(this.deps.clock.monotonic(), droppedMs));
  }

  #reportDropped(topic: string): void {
    this.deps.report({
      reason: 'MessageDropped',
      topic,
      message: 'it ended the connection twice: not told until it changes, or in an hour',
    });
  }
}
