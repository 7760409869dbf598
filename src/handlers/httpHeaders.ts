// pure
/** The headers of an http handler: those of the manifest, and the usual ones (facts 8.5). */

export interface GivenHeaders {
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly userAgent: string;
}

/** By names in lower case, in their order. */
export type Headers = ReadonlyMap<string, readonly string[]>;

/** The request decides these itself. */
const notPassedOn = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** What is given, and the usual Accept and the user agent where it is not. */
export function requestHeaders(o: GivenHeaders): Headers {
  const headers = new Map<string, readonly string[]>();
  for (const { name, value } of o.headers) {
    const key = name.toLowerCase();
    if (!notPassedOn.has(key)) headers.set(key, [...(headers.get(key) ?? []), value]);
  }
  if (!headers.has('user-agent')) headers.set('user-agent', [o.userAgent]);
  if (!headers.has('accept')) headers.set('accept', ['*/*']);
  for (const key of ['user-agent', 'accept', 'host']) if ((headers.get(key)?.[0] ?? '') === '') headers.delete(key);
  return headers;
}

export const without = (headers: Headers, name: string): Headers => new Map([...headers].filter(([key]) => key !== name));

/** As servers are used to read them: `User-Agent`. What comes once is a text; a host must be one. */
export function asWritten(headers: Headers): Record<string, string | string[]> {
  const written: Record<string, string | string[]> = {};
  for (const [key, values] of headers) {
    const [first = ''] = values;
    const value = values.length === 1 || key === 'host' ? first : [...values];
    const name = usual.get(key);
    if (name !== undefined) written[name] = value;
    // `__proto__` is a name like any other
    else Object.defineProperty(written, capitalised(key), { value, enumerable: true });
  }
  return written;
}

const usual: ReadonlyMap<string, string> = new Map([
  ['user-agent', 'User-Agent'],
  ['accept', 'Accept'],
  ['host', 'Host'],
]);

const capitalised = (name: string): string => name.replace(/(?<=^|-)[a-z]/g, (c) => c.toUpperCase());
