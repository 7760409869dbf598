// pure
/**
 * Topics and filters as text. What is no proper one never goes to the broker: mosquitto, AWS IoT and NATS end the connection over it, and names
 * of desired state come from anybody.
 */

const longest = 1_024;
/** In one SUBSCRIBE: AWS IoT takes no more. */
export const filtersAtOnce = 8;
/** Control characters, the broker's own NUL, what stands for bytes that are not UTF-8, and halves of a surrogate pair. */
const isForbidden = (code: number): boolean =>
  code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0xfffd || (code >= 0xd800 && code <= 0xdfff);

function isText(text: string): boolean {
  if (text === '' || text.length > longest) return false;
  for (const char of text) if (isForbidden(char.codePointAt(0) ?? 0)) return false;
  return true;
}

/** A topic a message may be published to. */
export const isTopic = (topic: string): boolean => isText(topic) && !/[#+]/.test(topic);

/** A filter one may subscribe to: `+` alone in its level, `#` alone in the last. */
export const isFilter = (filter: string): boolean =>
  isText(filter) &&
  filter.split('/').every((level, i, all) => !/[#+]/.test(level) || level === '+' || (level === '#' && i === all.length - 1));

/** Does a message on `topic` come to a subscriber of `filter`? (The broker's own `$…` topics are not followed.) */
export function filterMatches(filter: string, topic: string): boolean {
  if (filter.endsWith('/#') && !filter.includes('+')) {
    const base = filter.length - 2;
    return topic.startsWith(filter.slice(0, base)) && (topic.length === base || topic[base] === '/');
  }
  const f = filter.split('/');
  const t = topic.split('/');
  for (const [i, level] of f.entries()) {
    if (level === '#') return true;
    if (t[i] === undefined || (level !== '+' && level !== t[i])) return false;
  }
  return f.length === t.length;
}
