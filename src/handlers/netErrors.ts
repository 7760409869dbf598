/** Errors of connections in words: what tcp and http handlers give to events, and how a caller tells a time-out from the rest. */

/** The whole exchange took longer than it may. Not an abort: it is an answer, and for a probe a failure. */
export class HandlerTimeout extends Error {
  constructor(
    what: string,
    readonly timeoutMs: number,
  ) {
    super(`${what}: timeout: no answer in ${timeoutMs / 1000} s`);
  }
}

/** An https request was answered in plain http. */
export class PlainHttpAnswer extends Error {}

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'connection timed out',
  EPIPE: 'broken pipe',
  EADDRNOTAVAIL: 'cannot assign requested address',
  EMFILE: 'too many open files',
};

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export const hostPort = (host: string, port: number): string => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);

/** The error of a connection as a person reads it; a name with several addresses failed at each: the first one's. */
export function connectionText(e: unknown, host: string, port: number): string {
  if (e instanceof AggregateError && e.errors.length > 0) return connectionText(e.errors[0], host, port);
  if (!(e instanceof Error)) return String(e);
  const { code, syscall } = e as NodeJS.ErrnoException;
  const said = (code === undefined ? undefined : words[code]) ?? e.message;
  if (syscall === 'connect') return `dial tcp ${hostPort(host, port)}: connect: ${said}`;
  if (syscall === 'getaddrinfo') return `dial tcp: lookup ${host}: ${code === 'ENOTFOUND' ? 'no such host' : said}`;
  return said;
}
