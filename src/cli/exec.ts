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
  if (client.captured !== undefined)
    return captured({ namespace: wanted.namespace, pod: wanted.name, container: name, command }, o, client, { print, console });
  const options = streamOptions({ stdin: o.stdin === true, tty: o.tty === true }, console, print.err);
  const path = `${containerPath('exec', wanted, name)}${streamQuery(options, command)}`;
  const code = await runSession(await client.session(path), options, console);
  if (code !== 0) print.err(`command terminated with exit code ${code}\n`);
  return code;
}

/** Where no session can be had: nothing can be typed, and all that was said comes at the end. */
async function captured(
  command: Parameters<NonNullable<AgentClient['captured']>>[0],
  o: ExecOptions,
  client: Pick<AgentClient, 'captured'>,
  { print, console }: SessionWorld,
): Promise<number> {
  if (o.stdin === true || o.tty === true)
    throw new CommandError(exitCodes.usage, 'there are no sessions over MQTT: -i and -t need the machine itself');
  const done = await client.captured?.(command);
  if (done === undefined) throw new CommandError(exitCodes.failed, 'this way there is no exec');
  await console.output.write(done.stdout);
  await console.errors.write(done.stderr);
  if (done.truncated) print.err('the output was cut: there was more of it than fits\n');
  if (done.exitCode !== 0) print.err(`command terminated with exit code ${done.exitCode}\n`);
  return done.exitCode;
}
