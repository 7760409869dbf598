// pure
/** Bytes into the pieces of a reply: cut where no letter of UTF-8 is torn, as text where they are text, else as base64. */

/** The most bytes of data in one message. */
export const chunkBytes = 48 * 1024;
const longestLetter = 4;
/** What stands in a message beside its data. */
const headBytes = 2048;
const leastBytes = 256;

/** Bytes of data in one message, where the broker takes messages of at most `largest` bytes. */
export const chunkFor = (largest: number): number => Math.max(leastBytes, Math.min(chunkBytes, Math.floor((largest - headBytes) / 2)));

export interface Piece {
  readonly data: string;
  readonly encoding?: 'base64';
}

/** A text that JSON would make more than twice as long as `size` goes as base64: control characters become six letters each. */
export function pieceOf(bytes: Uint8Array, size = chunkBytes): Piece {
  const text = utf8(bytes);
  if (text !== undefined && Buffer.byteLength(JSON.stringify(text)) <= 2 * size) return { data: text };
  return { data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'), encoding: 'base64' };
}

/** The bytes of a piece, for who gets it. */
export const bytesOf = ({ data, encoding }: { readonly data: string; readonly encoding?: unknown }): Uint8Array =>
  Buffer.from(data, encoding === 'base64' ? 'base64' : 'utf8');

/** How many of the bytes go into a piece of at most `limit`: all, or up to the beginning of the letter that would be torn. */
export function cutAt(bytes: Uint8Array, limit: number): number {
  if (bytes.length <= limit) return bytes.length;
  for (let at = limit; at > 0 && limit - at < longestLetter; at--) if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at;
  return limit; // no UTF-8: it goes as base64
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    // a byte order mark is data as any other
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // no text
  }
}
