// pure
/** Text from manifests, file names, images, brokers and runtimes, made harmless for a terminal and for a log of one line each. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
const control = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g;

/** Without escape sequences, newlines and what turns the direction of writing around. */
export const harmless = (text: string): string => text.replace(control, ' ');

/** The same, line by line: the newlines are our own. */
export const harmlessLines = (text: string): string => text.split('\n').map(harmless).join('\n');

/** What a terminal may get of a log: text, newlines, tabs and colours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
const steering = /\x1b\[[\d;:]{0,64}m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/** The beginning of a colour, at the end of a chunk. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one
const begun = /\x1b(?:\[[\d;:]{0,64})?$/;

/** For bytes that come in chunks, of a program nobody knows: each chunk as text that cannot steer a terminal. `\r\n` is a newline. */
export function terminalFilter(): (chunk: Uint8Array) => string {
  const decoder = new TextDecoder();
  let held = '';
  return (chunk) => {
    const text = held + decoder.decode(chunk, { stream: true });
    held = begun.exec(text)?.[0] ?? '';
    return text
      .slice(0, text.length - held.length)
      .replace(steering, (found) => (found.length > 1 ? found : found === '\r' ? '' : '\ufffd'));
  };
}
