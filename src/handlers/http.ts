/**
 * One GET for probes and hooks (facts 8.5, 7.3). Mirrors kubelet v1.32 pkg/probe/http: a connection of its own, no proxies, no compression,
 * certificates not verified, 10 KiB of the answer read, redirects followed on the same host name only. Never decides what a status means.
 */
import type { ClientRequest, ClientRequestArgs, IncomingMessage, RequestOptions } from 'node:http';
import { request as httpRequest } from 'node:http';
import type { Agent } from 'node:https';
import { connect, isIP } from 'node:net';
import { asWritten, type Headers, requestHeaders, without } from './httpHeaders.ts';
import { httpTarget } from './httpTarget.ts';
import { connectionText, HandlerTimeout, hostPort, PlainHttpAnswer } from './netErrors.ts';

export interface HttpGet {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** May hold a query. */
  readonly path: string;
  /** A name may come more than once. `Host` replaces the host of the request; an empty `Accept` or `User-Agent` drops the header. */
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly userAgent: string;
  /** For the whole exchange, redirects and body included; absent: none. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** The first 10 KiB. */
  readonly body: string;
  /** Stopped at a redirect to another host name; `status` and `body` are that answer's. */
  readonly redirectedAway: boolean;
}

interface Target {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

const maxBodyBytes = 10 * 1024;
const maxRedirects = 10;
const followed = new Set([301, 302, 303, 307, 308]);

/** Rejects with HandlerTimeout, with the signal's reason, or with what the network said, as `Get "URL": …`. */
export function httpGet(o: HttpGet): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => new Exchange(o, resolve, reject).start());
}

/** One request and what its redirects lead to, until it is settled. A class, not closures: probes come by the hundred each second. */
class Exchange {
  #target: Target;
  #headers: Headers;
  #redirects = 0;
  #request: ClientRequest | undefined;
  #timer: NodeJS.Timeout | undefined;
  #settled = false;

  constructor(
    private readonly o: HttpGet,
    private readonly resolve: (answer: HttpAnswer) => void,
    private readonly reject: (reason: unknown) => void,
  ) {
    this.#target = { scheme: o.scheme, host: o.host, port: o.port, path: httpTarget(o.path) };
    this.#headers = headersOf(o);
  }

