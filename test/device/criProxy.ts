/**
 * A proxy in front of a runtime's socket that knows single gRPC calls: it can hold some, refuse some, or make the event stream deaf, while
 * all others pass untouched. Plain HTTP/2 on both sides; it understands no message.
 */
import { rmSync } from 'node:fs';
import { type ClientHttp2Session, connect, constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { connect as connectSocket } from 'node:net';

export interface CriCall {
  /** `/runtime.v1.RuntimeService/RunPodSandbox` */
  readonly path: string;
  /** The request as it is on the wire, names of pods and ids among it in plain text. */
  readonly request: string;
}

/** What becomes of a call. `hold`: it waits until `release()`; `deaf`: a stream stays open and brings nothing; `refuse`: UNAVAILABLE. */
export type Verdict = 'pass' | 'hold' | 'deaf' | 'refuse' | 'unimplemented';

export interface CriProxy {
  readonly endpoint: string;
  /** Asked once for each call; streams are asked with an empty request when they open. */
  judge: (call: CriCall) => Verdict;
  /** Told of each call that passes, with its message; what it returns is told of the answer's message (undefined: there was none). */
  listen: (path: string, request: Buffer) => ((answer: Buffer | undefined) => void) | undefined;
  /** How many calls wait now. */
  held(): number;
  /** Lets all calls go that wait. */
  release(): void;
  /** Ends the event streams that are open, as a runtime that hangs up does; what `judge` says decides whether a new one opens. */
  cutStreams(): void;
  close(): Promise<void>;
}

const streams = ['/containerd.services.events.v1.Events/Subscribe', '/runtime.v1.RuntimeService/GetContainerEvents'];
export const isEventStream = (path: string): boolean => streams.includes(path);

/** The first message of a gRPC body: one byte of flags, four of length, and itself. */
const firstMessage = (body: Buffer): Buffer => body.subarray(5, 5 + (body.length >= 5 ? body.readUInt32BE(1) : 0));

const grpcCodes = { refuse: '14', unimplemented: '12' } as const;

/** Listens on `path` (a Unix socket) and passes what it gets to the runtime's socket `target`. */
export async function startCriProxy(path: string, target: string): Promise<CriProxy> {
  const sessions = new Set<ServerHttp2Session>();
  const upstreams = new Map<ServerHttp2Session, ClientHttp2Session>();
  const open = new Set<ServerHttp2Stream>();
  const waiting = new Set<() => void>();

  const upstreamOf = (session: ServerHttp2Session): ClientHttp2Session => {
    const known = upstreams.get(session);
    if (known !== undefined && !known.destroyed && !known.closed) return known;
    const made = connect('http://runtime', { createConnection: () => connectSocket(target) });
    // a runtime that is gone: the client sees its connection go, as without a proxy
    made.on('error', () => session.destroy());
    made.on('close', () => session.destroy());
    session.on('close', () => made.destroy());
    upstreams.set(session, made);
    return made;
  };

  const refuse = (stream: ServerHttp2Stream, code: string) => {
    if (stream.destroyed) return;
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': code, 'grpc-message': 'said the proxy' },
      { endStream: true },
    );
  };

  const forward = (stream: ServerHttp2Stream, headers: Record<string, unknown>, body: Buffer | undefined) => {
    const session = stream.session as ServerHttp2Session | undefined;
    if (stream.destroyed || session === undefined) return;
    const {
      ':method': method,
      ':path': callPath,
      'content-type': type,
      te,
      'grpc-timeout': timeout,
      'containerd-namespace': space,
    } = headers;
    const request = upstreamOf(session).request({
      ':method': String(method),
      ':path': String(callPath),
      'content-type': String(type),
      te: String(te ?? 'trailers'),
      ...(timeout === undefined ? {} : { 'grpc-timeout': String(timeout) }),
      ...(space === undefined ? {} : { 'containerd-namespace': String(space) }),
    });
    let trailers: Record<string, unknown> = {};
    const unary = body !== undefined && !isEventStream(String(callPath));
    let told = unary ? proxy.listen(String(callPath), firstMessage(body)) : undefined;
    const tell = (answer: Buffer | undefined) => {
      const once = told;
      told = undefined;
      once?.(answer);
    };
    const parts: Buffer[] = [];
    request.on('response', (answer, flags) => {
      if (stream.destroyed) return;
      const only = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      stream.respond(answer, only ? { endStream: true } : { waitForTrailers: true });
    });
    request.on('trailers', (t) => {
      trailers = t;
    });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers as Record<string, string>));
    request.on('data', (part: Buffer) => {
      if (told !== undefined) parts.push(part);
      if (!stream.destroyed) stream.write(part);
    });
    request.on('end', () => {
      tell(trailers['grpc-status'] === '0' ? firstMessage(Buffer.concat(parts)) : undefined);
      if (!stream.destroyed && !stream.writableEnded) stream.end();
    });
    request.on('error', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
    request.on('close', () => tell(undefined));
    stream.on('close', () => request.close(constants.NGHTTP2_CANCEL));
    if (body !== undefined) request.end(body);
  };

  const proxy: CriProxy = {
    endpoint: `unix://${path}`,
    judge: () => 'pass',
    listen: () => undefined,
    held: () => waiting.size,
    release: () => {
      for (const go of [...waiting]) go();
      waiting.clear();
    },
    cutStreams: () => {
      for (const stream of open) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    },
    close: async () => {
      proxy.release();
      for (const session of sessions) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      rmSync(path, { force: true });
    },
  };

  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => {}); // the client went away
  });
  server.on('stream', (stream, headers) => {
    const callPath = String(headers[':path']);
    const parts: Buffer[] = [];
    stream.on('error', () => {}); // cancelled
    if (isEventStream(callPath)) {
      open.add(stream);
      stream.on('close', () => open.delete(stream));
    }
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', () => {
      const body = Buffer.concat(parts);
      const verdict = proxy.judge({ path: callPath, request: body.toString('latin1') });
      switch (verdict) {
        case 'pass':
          return forward(stream, headers, body);
        case 'hold':
          waiting.add(() => forward(stream, headers, body));
          return;
        case 'deaf':
          return stream.destroyed ? undefined : stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
        case 'refuse':
        case 'unimplemented':
          return refuse(stream, grpcCodes[verdict]);
      }
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return proxy;
}
