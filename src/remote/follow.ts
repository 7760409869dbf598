/**
 * Lines of logs as they come, on the logs topic of their pod, for as long as somebody has a lease. Owns the leases, and one stream for each
 * container however many follow it: they share the topic. What comes faster than it may be told is left out, the oldest first, and counted.
 * Nothing is told after the connection has ended; whoever still wants lines asks again.
 */
import type { LogLines } from '../api/messages.ts';
import { isAbort } from '../async/abort.ts';
import { Deadlines } from '../async/deadlines.ts';
import type { Answered } from '../operations/answered.ts';
import { refused } from '../operations/answered.ts';
import type { LogAnswer } from '../operations/logs.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { chunkFor } from './chunks.ts';
import { LineBuffer } from './lineBuffer.ts';
import { closeLog } from './parts.ts';

export interface FollowDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeName: string;
  readonly boot: () => number;
  readonly seq: () => number;
  readonly topic: (namespace: string, pod: string) => string;
  /** QoS 0, not retained; resolves when written, rejects when the connection is gone. */
  readonly publish: (topic: string, payload: string) => Promise<void>;
  /** The most bytes the broker takes in one message on a topic. */
  readonly largestMessage: (topic: string) => number;
}

export interface Followed {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** What a follower is told. */
export interface Following extends Followed {
  readonly topic: string;
  readonly leaseSeconds: number;
  /** `joined`: others follow already, and what they were told is not told again. */
  readonly lease: 'new' | 'joined' | 'renewed' | 'ended';
}

type End = 'LeaseEnded' | 'ContainerEnded' | 'LogFailed';

interface Stream {
  readonly of: Followed;
  /** Until when, by who asked. */
  readonly leases: Map<string, Monotonic>;
  readonly stop: AbortController;
  readonly lines: LineBuffer;
  seq: number;
  ended?: End;
  /** Something is to be told, or it has ended. */
  wake: () => void;
}

const maxStreams = 8;
const maxLeases = 8;
/** One message of so many bytes, so often: 64 KiB a second. */
const messageBytes = 32 * 1024;
const pauseMs = 500;

export class LogFollows {
  #streams = new Map<string, Stream>();
  #leases: Deadlines<string>;

  constructor(private readonly deps: FollowDeps) {
    this.#leases = new Deadlines(deps.clock, (key) => this.#leaseEnded(key));
  }

  /** A lease for `requester`, new or renewed; 0 seconds end it. `open`: the log from where it is to be followed. */
  async follow(
    of: Followed,
    requester: string,
    leaseSeconds: number,
    open: (signal: AbortSignal) => Promise<LogAnswer>,
  ): Promise<Answered<Following>> {
    const key = keyOf(of);
    const known = this.#streams.get(key);
    const told = (lease: Following['lease']): Answered<Following> => ({
      ok: true,
      value: { ...of, topic: this.deps.topic(of.namespace, of.pod), leaseSeconds, lease },
    });
    if (leaseSeconds === 0) {
      if (known?.leases.delete(requester)) this.#arm(key, known);
      return told('ended');
    }
    if (known !== undefined) {
      forgetEnded(known.leases, this.deps.clock.monotonic());
      const had = known.leases.has(requester);
      if (!had && known.leases.size >= maxLeases) return refused(429, `${maxLeases} follow this log already`);
      this.#lease(key, known, requester, leaseSeconds);
      return told(had ? 'renewed' : 'joined');
    }
    if (this.#streams.size >= maxStreams) return refused(429, `${maxStreams} logs are followed already`);
    const stream: Stream = { of, leases: new Map(), stop: new AbortController(), lines: new LineBuffer(), seq: 0, wake: () => {} };
    // its place is taken before the log is opened: two that ask at once share it
    this.#streams.set(key, stream);
    this.#lease(key, stream, requester, leaseSeconds);
    let opened: LogAnswer;
    try {
      opened = await open(stream.stop.signal);
    } catch (error) {
      this.#drop(key, stream);
      throw error;
    }
    if (!opened.ok || stream.stop.signal.aborted) {
      if (opened.ok) await closeLog(opened.value);
      this.#drop(key, stream);
      return opened.ok ? refused(409, 'the following was ended') : opened;
    }
    void this.#read(stream, opened.value);
    void this.#tell(key, stream);
    return told('new');
  }

  /** The connection has ended: nobody hears anything. */
  disconnected(): void {
    for (const [key, stream] of this.#streams) this.#drop(key, stream);
  }

  stop(): void {
    this.disconnected();
    this.#leases.stop();
  }

  /** How many logs are followed. */
  get size(): number {
    return this.#streams.size;
  }

  #lease(key: string, stream: Stream, requester: string, seconds: number): void {
    stream.leases.set(requester, after(this.deps.clock.monotonic(), seconds * 1000));
    this.#arm(key, stream);
  }

  /** The stream lasts as long as the longest lease. */
  #arm(key: string, { leases }: Stream): void {
    this.#leases.set(key, Math.max(this.deps.clock.monotonic(), ...leases.values()) as Monotonic);
  }

