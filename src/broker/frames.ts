/**
 * Packets that are too large are passed over before anybody gathers them in memory: mqtt.js keeps a packet until its last byte has come, and in
 * MQTT 3.1.1 a client cannot say how much it takes. A PUBLISH passed over is acknowledged, or the broker would send it for ever.
 * Owns the place in the stream; changes nothing in what it lets through.
 */
import { Transform, type TransformCallback } from 'node:stream';

/** What mqtt.js calls its stream: a socket, TLS, or a WebSocket. */
export interface PacketStream {
  pipe<T extends NodeJS.WritableStream>(destination: T, options?: { end?: boolean }): T;
  write(bytes: Buffer): boolean;
}

const publish = 3;
const puback = 0x40;
const longestLengthBytes = 4;

/** Whoever pipes the stream gets its packets, but for those of more than `maxBytes` after the header: `onDropped` is called for each. */
export function guardFrames<S extends PacketStream>(stream: S, maxBytes: number, onDropped: () => void): S {
  const guard = new FrameGuard(maxBytes, (id) => {
    onDropped();
    if (id !== undefined) stream.write(Buffer.from([puback, 2, ...id]));
  });
  const pipe = stream.pipe.bind(stream);
  stream.pipe = (destination, options) => pipe(guard, options).pipe(destination);
  return stream;
}

export class FrameGuard extends Transform {
  /** The beginning of a header whose rest has not come. */
  #held: Buffer | undefined;
  /** Bytes of the current packet still to be let through. */
  #through = 0;
  #over: PassedOver | undefined;

  constructor(
    private readonly maxBytes: number,
    /** A packet was passed over; with its packet id when it wants to be acknowledged. */
    private readonly onOver: (id: readonly number[] | undefined) => void,
  ) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    const data = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = undefined;
    let from = 0;
    let i = 0;
    while (i < data.length) {
      if (this.#through > 0) {
        const n = Math.min(this.#through, data.length - i);
        this.#through -= n;
        i += n;
      } else if (this.#over !== undefined) {
        i += this.#over.take(data.subarray(i));
        from = i;
        if (this.#over.left === 0) {
          this.onOver(this.#over.id());
          this.#over = undefined;
        }
      } else {
        const header = readHeader(data, i);
        if (header === undefined) {
          // copied: as a part of the chunk it would keep all of it
          this.#held = Buffer.from(data.subarray(i));
          break;
        }
        if (header.length > this.maxBytes && header.length < Number.POSITIVE_INFINITY) {
          if (i > from) this.push(data.subarray(from, i));
          from = i + header.bytes;
          this.#over = new PassedOver(data[i] ?? 0, header.length);
        } else {
          this.#through = header.length;
        }
        i += header.bytes;
      }
    }
    if (i > from) this.push(data.subarray(from, i));
    done();
  }
}

/** A packet's header; undefined: not all of it is there. What is no header has no end: the parser says so. */
function readHeader(data: Buffer, at: number): { readonly bytes: number; readonly length: number } | undefined {
  let length = 0;
  for (let k = 0; k < longestLengthBytes; k++) {
    const byte = data[at + 1 + k];
    if (byte === undefined) return undefined;
    length += (byte & 0x7f) * 128 ** k;
    if (byte < 0x80) return { bytes: k + 2, length };
  }
  return { bytes: longestLengthBytes + 1, length: Number.POSITIVE_INFINITY };
}

/** Reads of a packet only what its acknowledgement needs: the packet id after the topic. */
class PassedOver {
  left: number;
  readonly #wantsAck: boolean;
  #at = 0;
  #topicBytes = 0;
  #id: number[] = [];

  constructor(firstByte: number, length: number) {
    this.left = length;
    this.#wantsAck = firstByte >> 4 === publish && ((firstByte >> 1) & 3) === 1;
  }

  /** How many of the bytes belong to it. */
  take(bytes: Buffer): number {
    const n = Math.min(this.left, bytes.length);
    for (let k = 0; k < n && this.#wantsAck && this.#id.length < 2; k++, this.#at++) {
      const byte = bytes[k] ?? 0;
      if (this.#at < 2) this.#topicBytes = this.#topicBytes * 256 + byte;
      else if (this.#at >= 2 + this.#topicBytes) this.#id.push(byte);
    }
    this.left -= n;
    return n;
  }

  id(): readonly number[] | undefined {
    return this.#id.length === 2 ? this.#id : undefined;
  }
}
