/**
 * `/containerLogs`: a log as it is read, chunk by chunk, no faster than the asker takes it. What goes wrong before the first byte is a
 * `v1 Status`; after it the connection breaks, so that half a log is never taken for a whole one.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AgentView } from '../operations/agentView.ts';
import { parseLogRequest } from '../operations/logRequest.ts';
import type { LogAnswer } from '../operations/logs.ts';
import type { Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

/** Followers stay for hours; half of the connections is left to the others. */
const maxStreams = 32;

export class LogServer {
  readonly #agent: () => AgentView | undefined;
  readonly #log: Log;
  #streams = 0;

  constructor(agent: () => AgentView | undefined, log: Log) {
    this.#agent = agent;
    this.#log = log;
  }

  /** Resolves when all is sent or the asker went away; to the answer to give instead when there is no log. */
  async serve(request: IncomingMessage, response: ServerResponse, path: string, query: string): Promise<Answer | undefined> {
    if (request.method !== 'GET') return failure(405, `${path.slice(0, 200)} is read with GET`, { allow: 'GET' });
    const view = this.#agent();
    if (view === undefined) return starting;
    const asked = parseLogRequest(path, query);
    if (!asked.ok) return failure(asked.code, asked.message);
    if (this.#streams >= maxStreams) return failure(429, `${maxStreams} logs are being read already`, { 'retry-after': '1' });

    const gone = new AbortController();
    response.once('close', () => gone.abort());
    response.on('error', () => {}); // the asker went away
    this.#streams++;
    try {
      let found: LogAnswer;
      try {
        found = await view.logs(asked.value, gone.signal);
      } catch (error) {
        this.#log.error({ error, url: request.url }, 'a log could not be opened');
        return failure(500, `the log cannot be read: ${error instanceof Error ? error.message : String(error)}`);
      }
      if (!found.ok) return failure(found.code, found.message);
      await stream(request, response, found.value, gone.signal);
      return undefined;
    } catch (error) {
      if (!gone.signal.aborted) this.#log.error({ error, url: request.url }, 'a log could not be read to its end');
      // what was read is sent; the missing end tells the asker
      response.socket?.destroySoon();
      return undefined;
    } finally {
      this.#streams--;
    }
  }
}

async function stream(
  request: IncomingMessage,
  response: ServerResponse,
  chunks: AsyncGenerator<Uint8Array, void>,
  gone: AbortSignal,
): Promise<void> {
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(200, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    ...(hasBody && { connection: 'close' }),
  });
  response.flushHeaders(); // a follower of a silent container knows that it follows
  for await (const chunk of chunks) {
    if (gone.aborted) break;
    if (!response.write(chunk)) await once(response, 'drain', { signal: gone });
  }
  response.end();
}