  #leaseEnded(key: string): void {
    const stream = this.#streams.get(key);
    if (stream === undefined) return;
    this.#end(stream, 'LeaseEnded');
    stream.stop.abort();
  }

  #end(stream: Stream, why: End): void {
    stream.ended ??= why;
    stream.wake();
  }

  #drop(key: string, stream: Stream): void {
    stream.stop.abort();
    stream.wake();
    if (this.#streams.get(key) === stream) {
      this.#streams.delete(key);
      this.#leases.delete(key);
    }
  }

  async #read(stream: Stream, source: AsyncGenerator<Uint8Array, void>): Promise<void> {
    try {
      for await (const bytes of source) {
        if (stream.stop.signal.aborted) break;
        stream.lines.add(bytes);
        stream.wake();
      }
      this.#end(stream, 'ContainerEnded');
    } catch (error) {
      if (!isAbort(error) && !stream.stop.signal.aborted)
        this.deps.log.warn({ error: describeError(error), ...stream.of }, 'a log that is followed cannot be read on');
      this.#end(stream, 'LogFailed');
    }
  }

  /** Message after message, with a pause between them, until it has ended and all of it is told. */
  async #tell(key: string, stream: Stream): Promise<void> {
    const { clock } = this.deps;
    const gone = (): boolean => this.#streams.get(key) !== stream;
    try {
      for (;;) {
        if (stream.lines.size === 0 && stream.ended === undefined && !gone()) {
          await new Promise<void>((resolve) => {
            stream.wake = resolve;
          });
          continue;
        }
        if (gone()) return;
        // what its lease no longer covers is not told
        const last = stream.ended !== undefined && (stream.lines.size === 0 || stream.ended === 'LeaseEnded');
        await this.#publish(stream, last);
        if (last) return;
        await clock.sleep(pauseMs, stream.stop.signal).catch(() => {}); // ended: that is told at once
      }
    } catch (error) {
      this.deps.log.info({ error: describeError(error), ...stream.of }, 'lines of a log could not be told');
    } finally {
      this.#drop(key, stream);
    }
  }

  #publish(stream: Stream, last: boolean): Promise<void> {
    const { boot, largestMessage, nodeName, publish, seq } = this.deps;
    const { of, lines, ended } = stream;
    const topic = this.deps.topic(of.namespace, of.pod);
    const { dropped, ...piece } = last ? { dropped: 0, data: '' } : lines.take(Math.min(messageBytes, chunkFor(largestMessage(topic))));
    const message: LogLines = {
      apiVersion: 'podsched.dev/v1',
      kind: 'LogLines',
      node: nodeName,
      ...of,
      chunk: { seq: stream.seq++, last },
      ...piece,
      ...(dropped > 0 && { dropped }),
      ...(last && ended !== undefined && { reason: ended }),
      boot: boot(),
      seq: seq(),
    };
    return publish(topic, JSON.stringify(message));
  }
}

function forgetEnded(leases: Map<string, Monotonic>, now: Monotonic): void {
  for (const [requester, until] of leases) if (until <= now) leases.delete(requester);
}

const keyOf = ({ namespace, pod, container }: Followed): string => `${namespace}/${pod}/${container}`;
