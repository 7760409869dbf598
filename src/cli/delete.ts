/**
 * `delete POD…` and `delete -f FILE`: the file in this machine's manifest folder, or with `--node`, `--group`, `--all` what is retained on the topics.
 * There the index goes first: a newer one that leaves a name out is seen by every node sooner or later. The empty payload after it is for the
 * nodes that listen now, and takes the message off the broker. A tombstone in its place is seen later, too: where no index is kept.
 */
import { join, resolve } from 'node:path';
import { audienceAnnotation, generationAnnotation } from '../api/delivery.ts';
import { nearest } from '../api/nearest.ts';
import { keyText, type ObjectKey } from '../api/objects.ts';
import { type DesiredScope, desiredTopic } from '../api/topics.ts';
import { parseTarget } from '../operations/target.ts';
import { harmless } from '../world/terminal.ts';
import { type ApplyOptions, anyNode, type FilesWorld, type PublishOptions, thisNode } from './apply.ts';
import { agentSetting } from './client.ts';
import { audienceOf, nextGeneration, scopeText, tombstone } from './desiredPlan.ts';
import { DesiredTopics, isTombstone } from './desiredTopics.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { holderOf, readFolder, removeFile } from './localFolder.ts';
import { readManifests } from './manifests.ts';
import type { RemoteBroker } from './remoteBroker.ts';

export interface DeleteOptions extends Partial<ApplyOptions> {
  readonly namespace: string;
  /** Leaves tombstones behind. */
  readonly tombstone?: true;
}

const shown = ({ kind, name }: ObjectKey): string => `${kind.toLowerCase()} "${name}"`;

/** `web`, `pod/web`, `configmap/app`, and what the files name. */
async function keysOf(
  names: readonly string[],
  o: DeleteOptions,
  read: (files: readonly string[]) => ReturnType<typeof readManifests>,
): Promise<readonly ObjectKey[]> {
  const { filename = [] } = o;
  if (names.length > 0 === filename.length > 0)
    throw new CommandError(exitCodes.usage, 'which one? podsched delete POD, or delete -f FILE');
  if (filename.length > 0) return (await read(filename)).map((m) => m.key);
  return names.map((name) => {
    const target = parseTarget(name, o.namespace);
    if (target === undefined)
      throw new CommandError(exitCodes.usage, `${JSON.stringify(name)} is no object: POD, configmap/NAME or secret/NAME is meant`);
    return target;
  });
}

/** Out of the manifest folder. Nothing is removed when one of them cannot be. */
export async function deleteLocal(names: readonly string[], o: DeleteOptions, world: FilesWorld, print: Printer): Promise<number> {
  const node = await thisNode(o);
  const keys = await keysOf(names, o, (files) => readManifests(files, { stdin: world.stdin, node }, print));
  const dir = resolve(await agentSetting('staticPodPath', o, world.env));
  const files = await readFolder(dir);
  const found = keys.map((key) => {
    const holder = holderOf(files, key);
    if (holder === undefined) {
      const close = nearest(
        keyText(key),
        files.flatMap((f) => f.objects.flatMap((object) => object.key ?? [])),
      );
      const meant = close === undefined ? '' : `; did you mean ${close}?`;
      throw new CommandError(exitCodes.notFound, `no manifest in ${dir} has ${shown(key)} in namespace "${key.namespace}"${meant}`);
    }
    return { key, holder };
  });
  const removed = new Set(found.map(({ key }) => keyText(key)));
  for (const { key, holder } of found) {
    const rest = holder.file.objects.filter((object) => object.key === undefined || !removed.has(object.key));
    if (rest.length === 0 && holder.file.readable) continue;
    const others = rest.map((object) => object.key ?? 'something without a name').join(', ') || 'what cannot be read';
    throw new CommandError(exitCodes.failed, `${join(dir, holder.file.name)} holds ${shown(key)} and ${others}: take it out there`);
  }
  for (const name of new Set(found.map(({ holder }) => holder.file.name))) await removeFile(dir, name);
  for (const { key } of found) print.out(`${harmless(shown(key))} deleted\n`);
  return exitCodes.done;
}

/** Off the topics of a fleet. */
export async function deleteRemote(
  names: readonly string[],
  o: DeleteOptions & PublishOptions,
  scope: DesiredScope,
  { remote, stdin }: { readonly remote: RemoteBroker; readonly stdin: FilesWorld['stdin'] },
  print: Printer,
): Promise<number> {
  const keys = await keysOf(names, o, (files) => readManifests(files, { stdin, node: anyNode }, print));
  const topics = o.noIndex === true ? undefined : await DesiredTopics.open(remote, scope);
  const state = await topics?.read(keys);
  const listed = (key: ObjectKey) => state?.index?.entries.find((e) => keyText(e.key) === keyText(key));
  for (const key of keys) {
    const there = state?.objects.get(keyText(key));
    // a tombstone is nothing that could be deleted, but one may take it away
    if (topics === undefined || listed(key) !== undefined || there !== undefined) continue;
    throw new CommandError(exitCodes.notFound, `${shown(key)} in namespace "${key.namespace}" is not desired of ${scopeText(scope)}`);
  }
  const signing = o.sign === undefined ? {} : { sign: o.sign, audience: audienceOf(scope) };
  const first = o.sign === undefined ? undefined : (topics?.nextGeneration() ?? 1);
  if (keys.some((key) => listed(key) !== undefined)) await topics?.changeIndex({ set: [], remove: keys }, signing);
  for (const key of keys) {
    const topic = desiredTopic(remote.prefix, scope, key);
    const before = state?.objects.get(keyText(key));
    const generation = nextGeneration({
      asked: o.generation,
      written: undefined,
      before: before?.generation ?? listed(key)?.generation,
      first,
    });
    const said = tombstone(key, {
      ...(generation !== undefined && { [generationAnnotation]: String(generation) }),
      ...(o.sign !== undefined && { [audienceAnnotation]: o.audience ?? audienceOf(scope) }),
    });
    const text = JSON.stringify(said);
    if (o.tombstone === true) await remote.publish(topic, o.sign?.(text, 'manifest') ?? text, { retain: true });
    else await remote.publish(topic, '', { retain: true });
    const was = before !== undefined && isTombstone(before) ? ' (it was a tombstone)' : '';
    print.out(`${harmless(shown(key))} deleted (${scopeText(scope)})${was}\n`);
  }
  return exitCodes.done;
}
