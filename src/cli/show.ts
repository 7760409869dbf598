/** `describe pod NAME` and `why POD`. */
import { isAbsolute, join } from 'node:path';
import { toYaml } from '../config/yaml.ts';
import { describePod } from '../operations/describe.ts';
import { findPod, isKind, isTarget, knownObjects, notFoundText, parseTarget, type Target } from '../operations/target.ts';
import { why, whyText } from '../operations/why.ts';
import { harmlessLines } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { isNodeKind, showNode } from './nodes.ts';

const folderText = (path: unknown): string => (typeof path === 'string' && isAbsolute(path) ? join(path, '/') : '');

function target(text: string, namespace: string): Target {
  const parsed = parseTarget(text, namespace);
  if (parsed === undefined) throw new CommandError(exitCodes.usage, `${JSON.stringify(text)} is no object: NAME, or pod/NAME, is meant`);
  return parsed;
}

/** `pod web`, `pod/web`, or `web` alone. */
export async function describe(
  kind: string,
  name: string | undefined,
  namespace: string,
  client: AgentClient,
  print: Printer,
): Promise<number> {
  const what = name === undefined ? kind : `${kind}/${name}`;
  const [word = '', slashed] = what.split(/\/(.*)/s);
  if (isNodeKind(word)) return showNode(slashed, client, print);
  if (name === undefined && isKind(kind)) throw new CommandError(exitCodes.usage, `which one? podsched describe ${kind} NAME`);
  const wanted = parseTarget(what, namespace);
  if (wanted?.kind !== 'Pod') throw new CommandError(exitCodes.usage, `${what}: pods can be described; why answers for other objects too`);
  if (client.describe !== undefined) {
    print.out(harmlessLines(await client.describe({ ...wanted, kind: 'Pod' })));
    return exitCodes.done;
  }
  const [pods, sync, events] = await Promise.all([client.pods(), client.sync(), client.events({ namespace, name: wanted.name })]);
  const pod = findPod(pods, wanted);
  const told = sync.find((s) => isTarget(wanted, s.object));
  if (pod === undefined && told === undefined) throw new CommandError(exitCodes.notFound, notFoundText(wanted, knownObjects(sync, pods)));
  const ofPod = events.filter((e) => e.involvedObject.kind === 'Pod');
  print.out(harmlessLines(describePod({ ...(pod && { pod }), ...(told && { sync: told }), events: ofPod, nowMs: print.nowMs() })));
  return exitCodes.done;
}

export async function showWhy(
  what: string,
  o: { readonly namespace: string; readonly output?: 'json' | 'yaml' },
  client: AgentClient,
  print: Printer,
): Promise<number> {
  const wanted = target(what, o.namespace);
  if (client.why !== undefined) {
    const said = await client.why(wanted, o.output === undefined ? 'text' : 'json');
    if (o.output === undefined) print.out(harmlessLines(said));
    else print.out(o.output === 'yaml' ? toYaml(JSON.parse(said)) : `${JSON.stringify(JSON.parse(said), null, 2)}\n`);
    return exitCodes.done;
  }
  const [pods, sync, files, conditions] = await Promise.all([client.pods(), client.sync(), client.files(), client.conditions()]);
  const answer = why(wanted, { pods, sync, files, conditions });
  if (answer === undefined) {
    const down = conditions.filter((c) => c.status === 'True' && c.type === 'ManifestFolderUnreadable').map((c) => `; ${c.message}`);
    throw new CommandError(exitCodes.notFound, notFoundText(wanted, knownObjects(sync, pods)) + down.join(''));
  }
  if (o.output === 'json') print.out(`${JSON.stringify(answer, null, 2)}\n`);
  else if (o.output === 'yaml') print.out(toYaml(answer));
  else {
    const { staticPodPath } = await client.configuration();
    print.out(harmlessLines(whyText(answer, folderText(staticPodPath))));
  }
  return exitCodes.done;
}
