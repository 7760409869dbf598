// pure
/** What leaves the machine in a bundle, without what nobody else should read: values of environments, Secrets, names and passwords in URLs. */

const hidden = '<redacted>';

/** Whatever stands under these names, at any depth. */
const secretKeys: ReadonlySet<string> = new Set(
  ['env', 'command', 'args', 'data', 'stringData', 'binaryData', 'password', 'passwd', 'token', 'secret', 'auth', 'credentials'].map(
    (key) => key.toLowerCase(),
  ),
);
/** Deeper than anything of ours; what comes from elsewhere ends here. */
const mostDepth = 40;

/** Passwords and tokens as people write them into URLs, commands and headers. */
export function redactText(text: string): string {
  return text
    .replace(/\b([a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@?#]*@/gi, `$1${hidden}@`)
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/g, `$1 ${hidden}`)
    .replace(/((?:password|passwd|pwd|token|secret|api[-_]?key|access[-_]?key)["']?\s*[=:]\s*["']?)[^\s"',;&]+/gi, `$1${hidden}`)
    .replace(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, hidden);
}

/** The same value without them. A path of a file with a password is no password: names that end in `File` stay. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= mostDepth) return hidden;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, secretKeys.has(key.toLowerCase()) ? hidden : redact(inner, depth + 1)]),
  );
}
