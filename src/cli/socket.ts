/** HTTP on the agent's socket: one request at a time, and a clear word when nobody answers. */
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from '../world/errno.ts';
import { CommandError, exitCodes } from './exitCodes.ts';

export interface Session {
  readonly socket: Socket;
  readonly head: Uint8Array;
}

const answerMs = 10_000;
/** An agent that has just been started says 503 for a moment. */
const startMs = 5000;
const retryMs = 100;

export interface Asked {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** It may take as long as it takes: silence is no fault. */
  readonly patient?: true;
}

/** The JSON that comes under this path. */
export const get = async (socket: string, path: string): Promise<unknown> =>
  JSON.parse(await whole(socket, await answered(socket, { path })));

/** Something that takes its time: a pull, an archive. */
export const post = async (socket: string, path: string): Promise<unknown> =>
  JSON.parse(await whole(socket, await answered(socket, { path, method: 'POST', patient: true })));

/** Paths whose refusals are about the thing itself, in words that need nothing before them. */
const speaks =
  /^\/(containerLogs|exec|attach|debug|images|top|restart|stop|start|hold|release|rollback|resync|identify|decommission|bundle)(\/|$)/;

/** The answer when it is one. An agent that starts is asked again. */
export async function answered(socket: string, asked: Asked & { readonly headers: object }): Promise<IncomingMessage | Session>;
export async function answered(socket: string, asked: Asked): Promise<IncomingMessage>;
export async function answered(socket: string, asked: Asked): Promise<IncomingMessage | Session> {
  const { path } = asked;
  for (let waited = 0; ; waited += retryMs) {
    const response = await ask(socket, asked);
    if ('head' in response) return response;
    const status = response.statusCode ?? 0;
    if (status === 200 || status === 201) return response;
    const body = await whole(socket, response);
    if (speaks.test(path) && ((status >= 400 && status < 500) || status === 502))
      throw new CommandError(status === 404 ? exitCodes.notFound : exitCodes.failed, messageOf(body));
    if (status !== 503) throw new CommandError(exitCodes.failed, `the agent answers ${status} to ${path}: ${messageOf(body)}`);
    if (waited >= startMs) throw new CommandError(exitCodes.unreachable, `the agent on ${socket} is still starting`);
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
}

function messageOf(body: string): string {
  try {
    return String((JSON.parse(body) as { readonly message?: unknown }).message ?? body);
  } catch {
    return body;
  }
}

/** Resolves at the head of the answer. Silence before and within an answer ends it, but within a stream. */
function ask(socketPath: string, { path, method = 'GET', headers, body, patient }: Asked): Promise<IncomingMessage | Session> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, method, headers: { host: 'podsched', ...headers }, agent: false }, (response) => {
      if (response.headers['content-length'] === undefined) asked.setTimeout(0);
      resolve(response);
    });
    asked.on('upgrade', (_, socket: Socket, head) => {
      socket.setTimeout(0);
      resolve({ socket, head });
    });
    if (patient !== true) asked.setTimeout(answerMs, () => asked.destroy(new Error(`no answer within ${answerMs / 1000} s`)));
    asked.on('error', (e) => reject(unreachable(socketPath, e)));
    asked.end(body);
  });
}

/** All of it, as text. */
export async function whole(socket: string, response: IncomingMessage): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const part of parts(socket, response)) all.push(part);
  return Buffer.concat(all).toString();
}

/** As it comes. Rejects when the connection breaks before the end. */
export async function* parts(socket: string, response: IncomingMessage): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const part of response) yield part as Uint8Array;
  } catch (e) {
    throw unreachable(socket, e);
  }
}

function unreachable(socket: string, cause: unknown): CommandError {
  const code = codeOf(cause);
  const why =
    code === 'EACCES' || code === 'EPERM'
      ? 'this user may not open it; be root or in the group podsched'
      : code === 'ENOENT'
        ? 'there is no such socket; is the agent running (systemctl status podsched), or is --run-dir another one?'
        : code === 'ECONNREFUSED'
          ? 'the agent is not running (systemctl status podsched)'
          : code === 'ECONNRESET'
            ? 'it ended the connection'
            : code;
  return new CommandError(exitCodes.unreachable, `cannot reach the agent on ${socket}: ${why}`, { cause });
}
