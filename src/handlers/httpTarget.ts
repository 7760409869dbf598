// pure
/** The request target of an http handler's `path`: a path with perhaps a query; what cannot be read as one is a path, letter by letter. */

/** Nothing in it needs a second look. */
const usual = /^\/(?!\/)[A-Za-z0-9\-._~!$&'()*+,;=:@/]*(?:\?[\x21\x22\x24-\x7e]*)?$/;

/** Always begins with `/` and holds only what may stand in a request line. A fragment is not sent; a scheme and host are not meant. */
export function httpTarget(text: string): string {
  if (usual.test(text)) return text;
  if (!isReadable(text)) return rooted(encode(text, /[^A-Za-z0-9\-._~!$&'()*+,;=:@/]/gu));
  const own = text.replace(/#.*$/s, '').replace(/^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?]*/i, '');
  const mark = own.indexOf('?');
  const path = rooted(encode(mark === -1 ? own : own.slice(0, mark), /[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gu));
  return mark === -1 ? path : `${path}?${encode(own.slice(mark + 1), /[^\x21-\x7e]/gu)}`;
}

/** As a URL reference: no control characters, whole escapes in the path, and no colon in a first segment that is no scheme. */
function isReadable(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  if (/[\x00-\x1f\x7f]/.test(text)) return false;
  const [path = ''] = text.split(/[?#]/);
  if (/%(?![0-9a-f]{2})/i.test(path)) return false;
  const [segment = ''] = path.split('/');
  return !segment.includes(':') || /^[a-z][a-z0-9+.-]*:\/\//i.test(path);
}

const rooted = (path: string): string => (path.startsWith('/') ? path : `/${path}`);

const encode = (text: string, notAllowed: RegExp): string =>
  text.replace(notAllowed, (c) => [...Buffer.from(c)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''));
