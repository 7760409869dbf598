/**
 * The local API: HTTP on a Unix socket, for the commands on this machine and for whoever may open the socket. TCP never.
 *
 * Owns: the socket file. Binding it is what makes this process the agent of its run folder, so it comes before everything else.
 * Never: changes anything but by /debug, /images/… and the acts of acts.ts; every answer is what the view says at that moment. While there is
 * no view yet it answers 503.
 * Mirrors the kubelet's read paths (/healthz, /pods, /configz) in name and shape.
 */
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { AgentView } from '../operations/agentView.ts';
import { asksForDebug } from '../operations/debug.ts';
import { asksForLogs } from '../operations/logRequest.ts';
import { asksForStream } from '../operations/streamRequest.ts';
import { describeError, type Log } from '../world/log.ts';
import { answerAct, asksForAct } from './acts.ts';
import { answerDebug } from './debug.ts';
import { answerImages, asksForImages } from './images.ts';
import { LogServer } from './logs.ts';
import { answerNode, asksForNode } from './node.ts';
import { type Answer, answer, failure } from './routes.ts';
import { bindSocket } from './socket.ts';
import { answerStats, asksForStats } from './stats.ts';
import { StreamServer } from './streams.ts';

export interface ServerOptions {
  readonly socketPath: string;
  /** undefined while the agent starts. */
  readonly agent: () => AgentView | undefined;
  readonly log: Log;
}

const maxHeaderBytes = 8 << 10;
/** Followers of logs and sessions stay for hours: as many again are left to the others. */
const maxConnections = 128;
const requestMs = 10_000;

/** Listens; rejects with AlreadyRunning when another agent answers on the socket, and when the socket cannot be made. */
export async function startServer(o: ServerOptions): Promise<{ close(): Promise<void> }> {
  const { log } = o;
  const server = createServer(
    { maxHeaderSize: maxHeaderBytes, requestTimeout: requestMs, headersTimeout: requestMs, keepAliveTimeout: 5000 },
    (request, response) => {
      const [path = '', query = ''] = (request.url ?? '/').split(/\?(.*)/s);
      const give = (answer: Answer | undefined): void => {
        if (answer !== undefined) send(request, response, answer);
      };
      const broken = (error: unknown): void => log.error({ error, url: request.url }, 'a request could not be served');
      if (asksForLogs(path)) logs.serve(request, response, path, query).then(give, broken);
      else if (asksForDebug(path)) answerDebug(o.agent, log, request, path).then(give, broken);
      else if (asksForAct(path)) answerAct(o.agent(), log, { request, response, path, query }).then(give, broken);
      else if (asksForImages(path)) answerImages(o.agent, log, { request, response, path, query }).then(give, broken);
      else if (asksForNode(path)) answerNode(o.agent()?.node, log, request.method ?? '').then(give, broken);
      else if (asksForStats(path)) answerStats(o.agent(), log, { method: request.method ?? '', path, query }).then(give, broken);
      else give(asksForStream(path) ? failure(400, 'a session is opened by an upgrade of the connection') : decide(request));
    },
  );
  const streams = new StreamServer(o.agent, log);
  /** Sockets that the HTTP server has let go of. */
  const upgraded = new Set<Socket>();
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    socket.on('error', () => {}); // the asker went away
    const [path = '', query = ''] = (request.url ?? '/').split(/\?(.*)/s);
    // what needs no upgrade is answered without one
    if (!asksForStream(path))
      return refuse(
        socket,
        asksForLogs(path) || asksForDebug(path) || asksForAct(path) || asksForImages(path) || asksForNode(path) || asksForStats(path)
          ? noUpgrade
          : decide(request),
      );
    streams.serve(request, socket, head, path, query).then(
      (answer) => answer && refuse(socket, answer),
      (error) => {
        log.error({ error: describeError(error), url: path }, 'a session could not be served');
        socket.destroy();
      },
    );
  });
  const logs = new LogServer(o.agent, log);
  server.maxConnections = maxConnections;
  server.maxRequestsPerSocket = 1000;

  const decide = (request: IncomingMessage): Answer => {
    try {
      return answer(o.agent(), request.method ?? '', request.url ?? '/');
    } catch (error) {
      log.error({ error, url: request.url }, 'a request of the local API failed');
      return failure(500, 'the agent could not answer; its log says why');
    }
  };

  const removeFile = await bindSocket(server, o.socketPath);
  server.on('error', (error) => log.error({ error }, 'the local API failed'));
  return {
    close: async () => {
      await removeFile();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
  };
}

const noUpgrade = failure(400, 'there is nothing to upgrade to');

/** An answer on a socket that the HTTP server has let go of; whoever does not close it then is not waited for. */
function refuse(socket: Socket, { code, body, headers }: Answer): void {
  const bytes = Buffer.from(textOf(body));
  const given = Object.entries({ ...headersOf(body, bytes), connection: 'close', ...headers });
  const head = [`HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ''}`, ...given.map(([name, value]) => `${name}: ${value}`)];
  socket.setTimeout(requestMs, () => socket.destroy());
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]));
}

const textOf = (body: unknown): string => (typeof body === 'string' ? body : `${JSON.stringify(body)}\n`);
const headersOf = (body: unknown, bytes: Buffer): Readonly<Record<string, string | number>> => ({
  'content-type': typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
  'content-length': bytes.length,
  'cache-control': 'no-store',
});

function send(request: IncomingMessage, response: ServerResponse, { code, body, headers }: Answer): void {
  const bytes = Buffer.from(textOf(body));
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.on('error', () => {}); // the asker went away
  response.writeHead(code, {
    ...headersOf(body, bytes),
    // what is left of a body is not read
    ...(hasBody && { connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
