// pure
/** What a failed pull means, read from the runtime's text: there is no code for it. */

/** The registry answered, and its answer is no: asking again with a better network changes nothing. */
const answered = [
  /not found/i,
  /manifest unknown|name unknown|repository does not exist/i,
  /(?<![:/@.\w-])40[0134]\b|unauthorized|forbidden|denied|authorization failed/i,
  /no match for platform|unsupported media type|invalid|mismatch/i,
];

/** Nobody answers there, or nobody who can: true of every image of that registry. */
const silence = [
  /dial (?:tcp|udp)|no such host|server misbehaving|connection (?:refused|reset)|(?:network is unreachable|no route to host)/i,
  /i\/o timeout|TLS handshake timeout|deadline exceeded|client\.timeout|timeout awaiting response|no answer/i,
  /(?<![:/@.\w-])50[234]\b|bad gateway|service unavailable|gateway time-?out/i,
  /pull stalled: 0 bytes/,
];

/** The registry asks for patience: it holds for every image of that registry. */
export const isRateLimited = (message: string): boolean => /toomanyrequests|too many requests|(?<![:/@.\w-])429\b/i.test(unquoted(message));

/** No usable answer: the registry is away, slow or overloaded, or this node's network, names or clock are not there yet. */
export const isUnreachable = (message: string): boolean => isRateLimited(message) || !answered.some((a) => a.test(unquoted(message)));

/** The failure is the registry's and not the image's: all pods wait together before anybody asks it again. */
export const isOfRegistry = (message: string): boolean =>
  isRateLimited(message) || (isUnreachable(message) && silence.some((s) => s.test(unquoted(message))));

/** An index without a build for this node; the runtime looks for nothing else. */
export const hasNoPlatform = (message: string): boolean => /no match for platform/i.test(unquoted(message));

const units: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const longestRetryAfterMs = 3_600_000;

/**
 * How long the registry asks to be left alone, in milliseconds, where the runtime's text has it: in seconds, or as Go prints a duration
 * (`1m30s`). At most an hour.
 */
export function retryAfterMs(message: string): number | undefined {
  const text = /retry[- ]after"?:?\s*"?((?:\d{1,9}(?:\.\d{1,9})?\s?(?:[nuµm]s|[smh]\b|[smh](?=\d)|))+)/i.exec(message)?.[1];
  if (text === undefined) return undefined;
  let ms = 0;
  for (const [, number, unit = ''] of text.matchAll(/([\d.]+)\s?([a-zµ]*)/gi)) ms += Number(number) * (units[unit.toLowerCase()] ?? 1000);
  return Math.min(ms, longestRetryAfterMs);
}

/** An image may be called `invalid` or `not-found`, and a digest may hold anything: names stand in quotes, digests after their algorithm. */
const unquoted = (message: string): string => message.replaceAll(/"[^"]*"/g, '""').replaceAll(/sha256:[0-9a-f]+/g, 'sha256:');

/** The waiting reason: runtimes may say which of the two special ones it is. */
export function pullReason(message: string): string {
  for (const reason of ['RegistryUnavailable', 'SignatureValidationFailed']) if (message.startsWith(reason)) return reason;
  return hasNoPlatform(message) ? 'WrongPlatform' : 'ErrImagePull';
}
