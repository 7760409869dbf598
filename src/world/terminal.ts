// pure
/** Text from manifests, file names, images, brokers and runtimes, made harmless for a terminal and for a log of one line each. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
const control = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g;

/** Without escape sequences, newlines and what turns the direction of writing around. */
export const harmless = (text: string): string => text.replace(control, ' ');

/** The same, line by line: the newlines are our own. */
export const harmlessLines = (text: string): string => text.split('\n').map(harmless).join('\n');
