/** `hold POD` and `release POD`: edits of the pod wait, and go on. */
import { parseTarget } from '../operations/target.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

export async function hold(
  act: 'hold' | 'release',
  what: string,
  o: { readonly namespace: string },
  client: AgentClient,
  print: Printer,
): Promise<number> {
  const wanted = parseTarget(what, o.namespace);
  if (wanted?.kind !== 'Pod') throw new CommandError(exitCodes.usage, `${JSON.stringify(what)} is no pod: NAME, or pod/NAME, is meant`);
  print.out(`${(await client.hold(act, wanted)).message}\n`);
  return exitCodes.done;
}
