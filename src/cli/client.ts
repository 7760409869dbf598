/** The local API as the commands ask it: one GET at a time, and a clear word when nobody answers. */
import { request } from 'node:http';
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
  };
}

async function get(socket: string, path: string): Promise<unknown> {
  for (let waited = 0; ; waited += retryMs) {
    const { status, body } = await ask(socket, path);
    if (status === 200) return JSON.parse(body);
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

function ask(socketPath: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const fail = (e: unknown): void => reject(unreachable(socketPath, e));
    const asked = request({ socketPath, path, headers: { host: 'podsched' }, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', fail);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString() }));
    });
    asked.setTimeout(answerMs, () => asked.destroy(new Error(`no answer within ${answerMs / 1000} s`)));
    asked.on('error', fail);
    asked.end();
  });
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
          : code;
  return new CommandError(exitCodes.unreachable, `cannot reach the agent on ${socket}: ${why}`, { cause });
}
