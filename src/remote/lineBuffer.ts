// pure
/** Lines that wait to be told: a bounded heap of chunks of whole lines, of which the oldest go first when there are too many. */
import { cutAt, type Piece, pieceOf } from './chunks.ts';

const maxBytes = 256 * 1024;
const newline = 0x0a;

export class LineBuffer {
  #chunks: Uint8Array[] = [];
  #dropped = 0;
  /** Bytes that wait. */
  size = 0;

  add(bytes: Uint8Array): void {
    this.#chunks.push(bytes);
    this.size += bytes.length;
    // one chunk alone may be more than there is room for: it is read and told in pieces
    while (this.size > maxBytes && this.#chunks.length > 1) {
      const oldest = this.#chunks.shift();
      if (oldest === undefined) return;
      this.size -= oldest.length;
      this.#dropped += linesIn(oldest);
    }
  }

  /** The oldest that waits, at most `limit` bytes, up to the end of a line if one ends in there; and how many lines before it were left out. */
  take(limit: number): Piece & { readonly dropped: number } {
    const whole = Buffer.concat(this.#chunks);
    const end = whole.length <= limit ? whole.length : whole.lastIndexOf(newline, limit - 1) + 1 || cutAt(whole, limit);
    this.#chunks = end < whole.length ? [whole.subarray(end)] : [];
    this.size = whole.length - end;
    const dropped = this.#dropped;
    this.#dropped = 0;
    return { dropped, ...pieceOf(whole.subarray(0, end), limit) };
  }
}

function linesIn(bytes: Uint8Array): number {
  let lines = 0;
  for (const byte of bytes) if (byte === newline) lines++;
  return Math.max(1, lines);
}
