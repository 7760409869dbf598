/** The pod that a command is about, found by what a person wrote. */
import type { ToldPod } from '../api/status.ts';
import { findPod, isTarget, knownObjects, notFoundText, parseTarget, type Target } from '../operations/target.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';

/** `web`, or `pod/web`. Rejects with what is there instead, or why the pod is not there yet. */
export async function askedPod(
  what: string,
  namespace: string,
  client: AgentClient,
): Promise<{ readonly wanted: Target; readonly pod: ToldPod }> {
  const wanted = parseTarget(what, namespace);
  if (wanted?.kind !== 'Pod') throw new CommandError(exitCodes.usage, `${JSON.stringify(what)} is no pod: NAME, or pod/NAME, is meant`);
  const pods = await client.pods();
  const pod = findPod(pods, wanted);
  if (pod !== undefined) return { wanted, pod };
  const sync = await client.sync();
  const told = sync.find((s) => isTarget(wanted, s.object));
  if (told === undefined) throw new CommandError(exitCodes.notFound, notFoundText(wanted, knownObjects(sync, pods)));
  throw new CommandError(exitCodes.failed, `pod "${wanted.name}" has not run yet (${told.reason}); podsched why ${wanted.name} says more`);
}

/** A path of the local API about one container. */
export const containerPath = (answer: 'exec' | 'attach', { namespace, name }: Target, container: string): string =>
  `/${answer}/${[namespace, name, container].map(encodeURIComponent).join('/')}`;
