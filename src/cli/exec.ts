/** `exec POD -- CMD`: a command in a running container, as kubectl does it; its exit code is that of podsched. */
import { sessionContainer } from '../operations/logTarget.ts';
import { harmless } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { askedPod, containerPath } from './pod.ts';
import { type Console, runSession, streamOptions, streamQuery } from './session.ts';

export interface ExecOptions {
  readonly namespace: string;
  readonly container?: string;
  readonly stdin?: true;
  readonly tty?: true;
}

export interface SessionWorld {
  readonly print: Printer;
  readonly console: Console;
}

export async function exec(
  what: string,
  command: readonly string[],
  o: ExecOptions,
  client: AgentClient,
  { print, console }: SessionWorld,
): Promise<number> {
  if (command.length === 0) throw new CommandError(exitCodes.usage, 'which command? podsched exec POD -- COMMAND [ARGS…]');
  const { wanted, pod } = await askedPod(what, o.namespace, client);
  const { phase } = pod.status;
  if (phase === 'Succeeded' || phase === 'Failed')
    throw new CommandError(exitCodes.failed, `cannot exec into a container in a completed pod; current phase is ${phase}`);
  const picked = sessionContainer(pod, o.container);
  if (!picked.ok) throw new CommandError(picked.code === 404 ? exitCodes.notFound : exitCodes.failed, picked.message);
  const { name, note } = picked.value;
  if (note !== undefined) print.err(note.split('\n').map(harmless).join('\n'));
  const options = streamOptions({ stdin: o.stdin === true, tty: o.tty === true }, console, print.err);
  const path = `${containerPath('exec', wanted, name)}${streamQuery(options, command)}`;
  const code = await runSession(await client.session(path), options, console);
  if (code !== 0) print.err(`command terminated with exit code ${code}\n`);
  return code;
}
