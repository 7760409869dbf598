/** `debug POD --image IMG -- CMD`: one more container in a running pod, to look with; with `-i` one is in it. Manners of kubectl debug. */
import { randomInt } from 'node:crypto';
import type { V1ContainerStatus } from '../api/status.ts';
import type { EnvVar } from '../api/v1.ts';
import { statusOf } from '../operations/logTarget.ts';
import { findPod, type Target } from '../operations/target.ts';
import type { AgentClient } from './client.ts';
import type { SessionWorld } from './exec.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { askedPod, containerPath } from './pod.ts';
import { runSession, streamOptions, streamQuery } from './session.ts';

export interface DebugOptions {
  readonly namespace: string;
  readonly image?: string;
  readonly container?: string;
  readonly target?: string;
  readonly stdin?: true;
  readonly tty?: true;
  readonly env?: readonly string[];
}

/** As Kubernetes makes names: no vowels, so no words. */
const letters = 'bcdfghjklmnpqrstvwxz2456789';
const lookMs = 200;
/** An end is told a moment after the session's. */
const endLooks = 15;

/** Why it will not start before somebody does something. */
const hopeless: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
]);

export async function debug(
  what: string,
  command: readonly string[],
  o: DebugOptions,
  client: AgentClient,
  world: SessionWorld,
): Promise<number> {
  const { print, console } = world;
  if (o.image === undefined || o.image === '') throw new CommandError(exitCodes.usage, 'which image? podsched debug POD --image IMAGE');
  const env = (o.env ?? []).map(envVar);
  const { wanted } = await askedPod(what, o.namespace, client);
  const options = streamOptions({ stdin: o.stdin === true, tty: o.tty === true }, console, print.err);
  const name = o.container ?? `debugger-${Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('')}`;
  if (o.container === undefined) print.err(`Defaulting debug container name to ${name}.\n`);
  await client.debug(wanted, {
    name,
    image: o.image,
    ...(command.length > 0 && { command }),
    ...(env.length > 0 && { env }),
    // a pipe has an end, and so has the input that it feeds; a terminal may come back
    ...(options.stdin && { stdin: true, ...(!console.inputIsTerminal && { stdinOnce: true }) }),
    ...(options.tty && { tty: true }),
    ...(o.target !== undefined && { targetContainerName: o.target }),
  });
  if (!options.stdin) return exitCodes.done;

  const started = await untilStarted(wanted, name, client, world);
  if (started.state.running !== undefined) {
    if (options.tty) print.err("If you don't see a command prompt, try pressing enter.\n");
    const path = `${containerPath('attach', wanted, name)}${streamQuery(options)}`;
    let session: Awaited<ReturnType<AgentClient['session']>> | undefined;
    try {
      session = await client.session(path);
    } catch (e) {
      // it ended meanwhile: what it said is in its log
      if (!(e instanceof CommandError && e.code === exitCodes.notFound)) throw e;
    }
    if (session !== undefined) {
      await runSession(session, options, console);
      return exitCode(wanted, name, client, world);
    }
  }
  const of = { namespace: wanted.namespace, pod: wanted.name, container: name };
  for await (const chunk of await client.logs(of, {})) await console.output.write(chunk);
  return exitCode(wanted, name, client, world);
}

/** `KEY=VALUE`; the value may be empty and may have more `=`. */
function envVar(text: string): EnvVar {
  const at = text.indexOf('=');
  // what stands there may be a secret: it is not repeated
  if (at < 1) throw new CommandError(exitCodes.usage, '--env: expected KEY=VALUE');
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

async function look(wanted: Target, name: string, client: AgentClient): Promise<V1ContainerStatus | undefined> {
  const pod = findPod(await client.pods(wanted.namespace), wanted);
  if (pod === undefined) throw new CommandError(exitCodes.notFound, `pod "${wanted.name}" is gone`);
  return statusOf(pod.status, name);
}

/** Waits until it runs or has ended; rejects with the reason when it cannot start. */
async function untilStarted(wanted: Target, name: string, client: AgentClient, { print }: SessionWorld): Promise<V1ContainerStatus> {
  for (;;) {
    const status = await look(wanted, name, client);
    if (status?.state.running ?? status?.state.terminated) return status;
    const { reason = '', message = '' } = status?.state.waiting ?? {};
    if (hopeless.has(reason))
      throw new CommandError(exitCodes.failed, `container ${name} cannot start: ${reason}${message === '' ? '' : `: ${message}`}`);
    await print.sleep(lookMs);
  }
}

/** Of its process; 0 when it goes on. */
async function exitCode(wanted: Target, name: string, client: AgentClient, { print }: SessionWorld): Promise<number> {
  for (let i = 0; i < endLooks; i++) {
    const ended = (await look(wanted, name, client))?.state.terminated;
    if (ended !== undefined) {
      if (ended.exitCode !== 0)
        print.err(
          `container ${name} terminated with exit code ${ended.exitCode}${ended.message === undefined ? '' : `: ${ended.message}`}\n`,
        );
      return ended.exitCode;
    }
    await print.sleep(lookMs);
  }
  return exitCodes.done;
}
