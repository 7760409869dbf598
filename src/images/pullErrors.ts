// pure
/** What a failed pull means, read from the runtime's text: there is no code for it. */

/** The registry answered, and its answer is no: asking again with a better network changes nothing. */
const answered = [
  /not found/i,
  /manifest unknown|name unknown|repository does not exist/i,
  /\b40[0134]\b|unauthorized|forbidden|denied|authorization failed/i,
  /no match for platform|unsupported media type|invalid|mismatch/i,
];

/** The registry asks for patience: it holds for every image of that registry. */
export const isRateLimited = (message: string): boolean => /toomanyrequests|too many requests|\b429\b/i.test(message);

/** No usable answer: the registry is away, slow or overloaded, or this node's network, names or clock are not there yet. */
export const isUnreachable = (message: string): boolean => isRateLimited(message) || !answered.some((a) => a.test(unquoted(message)));

/** An image may be called `invalid` or `not-found`: names stand in quotes. */
const unquoted = (message: string): string => message.replaceAll(/"[^"]*"/g, '""');

/** The waiting reason: runtimes may say which of the two special ones it is. */
export function pullReason(message: string): string {
  for (const reason of ['RegistryUnavailable', 'SignatureValidationFailed']) if (message.startsWith(reason)) return reason;
  return 'ErrImagePull';
}
