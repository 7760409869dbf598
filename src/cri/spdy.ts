// pure
/**
 * Frames of SPDY/3.1, as much of it as a streaming session of CRI needs: the client opens streams, both sides send data, a side that is
 * done says so. Header blocks are written uncompressed (a deflate stream may consist of stored blocks), and those that come back say nothing
 * we need, so no compression is in here. There is no flow control of streams: the servers of CRI runtimes have none, the connection's counts.
 */

export type Frame =
  | { readonly kind: 'data'; readonly stream: number; readonly bytes: Uint8Array; readonly last: boolean }
  /** The other side gives a stream up. */
  | { readonly kind: 'reset'; readonly stream: number; readonly status: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'goAway' }
  /** Settings, replies, windows: nothing to do. */
  | { readonly kind: 'other'; readonly type: number };

const version = 3;
const types = { synStream: 1, rstStream: 3, ping: 6, goAway: 7 } as const;
const fin = 1;
const headBytes = 8;
/** The length of a frame has 24 bits; no server of CRI sends more than 32 KiB at once. */
const largestFrame = 1 << 20;

/** At most so many bytes in one data frame that we send. */
export const largestData = 16 * 1024;

function control(type: number, flags: number, body: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt16BE(0x8000 | version, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(((flags << 24) | body.length) >>> 0, 4);
  return Buffer.concat([head, body]);
}

/** Opens a stream; ours have odd numbers. `first`: no header block was sent before on this connection. Names of headers are lower case. */
export function openStream(stream: number, headers: Readonly<Record<string, string>>, first: boolean): Buffer {
  const numbers = Buffer.alloc(10);
  numbers.writeUInt32BE(stream, 0);
  return control(types.synStream, 0, Buffer.concat([numbers, ...(first ? [zlibHead] : []), stored(headerBlock(headers)), flush]));
}

const zlibHead = Buffer.from([0x78, 0x01]);
/** An empty stored block: what came before it is to be handed on. */
const flush = Buffer.from([0x00, 0x00, 0x00, 0xff, 0xff]);

function stored(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(bytes.length, 1);
  head.writeUInt16LE(~bytes.length & 0xffff, 3);
  return Buffer.concat([head, bytes]);
}

function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(headers);
  return Buffer.concat([number(entries.length), ...entries.flat().flatMap((text) => [number(Buffer.byteLength(text)), Buffer.from(text)])]);
}

function number(n: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(n, 0);
  return bytes;
}

/** `last`: nothing more comes on this stream from here. */
export function dataFrame(stream: number, bytes: Uint8Array, last: boolean): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(stream, 0);
  head.writeUInt32BE((((last ? fin : 0) << 24) | bytes.length) >>> 0, 4);
  return Buffer.concat([head, bytes]);
}

export const pingFrame = (id: number): Buffer => control(types.ping, 0, number(id));

/** Cuts what comes over a connection into frames. */
export class FrameReader {
  #held: Buffer = Buffer.alloc(0);

  /** The frames that are whole now. Throws when the other side does not speak SPDY/3. */
  read(chunk: Uint8Array): Frame[] {
    this.#held = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk]);
    const frames: Frame[] = [];
    let at = 0;
    while (this.#held.length - at >= headBytes) {
      const length = this.#held.readUInt32BE(at + 4) & 0xffffff;
      if (length > largestFrame) throw new Error(`a frame of ${length} bytes`);
      if (this.#held.length - at - headBytes < length) break;
      frames.push(frameOf(this.#held.subarray(at, at + headBytes), this.#held.subarray(at + headBytes, at + headBytes + length)));
      at += headBytes + length;
    }
    this.#held = this.#held.subarray(at);
    return frames;
  }
}

function frameOf(head: Buffer, body: Buffer): Frame {
  const first = head.readUInt32BE(0);
  if (first < 0x8000_0000) return { kind: 'data', stream: first, bytes: body, last: ((head[4] ?? 0) & fin) !== 0 };
  if (((first >>> 16) & 0x7fff) !== version) throw new Error('not SPDY/3');
  const type = first & 0xffff;
  const word = (at: number): number => (body.length >= at + 4 ? body.readUInt32BE(at) : 0);
  switch (type) {
    case types.rstStream:
      return { kind: 'reset', stream: word(0) & 0x7fff_ffff, status: word(4) };
    case types.ping:
      return { kind: 'ping', id: word(0) };
    case types.goAway:
      return { kind: 'goAway' };
    default:
      return { kind: 'other', type };
  }
}
