/** The local API as the commands ask it: one request at a time, and a clear word when nobody answers. */
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { configurationKeys } from '../api/configuration.ts';
import { socketName } from '../api/configurationChecks.ts';
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { EphemeralContainer } from '../api/v1.ts';
import { upgradeHeaders } from '../cri/streaming.ts';
import type { NodeCondition } from '../operations/agentView.ts';
import type { HoldAnswer } from '../operations/hold.ts';
import type { ImportedImages, ListedImage, Pruned } from '../operations/images.ts';
import type { ListedObject } from '../operations/objects.ts';
import type { Summary } from '../operations/statsSummary.ts';
import type { NodeUsage, PodUsage } from '../operations/top.ts';
import { envName, loadOptions } from '../options.ts';
import { codeOf } from '../world/errno.ts';
import { defaultConfigFile, readConfigFile } from './configFile.ts';
import { CommandError, exitCodes } from './exitCodes.ts';

export interface AgentClient {
  pods(namespace?: string): Promise<readonly ToldPod[]>;
  sync(): Promise<readonly SyncStatus[]>;
  /** ConfigMaps and Secrets. */
  objects(): Promise<readonly ListedObject[]>;
  files(): Promise<readonly FileStatus[]>;
  events(filter: { readonly namespace?: string; readonly name?: string }): Promise<readonly V1Event[]>;
  conditions(): Promise<readonly NodeCondition[]>;
  configuration(): Promise<Readonly<Record<string, unknown>>>;
  /** What comes under this path, as it comes. Rejects when the connection breaks before the end. */
  stream(path: string): Promise<AsyncIterable<Uint8Array>>;
  /** A connection upgraded to a session, and what came with the answer. */
  session(path: string): Promise<Session>;
  /** One more container in a pod; as the agent has taken it. */
  debug(pod: { readonly namespace: string; readonly name: string }, container: EphemeralContainer): Promise<EphemeralContainer>;
  hold(act: 'hold' | 'release', pod: { readonly namespace: string; readonly name: string }): Promise<HoldAnswer>;
  /** What runs of pods, and what it uses; measured at the question. */
  topPods(): Promise<readonly PodUsage[]>;
  topNode(): Promise<NodeUsage>;
  /** The same as the kubelet tells it, and what probes cost; no disk is looked at. */
  stats(): Promise<Summary>;
  images(): Promise<readonly ListedImage[]>;
  pruneImages(dryRun: boolean): Promise<Pruned>;
  /** Resolves when it is here, however long that takes. */
  pullImage(image: string): Promise<{ readonly image: string; readonly id: string }>;
  /** `path`: of a file on this machine, absolute. */
  importImages(path: string): Promise<ImportedImages>;
}

export interface Session {
  readonly socket: Socket;
  readonly head: Uint8Array;
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
    objects: () => items('/objects'),
    files: () => items('/files'),
    events: (filter) => items(`/events${query(filter)}`),
    conditions: () => items('/conditions'),
    configuration: async () =>
      ((await get(socket, '/configz')) as { readonly podschedconfig: Readonly<Record<string, unknown>> }).podschedconfig,
    stream: async (path) => parts(socket, await answered(socket, { path })),
    session: async (path) => {
      const answer = await answered(socket, { path, method: 'POST', headers: upgradeHeaders });
      if ('head' in answer) return answer;
      answer.destroy();
      throw new CommandError(exitCodes.failed, `the agent on ${socket} did not open a session`);
    },
    debug: async ({ namespace, name }, container) => {
      const path = `/debug/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
      const answer = await answered(socket, { path, method: 'POST', body: JSON.stringify(container) });
      return JSON.parse(await whole(socket, answer)) as EphemeralContainer;
    },
    hold: async (act, { namespace, name }) =>
      (await post(socket, `/${act}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`)) as HoldAnswer,
    topPods: () => items('/top/pods'),
    topNode: async () => (await get(socket, '/top/node')) as NodeUsage,
    stats: async () => (await get(socket, '/stats/summary?only_cpu_and_memory=true')) as Summary,
    images: () => items('/images'),
    pruneImages: async (dryRun) => (await post(socket, `/images/prune${dryRun ? '?dryRun=1' : ''}`)) as Pruned,
    pullImage: async (image) => (await post(socket, `/images/pull?${new URLSearchParams({ image })}`)) as { image: string; id: string },
    importImages: async (path) => (await post(socket, `/images/import?${new URLSearchParams({ path })}`)) as ImportedImages,
  };
}

interface Asked {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** It may take as long as it takes: silence is no fault. */
  readonly patient?: true;
}

const get = async (socket: string, path: string): Promise<unknown> => JSON.parse(await whole(socket, await answered(socket, { path })));

/** Something that takes its time: a pull, an archive. */
const post = async (socket: string, path: string): Promise<unknown> =>
  JSON.parse(await whole(socket, await answered(socket, { path, method: 'POST', patient: true })));

/** Paths whose refusals are about the thing itself, in words that need nothing before them. */
const speaks = /^\/(containerLogs|exec|attach|debug|images|top|hold|release)(\/|$)/;

/** The answer when it is one. An agent that starts is asked again. */
async function answered(socket: string, asked: Asked & { readonly headers: object }): Promise<IncomingMessage | Session>;
async function answered(socket: string, asked: Asked): Promise<IncomingMessage>;
async function answered(socket: string, asked: Asked): Promise<IncomingMessage | Session> {
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
