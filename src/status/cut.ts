// pure
/** How texts are kept short: by bytes of UTF-8, for that is what a payload and a runtime count, and never within a character. */

export const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8');
export const jsonBytes = (value: unknown): number => bytesOf(JSON.stringify(value));

/** The first `maxBytes` of a text. */
export function firstBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  let end = Math.max(0, maxBytes);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** At most `maxBytes` with a mark at the end of what was cut. */
export const cutText = (text: string, maxBytes: number): string =>
  bytesOf(text) <= maxBytes ? text : `${firstBytes(text, maxBytes - bytesOf('…'))}…`;
