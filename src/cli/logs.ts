/** `logs POD`: the bytes of the log as they are when they go to a file or a pipe; on a terminal without what would steer it. */
import { parseDuration } from '../api/quantity.ts';
import { pickContainer } from '../operations/logTarget.ts';
import { terminalFilter } from '../world/terminal.ts';
import type { AgentClient, LogQuery } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { askedPod } from './pod.ts';

export interface LogOptions {
  readonly namespace: string;
  readonly container?: string;
  readonly follow?: true;
  readonly previous?: true;
  readonly timestamps?: true;
  readonly tail?: string;
  readonly since?: string;
  readonly sinceTime?: string;
  readonly limitBytes?: string;
}

export interface ByteOutput {
  readonly isTerminal: boolean;
  /** Resolves when more may come. */
  write(bytes: Uint8Array): Promise<void>;
}

const usage = (text: string): CommandError => new CommandError(exitCodes.usage, text);

/** Ends when the log ends; with `follow` when the container does. */
export async function logs(what: string, o: LogOptions, client: AgentClient, output: ByteOutput): Promise<number> {
  const query = logQuery(o);
  const { wanted, pod } = await askedPod(what, o.namespace, client);
  const picked = pickContainer(pod, o.container);
  if (!picked.ok) throw picked.code === 404 ? new CommandError(exitCodes.notFound, picked.message) : usage(picked.message);
  const of = { namespace: wanted.namespace, pod: wanted.name, container: picked.value };
  const filter = output.isTerminal ? terminalFilter() : undefined;
  for await (const chunk of await client.logs(of, query)) {
    await output.write(filter === undefined ? chunk : Buffer.from(filter(chunk)));
  }
  return exitCodes.done;
}

/** Rejects what the agent could not take, in the words of the options. */
function logQuery(o: LogOptions): LogQuery {
  const number = (option: string, text: string, min: number): number => {
    if (!/^\d{1,15}$/.test(text) || Number(text) < min)
      throw usage(`--${option}: expected a whole number from ${min} on, got ${JSON.stringify(text)}`);
    return Number(text);
  };
  if (o.since !== undefined && o.sinceTime !== undefined) throw usage('--since and --since-time: only one of them');
  const since = o.since === undefined ? undefined : parseDuration(o.since);
  if (o.since !== undefined && (since === undefined || since <= 0))
    throw usage(`--since: expected a duration such as 5s, 2m or 3h, got ${JSON.stringify(o.since)}`);
  const { follow, previous, timestamps, sinceTime } = o;
  return {
    ...(follow && { follow }),
    ...(previous && { previous }),
    ...(timestamps && { timestamps }),
    // -1 is kubectl's word for all
    ...(o.tail !== undefined && o.tail !== '-1' && { tailLines: number('tail', o.tail, 0) }),
    ...(o.limitBytes !== undefined && { limitBytes: number('limit-bytes', o.limitBytes, 1) }),
    ...(since !== undefined && { sinceSeconds: Math.ceil(since / 1000) }),
    ...(sinceTime !== undefined && { sinceTime }),
  };
}
