/** What gRPC says went wrong, in the ports' words: a code to decide by, and the runtime's own text for people. */
import { type ServiceError, status } from '@grpc/grpc-js';
import { RuntimeError, type RuntimeErrorCode } from '../container/runtime.ts';

const codes: ReadonlyMap<number, RuntimeErrorCode> = new Map([
  [status.NOT_FOUND, 'notFound'],
  [status.ALREADY_EXISTS, 'alreadyExists'],
  [status.UNAVAILABLE, 'unavailable'],
  // our own cancelling has its own words: this is a server that let go of the call while it went down
  [status.CANCELLED, 'unavailable'],
  [status.DEADLINE_EXCEEDED, 'deadlineExceeded'],
  [status.UNIMPLEMENTED, 'unimplemented'],
]);

/** For some seconds after its start containerd answers the socket before its CRI service works, and says so as UNKNOWN. */
const notYet = /server is not initialized yet/;

/** Any error of a gRPC call as a RuntimeError. `call` is the method's name, told where the text would not say what was tried. */
export function toRuntimeError(e: unknown, call: string): RuntimeError {
  if (e instanceof RuntimeError) return e;
  if (!isServiceError(e)) return new RuntimeError('unknown', `${call}: ${e instanceof Error ? e.message : String(e)}`, { cause: e });
  const text = plainText(e.details);
  const code = notYet.test(text) ? 'unavailable' : (codes.get(e.code) ?? 'unknown');
  return new RuntimeError(code, text === '' ? `${call}: ${status[e.code] ?? e.code}` : text, { cause: e });
}

const isServiceError = (e: unknown): e is ServiceError => e instanceof Error && 'code' in e && typeof e.code === 'number' && 'details' in e;

/**
 * The text without what gRPC libraries put around it, and without what a URL may let anybody do who reads it: registries hand out blobs under
 * signed addresses, and containerd repeats them when nobody answers there.
 */
export const plainText = (details: string): string =>
  withoutUrlSecrets(details)
    .replace(/^No connection established\. Last error: (?:Error: )?(.*?)\. Resolution note:.*$/s, '$1')
    .replaceAll(/rpc error: code = \w+ desc = /g, '')
    .trim();

const withoutUrlSecrets = (text: string): string => text.replaceAll(/https?:\/\/[^\s"']+/gi, plainUrl);

/** Without name and password, and without the query; what ends the sentence stays. */
function plainUrl(url: string): string {
  const query = url.indexOf('?');
  const shown = query < 0 ? url : url.slice(0, query);
  const host = shown.indexOf('//') + 2;
  const slash = shown.indexOf('/', host);
  const at = shown.lastIndexOf('@', slash < 0 ? shown.length : slash);
  const plain = at < host ? shown : shown.slice(0, host) + shown.slice(at + 1);
  if (query < 0) return plain;
  let end = url.length;
  while (end > query + 1 && ':,;.)]'.includes(url[end - 1] ?? '')) end--;
  return `${plain}?…${url.slice(end)}`;
}

/** An id that was answered; throws for none. */
export function named(id: string, call: string): string {
  if (id === '') throw new RuntimeError('unknown', `${call}: the runtime answered without an id`);
  return id;
}
