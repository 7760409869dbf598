/** The local API as the commands ask it: one GET at a time, and a clear word when nobody answers. */
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { configurationKeys } from '../api/configuration.ts';
import { socketName } from '../api/configurationChecks.ts';
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { NodeCondition } from '../operations/agentView.ts';
import { envName, loadOptions } from '../options.ts';
import { codeOf } from '../world/errno.ts';
import { defaultConfigFile, readConfigFile } from './configFile.ts';
import { CommandError, exitCodes } from './exitCodes.ts';

export interface AgentClient {
  pods(namespace?: string): Promise<readonly ToldPod[]>;
  sync(): Promise<readonly SyncStatus[]>;
  files(): Promise<readonly FileStatus[]>;
  events(filter: { readonly namespace?: string; readonly name?: string }): Promise<readonly V1Event[]>;
  conditions(): Promise<readonly NodeCondition[]>;
  configuration(): Promise<Readonly<Record<string, unknown>>>;
  /** What comes under this path, as it comes. Rejects when the connection breaks before the end. */
  stream(path: string): Promise<AsyncIterable<Uint8Array>>;
}

const answerMs = 10_000;
/** An agent that has just been started says 503 for a moment. */
const startMs = 5000;
const retryMs = 100;

export interface WhereOptions {
  readonly runDir?: string;
  readonly config?: string;
}

/** The socket of the agent that is meant: `--run-dir`, environment, configuration file, default; the first that says something. */
export async function socketPath(o: WhereOptions, env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const named = o.runDir ?? env[envName('runDir')];
  if (named !== undefined && named !== '') return join(named, socketName);
  const read = await readConfigFile(o.config ?? defaultConfigFile);
  if (!read.ok && o.config !== undefined) throw new CommandError(exitCodes.usage, `${o.config}: ${read.problem.got}`);
  const inFile = read.ok && read.file !== undefined ? loadOptions({ flags: {}, env: {}, file: read.file }).fileSettings.runDir : undefined;
  return join(String(inFile ?? configurationKeys.runDir?.default), socketName);
}

export function agentClient(socket: string): AgentClient {
  const items = async <T>(path: string): Promise<readonly T[]> => ((await get(socket, path)) as { readonly items: readonly T[] }).items;
  const query = (filter: { readonly namespace?: string; readonly name?: string }): string => {
    const text = new URLSearchParams(filter as Record<string, string>).toString();
    return text === '' ? '' : `?${text}`;
  };
  return {
    pods: (namespace) => items(`/pods${query(namespace === undefined ? {} : { namespace })}`),
    sync: () => items('/sync'),
    files: () => items('/files'),
    events: (filter) => items(`/events${query(filter)}`),
    conditions: () => items('/conditions'),
    configuration: async () =>
      ((await get(socket, '/configz')) as { readonly podschedconfig: Readonly<Record<string, unknown>> }).podschedconfig,
    stream: async (path) => parts(socket, await answered(socket, path)),
  };
}

const get = async (socket: string, path: string): Promise<unknown> => JSON.parse(await whole(socket, await answered(socket, path)));

/** The answer with 200. An agent that starts is asked again. */
async function answered(socket: string, path: string): Promise<IncomingMessage> {
  for (let waited = 0; ; waited += retryMs) {
    const response = await ask(socket, path);
    const status = response.statusCode ?? 0;
    if (status === 200) return response;
    const body = await whole(socket, response);
    // a Status of the thing itself, in words that need nothing before them
    if (path.startsWith('/containerLogs/') && (status === 400 || status === 404))
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
function ask(socketPath: string, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, headers: { host: 'podsched' }, agent: false }, (response) => {
      if (response.headers['content-length'] === undefined) asked.setTimeout(0);
      resolve(response);
    });
    asked.setTimeout(answerMs, () => asked.destroy(new Error(`no answer within ${answerMs / 1000} s`)));
    asked.on('error', (e) => reject(unreachable(socketPath, e)));
    asked.end();
  });
}

async function whole(socket: string, response: IncomingMessage): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const part of parts(socket, response)) all.push(part);
  return Buffer.concat(all).toString();
}

async function* parts(socket: string, response: IncomingMessage): AsyncGenerator<Uint8Array, void> {
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
