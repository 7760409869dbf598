/**
 * `/exec` and `/attach`: the upgrade is handed on to the runtime's streaming server, as the kubelet does, and the bytes then go through as
 * they are: whatever the asker and the runtime speak (SPDY/3.1, WebSocket with v4.channel.k8s.io). Owns the open sessions: not too many, and
 * none that is silent for hours. A session ends with the asker's socket, and that one at the latest with the server.
 */
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import type { StreamTarget } from '../container/runtime.ts';
import type { AgentView } from '../operations/agentView.ts';
import { parseStreamRequest } from '../operations/streamRequest.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

/** Sessions stay for hours; the server has room for others beside them. */
export const maxSessions = 32;
/** kubelet: streamingConnectionIdleTimeout, and how long the runtime may take to make a session. */
const idleMs = 4 * 3600 * 1000;
const creationMs = 30_000;

/** What the runtime must know of an upgrade; the rest of what an asker sends stays here. */
const handedOn = ['connection', 'upgrade', 'x-stream-protocol-version'];
const isHandedOn = (name: string): boolean => handedOn.includes(name) || name.startsWith('sec-websocket-');

export class StreamServer {
  #sessions = 0;

  constructor(
    private readonly agent: () => AgentView | undefined,
    private readonly log: Log,
  ) {}

  /** Takes over the socket of an upgrade; resolves when it is handed on, to the answer to give instead when it cannot be. */
  async serve(asked: IncomingMessage, socket: Socket, head: Buffer, path: string, query: string): Promise<Answer | undefined> {
    if (asked.method !== 'GET' && asked.method !== 'POST')
      return failure(405, `${path.slice(0, 200)} takes GET and POST`, { allow: 'GET, POST' });
    const view = this.agent();
    if (view === undefined) return starting;
    const parsed = parseStreamRequest(path, query);
    if (!parsed.ok) return failure(parsed.code, parsed.message);
    if (this.#sessions >= maxSessions) return failure(429, `${maxSessions} sessions are open already`, { 'retry-after': '1' });

    let upstream: Socket | undefined;
    const gone = new AbortController();
    this.#sessions++;
    socket.once('close', () => {
      gone.abort();
      upstream?.destroy();
    });
    gone.signal.addEventListener('abort', () => this.#sessions--, { once: true });
    /** The answer is given outside; the place is free. */
    const leave = (answer: Answer): Answer | undefined => {
      if (gone.signal.aborted) return undefined;
      gone.abort();
      return answer;
    };
    try {
      const found = await view.stream(parsed.value);
      if (!found.ok) return leave(failure(found.code, found.message));
      gone.signal.throwIfAborted();
      const made = await upgrade(found.value, asked, gone.signal);
      if ('refused' in made) return leave(failure(made.code, made.refused));
      upstream = made.socket;
      // what is still on its way to a slow asker arrives
      upstream.on('error', () => socket.destroySoon()).on('close', () => socket.destroySoon());
      if (gone.signal.aborted) upstream.destroy();
      socket.write(made.answer);
      if (made.head.length > 0) socket.write(made.head);
      if (head.length > 0) upstream.write(head);
      socket.setTimeout(idleMs, () => socket.destroy());
      // half of a session is none
      socket.once('end', () => socket.destroy());
      socket.pipe(upstream);
      upstream.pipe(socket);
      return undefined;
    } catch (e) {
      if (gone.signal.aborted) return undefined;
      this.log.warn({ error: describeError(e), url: path }, 'a session could not be opened');
      return leave(failure(500, describeError(e)));
    }
  }
}

type Upgraded =
  | { readonly socket: Socket; readonly head: Buffer; readonly answer: string }
  | { readonly code: number; readonly refused: string };

function upgrade(target: StreamTarget, asked: IncomingMessage, signal: AbortSignal): Promise<Upgraded> {
  // each protocol that is offered stands in a header of its own, and older runtimes do not take them in one
  const headers = Object.fromEntries(Object.entries(asked.headersDistinct).filter(([name]) => isHandedOn(name)));
  return new Promise((resolve, reject) => {
    const handed = request({ ...target, method: asked.method, headers, agent: false, signal });
    handed.setTimeout(creationMs, () => handed.destroy(new Error('the runtime did not open the session in time')));
    handed.on('error', reject);
    handed.on('upgrade', (response, socket: Socket, head) => {
      socket.setTimeout(0);
      const lines: string[] = [];
      for (let i = 0; i < response.rawHeaders.length; i += 2) lines.push(`${response.rawHeaders[i]}: ${response.rawHeaders[i + 1]}\r\n`);
      const answer = `HTTP/1.1 ${response.statusCode} ${response.statusMessage}\r\n${lines.join('')}\r\n`;
      resolve({ socket, head, answer });
    });
    handed.on('response', (response) => {
      const code = response.statusCode ?? 500;
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text = (text + part).slice(0, 1000);
      });
      response.on('end', () =>
        resolve({ code: code >= 400 ? code : 500, refused: `the runtime did not open the session: ${text.trim() || code}` }),
      );
      response.on('error', reject);
    });
    handed.end();
  });
}
