/** `restart`, `stop`, `start`, `hold`, `release` and `rollback` of a pod: one question each, and what came of it. */
import type { PodAct } from '../operations/podActs.ts';
import { parseTarget } from '../operations/target.ts';
import { harmless } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

export interface PodActOptions {
  readonly namespace: string;
  /** Of a restart. */
  readonly container?: string;
  readonly new?: true;
}

export async function podAct(
  act: PodAct,
  what: string,
  o: PodActOptions,
  client: Pick<AgentClient, 'act'>,
  print: Printer,
): Promise<number> {
  const wanted = parseTarget(what, o.namespace);
  if (wanted?.kind !== 'Pod') throw new CommandError(exitCodes.usage, `${JSON.stringify(what)} is no pod: NAME, or pod/NAME, is meant`);
  if (o.new === true && o.container !== undefined)
    throw new CommandError(exitCodes.usage, 'a container, or a new instance of the whole pod: not both');
  const { namespace, name: pod } = wanted;
  const { container } = o;
  const { message } = await client.act({ act, namespace, pod, ...(container !== undefined && { container }), ...(o.new && { new: true }) });
  print.out(`${harmless(message)}\n`);
  return exitCodes.done;
}