  start(): void {
    const { signal, timeoutMs } = this.o;
    if (signal?.aborted) {
      this.reject(signal.reason);
      return;
    }
    signal?.addEventListener('abort', this.#aborted);
    if (timeoutMs !== undefined) this.#timer = setTimeout(this.#late, timeoutMs, timeoutMs);
    this.#send();
  }

  #send(): void {
    this.#request = undefined;
    const { scheme, host, port, path } = this.#target;
    const options: RequestOptions = {
      host,
      port,
      path,
      headers: written(this.#headers),
      // small servers on devices answer carelessly
      insecureHTTPParser: true,
      maxHeaderSize: 256 * 1024,
    };
    try {
      if (scheme === 'http') {
        options.createConnection = ownConnection;
        options.defaultPort = 80;
        this.#listen(httpRequest(options));
      } else secureRequest(options, host).then(this.#listen, this.#failed);
    } catch (e) {
      this.#failed(e); // a header that may not be sent
    }
  }

  readonly #listen = (request: ClientRequest): void => {
    this.#request = request;
    // stays attached: a destroyed request may still report, and so may one that was redirected
    request.on('error', (e) => this.#request === request && this.#failed(e));
    if (this.#settled) {
      request.destroy();
      return;
    }
    request.on('response', (response) => this.#read(request, response));
    // 101: the handler asked for something else than an answer
    request.on('upgrade', ({ statusCode = 101 }, socket) => {
      socket.destroy();
      this.#end();
      this.resolve({ status: statusCode, body: '', redirectedAway: false });
    });
    request.end();
  };

  #read(request: ClientRequest, response: IncomingMessage): void {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size < maxBodyBytes) return;
      // longer is cut, not an error
      this.#answered(response, chunks);
      response.destroy();
    });
    response.on('end', () => this.#answered(response, chunks));
    response.on('error', (e) => this.#request === request && this.#failed(new Error(`the answer broke off: ${e.message}`)));
  }

  #answered(response: IncomingMessage, chunks: readonly Buffer[]): void {
    if (this.#settled) return;
    const status = response.statusCode ?? 0;
    const { location = '' } = response.headers;
    try {
      const next = location !== '' && followed.has(status) ? new URL(location, urlText(this.#target)) : undefined;
      // only redirects of one host name are followed, so it is still that of the first request
      const away = next !== undefined && next.hostname !== new URL(urlText(this.#target)).hostname;
      if (next === undefined || away) this.#done(status, chunks, away);
      else this.#follow(next, /^(?:[a-z][a-z0-9+.-]*:)?\/\//i.test(location));
    } catch (e) {
      this.#failed(e);
    }
  }

  /** `isPlace`: it names a host, not only a path, so that host is meant and not the given one. */
  #follow(next: URL, isPlace: boolean): void {
    if (this.#redirects++ === maxRedirects) throw new Error(`stopped after ${maxRedirects} redirects`);
    this.#target = targetOf(next, this.#target.host);
    if (isPlace) this.#headers = without(this.#headers, 'host');
    this.#send();
  }

  #done(status: number, chunks: readonly Buffer[], redirectedAway: boolean): void {
    this.#end();
    this.resolve({ status, body: textOf(chunks), redirectedAway });
  }

  readonly #late = (timeoutMs: number): void => this.#giveUp(new HandlerTimeout(this.#what(), timeoutMs));

  readonly #aborted = (): void => this.#giveUp(this.o.signal?.reason);

  #giveUp(reason: unknown): void {
    this.#end();
    this.reject(reason);
    this.#request?.destroy();
  }

  readonly #failed = (e: unknown): void => {
    if (this.#settled) return;
    this.#end();
    if (isPlainAnswer(e)) this.reject(new PlainHttpAnswer(`${this.#what()}: the server answered in plain http to https`));
    else this.reject(new Error(`${this.#what()}: ${connectionText(e, this.#target.host, this.#target.port)}`));
  };

  #what(): string {
    const { scheme, host, port, path } = this.o;
    return `Get ${JSON.stringify(urlText({ scheme, host, port, path: httpTarget(path) }))}`;
  }

  #end(): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    this.o.signal?.removeEventListener('abort', this.#aborted);
  }
}

/** A probe's headers are the same each time: they are made once for each list of a manifest. */
const known = new WeakMap<HttpGet['headers'], { readonly userAgent: string; readonly headers: Headers }>();
const asText = new WeakMap<Headers, ReturnType<typeof asWritten>>();

function headersOf(o: HttpGet): Headers {
  const before = known.get(o.headers);
  if (before !== undefined && before.userAgent === o.userAgent) return before.headers;
  const headers = requestHeaders(o);
  known.set(o.headers, { userAgent: o.userAgent, headers });
  return headers;
}

function written(headers: Headers): ReturnType<typeof asWritten> {
  let text = asText.get(headers);
  if (text === undefined) {
    text = asWritten(headers);
    asText.set(headers, text);
  }
  return text;
}

function textOf(chunks: readonly Buffer[]): string {
  const [only] = chunks;
  return (chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)).toString('utf8', 0, maxBodyBytes);
}

const urlText = (t: Target): string => {
  const usual = t.port === (t.scheme === 'http' ? 80 : 443);
  return `${t.scheme}://${usual ? hostPort(t.host, t.port).replace(/:\d+$/, '') : hostPort(t.host, t.port)}${t.path}`;
};

function targetOf(url: URL, host: string): Target {
  const scheme = url.protocol === 'http:' ? 'http' : url.protocol === 'https:' ? 'https' : undefined;
  if (scheme === undefined) throw new Error(`redirected to the scheme ${JSON.stringify(url.protocol)}`);
  return { scheme, host, port: url.port === '' ? (scheme === 'http' ? 80 : 443) : Number(url.port), path: `${url.pathname}${url.search}` };
}

/** No agent stands between: it pools what is used once, and half of a probe's own cost was its. Only the place: `path` would name a socket file. */
const ownConnection = ({ host, port }: ClientRequestArgs) => connect({ host: host ?? '', port: Number(port) });

let secureAgent: Agent | undefined;

/** TLS is loaded by the first handler that needs it. */
async function secureRequest(options: RequestOptions, host: string): Promise<ClientRequest> {
  const https = await import('node:https');
  // no session is kept: each exchange is a new one, as a client's would be
  secureAgent ??= new https.Agent({ keepAlive: false, maxCachedSessions: 0, rejectUnauthorized: false });
  return https.request({ ...options, agent: secureAgent, rejectUnauthorized: false, servername: isIP(host) === 0 ? host : '' });
}

const isPlainAnswer = (e: unknown): boolean =>
  e instanceof Error && ((e as NodeJS.ErrnoException).code === 'ERR_SSL_WRONG_VERSION_NUMBER' || /wrong version number/.test(e.message));
