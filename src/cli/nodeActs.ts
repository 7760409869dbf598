/** `resync`, `identify`, `decommission`, `bundle` and `images pin|unpin`: what is asked of the node as a whole. */
import { open } from 'node:fs/promises';
import { codeOf } from '../world/errno.ts';
import { harmless } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';

type NodeClient = Pick<AgentClient, 'nodeAct'>;

export async function resync(o: { readonly forgetLost?: true }, client: NodeClient, print: Printer): Promise<number> {
  return said(await client.nodeAct({ act: 'resync', ...(o.forgetLost && { forgetLost: true }) }), print);
}

export async function identify(o: { readonly seconds?: string }, client: NodeClient, print: Printer): Promise<number> {
  const seconds = o.seconds === undefined ? undefined : Number(o.seconds);
  if (seconds !== undefined && (!Number.isFinite(seconds) || o.seconds?.trim() === ''))
    throw new CommandError(exitCodes.usage, `--seconds: expected a number, got ${JSON.stringify(o.seconds)}`);
  return said(await client.nodeAct({ act: 'identify', ...(seconds !== undefined && { seconds }) }), print);
}

/** Without the node's name nothing is asked for: it cannot be taken back. */
export async function decommission(o: { readonly confirm?: string }, client: NodeClient, print: Printer): Promise<number> {
  if (o.confirm === undefined || o.confirm === '')
    throw new CommandError(exitCodes.usage, 'this ends all pods that came over MQTT; confirm it: podsched decommission --confirm NODE');
  return said(await client.nodeAct({ act: 'decommission', confirm: o.confirm }), print);
}

/** The support bundle, to standard output or into a new file that only its owner may read. */
export async function bundle(o: { readonly output?: string }, client: Pick<AgentClient, 'bundle'>, print: Printer): Promise<number> {
  const text = `${JSON.stringify(await client.bundle(), null, 1)}\n`;
  if (o.output === undefined || o.output === '-') {
    print.out(text);
    return exitCodes.done;
  }
  try {
    const file = await open(o.output, 'wx', 0o600);
    await file.writeFile(text).finally(() => file.close());
  } catch (e) {
    const why = codeOf(e) === 'EEXIST' ? 'it is there already' : codeOf(e);
    throw new CommandError(exitCodes.failed, `${o.output} cannot be written: ${why}`, { cause: e });
  }
  print.err(`${harmless(o.output)} written: no values of environments or Secrets are in it; read it before you pass it on\n`);
  return exitCodes.done;
}

/** Each by name; the first that cannot be pinned ends it. */
export async function pinImages(
  pinned: boolean,
  names: readonly string[],
  client: Pick<AgentClient, 'pinImage'>,
  print: Printer,
): Promise<number> {
  for (const name of names) said(await client.pinImage(name, pinned), print);
  return exitCodes.done;
}

function said({ message }: { readonly message: string }, print: Printer): number {
  print.out(`${harmless(message)}\n`);
  return exitCodes.done;
}
