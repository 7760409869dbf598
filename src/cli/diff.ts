/**
 * `diff -f FILE`: what apply would change, in this machine's manifest folder or on the topics of a fleet. Ends with 1 when there is a difference, as
 * kubectl diff does. The values of Secrets are never shown, only that they differ.
 */

import { createHmac, randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { audienceAnnotation, generationAnnotation } from '../api/delivery.ts';
import { keyText } from '../api/objects.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import type { DesiredScope } from '../api/topics.ts';
import { toYaml } from '../config/yaml.ts';
import { harmlessLines } from '../world/terminal.ts';
import { type ApplyOptions, anyNode, type FilesWorld, thisNode } from './apply.ts';
import { agentSetting } from './client.ts';
import { scopeText, sorted } from './desiredPlan.ts';
import { DesiredTopics, isTombstone } from './desiredTopics.ts';
import { exitCodes } from './exitCodes.ts';
import type { Printer } from './get.ts';
import { unifiedDiff } from './lineDiff.ts';
import { holderOf, readFolder } from './localFolder.ts';
import { type Manifest, readManifests } from './manifests.ts';
import { withAnnotations } from './rawObjects.ts';
import type { RemoteBroker } from './remoteBroker.ts';

/** Beside the manifest folder. */
export async function diffLocal(o: ApplyOptions, world: FilesWorld, print: Printer): Promise<number> {
  const manifests = await readManifests(o.filename, { stdin: world.stdin, node: await thisNode(o) }, print);
  const files = await readFolder(resolve(await agentSetting('staticPodPath', o, world.env)));
  return told(manifests, (m) => holderOf(files, m.key)?.raw, 'the folder', print);
}

/** Beside what is retained on the topics. */
export async function diffRemote(
  o: Pick<ApplyOptions, 'filename'>,
  scope: DesiredScope,
  { remote, stdin }: { readonly remote: RemoteBroker; readonly stdin: FilesWorld['stdin'] },
  print: Printer,
): Promise<number> {
  const manifests = await readManifests(o.filename, { stdin, node: anyNode }, print);
  const topics = await DesiredTopics.open(remote, scope);
  const { objects } = await topics.read(manifests.map((m) => m.key));
  const before = ({ key }: Manifest): Plain | undefined => {
    const object = objects.get(keyText(key));
    if (object?.raw === undefined || isTombstone(object)) return undefined;
    // apply adds them
    return withAnnotations(object.raw, { [generationAnnotation]: undefined, [audienceAnnotation]: undefined });
  };
  const after = manifests.map((m) => ({
    ...m,
    raw: withAnnotations(m.raw, { [generationAnnotation]: undefined, [audienceAnnotation]: undefined }),
  }));
  return told(after, before, scopeText(scope), print);
}

function told(manifests: readonly Manifest[], before: (m: Manifest) => Plain | undefined, where: string, print: Printer): number {
  let different = false;
  for (const manifest of manifests) {
    const there = before(manifest);
    const names = { before: `${keyText(manifest.key)} (${where})`, after: `${keyText(manifest.key)} (${manifest.file})` };
    const text = unifiedDiff(there === undefined ? '' : shown(there), shown(manifest.raw), names);
    if (text === '') continue;
    different = true;
    print.out(harmlessLines(text));
  }
  return different ? exitCodes.failed : exitCodes.done;
}

/** Keys in order, so that only what means something is another. */
const shown = (raw: Plain): string => toYaml(sorted(raw.kind === 'Secret' ? masked(raw) : raw));

/** Two values that differ are seen to differ, and nothing can be read or guessed from how. */
function masked(raw: Plain): Plain {
  const hidden = (values: unknown): unknown =>
    isPlain(values) ? Object.fromEntries(Object.entries(values).map(([key, value]) => [key, `*** (${mark(key, value)})`])) : values;
  return {
    ...raw,
    ...(raw.data !== undefined && { data: hidden(raw.data) }),
    ...(raw.stringData !== undefined && { stringData: hidden(raw.stringData) }),
  };
}

/** Of this run alone: a hash without a key would let short secrets be found by trying. */
const salt = randomBytes(32);
const mark = (key: string, value: unknown): string =>
  createHmac('sha256', salt)
    .update(JSON.stringify([key, value]))
    .digest('hex')
    .slice(0, 6);
