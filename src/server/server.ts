/**
 * The local API: HTTP on a Unix socket, for the commands on this machine and for whoever may open the socket. TCP never.
 *
 * Owns: the socket file. Binding it is what makes this process the agent of its run folder, so it comes before everything else.
 * Never: changes anything; every answer is what the view says at that moment. While there is no view yet it answers 503.
 * Mirrors the kubelet's read paths (/healthz, /pods, /configz) in name and shape.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AgentView } from '../operations/agentView.ts';
import { asksForLogs } from '../operations/logRequest.ts';
import type { Log } from '../world/log.ts';
import { LogServer } from './logs.ts';
import { type Answer, answer, failure } from './routes.ts';
import { bindSocket } from './socket.ts';

export interface ServerOptions {
  readonly socketPath: string;
  /** undefined while the agent starts. */
  readonly agent: () => AgentView | undefined;
  readonly log: Log;
}

const maxHeaderBytes = 8 << 10;
const maxConnections = 64;
const requestMs = 10_000;

/** Listens; rejects with AlreadyRunning when another agent answers on the socket, and when the socket cannot be made. */
export async function startServer(o: ServerOptions): Promise<{ close(): Promise<void> }> {
  const { log } = o;
  const server = createServer(
    { maxHeaderSize: maxHeaderBytes, requestTimeout: requestMs, headersTimeout: requestMs, keepAliveTimeout: 5000 },
    (request, response) => {
      const [path = '', query = ''] = (request.url ?? '/').split(/\?(.*)/s);
      if (!asksForLogs(path)) return send(request, response, decide(request));
      logs.serve(request, response, path, query).then(
        (refused) => refused && send(request, response, refused),
        (error) => log.error({ error, url: request.url }, 'a log could not be served'),
      );
    },
  );
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
      await closed;
    },
  };
}

function send(request: IncomingMessage, response: ServerResponse, { code, body, headers }: Answer): void {
  const text = typeof body === 'string' ? body : `${JSON.stringify(body)}\n`;
  const bytes = Buffer.from(text);
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.on('error', () => {}); // the asker went away
  response.writeHead(code, {
    'content-type': typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    // nothing here takes a body: what is sent is not read
    ...(hasBody && { connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
